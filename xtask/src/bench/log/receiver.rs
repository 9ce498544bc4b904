//! A collector that accepts connections and keeps the bytes it reads; its CPU is not part of any result.

use anyhow::Result;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testkit::netns::Lab;

/// Size of the buffer, which is allocated and touched before any data arrives; it exceeds a burst of the longest
/// messages. A receiver that waits for memory would delay the senders.
const ROOM: usize = 320 << 20;
/// At least this many bytes are kept free.
const READ: usize = 1 << 20;

/// Accepts connections one after the other in a namespace.
pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    /// `None` once it has been joined.
    thread: Option<JoinHandle<Vec<u8>>>,
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Receiver {
    pub(super) fn start(lab: &Lab) -> Result<Receiver> {
        let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0"))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (count, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, stopped) = (Arc::clone(&count), Arc::clone(&stop));
        let room = vec![b' '; ROOM];
        let thread = std::thread::spawn(move || take(&listener, room, &counted, &stopped));
        Ok(Receiver { addr, thread: Some(thread), count, stop })
    }

    /// Bytes received so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The received bytes.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads from connections into `bytes`, overwriting its content; returns the received part.
fn take(listener: &TcpListener, mut bytes: Vec<u8>, count: &AtomicU64, stop: &AtomicBool) -> Vec<u8> {
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok((mut stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        while !stop.load(Ordering::Relaxed) {
            if bytes.len() - at < READ {
                bytes.resize(at + READ, b' ');
            }
            match stream.read(&mut bytes[at..]) {
                Ok(0) => break,
                Ok(read) => at += read,
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {}
                Err(_) => break,
            }
            count.store(at as u64, Ordering::Relaxed);
        }
    }
    bytes.truncate(at);
    bytes
}
