//! Rows that are alike: what most of their cells read is known before they are made.

/// What rows are alike in: rows with equal ones have the same cells in columns that are [`Varying::Never`], and the
/// same columns set of those that are [`Varying::InValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness<'r> {
    /// Whatever is a number.
    pub numbers: [u64; 4],
    /// Whatever is a text.
    pub text: &'r [u8],
}

/// How the cells of a column differ in rows that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Varying {
    /// They do not.
    Never,
    /// All of them are set, or none.
    InValue,
    /// Null where the cell of this column is, in any way elsewhere. That column is one of those before.
    OnlyWith(&'static str),
    /// In any way.
    #[default]
    Freely,
}

/// How many numbers rows of one shape may differ in.
pub const NUMBERS: usize = 16;
/// The number that is the nanoseconds of the row's second.
pub const NANOS: usize = 14;

/// The number of a message among those of its output, in a place that rows leave free.
pub const MESSAGE: usize = 15;

/// What a row shares with others, and the numbers in which it differs from them: both together determine the row, as
/// far as most writers show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape<'r> {
    /// When it happened, in seconds since 1970. Names may be others in the next one.
    pub second: u64,
    /// Whatever else is a number and shared.
    pub shared: [u64; 5],
    /// Whatever is a text.
    pub texts: [&'r [u8]; 2],
    /// The numbers in which it may differ; those that it does not have are 0.
    pub numbers: [u32; NUMBERS],
}

/// What a column shows of rows of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeColumn {
    /// Always the same.
    Shared,
    /// One of the numbers, or null.
    Number(usize),
    /// Something else.
    Other,
}
