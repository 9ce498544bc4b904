//! A collector that takes connections and keeps what it reads: its CPU is nobody's.

use anyhow::Result;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use testkit::netns::Lab;

/// Takes connections one after the other, in a namespace.
pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    bytes: Arc<Mutex<Vec<u8>>>,
    count: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Receiver {
    pub(super) fn start(lab: &Lab) -> Result<Receiver> {
        let listener = lab.inside(|| TcpListener::bind("127.0.0.1:0"))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let receiver = Receiver { addr, bytes: Arc::default(), count: Arc::default(), stop: Arc::default() };
        let (bytes, count, stop) =
            (Arc::clone(&receiver.bytes), Arc::clone(&receiver.count), Arc::clone(&receiver.stop));
        std::thread::spawn(move || take(&listener, &bytes, &count, &stop));
        Ok(receiver)
    }

    /// Bytes so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Everything that was received.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.stop.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn take(listener: &TcpListener, bytes: &Mutex<Vec<u8>>, count: &AtomicU64, stop: &AtomicBool) {
    let mut place = vec![0; 1 << 20];
    while !stop.load(Ordering::Relaxed) {
        let Ok((mut stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        while !stop.load(Ordering::Relaxed) {
            match stream.read(&mut place) {
                Ok(0) => break,
                Ok(read) => {
                    bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&place[..read]);
                    count.fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => {}
                Err(_) => break,
            }
        }
    }
}
