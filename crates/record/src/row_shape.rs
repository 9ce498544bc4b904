//! Shapes of rows: what rows share that differ only in numbers.

/// The number of words that hold the numbers in which rows of one shape may differ: one word each, and four for an IPv6
/// address.
pub const NUMBERS: usize = 24;
/// Index of the number that holds the nanoseconds within the row's second.
pub const NANOS: usize = 14;
/// Index of a message's number among the messages of its output; rows leave this slot free.
pub const MESSAGE: usize = 15;
/// Index of the first word of the first IPv6 address; the words of the second one follow. The indexes below are of
/// numbers of one word.
pub const V6_ADDRESSES: usize = 16;
/// Number of words of an IPv6 address.
pub const V6_WORDS: usize = 4;

/// Index of the first word of an address that has the index `v4` as an IPv4 address: 0 or 1.
#[inline]
pub fn v6_index(v4: usize) -> usize {
    V6_ADDRESSES + V6_WORDS * v4
}

/// The IPv6 address whose first word has this index.
#[inline]
pub fn v6_at(numbers: &[u32; NUMBERS], first: usize) -> [u8; 16] {
    let [a, b, c, d] = *numbers.get(first..).and_then(<[u32]>::first_chunk).unwrap_or(&[0; V6_WORDS]);
    (u128::from(a) << 96 | u128::from(b) << 64 | u128::from(c) << 32 | u128::from(d)).to_be_bytes()
}

/// Stores the words of an IPv6 address, the first one at this index.
#[inline]
pub fn put_v6_at(numbers: &mut [u32; NUMBERS], first: usize, octets: [u8; 16]) {
    let bits = u128::from_be_bytes(octets);
    if let Some(words) = numbers.get_mut(first..).and_then(<[u32]>::first_chunk_mut::<V6_WORDS>) {
        *words = [96, 64, 32, 0].map(|shift| (bits >> shift) as u32);
    }
}

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
    /// The numbers in which the row may differ; unused words are 0.
    pub numbers: [u32; NUMBERS],
}

/// The content of a column in rows of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeColumn {
    /// Every row has the same value.
    Shared,
    /// The number at this index, or null; for an IPv6 address, the one at [`v6_index`] of it.
    Number(usize),
    /// Something else.
    Other,
}

/// The kind of a number in a shape, which determines its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A decimal number.
    Decimal {
        /// The smallest value of a row of every shape.
        smallest: u32,
        /// The largest possible value.
        largest: u32,
    },
    /// An IPv4 address.
    Address,
    /// An IPv6 address, of [`V6_WORDS`] words.
    AddressV6,
    /// Nanoseconds within a second.
    Nanoseconds,
}
