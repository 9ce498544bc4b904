//! Detects rows that come twice because the table changed while it was read.
//!
//! The kernel walks a chain of its hash table in steps: after sixteen sockets it releases the lock, and at the end of a
//! receive buffer it stops. It continues by position, so sockets that were added at the chain's head in between shift
//! the rest, and some are sent again. They were handed out a few rows to a few hundred rows ago: a bounded memory of
//! the latest rows finds them. (Chains longer than sixteen are rare in a table of ordinary size, but the end of a
//! receive buffer is not.) The same cookie in another state is the same connection and is also shown once.
//!
//! A key identifies exactly one object of the kernel: its cookie, its address (mixed with a key of this run), or an
//! inode, which the kernel gives to one object only. Endpoints are not a key: any number of sockets may have the same
//! (SO_REUSEPORT). Rows without such a key are never treated as duplicates, even if the kernel sends one twice.

/// Number of sets in the memory; a row's key determines its set.
///
/// Bound: sets of four recent rows that find duplicates in a dump. Beyond: a duplicate is shown twice; no row is lost.
/// By: a local user who opens and closes sockets fast.
const SETS: usize = 512;
/// Number of keys per set. With 512 sets a repetition after 256 rows is missed once in 500 times, one after 50 rows
/// never. The memory takes 16 KiB, and a lookup touches half a cache line (about 2 ns).
const KEYS_PER_SET: usize = 4;

/// The memory of one dump.
#[derive(Debug)]
pub(crate) struct Window {
    /// The latest keys of each set, newest first. 0 means empty.
    sets: Box<[[u64; KEYS_PER_SET]; SETS]>,
}

impl Window {
    pub(crate) fn new() -> Window {
        Window { sets: Box::new([[0; KEYS_PER_SET]; SETS]) }
    }

    /// True if the row with this key came shortly before; does not record it.
    #[inline]
    pub(crate) fn contains(&self, key: u64) -> bool {
        key != 0 && self.sets.get(set_of(key)).is_some_and(|set| set.contains(&key))
    }

    /// True if the row with this key came shortly before; records it. A key of 0 (the backend has no key) is always
    /// new.
    #[inline]
    pub(crate) fn is_double(&mut self, key: u64) -> bool {
        if key == 0 {
            return false;
        }
        let set = &mut self.sets[set_of(key)];
        if set.contains(&key) {
            return true;
        }
        let [a, b, c, _] = *set;
        *set = [key, a, b, c];
        false
    }
}

/// Cookies and inodes are consecutive numbers: an odd constant (the golden ratio) spreads them.
#[inline]
fn set_of(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % SETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_found_near_by() {
        let mut window = Window::new();
        for key in 1..=10_000 {
            assert!(!window.is_double(key), "{key} is new");
            assert!(window.is_double(key));
            assert!(key < 50 || window.is_double(key - 40));
        }
        assert!(!window.is_double(3), "long ago is forgotten");
    }

    #[test]
    fn most_are_found_a_buffer_later() {
        let mut window = Window::new();
        let key = |n: u64| n.wrapping_mul(0x5851_f42d_4c95_7f2d) | 1;
        let mut found = 0;
        for n in 0..10_000 {
            assert!(!window.is_double(key(n)));
            found += u64::from(n >= 256 && window.is_double(key(n - 256)));
        }
        assert!(found > 9_600, "{found}");
    }

    #[test]
    fn no_key_is_no_double() {
        let mut window = Window::new();
        assert!(!window.is_double(0));
        assert!(!window.is_double(0));
    }
}
