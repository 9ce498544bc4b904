//! Who receives the rows of a block.
use std::ops::ControlFlow;

use crate::{RowBytes, Table};

/// Receives the rows that a decoder makes of a block: decoded, or as bytes that were decoded in the round before.
///
/// `K` is what the decoder knows of a row besides its fields, `E` why bytes are no row.
pub trait RowVisitor<T: Table, K, E> {
    /// Called once for each block, with the number of its rows; each of them is given to another method.
    fn arrived(&mut self, rows: u64) {
        let _ = rows;
    }

    /// A decoded row, or the reason why it could not be decoded.
    fn row(&mut self, row: Result<(&T::Row<'_>, K), E>) -> ControlFlow<()>;

    /// True if [`RowVisitor::reuse`] is to be called before a row is decoded.
    fn reuses_rows(&self) -> bool {
        false
    }

    /// Handles a row by its bytes if they are those of the round before: then it need not be decoded. `None` if they
    /// are not.
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
