//! Positions in a table that may be resized.

/// A position in a table: the number of buckets before it, and the table's number of buckets. Entries are ordered by
/// their hash in a table of any size, so a fraction of one table corresponds to the same fraction of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TablePosition {
    pub(super) bucket: u32,
    pub(super) of: u32,
}

impl TablePosition {
    pub(super) const NOTHING: TablePosition = TablePosition { bucket: 0, of: 1 };

    pub(super) fn is_before(self, other: TablePosition) -> bool {
        u64::from(self.bucket) * u64::from(other.of) < u64::from(other.bucket) * u64::from(self.of)
    }

    /// The bucket at this position in a table of `buckets` buckets, rounded down.
    pub(super) fn in_table(self, buckets: u32) -> u32 {
        (u64::from(self.bucket) * u64::from(buckets) / u64::from(self.of.max(1))) as u32
    }
}
