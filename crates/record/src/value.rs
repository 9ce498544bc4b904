//! Cells: a small `Copy` value that borrows from its row, and the kind that determines how it is read and written.

use crate::{Addr, FarTime, LinkAddr, Owner};

/// The value of one field in one row. 24 bytes, `Copy`; borrows from the row or from a lookup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'r> {
    /// Unknown, absent or folded. Never used for 0 or the empty text.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number; its unit is in the field's [`Kind`].
    U64(u64),
    /// A number that may be negative.
    I64(i64),
    /// A number in thousandths: 1500 is written `1.500`.
    Thousandths(u64),
    /// A point in time: nanoseconds since 1970-01-01 00:00 UTC.
    Time(u64),
    /// A point in time that those nanoseconds cannot hold.
    FarTime(FarTime),
    /// An address; IPv4-mapped ones are already IPv4.
    Addr(Addr),
    /// A link-local address with its interface, where the row alone does not tell which one it is: `fe80::2%eth0`.
    LinkAddr(LinkAddr),
    /// Text from outside: hostile until a sink has escaped it; not necessarily UTF-8.
    Bytes(&'r [u8]),
    /// Text from outside that represents several values, and the number of the others: `nginx +3` in text. Filters,
    /// sorting, JSON and CSV use only the text.
    FirstOf(&'r [u8], u32),
    /// One of our own words (a state, a protocol): needs no escaping.
    Name(&'static str),
    /// One of our own words that is only a guess: text output appends `?`; filters, sorting and JSON use the plain
    /// word.
    Guess(&'static str),
    /// Owners.
    Owners(&'r [Owner]),
    /// Values in order.
    List(&'r (dyn List + 'r)),
    /// Values with names.
    Object(&'r (dyn Object + 'r)),
    /// An address and, if present, a port.
    Endpoint(Addr, Option<u16>),
    /// A network: an address with zero host bits, and its prefix length.
    Prefix(Addr, u8),
    /// Some of our own words: bit n stands for word n.
    Bits(u32, &'static [&'static str]),
    /// Words from outside, joined by commas: hostile until a sink has escaped them.
    Words(&'r [u8]),
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

    /// A point in time in ns since 1970.
    pub fn time(ns: i128) -> Self {
        FarTime::split(ns).map_or_else(Value::FarTime, Value::Time)
    }

    /// The address in a cell of addresses, without its interface.
    pub fn addr(&self) -> Option<Addr> {
        match self {
            Value::Addr(addr) => Some(*addr),
            Value::LinkAddr(link) => Some(link.addr()),
            _ => None,
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

    /// The text, or null if it is empty.
    pub fn nonempty(text: &'r [u8]) -> Self {
        if text.is_empty() { Value::Null } else { Value::Bytes(text) }
    }

    /// Returns only the text of [`Value::FirstOf`], as groups need it; returns any other value unchanged.
    pub fn without_other_owners(self) -> Self {
        if let Value::FirstOf(text, _) = self { Value::Bytes(text) } else { self }
    }

    /// The words of a list of words; no words for any other value.
    pub fn words(self) -> Words<'r> {
        match self {
            Value::Bits(bits, names) => Words::Bits(bits, names),
            Value::Words(text) => Words::Outside(text),
            _ => Words::Bits(0, &[]),
        }
    }
}

/// A list of values. [`Value::List`] borrows it from the row or the lookup.
pub trait List {
    /// Calls `each` with the items in order.
    fn for_each(&self, each: &mut dyn FnMut(Value<'_>));
}

/// A group of named values, such as the limits of a port range. [`Value::Object`] borrows it.
pub trait Object {
    /// Calls `each` with the members in JSON order. Names need no escaping.
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>));
}

/// A set of words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words<'r> {
    /// Our own words: bit n stands for word n; bits beyond the last word are ignored.
    Bits(u32, &'static [&'static str]),
    /// Words from outside, joined by commas: hostile until a sink has escaped them.
    Outside(&'r [u8]),
}

impl<'r> Words<'r> {
    /// The words, in the order of the bits or of the text.
    pub fn iter(self) -> WordsIter<'r> {
        WordsIter { words: self, at: 0 }
    }
}

/// Iterates over a set of words.
#[derive(Clone, Debug)]
pub struct WordsIter<'r> {
    words: Words<'r>,
    at: u32,
}

impl<'r> Iterator for WordsIter<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        match &mut self.words {
            Words::Bits(bits, names) => {
                let left = bits.checked_shr(self.at).filter(|left| *left != 0)?;
                let bit = self.at + left.trailing_zeros();
                self.at = bit + 1;
                names.get(bit as usize).map(|name| name.as_bytes())
            }
            Words::Outside(rest) => {
                if rest.is_empty() {
                    return None;
                }
                let (word, after) = match rest.iter().position(|byte| *byte == b',') {
                    Some(comma) => (rest.get(..comma)?, rest.get(comma + 1..)?),
                    None => (*rest, &[][..]),
                };
                *rest = after;
                Some(word)
            }
        }
    }
}

/// The meaning of a field's values: the unit, the syntax of literals in filters, the alignment of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plain number of things.
    Count,
    /// A number with three decimals; a filter may use `1.5`.
    Thousandths,
    /// Bytes; a filter may use `1MiB`.
    Bytes,
    /// Microseconds; a filter may use `20ms`.
    DurationUs,
    /// Milliseconds.
    DurationMs,
    /// Seconds; a filter may use `5m`.
    DurationS,
    /// A point in time; a filter may use `10:30`, `-5m`, `2026-11-22T10:30:00Z`.
    Time,
    /// Bits per second; a filter may use `10Mbps`.
    BitsPerSecond,
    /// A port.
    Port,
    /// An identifier: a number without a unit that is not summed (pid, uid, inode, cookie).
    Id,
    /// A number shown in hexadecimal with `0x` in text and as a plain number in JSON (mark).
    Hex,
    /// An IP address.
    Addr,
    /// Text from outside.
    Text,
    /// One of these words.
    Name(&'static [&'static str]),
    /// True or false.
    Bool,
    /// A list of owners; a filter names their members as in `owners.pid`.
    Owners,
    /// A list of texts from outside; a filter matches if any text does.
    Texts,
    /// A list of objects with these members; a filter names them as in `ports_used_up.proto`.
    Objects(&'static [Member]),
    /// An address with a port; a filter may give either or both.
    Endpoint,
    /// A set of these words; if the list is empty, words from outside.
    Words(&'static [&'static str]),
}

/// A member of the objects of a [`Kind::Objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name: lower case, unit last.
    pub name: &'static str,
    /// Meaning and unit.
    pub kind: Kind,
}

/// The members of an [`Owner`].
const OF_OWNERS: &[Member] = &[
    Member { name: "pid", kind: Kind::Id },
    Member { name: "process", kind: Kind::Text },
    Member { name: "fd", kind: Kind::Id },
    Member { name: "started_ms", kind: Kind::DurationMs },
];

impl Kind {
    /// The members of the objects that a cell of this kind lists; empty for other kinds.
    pub fn members(self) -> &'static [Member] {
        match self {
            Kind::Owners => OF_OWNERS,
            Kind::Objects(members) => members,
            _ => &[],
        }
    }

    /// True for lists other than sets of words: rows cannot be grouped by them.
    pub fn is_list(self) -> bool {
        matches!(self, Kind::Owners | Kind::Texts | Kind::Objects(_))
    }

    /// True for kinds that are right-aligned on a terminal and may be summed or averaged.
    pub fn is_quantity(self) -> bool {
        matches!(
            self,
            Kind::Count | Kind::Bytes | Kind::DurationUs | Kind::DurationMs | Kind::DurationS | Kind::BitsPerSecond
        )
    }

    /// True for kinds whose cells are numbers.
    pub fn is_number(self) -> bool {
        self.is_quantity() || matches!(self, Kind::Port | Kind::Id | Kind::Hex | Kind::Thousandths)
    }

    /// The unit in words for help and schema; empty for kinds without a unit.
    pub fn unit_name(self) -> &'static str {
        match self {
            Kind::Thousandths => "thousandths",
            Kind::Bytes => "bytes",
            Kind::DurationUs => "microseconds",
            Kind::DurationMs => "milliseconds",
            Kind::DurationS => "seconds",
            Kind::BitsPerSecond => "bits per second",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_bits_and_from_outside() {
        let of = |words: Words<'static>| words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
        const NAMES: &[&str] = &["a", "b", "c"];
        assert_eq!(of(Words::Bits(0b101, NAMES)), ["a", "c"]);
        assert_eq!(of(Words::Bits(0b1010, NAMES)), ["b"], "the fourth has no word");
        assert!(of(Words::Bits(0, NAMES)).is_empty() && of(Words::Outside(b"")).is_empty());
        assert_eq!(of(Words::Bits(1 << 31, &[""; 32])), [""]);
        assert_eq!(of(Words::Outside(b"audit,web,,x")), ["audit", "web", "", "x"]);
    }
}
