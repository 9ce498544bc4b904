//! Groups of other network namespaces: each namespace has its own groups with the same numbers.
//!
//! The thread that scans for namespaces ([`super::scanner`]) binds groups and closes none. The receiving thread takes
//! the sockets over, and empties and closes the sockets of removed namespaces.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::{FoundNetns, ShortShares};

use super::groups::GroupSocket;

/// Finds the host's namespaces except the one already being read; `None` if the search failed. It runs on a
/// separate thread.
pub type FindOtherNetns = Box<dyn FnMut() -> Option<Vec<FoundNetns>> + Send>;

/// Messages from the scanner to the receiving thread.
#[derive(Debug, Default)]
pub(crate) struct ScannerMessages {
    /// Newly bound sockets.
    pub(crate) bound: Vec<Arc<GroupSocket>>,
    /// Datagrams that arrived while the sockets were bound, each with its namespace.
    pub(crate) early: VecDeque<(u64, Vec<u8>)>,
    /// Namespaces that only a socket keeps alive. They may be among the namespaces in `bound`.
    pub(crate) gone: Vec<u64>,
}

/// Sockets in other namespaces, shared between the threads.
#[derive(Debug, Default)]
pub(crate) struct OtherNetnsSockets {
    /// All sockets that are read.
    sockets: Mutex<Vec<Arc<GroupSocket>>>,
    arrivals: Mutex<ScannerMessages>,
    has_arrivals: AtomicBool,
    /// True if sockets were added since the last [`OtherNetnsSockets::take_new`].
    has_new: AtomicBool,
    /// True once the run ends: no more sockets are taken over.
    is_over: AtomicBool,
    /// Number of namespaces that were bound only after the start.
    late: AtomicU64,
    /// Number of groups that could not be bound, and the reason for the first of them.
    unbound: Mutex<(u64, Option<String>)>,
    /// The largest shortage of memory so far.
    shortage: Mutex<ShortShares>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OtherNetnsSockets {
    /// Hands over sockets of a namespace; `is_late` if rules may have logged there before.
    pub(crate) fn hand_over(&self, bound: Vec<Arc<GroupSocket>>, early: Vec<(u64, Vec<u8>)>, is_late: bool) {
        let mut arrivals = lock(&self.arrivals);
        if self.is_over.load(Relaxed) {
            return;
        }
        self.late.fetch_add(is_late.into(), Relaxed);
        lock(&self.sockets).extend(bound.iter().cloned());
        arrivals.bound.extend(bound);
        arrivals.early.extend(early);
        self.has_new.store(true, Relaxed);
        self.has_arrivals.store(true, Relaxed);
    }

    /// Reports a removed namespace.
    pub(crate) fn add_removed(&self, netns_id: u64) {
        lock(&self.arrivals).gone.push(netns_id);
        self.has_arrivals.store(true, Relaxed);
    }

    /// The messages since the last call.
    pub(crate) fn take_arrivals(&self) -> Option<ScannerMessages> {
        if !self.has_arrivals.load(Relaxed) {
            return None;
        }
        let mut arrivals = lock(&self.arrivals);
        self.has_arrivals.store(false, Relaxed);
        Some(std::mem::take(&mut *arrivals))
    }

    /// Refuses all sockets from now on.
    pub(crate) fn end(&self) {
        let _arrivals = lock(&self.arrivals);
        self.is_over.store(true, Relaxed);
    }

    /// Removes a socket that is no longer read.
    pub(crate) fn remove_socket(&self, socket: &Arc<GroupSocket>) {
        lock(&self.sockets).retain(|one| !Arc::ptr_eq(one, socket));
    }

    /// Changes the size of a namespace's receive buffers.
    pub(crate) fn make_room(&self, netns_id: u64, bytes: u32) {
        let sockets = lock(&self.sockets);
        sockets.iter().filter(|socket| socket.netns_id == netns_id).for_each(|socket| socket.make_room(bytes));
    }

    /// Records how many namespaces currently lack memory.
    pub(crate) fn note_shortage(&self, now: ShortShares) {
        let mut shortage = lock(&self.shortage);
        shortage.left_out = shortage.left_out.max(now.left_out);
        shortage.reduced = shortage.reduced.max(now.reduced);
    }

    /// The largest shortage of memory so far.
    pub(crate) fn largest_shortage(&self) -> ShortShares {
        *lock(&self.shortage)
    }

    /// Returns the sockets, for tests.
    #[cfg(test)]
    pub(crate) fn locked_sockets(&self) -> MutexGuard<'_, Vec<Arc<GroupSocket>>> {
        lock(&self.sockets)
    }

    /// Number of sockets that are read.
    pub(crate) fn len(&self) -> usize {
        lock(&self.sockets).len()
    }

    /// True if sockets were added since the last call.
    pub(crate) fn take_new(&self) -> bool {
        self.has_new.load(Relaxed) && self.has_new.swap(false, Relaxed)
    }

    /// Makes the kernel copy this number of bytes of each packet; true if the request succeeded on every socket.
    pub(crate) fn copy(&self, bytes: u32) -> bool {
        lock(&self.sockets).iter().all(|socket| socket.copy(bytes).is_ok())
    }

    /// Number of namespaces that were bound only after the start.
    pub(crate) fn late_count(&self) -> u64 {
        self.late.load(Relaxed)
    }

    /// Stores the number of groups that are not read, and the reason for the first of them.
    pub(crate) fn set_unbound(&self, count: u64, why: Option<String>) {
        let mut unbound = lock(&self.unbound);
        *unbound = (count, why.or(unbound.1.take()));
    }

    /// Number of groups that could not be bound, and the reason.
    pub(crate) fn unbound_groups(&self) -> (u64, Option<String>) {
        lock(&self.unbound).clone()
    }
}
