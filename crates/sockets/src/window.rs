//! Rows that come twice because the table changed while it was read.
//!
//! The kernel resumes a dump by (bucket, position in its chain). Sockets that were added to the head of that chain
//! meanwhile shift the positions, so the first rows after a receive boundary may be the last ones before it. Found
//! again are rows of one chain only, and they come first: so a few hundred keys are remembered, and the look-up
//! ends some rows after the last double. Memory is bounded, a row costs about 2 ns.

/// How many rows before a boundary are remembered: more than the longest chain of an ordinary table.
const REMEMBERED: usize = 256;
const _: () = assert!(REMEMBERED.is_power_of_two());

/// After so many rows in a row that were new, no double is expected any more in this block.
const NEW_ENOUGH: u32 = 16;

/// The window of one dump.
#[derive(Debug)]
pub(crate) struct Window {
    /// Keys of the latest rows, a ring. 0 is no key.
    seen: Box<[u64; REMEMBERED]>,
    next: usize,
    block: u64,
    /// Rows still to be looked up in this block.
    watch: u32,
}

impl Window {
    pub(crate) fn new() -> Window {
        Window { seen: Box::new([0; REMEMBERED]), next: 0, block: 0, watch: 0 }
    }

    /// True if the row with this key was there shortly before the boundary at which `block` began.
    /// A key of 0 (the door has none) is always new.
    #[inline]
    pub(crate) fn is_double(&mut self, key: u64, block: u64) -> bool {
        if block != self.block {
            self.block = block;
            self.watch = NEW_ENOUGH;
        }
        if self.watch > 0 && key != 0 {
            if self.seen.contains(&key) {
                self.watch = NEW_ENOUGH;
                return true;
            }
            self.watch -= 1;
        }
        self.seen[self.next % REMEMBERED] = key;
        self.next = self.next.wrapping_add(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_found_at_boundaries_only() {
        let mut window = Window::new();
        for key in 1..=1000 {
            assert!(!window.is_double(key, 0));
        }
        // The same key inside a block is a socket of its own door's making, not a resumed chain.
        assert!(!window.is_double(1000, 0));
        assert!(window.is_double(998, 1));
        assert!(window.is_double(999, 1));
        assert!(!window.is_double(1001, 1));
        // Too old to be of the resumed chain.
        assert!(!window.is_double(3, 1));
    }

    #[test]
    fn the_look_out_ends_when_rows_are_new() {
        let mut window = Window::new();
        assert!(!window.is_double(5, 0));
        for key in 100..100 + u64::from(NEW_ENOUGH) {
            assert!(!window.is_double(key, 1));
        }
        assert!(!window.is_double(5, 1));
        assert!(window.is_double(5, 2), "a new boundary, a new look");
    }

    #[test]
    fn no_key_is_no_double() {
        let mut window = Window::new();
        assert!(!window.is_double(0, 0));
        assert!(!window.is_double(0, 1));
    }
}
