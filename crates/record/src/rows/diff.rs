//! The result of comparing a row of `--watch` with the previous round: whether it is new, and how fast its counters
//! grow.
//!
//! Rows hold it by reference, because nearly all rows outside `--watch` have no such result. The engine remembers the
//! rounds and compares them (`engine::watched`).

use crate::named_enum::named_enum;
use crate::{Table, Value};

named_enum! {
    /// The change of a row since the previous round.
    pub enum Change {
        /// The previous round did not contain the row.
        New => "new",
        /// The previous round contained the row.
        Kept => "kept",
        /// The row has disappeared; its values are those last seen.
        Gone => "gone",
    }
}

/// Counters of a row that only increase, from any backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Segments received; the kernel uses 32 bits.
    pub segs_in: u32,
    /// Segments sent; 32 bits.
    pub segs_out: u32,
    /// Segments retransmitted; 32 bits.
    pub retrans: u32,
}

/// Two readings of a row's counters. Each rate is computed on demand, because few users show all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// The earlier reading.
    pub before: Counters,
    /// The later one.
    pub now: Counters,
    /// Nanoseconds between them.
    pub interval_ns: u64,
}

impl Rate {
    /// Bytes received per second, rounded like all rates; `None` if the counter decreased or no time passed.
    pub fn bytes_in_per_s(&self) -> Option<u64> {
        self.per_s(self.now.bytes_in.checked_sub(self.before.bytes_in)?)
    }

    /// Bytes sent per second.
    pub fn bytes_out_per_s(&self) -> Option<u64> {
        self.per_s(self.now.bytes_out.checked_sub(self.before.bytes_out)?)
    }

    /// Sum of the bytes received and sent per second; `None` if either rate is unknown.
    pub fn bytes_per_s(&self) -> Option<u64> {
        Some(self.bytes_in_per_s()?.saturating_add(self.bytes_out_per_s()?))
    }

    // A 32-bit counter that is smaller than before has wrapped around: the counters of a socket are never reset.

    /// Segments received per second.
    pub fn segs_in_per_s(&self) -> Option<u64> {
        self.per_s(self.now.segs_in.wrapping_sub(self.before.segs_in).into())
    }

    /// Segments sent per second.
    pub fn segs_out_per_s(&self) -> Option<u64> {
        self.per_s(self.now.segs_out.wrapping_sub(self.before.segs_out).into())
    }

    /// Segments retransmitted per second.
    pub fn retrans_per_s(&self) -> Option<u64> {
        self.per_s(self.now.retrans.wrapping_sub(self.before.retrans).into())
    }

    fn per_s(&self, grown: u64) -> Option<u64> {
        const SECOND: u64 = 1_000_000_000;
        match self.interval_ns {
            0 => None,
            _ if grown == 0 => Some(0),
            interval => {
                let (grown, interval) = (u128::from(grown), u128::from(interval));
                u64::try_from((grown * u128::from(SECOND) + interval / 2) / interval).ok()
            }
        }
    }
}

/// The result of comparing a row with the previous round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowDiff {
    /// `None` in the first round, and if the previous round was incomplete.
    pub change: Option<Change>,
    /// `None` for a row without counters, or a row that is new.
    pub rate: Option<Rate>,
}

impl RowDiff {
    /// The cell of field `change`.
    pub(super) fn change<'r>(diff: Option<&RowDiff>) -> Value<'r> {
        diff.and_then(|w| w.change).map_or(Value::Null, |change| Value::Name(change.name()))
    }

    /// The cell of a rate.
    pub(super) fn rate<'r>(diff: Option<&RowDiff>, rate: fn(&Rate) -> Option<u64>) -> Value<'r> {
        Value::number(diff.and_then(|w| w.rate.as_ref()).and_then(rate))
    }
}

/// The key that distinguishes a row from all others, in this round and the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// Network namespace.
    pub netns_id: u64,
    /// Nearly unique in the namespace: [`DiffTable::is_same`] resolves collisions.
    pub id: u64,
}

/// A table whose rows can be recognized in the next round.
pub trait DiffTable: Table {
    /// The data saved from a row, to show it after it has disappeared.
    type Saved;

    /// The identity of a row. `secret` prevents remote peers from choosing addresses that collide.
    fn identity(row: &Self::Row<'_>, secret: u64) -> Identity;

    /// False if the row has the same identity as the saved row but is a different one.
    fn is_same(kept: &Self::Saved, row: &Self::Row<'_>) -> bool;

    /// Its counters, if the backend has them.
    fn counters(row: &Self::Row<'_>) -> Option<Counters>;

    /// Saves the data of a row.
    fn save(row: &Self::Row<'_>) -> Self::Saved;

    /// The row with the result of its comparison.
    fn with_diff<'w>(row: &'w Self::Row<'_>, diff: &'w RowDiff) -> Self::Row<'w>;

    /// The row for something that has disappeared.
    fn vanished_row<'w>(identity: Identity, kept: &'w Self::Saved, diff: &'w RowDiff) -> Self::Row<'w>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_example() {
        let before = Counters { bytes_in: 1_000, bytes_out: 5, segs_in: u32::MAX, segs_out: 7, retrans: 0 };
        let now = Counters { bytes_in: 4_001, bytes_out: 4, segs_in: 1, segs_out: 7, retrans: 3 };
        let rate = Rate { before, now, interval_ns: 2_000_000_000 };
        assert_eq!(rate.bytes_in_per_s(), Some(1_501), "1500.5 is rounded");
        assert_eq!(rate.bytes_out_per_s(), None, "backwards");
        assert_eq!(rate.segs_in_per_s(), Some(1), "run over by two");
        assert_eq!((rate.segs_out_per_s(), rate.retrans_per_s()), (Some(0), Some(2)));
        assert_eq!(Rate { interval_ns: 0, ..rate }.bytes_in_per_s(), None);
        let huge = Rate { now: Counters { bytes_in: u64::MAX, ..now }, interval_ns: 1, ..rate };
        assert_eq!(huge.bytes_in_per_s(), None, "more than a number holds");
    }
}
