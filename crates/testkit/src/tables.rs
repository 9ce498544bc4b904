//! Coordinates tests that fill the machine's conntrack table or change its size.
//!
//! The limit, the number of buckets and the slabs belong to the whole machine, regardless of the namespace of an
//! entry. Tests that create entries share the table; a test that changes or measures its size has exclusive use.

use crate::lock::MachineLock;
use std::cell::Cell;

const NAME: &str = "conntrack";

thread_local! {
    /// True if this thread has exclusive use, so that it may also fill the table.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Exclusive use of the table until drop. Must be taken before the first entry is created, because a thread that
/// already shares the table would wait for itself.
#[derive(Debug)]
pub struct ExclusiveUse {
    lock: Option<MachineLock>,
}

impl ExclusiveUse {
    /// Waits until no other test uses the table. Returns at once if this thread already has exclusive use.
    pub fn take() -> ExclusiveUse {
        if IS_ALONE.get() {
            return ExclusiveUse { lock: None };
        }
        let lock = MachineLock::take(NAME);
        IS_ALONE.set(true);
        ExclusiveUse { lock: Some(lock) }
    }
}

impl Drop for ExclusiveUse {
    fn drop(&mut self) {
        if self.lock.is_some() {
            IS_ALONE.set(false);
        }
    }
}

/// Shared use of the table until drop; free if this thread has exclusive use.
#[derive(Debug)]
pub struct SharedUse {
    _lock: Option<MachineLock>,
}

impl SharedUse {
    /// Waits until no test has exclusive use of the table.
    pub fn share() -> SharedUse {
        SharedUse { _lock: (!IS_ALONE.get()).then(|| MachineLock::share(NAME)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_need_not_share() {
        let alone = ExclusiveUse::take();
        let is_free = || SharedUse::share()._lock.is_none();
        assert!(is_free());
        drop(ExclusiveUse::take());
        assert!(is_free(), "what was taken first ends last");
        drop(alone);
        let [one, two] = [SharedUse::share(), SharedUse::share()];
        assert!(one._lock.is_some() && two._lock.is_some());
    }
}
