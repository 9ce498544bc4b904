//! Similar rows: most of their cells are known before the rows are rendered.

/// The values that similar rows have in common. Rows with equal values have the same cells in columns that are
/// [`Varying::Never`], and the same set of non-null columns among those that are [`Varying::InValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness<'r> {
    /// The values that are numbers.
    pub numbers: [u64; 4],
    /// The value that is text.
    pub text: &'r [u8],
}

/// How the cells of a column differ among similar rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Varying {
    /// They are equal.
    Never,
    /// Their values differ, but they are null either in all rows or in no row.
    InValue,
    /// Null if the cell of this column is null, arbitrary otherwise. That column has one of the variants above.
    OnlyWith(&'static str),
    /// They differ in any way.
    #[default]
    Freely,
}

/// The maximum count of numbers in which rows of one shape may differ.
pub const NUMBERS: usize = 16;
/// Index of the number that holds the nanoseconds within the row's second.
pub const NANOS: usize = 14;

/// Index of a message's number among the messages of its output; rows leave this slot free.
pub const MESSAGE: usize = 15;

/// The values that a row shares with others, and the numbers in which it differs from them. Together they determine
/// the row as far as most writers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape<'r> {
    /// The time of the row, in seconds since 1970. Names may change from one second to the next.
    pub second: u64,
    /// Other shared values that are numbers.
    pub shared: [u64; 5],
    /// Shared values that are text.
    pub texts: [&'r [u8]; 2],
    /// The numbers in which the row may differ; unused ones are 0.
    pub numbers: [u32; NUMBERS],
}

/// The content of a column in rows of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeColumn {
    /// Every row has the same value.
    Shared,
    /// The number at this index, or null.
    Number(usize),
    /// Something else.
    Other,
}
