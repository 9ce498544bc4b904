//! A collector that is away, slow, or killed when it is told to be; what it has read, it keeps.

use anyhow::Result;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use testkit::netns::Lab;

/// How often a mood is looked at.
const STEP: Duration = Duration::from_millis(5);

/// What the collector does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    /// Nobody listens: connections are refused, the one that there was is gone.
    Away,
    /// It reads at most so many bytes a second.
    Reads(usize),
    /// It takes connections and reads nothing.
    Deaf,
    /// It ends.
    Ended,
}

impl Mood {
    /// It reads as fast as it can.
    pub(super) const WELL: Mood = Mood::Reads(usize::MAX);
}

#[derive(Debug)]
struct Shared {
    mood: Mood,
    /// The connection is to be dropped, whatever lies in it unread: a killed process.
    kill: bool,
    bytes: Vec<u8>,
}

/// A collector by TCP in a namespace.
pub(super) struct Collector {
    pub(super) addr: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Starts in this mood.
    pub(super) fn start(lab: &Lab, mood: Mood) -> Result<Collector> {
        let listener = lab.inside(|| TcpListener::bind("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Shared { mood, kill: false, bytes: Vec::new() }));
        let (theirs, inside) = (Arc::clone(&shared), lab.path());
        let thread = std::thread::spawn(move || {
            let Ok(netns) = sys::NetNs::open_path(&inside) else { return };
            let _inside = netns.enter();
            work(addr, Some(listener), &theirs);
        });
        Ok(Collector { addr, shared, thread: Some(thread) })
    }

    pub(super) fn set(&self, mood: Mood) {
        lock(&self.shared).mood = mood;
    }

    /// Drops the connection with what lies in it.
    pub(super) fn kill(&self) {
        lock(&self.shared).kill = true;
    }

    /// Bytes so far.
    pub(super) fn count(&self) -> usize {
        lock(&self.shared).bytes.len()
    }

    /// Everything that was read.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.set(Mood::Ended);
        let _ = self.thread.take().map(JoinHandle::join);
        std::mem::take(&mut lock(&self.shared).bytes)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(addr: SocketAddr, mut listener: Option<TcpListener>, shared: &Mutex<Shared>) {
    let mut place = vec![0; 1 << 20];
    let mut streams: Vec<TcpStream> = Vec::new();
    loop {
        let (mood, kill) = {
            let mut shared = lock(shared);
            (shared.mood, std::mem::take(&mut shared.kill))
        };
        if kill || mood == Mood::Away {
            streams.clear();
        }
        let at_once = match mood {
            Mood::Ended => return,
            Mood::Away => {
                listener = None;
                0
            }
            Mood::Deaf => 0,
            Mood::Reads(rate) => (rate / 1000).saturating_mul(STEP.as_millis() as usize).clamp(1, place.len()),
        };
        if mood != Mood::Away && listener.is_none() {
            listener = TcpListener::bind(addr).ok();
        }
        streams.extend(listener.as_ref().and_then(accepted));
        let read = streams.iter_mut().map(|stream| read(stream, &mut place[..at_once], shared)).sum::<usize>();
        // One that may read as fast as it can goes on while there is something.
        if read == 0 || mood != Mood::WELL {
            std::thread::sleep(STEP);
        }
    }
}

fn accepted(listener: &TcpListener) -> Option<TcpStream> {
    listener.set_nonblocking(true).ok()?;
    let (stream, _) = listener.accept().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

fn read(stream: &mut TcpStream, place: &mut [u8], shared: &Mutex<Shared>) -> usize {
    let read = if place.is_empty() { 0 } else { stream.read(place).unwrap_or(0) };
    lock(shared).bytes.extend_from_slice(&place[..read]);
    read
}
