//! What became of every message of an output.

/// Messages that were given up, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// The store was full, or could not be written.
    pub full: u64,
    /// The program ended before they were delivered, and the store does not outlive it.
    pub end: u64,
    /// The receiver can never take them: too long for a datagram.
    pub refused: u64,
}

impl Drops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.full + self.end + self.refused
    }

    /// Each reason with its count.
    pub fn reasons(&self) -> [(&'static str, u64); 3] {
        [("full", self.full), ("end", self.end), ("refused", self.refused)]
    }
}

/// The counts of an output. `seen = delivered + folded + limited + dropped + waiting` at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Records that were meant for the output.
    pub seen: u64,
    /// Of these, the receiver has: by TCP, its kernel has acknowledged them; else, they were written.
    pub delivered: u64,
    /// Records that an earlier one stands for (`×1203`).
    pub folded: u64,
    /// Records above the rate that is allowed.
    pub limited: u64,
    /// Records that were given up.
    pub dropped: Drops,
    /// Messages that were sent a second time because the receiver may not have read them. In no other count.
    pub resent: u64,
}

impl Ledger {
    /// Records that wait, as the other counts say.
    pub fn waiting(&self) -> u64 {
        self.seen.saturating_sub(self.delivered + self.folded + self.limited + self.dropped.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_accounted_for_waits() {
        let dropped = Drops { full: 1, end: 2, refused: 3 };
        let ledger = Ledger { seen: 20, delivered: 5, folded: 1, limited: 1, dropped, resent: 9 };
        assert_eq!((ledger.waiting(), dropped.total()), (7, 6));
        assert_eq!(dropped.reasons().map(|(_, count)| count), [1, 2, 3]);
    }
}
