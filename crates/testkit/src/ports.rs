//! TCP ports for the servers of tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Returns an unused port of 127.0.0.1. It is below the ports that the kernel assigns by itself, so other tests cannot
/// take it before the server does, or while the server is down.
pub(crate) fn unused_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Another process of tests begins elsewhere.
    let first = std::process::id().wrapping_mul(61);
    loop {
        let port = 10_000 + (first.wrapping_add(NEXT.fetch_add(1, Relaxed)) % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
