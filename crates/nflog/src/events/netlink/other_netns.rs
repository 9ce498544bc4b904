//! Groups of other network namespaces: each has groups of its own with the same numbers.
//!
//! Who looks for namespaces ([`super::scanner`]) binds groups and closes none; who receives takes the sockets over, and
//! empties and closes those of namespaces that have gone.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::{FoundNetns, Shortage};

use super::groups::GroupSocket;

/// Finds the host's namespaces except the one already being read; `None` if the search failed. It runs on a
/// separate thread.
pub type FindOtherNetns = Box<dyn FnMut() -> Option<Vec<FoundNetns>> + Send>;

/// What is told to who receives.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Sockets that were bound.
    pub(crate) bound: Vec<Arc<GroupSocket>>,
    /// Datagrams that came while they were bound, each with its namespace.
    pub(crate) early: VecDeque<(u64, Vec<u8>)>,
    /// Namespaces to which nothing but a socket leads. They may be among those of `bound`.
    pub(crate) gone: Vec<u64>,
}

/// Sockets in other namespaces, as the threads share them.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// All that are read.
    sockets: Mutex<Vec<Arc<GroupSocket>>>,
    arrivals: Mutex<Arrivals>,
    has_arrivals: AtomicBool,
    /// True if sockets have come since [`Elsewhere::take_new`] was called.
    has_new: AtomicBool,
    /// True once the run ends: nothing is taken over any more.
    is_over: AtomicBool,
    /// Namespaces that were bound only after the start.
    late: AtomicU64,
    /// Groups that could not be bound, and why the first of them could not.
    unread: Mutex<(u64, Option<String>)>,
    /// The largest shortage of memory so far.
    shortage: Mutex<Shortage>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Elsewhere {
    /// Hands over sockets of a namespace; `is_late` if rules may have logged there before.
    pub(crate) fn hand_over(&self, bound: Vec<Arc<GroupSocket>>, early: Vec<(u64, Vec<u8>)>, is_late: bool) {
        let mut arrivals = locked(&self.arrivals);
        if self.is_over.load(Relaxed) {
            return;
        }
        self.late.fetch_add(is_late.into(), Relaxed);
        locked(&self.sockets).extend(bound.iter().cloned());
        arrivals.bound.extend(bound);
        arrivals.early.extend(early);
        self.has_new.store(true, Relaxed);
        self.has_arrivals.store(true, Relaxed);
    }

    /// A namespace has gone.
    pub(crate) fn leave(&self, netns_id: u64) {
        locked(&self.arrivals).gone.push(netns_id);
        self.has_arrivals.store(true, Relaxed);
    }

    /// What has come since the last call.
    pub(crate) fn take_arrivals(&self) -> Option<Arrivals> {
        if !self.has_arrivals.load(Relaxed) {
            return None;
        }
        let mut arrivals = locked(&self.arrivals);
        self.has_arrivals.store(false, Relaxed);
        Some(std::mem::take(&mut *arrivals))
    }

    /// From now on nothing is handed over.
    pub(crate) fn end(&self) {
        let _arrivals = locked(&self.arrivals);
        self.is_over.store(true, Relaxed);
    }

    /// A socket that is no longer read.
    pub(crate) fn forget(&self, socket: &Arc<GroupSocket>) {
        locked(&self.sockets).retain(|one| !Arc::ptr_eq(one, socket));
    }

    /// Changes the size of a namespace's receive buffers.
    pub(crate) fn make_room(&self, netns_id: u64, bytes: u32) {
        let sockets = locked(&self.sockets);
        sockets.iter().filter(|socket| socket.netns_id == netns_id).for_each(|socket| socket.make_room(bytes));
    }

    /// Records how many namespaces currently lack memory.
    pub(crate) fn note_shortage(&self, now: Shortage) {
        let mut shortage = locked(&self.shortage);
        shortage.left_out = shortage.left_out.max(now.left_out);
        shortage.reduced = shortage.reduced.max(now.reduced);
    }

    /// The largest shortage of memory so far.
    pub(crate) fn shortage(&self) -> Shortage {
        *locked(&self.shortage)
    }

    /// Returns the sockets, for tests.
    #[cfg(test)]
    pub(crate) fn locked_sockets(&self) -> MutexGuard<'_, Vec<Arc<GroupSocket>>> {
        locked(&self.sockets)
    }

    /// How many are read.
    pub(crate) fn len(&self) -> usize {
        locked(&self.sockets).len()
    }

    /// True if sockets have come since the last call.
    pub(crate) fn take_new(&self) -> bool {
        self.has_new.load(Relaxed) && self.has_new.swap(false, Relaxed)
    }

    /// Has the kernel copy so many bytes of each packet; true if it was asked at every socket.
    pub(crate) fn copy(&self, bytes: u32) -> bool {
        locked(&self.sockets).iter().all(|socket| socket.copy(bytes).is_ok())
    }

    /// Namespaces that were bound only after the start.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Relaxed)
    }

    /// Notes how many groups are not read, and why the first of them is not.
    pub(crate) fn set_unread(&self, count: u64, why: Option<String>) {
        let mut unread = locked(&self.unread);
        *unread = (count, why.or(unread.1.take()));
    }

    /// Groups that could not be bound, and why.
    pub(crate) fn unread(&self) -> (u64, Option<String>) {
        locked(&self.unread).clone()
    }
}
