//! A collector that can be made unavailable, slow or killed; it keeps everything it has read.

use anyhow::Result;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use testkit::netns::Lab;

/// Interval between two checks of the behaviour.
const STEP: Duration = Duration::from_millis(5);

/// The behaviour of the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    /// The port is closed: new connections are refused, and existing connections are dropped.
    Away,
    /// It reads at most this many bytes per second.
    Reads(usize),
    /// It accepts connections but does not read from them.
    Deaf,
    /// The collector's thread ends.
    Ended,
}

impl Mood {
    /// It reads as fast as it can.
    pub(super) const WELL: Mood = Mood::Reads(usize::MAX);
}

#[derive(Debug)]
struct Shared {
    mood: Mood,
    /// Drop the connections with their unread data, as if the process had been killed.
    kill: bool,
    bytes: Vec<u8>,
}

/// A TCP collector in a namespace.
pub(super) struct Collector {
    pub(super) addr: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// Starts with this behaviour.
    pub(super) fn start(lab: &Lab, mood: Mood) -> Result<Collector> {
        let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0"))?;
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

    /// Drops the connections with their unread data.
    pub(super) fn kill(&self) {
        lock(&self.shared).kill = true;
    }

    /// Bytes read so far.
    pub(super) fn count(&self) -> usize {
        lock(&self.shared).bytes.len()
    }

    /// The bytes that were read.
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
        // At full speed, reading continues as long as data is available.
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
