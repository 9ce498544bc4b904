//! Who may fill the machine's connection-tracking table, and who may change its size.
//!
//! The limit, the number of buckets and the slabs belong to the whole machine, whatever namespace an entry is in. Tests
//! that make entries share the table; one that changes its size, or weighs it, has it alone.

use crate::lock::MachineLock;
use std::cell::Cell;

const NAME: &str = "conntrack";

thread_local! {
    /// Whether this thread has the table alone: then it may fill it, too.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// The table for oneself, until drop. Taken before the first entry is made: who shares it already would wait for
/// himself.
#[derive(Debug)]
pub struct Alone {
    lock: Option<MachineLock>,
}

impl Alone {
    /// Waits until nobody else uses the table. A thread that has it already has it still.
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

/// The table together with others, until drop; nothing to wait for where this thread has it alone.
#[derive(Debug)]
pub struct Together {
    _lock: Option<MachineLock>,
}

impl Together {
    /// Waits until nobody has the table alone.
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
