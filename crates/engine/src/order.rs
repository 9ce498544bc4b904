//! `--sort`: keeps rows until the last has arrived, then passes them on in order.
//!
//! Absent values come last in both directions; addresses are ordered by their octets, IPv4 before IPv6; texts are
//! ordered by bytes. The remaining columns break ties from left to right, ascending, so that the result never depends
//! on the kernel's order; alternatively ties keep the order of arrival ([`TieOrder`]). With a limit, at most about
//! twice that many rows are in memory, and a row that is certain to be cut costs only the reading of its keys.

use crate::packed_cells::PackedCells;
use record::{Addr, Next, Value};

/// With a limit, this many more rows are collected before the last ones are discarded.
const SURPLUS_ROWS: usize = 1024;

/// The order of rows.
pub(crate) struct RowOrder {
    /// Indexes of cells, with true for descending.
    pub(crate) keys: Vec<(usize, bool)>,
    /// The order of rows with equal keys.
    pub(crate) ties: TieOrder,
    /// True if every key is a rate, descending: then unchanged rows come after all that have a rate.
    pub(crate) by_rate: bool,
}

impl RowOrder {
    /// Returns the order by these keys.
    pub(crate) fn new(keys: Vec<(usize, bool)>, ties: TieOrder) -> RowOrder {
        RowOrder { keys, ties, by_rate: false }
    }
}

/// The order of rows with equal keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TieOrder {
    /// Compares the remaining columns, ascending.
    Columns,
    /// Keeps the order of arrival.
    Arrival,
}

/// Collects rows and sorts them.
pub(crate) struct Sorter {
    /// Cells to compare, the most significant first: index and direction.
    order: Vec<(usize, bool)>,
    /// Number of leading entries of `order` that the user requested.
    asked: usize,
    ties: TieOrder,
    /// Number of rows added.
    added: u64,
    /// Most rows that are passed on.
    limit: Option<usize>,
    /// Number of cells per row.
    width: usize,
    /// The cells of all kept rows.
    packed: PackedCells,
    /// The kept rows in order of arrival.
    rows: Vec<SortedRow>,
    /// The key of the row being added.
    key: Vec<u8>,
    /// Rows whose key is equal or greater can no longer be among the first.
    bar: Option<Vec<u8>>,
}

/// A kept row: the first bytes of its key, then the offset of the whole key, which the cells follow.
#[derive(Clone, Copy)]
struct SortedRow {
    start: u64,
    at: usize,
    key_len: usize,
}

impl Sorter {
    /// `how.keys` are the requested cells, with true for descending; the other ones of the first `shown` cells break
    /// ties. Hidden cells, from `shown` up to `width`, do not.
    pub(crate) fn new(how: &RowOrder, width: usize, shown: usize, limit: Option<usize>) -> Sorter {
        let (mut order, asked) = (how.keys.clone(), how.keys.len());
        if how.ties == TieOrder::Columns {
            order.extend((0..shown).filter(|i| how.keys.iter().all(|(key, _)| key != i)).map(|i| (i, false)));
        }
        Sorter {
            order,
            asked,
            ties: how.ties,
            added: 0,
            limit,
            width,
            packed: PackedCells::default(),
            rows: Vec::new(),
            key: Vec::new(),
            bar: None,
        }
    }

    /// True if the row whose cells `cell` returns is certain to be cut. Reads only the cells that the user requested.
    pub(crate) fn is_surely_cut<'r>(&mut self, cell: impl Fn(usize) -> Value<'r>) -> bool {
        let Some(bar) = &self.bar else { return false };
        self.key.clear();
        for &(place, descending) in self.order.iter().take(self.asked) {
            put_key(&cell(place), descending, &mut self.key);
        }
        // A row sorts after earlier rows with an equal key.
        self.key > *bar || self.ties == TieOrder::Arrival && bar.starts_with(&self.key)
    }

    /// Keeps a row, unless it is certain to be cut.
    pub(crate) fn add(&mut self, cells: &[Value<'_>]) {
        self.key.clear();
        for &(place, descending) in &self.order {
            put_key(cells.get(place).unwrap_or(&Value::Null), descending, &mut self.key);
        }
        if self.ties == TieOrder::Arrival {
            self.added += 1;
            self.key.extend_from_slice(&self.added.to_be_bytes());
        }
        if self.bar.as_ref().is_some_and(|bar| self.key >= *bar) {
            return;
        }
        let at = self.packed.put_bytes(&self.key);
        cells.iter().for_each(|cell| self.packed.put(cell));
        self.rows.push(SortedRow { start: first_eight(&self.key), at, key_len: self.key.len() });
        // If rows are cut before their cells are read, an early bar saves more than collecting extra rows does.
        let slack = if self.ties == TieOrder::Arrival { 1 } else { SURPLUS_ROWS };
        if let Some(limit) = self.limit.filter(|limit| self.rows.len() >= limit.saturating_mul(2).saturating_add(slack))
        {
            self.discard_after(limit);
        }
    }

    /// Discards the rows after the first `limit`. Happens at most once per `limit + SLACK` rows, so the cost per row
    /// is constant.
    fn discard_after(&mut self, limit: usize) {
        let Some(last) = limit.checked_sub(1) else {
            self.rows.clear();
            self.packed = PackedCells::default();
            self.bar = Some(Vec::new());
            return;
        };
        let packed = std::mem::take(&mut self.packed);
        self.rows.select_nth_unstable_by(last, |a, b| compare(&packed, a, b));
        self.rows.truncate(limit);
        self.bar = self.rows.get(last).map(|row| packed.bytes(row.at, row.key_len).to_vec());
        for row in &mut self.rows {
            let mut cells = packed.read(row.at + row.key_len);
            row.at = self.packed.put_bytes(packed.bytes(row.at, row.key_len));
            (0..self.width).for_each(|_| self.packed.put(&cells.cell()));
        }
    }

    /// Passes the rows on in order until `each` returns stop or the limit is reached.
    pub(crate) fn finish(mut self, mut each: impl FnMut(&[Value<'_>]) -> Next) {
        let packed = &self.packed;
        self.rows.sort_unstable_by(|a, b| compare(packed, a, b));
        let mut cells = Vec::with_capacity(self.width);
        for row in self.rows.iter().take(self.limit.unwrap_or(usize::MAX)) {
            let mut reader = packed.read(row.at + row.key_len);
            cells.clear();
            cells.extend((0..self.width).map(|_| reader.cell()));
            if each(&cells) == Next::Stop {
                return;
            }
        }
    }

    /// Returns the bytes in memory.
    #[cfg(test)]
    fn memory_bytes(&self) -> usize {
        self.packed.len() + self.rows.len() * size_of::<SortedRow>()
    }
}

fn compare(packed: &PackedCells, a: &SortedRow, b: &SortedRow) -> std::cmp::Ordering {
    a.start.cmp(&b.start).then_with(|| packed.bytes(a.at, a.key_len).cmp(packed.bytes(b.at, b.key_len)))
}

/// Returns the first eight bytes as a number: most comparisons end there, without access to the arena.
fn first_eight(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

/// Tags of keys. Their order is the order of values of different types, which one field never mixes.
mod tag {
    pub(super) const NEGATIVE: u8 = 0x10;
    pub(super) const FALSE: u8 = 0x20;
    pub(super) const TRUE: u8 = 0x21;
    pub(super) const ADDR4: u8 = 0x30;
    pub(super) const ADDR6: u8 = 0x31;
    pub(super) const TEXT: u8 = 0x40;
    pub(super) const OWNERS: u8 = 0x50;
    /// The number of following bytes is added.
    pub(super) const NUMBER: u8 = 0x80;
    /// A time after those that are numbers of eight bytes.
    pub(super) const LATE_TIME: u8 = NUMBER + 9;
    /// The last of all, even after other tags with inverted bits.
    pub(super) const NULL: u8 = 0xff;
}

/// Appends bytes that sort like the values do; inverted for descending.
fn put_key(value: &Value<'_>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match *value {
        Value::Null => return out.push(tag::NULL),
        Value::Bool(yes) => out.push(if yes { tag::TRUE } else { tag::FALSE }),
        Value::U64(n) | Value::Time(n) | Value::Thousandths(n) => put_number(n, out),
        Value::I64(n) => match u64::try_from(n) {
            Ok(n) => put_number(n, out),
            Err(_) => {
                out.push(tag::NEGATIVE);
                out.extend_from_slice(&n.to_be_bytes());
            }
        },
        Value::FarTime(time) => {
            out.push(if time.is_before_1970() { tag::NEGATIVE } else { tag::LATE_TIME });
            out.extend_from_slice(&time.nanoseconds().to_be_bytes());
        }
        Value::Addr(addr) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
        }
        Value::LinkAddr(link) => {
            out.push(tag::ADDR6);
            out.extend_from_slice(link.addr().octets());
            put_text(link.iface(), out);
        }
        Value::Endpoint(addr, port) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
            // A missing port sorts before any port.
            put_number(port.map_or(0, |port| u64::from(port) + 1), out);
        }
        Value::Prefix(addr, len) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
            out.push(len);
        }
        words @ (Value::Bits(..) | Value::Words(_)) => {
            words.words().iter().for_each(|word| put_text(word, out));
            // Ends the list: a list that is the beginning of another sorts first.
            out.push(1);
        }
        Value::Bytes(text) | Value::FirstOf(text, _) => put_text(text, out),
        Value::Name(word) | Value::Guess(word) => put_text(word.as_bytes(), out),
        Value::List(list) => {
            list.for_each(&mut |item| put_key(&item, false, out));
            // Ends the list.
            out.push(1);
        }
        Value::Object(object) => object.for_each(&mut |_, value| put_key(&value, false, out)),
        Value::Owners(owners) => {
            for owner in owners {
                out.push(tag::OWNERS);
                put_number(owner.pid.into(), out);
                put_number(owner.fd.into(), out);
                put_text(owner.process.as_bytes(), out);
            }
            // Ends the list.
            out.push(1);
        }
    }
    if descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn put_number(n: u64, out: &mut Vec<u8>) {
    let skipped = n.leading_zeros() as usize / 8;
    out.push(tag::NUMBER + (8 - skipped) as u8);
    out.extend_from_slice(n.to_be_bytes().get(skipped..).unwrap_or(&[]));
}

/// Text ends with two zeros, and a zero inside is followed by 0xff, so no text's key is the beginning of another's.
fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(tag::TEXT);
    for &byte in text {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests;
