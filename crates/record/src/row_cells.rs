//! The cells of one row, computed on demand.

use crate::Value;

/// The planned cells of one row. A writer that needs only a few of them does not pay for the others.
pub trait RowCells {
    /// The number of cells.
    fn count(&self) -> usize;

    /// The cell of the planned column `index`; null if `index` is out of range. Each call computes the cell again.
    fn cell(&self, index: usize) -> Value<'_>;

    /// All cells, in the order of the columns. They are computed once.
    fn all(&mut self) -> &[Value<'_>];
}

/// Cells that were computed earlier.
impl RowCells for &[Value<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn cell(&self, index: usize) -> Value<'_> {
        self.get(index).copied().unwrap_or(Value::Null)
    }

    fn all(&mut self) -> &[Value<'_>] {
        self
    }
}
