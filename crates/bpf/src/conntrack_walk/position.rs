//! Places in a table whose size may change.

/// How far into a table: buckets before it, of so many. Entries stand in the order of their hash in a table of any
/// size, so that a share of one is the same share of another.
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

    /// The bucket in a table of `buckets` where it lies, rounded down.
    pub(super) fn in_table(self, buckets: u32) -> u32 {
        (u64::from(self.bucket) * u64::from(buckets) / u64::from(self.of.max(1))) as u32
    }
}
