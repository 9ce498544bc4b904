//! Shapes of rows: what rows share that differ only in numbers.

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

/// The kind of a number in a shape, which determines its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A decimal number.
    Decimal {
        /// The largest possible value.
        largest: u32,
    },
    /// An IPv4 address.
    Address,
    /// Nanoseconds within a second.
    Nanoseconds,
}
