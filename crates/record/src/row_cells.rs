//! The cells of one row, made when they are asked for.

use crate::Value;

/// The planned cells of one row. Whoever writes a few of them does not pay for all.
pub trait RowCells {
    /// How many there are.
    fn count(&self) -> usize;

    /// The cell of the planned column `index`; null behind the last. Costs what making it costs, each time.
    fn cell(&self, index: usize) -> Value<'_>;

    /// All cells, in the order of the columns. They are made once.
    fn all(&mut self) -> &[Value<'_>];
}

/// Cells that were made before.
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
