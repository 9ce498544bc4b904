//! The ledger of an output: what became of each message.

/// Dropped messages, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// The store was full or could not be written.
    pub full: u64,
    /// They waited longer than the maximum age.
    pub age: u64,
    /// Stored messages that a crash, a power failure or a damaged file destroyed; also records in memory that stood
    /// for others when the program was killed.
    pub lost: u64,
    /// The program ended before they were delivered, and its store does not outlive it.
    pub end: u64,
    /// The receiver never takes them, for example because they are too long for a datagram.
    pub refused: u64,
}

impl Drops {
    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        self.full + self.age + self.lost + self.end + self.refused
    }

    /// Each reason with its count.
    pub fn reasons(&self) -> [(&'static str, u64); 5] {
        [("full", self.full), ("age", self.age), ("lost", self.lost), ("end", self.end), ("refused", self.refused)]
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Drops) {
        self.full += other.full;
        self.age += other.age;
        self.lost += other.lost;
        self.end += other.end;
        self.refused += other.refused;
    }
}

/// The counts of an output. `seen = delivered + folded + limited + dropped + waiting` at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Records that were meant for the output.
    pub seen: u64,
    /// Messages that the receiver has: over TCP, its kernel has acknowledged them; otherwise, they were written.
    pub delivered: u64,
    /// Records that an earlier one stands for (`×1203`).
    pub folded: u64,
    /// Records above the allowed rate.
    pub limited: u64,
    /// Records that were dropped.
    pub dropped: Drops,
    /// Messages that were sent again because the receiver may not have read them. Not part of any other count.
    pub resent: u64,
    /// Records kept in memory to stand for others at the end of a window. Not part of any other count until then; lost
    /// if the run is killed.
    pub held: u64,
}

impl Ledger {
    /// Returns the records that wait: those seen that are in no other count.
    pub fn waiting_records(&self) -> u64 {
        self.seen.saturating_sub(self.delivered + self.folded + self.limited + self.dropped.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_accounted_for_waits() {
        let mut dropped = Drops { full: 1, end: 2, refused: 3, ..Drops::default() };
        let ledger = Ledger { seen: 20, delivered: 5, folded: 1, limited: 1, dropped, resent: 9, held: 3 };
        assert_eq!((ledger.waiting_records(), dropped.total()), (7, 6));
        dropped.add(&Drops { full: 10, age: 4, lost: 5, ..Drops::default() });
        assert_eq!(dropped.reasons().map(|(_, count)| count), [11, 4, 5, 2, 3]);
    }
}
