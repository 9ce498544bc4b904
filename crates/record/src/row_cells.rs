//! The cells of one row, computed on demand.

use crate::Value;

/// The planned cells of one row. A writer that does not need them does not pay for them.
pub trait RowCells {
    /// All cells, in the order of the columns. They are computed at the first call.
    fn all_cells(&mut self) -> &[Value<'_>];
}

/// Cells that were computed earlier.
impl RowCells for &[Value<'_>] {
    fn all_cells(&mut self) -> &[Value<'_>] {
        self
    }
}
