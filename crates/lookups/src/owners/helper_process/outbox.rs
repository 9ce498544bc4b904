//! The output for messages of the process that looks up owners.

use runtime::helper_process::Helper;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sys::clock;

/// Maximum wait for events, whose ring is read a hundred times per second.
const EVENTS_NS_MAX: u64 = 100_000_000;

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventsOf {
    /// TCP connections as they are established and closed.
    Connections,
    /// UDP sockets as they send.
    Senders,
}

/// The output for messages: each caller writes whole ones.
#[derive(Clone)]
pub(super) struct Outbox {
    helper: Arc<Mutex<Helper>>,
    /// Events before these monotonic times were sent: of connections, and of UDP sockets.
    sent_until_ns: Arc<[AtomicU64; 2]>,
}

impl Outbox {
    pub(super) fn new(helper: Helper) -> Outbox {
        Outbox { helper: Arc::new(Mutex::new(helper)), sent_until_ns: Arc::new([u64::MAX; 2].map(AtomicU64::new)) }
    }

    /// Writes whole messages, and empties `bytes`. False once the reader has closed its end.
    pub(super) fn send(&self, bytes: &mut Vec<u8>) -> bool {
        let sent = self.helper.lock().unwrap_or_else(PoisonError::into_inner).send(bytes);
        bytes.clear();
        sent.is_ok()
    }

    /// Notes that events before `until_ns` were sent; `u64::MAX` if none will come.
    pub(super) fn note_sent(&self, events: EventsOf, until_ns: u64) {
        if let Some(sent) = self.sent_until_ns.get(events as usize) {
            sent.store(until_ns, Ordering::Release);
        }
    }

    /// Waits until the events before `until_ns` were sent, because a connection missing from a reading is in one of
    /// them.
    pub(super) fn await_events(&self, until_ns: u64) {
        let begin_ns = clock::monotonic_ns();
        let is_late = || clock::monotonic_ns().saturating_sub(begin_ns) > EVENTS_NS_MAX;
        let is_sent = || self.sent_until_ns.iter().all(|sent| sent.load(Ordering::Acquire) >= until_ns);
        while !is_sent() && !is_late() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
