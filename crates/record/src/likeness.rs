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
