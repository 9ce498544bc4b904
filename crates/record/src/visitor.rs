//! Receivers of the rows of a block.
use std::ops::ControlFlow;

use crate::{RowBytes, Table};

/// Receives the rows that a decoder extracts from a block: decoded, or as bytes that were decoded in the previous
/// round.
///
/// `K` is the decoder's knowledge of a row apart from its fields, `E` the reason why bytes could not be decoded.
pub trait RowVisitor<T: Table, K, E> {
    /// Called once for each block, with the number of its rows. Each row is then passed to another method.
    fn add_arrived(&mut self, rows: u64) {
        let _ = rows;
    }

    /// Handles a decoded row, or the reason why it could not be decoded.
    fn row(&mut self, row: Result<(&T::Row<'_>, K), E>) -> ControlFlow<()>;

    /// True if [`RowVisitor::reuse`] must be called before a row is decoded.
    fn reuses_rows(&self) -> bool {
        false
    }

    /// Handles a row by its bytes if they are unchanged since the previous round, so it need not be decoded. Returns
    /// `None` if they changed.
    fn reuse(&mut self, bytes: RowBytes<'_>, keys: K) -> Option<ControlFlow<()>> {
        let _ = (bytes, keys);
        None
    }
}

impl<T: Table, K, E, F> RowVisitor<T, K, E> for F
where
    F: FnMut(Result<(&T::Row<'_>, K), E>) -> ControlFlow<()>,
{
    #[inline(always)]
    fn row(&mut self, row: Result<(&T::Row<'_>, K), E>) -> ControlFlow<()> {
        self(row)
    }
}
