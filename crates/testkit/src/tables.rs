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
pub struct Alone {
    lock: Option<MachineLock>,
}

impl Alone {
    /// Waits until no other test uses the table. Returns at once if this thread already has exclusive use.
    pub fn take() -> Alone {
        if IS_ALONE.get() {
            return Alone { lock: None };
        }
        let lock = MachineLock::take(NAME);
        IS_ALONE.set(true);
        Alone { lock: Some(lock) }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.lock.is_some() {
            IS_ALONE.set(false);
        }
    }
}

/// Shared use of the table until drop; free if this thread has exclusive use.
#[derive(Debug)]
pub struct Together {
    _lock: Option<MachineLock>,
}

impl Together {
    /// Waits until no test has exclusive use of the table.
    pub fn share() -> Together {
        Together { _lock: (!IS_ALONE.get()).then(|| MachineLock::share(NAME)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_need_not_share() {
        let alone = Alone::take();
        let is_free = || Together::share()._lock.is_none();
        assert!(is_free());
        drop(Alone::take());
        assert!(is_free(), "what was taken first ends last");
        drop(alone);
        let [one, two] = [Together::share(), Together::share()];
        assert!(one._lock.is_some() && two._lock.is_some());
    }
}
