//! Cells that outlive their row: packed into one arena, and read back as values that borrow it.
//!
//! A row of the default columns takes about 45 bytes instead of ten values of 24 bytes plus the data they borrow.
//! Equal cells of one field always pack to equal bytes, so packed keys can be hashed and compared directly (except
//! owner lists, which are stored by place).

use record::{Addr, LinkAddr, OwnedValue, Owner, Value};

/// The first byte of a packed cell, which determines the following ones. Numbers and places are packed as
/// [`tag::NUMBER`].
mod tag {
    /// This tag and the next two have no further bytes.
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    /// Eight bytes, big endian.
    pub(super) const NEGATIVE: u8 = 3;
    /// Four octets.
    pub(super) const ADDR4: u8 = 4;
    /// Sixteen octets.
    pub(super) const ADDR6: u8 = 5;
    /// Length, then the bytes.
    pub(super) const TEXT: u8 = 6;
    /// Place in [`super::SideTables::words`].
    pub(super) const WORD: u8 = 7;
    /// Place of the first in [`super::SideTables::owners`], then their number.
    pub(super) const OWNERS: u8 = 8;
    /// A packed address.
    pub(super) const END: u8 = 9;
    /// A packed address, then the port in two bytes.
    pub(super) const END_WITH_PORT: u8 = 10;
    /// Place in [`super::SideTables::lists`], then four bytes, big endian.
    pub(super) const BITS: u8 = 11;
    /// Words from outside: length, then the bytes.
    pub(super) const OUTSIDE: u8 = 12;
    /// Place in [`super::SideTables::words`].
    pub(super) const GUESS: u8 = 13;
    /// Nanoseconds since 1970 as a number.
    pub(super) const TIME: u8 = 14;
    /// A number.
    pub(super) const THOUSANDTHS: u8 = 15;
    /// The number of following bytes, 0 to 8, is added.
    pub(super) const NUMBER: u8 = 16;
    /// Place in [`super::SideTables::nested`].
    pub(super) const NESTED: u8 = 32;
    /// Stored as a packed address, then the prefix length in one byte.
    pub(super) const PREFIX: u8 = 33;
    /// Stored as the number of others, then as TEXT.
    pub(super) const FIRST_OF: u8 = 34;
    /// Stored as nanoseconds since 1970 in sixteen bytes, big endian.
    pub(super) const FAR_TIME: u8 = 35;
    /// Sixteen octets, then the interface: length, then the bytes.
    pub(super) const LINK_ADDR: u8 = 36;
}

/// The arena.
#[derive(Default)]
pub(crate) struct PackedCells {
    /// Consecutive packed cells.
    bytes: Vec<u8>,
    side: SideTables,
}

/// The data that packed cells refer to by place.
#[derive(Default)]
pub(crate) struct SideTables {
    /// Owners of all cells, one list after the other; equal lists are not shared.
    owners: Vec<Owner>,
    /// Lists and objects; equal ones are not shared either.
    nested: Vec<OwnedValue>,
    /// Distinct words of our own; they are few, so a linear search finds them.
    words: Vec<&'static str>,
    /// Distinct lists of words for bits; at most a handful.
    lists: Vec<&'static [&'static str]>,
}

impl SideTables {
    /// Appends the packed form of `value` to `out`.
    pub(crate) fn pack(&mut self, value: &Value<'_>, out: &mut Vec<u8>) {
        match *value {
            Value::Null => out.push(tag::NULL),
            Value::Bool(yes) => out.push(if yes { tag::TRUE } else { tag::FALSE }),
            Value::U64(n) => pack_number(n, out),
            Value::I64(n) => match u64::try_from(n) {
                Ok(n) => pack_number(n, out),
                Err(_) => {
                    out.push(tag::NEGATIVE);
                    out.extend_from_slice(&n.to_be_bytes());
                }
            },
            Value::Addr(Addr::V4(octets)) => {
                out.push(tag::ADDR4);
                out.extend_from_slice(&octets);
            }
            Value::Addr(Addr::V6(octets)) => {
                out.push(tag::ADDR6);
                out.extend_from_slice(&octets);
            }
            Value::Bytes(text) => {
                out.push(tag::TEXT);
                pack_number(text.len() as u64, out);
                out.extend_from_slice(text);
            }
            Value::Name(word) => {
                out.push(tag::WORD);
                let place = self.word(word);
                pack_number(place as u64, out);
            }
            Value::Owners(owners) => {
                out.push(tag::OWNERS);
                pack_number(self.owners.len() as u64, out);
                pack_number(owners.len() as u64, out);
                self.owners.extend_from_slice(owners);
            }
            rare => self.pack_rare(rare, out),
        }
    }

    /// Packs kinds of values that few tables have, separate from the defaults.
    fn pack_rare(&mut self, value: Value<'_>, out: &mut Vec<u8>) {
        match value {
            Value::Endpoint(addr, port) => {
                out.push(if port.is_some() { tag::END_WITH_PORT } else { tag::END });
                self.pack(&Value::Addr(addr), out);
                port.iter().for_each(|port| out.extend_from_slice(&port.to_be_bytes()));
            }
            Value::Prefix(addr, len) => {
                out.push(tag::PREFIX);
                self.pack(&Value::Addr(addr), out);
                out.push(len);
            }
            Value::LinkAddr(link) => {
                out.push(tag::LINK_ADDR);
                out.extend_from_slice(link.addr().octets());
                pack_number(link.iface().len() as u64, out);
                out.extend_from_slice(link.iface());
            }
            Value::Bits(bits, list) => {
                out.push(tag::BITS);
                let place = self.lists.iter().position(|known| std::ptr::eq(*known, list) || *known == list);
                let place = place.unwrap_or_else(|| {
                    self.lists.push(list);
                    self.lists.len() - 1
                });
                pack_number(place as u64, out);
                out.extend_from_slice(&bits.to_be_bytes());
            }
            Value::Guess(word) => {
                out.push(tag::GUESS);
                let place = self.word(word);
                pack_number(place as u64, out);
            }
            Value::Time(ns) => {
                out.push(tag::TIME);
                pack_number(ns, out);
            }
            Value::FarTime(time) => {
                out.push(tag::FAR_TIME);
                out.extend_from_slice(&time.nanoseconds().to_be_bytes());
            }
            Value::Thousandths(n) => {
                out.push(tag::THOUSANDTHS);
                pack_number(n, out);
            }
            nested @ (Value::List(_) | Value::Object(_)) => {
                out.push(tag::NESTED);
                pack_number(self.nested.len() as u64, out);
                self.nested.push(nested.into());
            }
            Value::FirstOf(text, others) => {
                out.push(tag::FIRST_OF);
                pack_number(others.into(), out);
                pack_number(text.len() as u64, out);
                out.extend_from_slice(text);
            }
            Value::Words(text) => {
                out.push(tag::OUTSIDE);
                pack_number(text.len() as u64, out);
                out.extend_from_slice(text);
            }
            _ => out.push(tag::NULL),
        }
    }

    /// Returns the place of a word. The same text at two addresses (two crates' constants) is one word.
    fn word(&mut self, word: &'static str) -> usize {
        let same_place = self.words.iter().position(|w| std::ptr::eq(*w, word));
        same_place.or_else(|| self.words.iter().position(|w| *w == word)).unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        })
    }
}

/// Packs a number as its length and its bytes without leading zeros: small numbers take one or two bytes, and the
/// packed bytes sort like the numbers.
fn pack_number(n: u64, out: &mut Vec<u8>) {
    let bytes = n.to_be_bytes();
    let skipped = n.leading_zeros() as usize / 8;
    out.push(tag::NUMBER + (8 - skipped) as u8);
    out.extend_from_slice(bytes.get(skipped..).unwrap_or(&[]));
}

impl PackedCells {
    /// Returns the number of bytes in the arena.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends one cell.
    pub(crate) fn put(&mut self, value: &Value<'_>) {
        self.side.pack(value, &mut self.bytes);
    }

    /// Appends packed cells or any other bytes; returns their offset.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    /// Takes all bytes out; the side tables stay.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Returns the side tables, for packing into a scratch buffer with the same places.
    pub(crate) fn side(&mut self) -> &mut SideTables {
        &mut self.side
    }

    /// Returns bytes in their stored form.
    pub(crate) fn bytes(&self, at: usize, len: usize) -> &[u8] {
        self.bytes.get(at..at.saturating_add(len)).unwrap_or(&[])
    }

    /// Reads cells from offset `at` on, one per call.
    pub(crate) fn read(&self, at: usize) -> CellReader<'_> {
        CellReader { side: &self.side, rest: self.bytes.get(at..).unwrap_or(&[]) }
    }
}

/// Reads packed cells.
pub(crate) struct CellReader<'k> {
    side: &'k SideTables,
    rest: &'k [u8],
}

impl<'k> CellReader<'k> {
    /// Returns the next cell; null past the end.
    pub(crate) fn cell(&mut self) -> Value<'k> {
        self.try_cell().unwrap_or(Value::Null)
    }

    fn try_cell(&mut self) -> Option<Value<'k>> {
        Some(match self.byte()? {
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::NEGATIVE => Value::I64(i64::from_be_bytes(self.array()?)),
            tag::ADDR4 => Value::Addr(Addr::V4(self.array()?)),
            tag::ADDR6 => Value::Addr(Addr::V6(self.array()?)),
            tag::TEXT => {
                let len = self.read_place()?;
                Value::Bytes(self.take(len)?)
            }
            tag::FIRST_OF => {
                let others = self.read_place()?;
                let len = self.read_place()?;
                Value::FirstOf(self.take(len)?, u32::try_from(others).ok()?)
            }
            tag::WORD => {
                let place = self.read_place()?;
                Value::Name(self.side.words.get(place)?)
            }
            tag::TIME => {
                let tag = self.byte()?;
                Value::Time(self.number(tag)?)
            }
            tag::FAR_TIME => Value::time(i128::from_be_bytes(self.array()?)),
            tag::THOUSANDTHS => {
                let tag = self.byte()?;
                Value::Thousandths(self.number(tag)?)
            }
            tag::NESTED => {
                let place = self.read_place()?;
                self.side.nested.get(place)?.value()
            }
            tag::GUESS => {
                let place = self.read_place()?;
                Value::Guess(self.side.words.get(place)?)
            }
            tag::OWNERS => {
                let (start, len) = (self.read_place()?, self.read_place()?);
                Value::Owners(self.side.owners.get(start..start.checked_add(len)?)?)
            }
            tag @ (tag::END | tag::END_WITH_PORT) => {
                let Value::Addr(addr) = self.try_cell()? else { return None };
                let port = if tag == tag::END { None } else { Some(u16::from_be_bytes(self.array()?)) };
                Value::Endpoint(addr, port)
            }
            tag::PREFIX => {
                let Value::Addr(addr) = self.try_cell()? else { return None };
                Value::Prefix(addr, self.byte()?)
            }
            tag::LINK_ADDR => {
                let addr = Addr::V6(self.array()?);
                let len = self.read_place()?;
                Value::LinkAddr(LinkAddr::new(addr, self.take(len)?)?)
            }
            tag::BITS => {
                let list = self.read_place()?;
                Value::Bits(u32::from_be_bytes(self.array()?), self.side.lists.get(list)?)
            }
            tag::OUTSIDE => {
                let len = self.read_place()?;
                Value::Words(self.take(len)?)
            }
            tag @ tag::NUMBER.. => Value::U64(self.number(tag)?),
            _ => Value::Null,
        })
    }

    /// Reads a place in one of the side tables.
    fn read_place(&mut self) -> Option<usize> {
        let tag = self.byte()?;
        usize::try_from(self.number(tag)?).ok()
    }

    /// Reads the number whose tag was just read.
    fn number(&mut self, tag: u8) -> Option<u64> {
        let len = usize::from(tag.checked_sub(tag::NUMBER)?);
        let bytes = self.take(len)?;
        Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    /// Returns the next byte; `None` at the end.
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the next bytes; `None` if there are fewer.
    fn take(&mut self, len: usize) -> Option<&'k [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Returns the next bytes as an array.
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Comm;

    fn link_addr(iface: &[u8]) -> Value<'static> {
        let addr = Addr::V6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        LinkAddr::new(addr, iface).map_or(Value::Null, Value::LinkAddr)
    }

    #[test]
    fn cells_come_back_as_they_were() {
        let (texts, empty) = (vec!["a".to_owned(), "b\n".to_owned()], Vec::<String>::new());
        let owners = [
            Owner { pid: 7, fd: 3, process: Comm::new(b"a"), started: 0 },
            Owner { pid: 8, fd: 4, process: Comm::new(b""), started: 0 },
        ];
        let cells = [
            Value::Null,
            Value::Bool(true),
            Value::Bool(false),
            Value::U64(0),
            Value::U64(255),
            Value::U64(256),
            Value::U64(u64::MAX),
            Value::I64(-1),
            Value::I64(i64::MIN),
            Value::Addr(Addr::V4([1, 2, 3, 4])),
            Value::Addr(Addr::V6([9; 16])),
            Value::Bytes(b""),
            Value::Bytes(b"a\0b"),
            Value::Name("tcp"),
            Value::Guess("tcp"),
            Value::Name("udp"),
            Value::Name("tcp"),
            Value::Owners(&owners),
            Value::Owners(&owners[..1]),
            Value::Time(1_795_000_000_123_456_789),
            Value::time(-1),
            Value::time(1 << 80),
            Value::Thousandths(u64::MAX),
            Value::List(&texts),
            Value::Object(&owners[0]),
            Value::List(&empty),
            Value::Endpoint(Addr::V4([1, 2, 3, 4]), Some(443)),
            Value::Endpoint(Addr::V6([9; 16]), None),
            Value::Prefix(Addr::V4([10, 0, 0, 0]), 8),
            link_addr(b"eth0"),
            link_addr(b"fifteen-letters"),
            Value::Prefix(Addr::V6([0; 16]), 0),
            Value::Bits(5, &["a", "b", "c"]),
            Value::Words(b"audit,web"),
            Value::FirstOf(b"nginx", 3),
            Value::Bits(0, &["a", "b", "c"]),
        ];
        let mut packed = PackedCells::default();
        cells.iter().for_each(|cell| packed.put(cell));
        let mut reader = packed.read(0);
        for cell in cells {
            assert_eq!(reader.cell(), cell);
        }
        assert_eq!(reader.cell(), Value::Null);
        assert_eq!(packed.read(usize::MAX).cell(), Value::Null);
    }
}
