//! One cell: a small `Copy` value that borrows its row, and the kind that tells how to read and write it.

use crate::{Addr, Owner};

/// The value of one field in one row. 24 bytes, `Copy`; borrows the row or the lookup it came from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'r> {
    /// Unknown, absent or folded. Never 0 and never the empty text.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number; its unit is in the field's [`Kind`].
    U64(u64),
    /// A number that may be negative.
    I64(i64),
    /// An address; IPv4-mapped ones are already IPv4.
    Addr(Addr),
    /// Text from outside: hostile until a sink has escaped it; not necessarily UTF-8.
    Bytes(&'r [u8]),
    /// One of our own words (a state, a protocol): needs no escaping.
    Name(&'static str),
    /// Who holds it.
    List(&'r [Owner]),
}

const _: () = assert!(size_of::<Value<'_>>() == 24);

impl Value<'_> {
    /// `Some(x)` as a number, `None` as null.
    pub fn number(n: Option<impl Into<u64>>) -> Self {
        match n {
            Some(n) => Value::U64(n.into()),
            None => Value::Null,
        }
    }

    /// True for [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl<'r> Value<'r> {
    /// Text that may be absent.
    pub fn text(t: Option<&'r [u8]>) -> Self {
        t.map_or(Value::Null, Value::Bytes)
    }
}

/// What a field's values mean: the unit, how a filter's literal is read, how a cell is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plain number of things.
    Count,
    /// Bytes; a filter may say `1MiB`.
    Bytes,
    /// Microseconds; a filter may say `20ms`.
    DurationUs,
    /// Milliseconds.
    DurationMs,
    /// Bits per second; a filter may say `10Mbps`.
    BitsPerSecond,
    /// A port.
    Port,
    /// An identifier: a number without a unit that is not summed (pid, uid, inode, cookie).
    Id,
    /// A number shown in hexadecimal with `0x` in text, as a number in JSON (mark).
    Hex,
    /// An IP address.
    Addr,
    /// Text from outside.
    Text,
    /// One of these words.
    Name(&'static [&'static str]),
    /// True or false.
    Bool,
    /// A list of owners.
    Owners,
}

impl Kind {
    /// True for kinds that are right-aligned on a terminal and may be summed or averaged.
    pub fn is_quantity(self) -> bool {
        matches!(self, Kind::Count | Kind::Bytes | Kind::DurationUs | Kind::DurationMs | Kind::BitsPerSecond)
    }

    /// True for kinds whose cells are numbers.
    pub fn is_number(self) -> bool {
        self.is_quantity() || matches!(self, Kind::Port | Kind::Id | Kind::Hex)
    }

    /// The unit in words for help and schema; empty if there is none.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Bytes => "bytes",
            Kind::DurationUs => "microseconds",
            Kind::DurationMs => "milliseconds",
            Kind::BitsPerSecond => "bits per second",
            _ => "",
        }
    }
}
