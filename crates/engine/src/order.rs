//! `--sort`: rows kept until the last has come, then handed out in order.
//!
//! Absent values come last in both directions; addresses are ordered by their octets, IPv4 before IPv6; texts are
//! ordered by bytes. The remaining columns break ties from left to right, ascending, so that the result never depends
//! on the kernel's order, or ties keep the order of arrival ([`Ties`]). With a limit, at most about twice that many
//! rows are in memory, and a row that is certain to be cut only costs the reading of its keys.

use crate::packed_cells::PackedCells;
use record::{Addr, Next, Value};

/// With a limit, this many rows more than it are collected before the worst are thrown away.
const SLACK: usize = 1024;

/// The order of rows.
pub(crate) struct RowOrder {
    /// Index of a cell, and true for descending.
    pub(crate) keys: Vec<(usize, bool)>,
    /// How rows with equal keys are ordered.
    pub(crate) ties: Ties,
}

/// How rows with equal keys are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ties {
    /// Compares the remaining columns, ascending.
    Columns,
    /// Keeps the order of arrival.
    Arrival,
}

/// Rows on their way into order.
pub(crate) struct Sorter {
    /// Cells to compare, first one first: place and direction.
    order: Vec<(usize, bool)>,
    /// Number of leading entries of `order` that the user asked for.
    asked: usize,
    ties: Ties,
    /// Number of rows added.
    added: u64,
    /// Rows that are handed out at most.
    limit: Option<usize>,
    /// How many cells a row has.
    width: usize,
    /// The cells of all rows that are kept.
    packed: PackedCells,
    /// The rows that are kept, in the order in which they came.
    rows: Vec<Sorted>,
    /// The key of the row being added.
    key: Vec<u8>,
    /// Rows with this key or a greater one cannot be among the first any more.
    bar: Option<Vec<u8>>,
}

/// A kept row: its key's first bytes, then where the whole key and, behind it, the cells are.
#[derive(Clone, Copy)]
struct Sorted {
    start: u64,
    at: usize,
    key_len: usize,
}

impl Sorter {
    /// `keys` are the cells asked for, with true for descending; the rest of `width` cells break ties.
    /// `shown` cells of the `width` take part in that: hidden ones behind them do not.
    pub(crate) fn new(how: &RowOrder, width: usize, shown: usize, limit: Option<usize>) -> Sorter {
        let (mut order, asked) = (how.keys.clone(), how.keys.len());
        if how.ties == Ties::Columns {
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

    /// True if the row whose cells `cell` returns is certain to be cut. Reads only the cells that the user asked for.
    pub(crate) fn cuts<'r>(&mut self, cell: impl Fn(usize) -> Value<'r>) -> bool {
        let Some(bar) = &self.bar else { return false };
        self.key.clear();
        for &(place, descending) in self.order.iter().take(self.asked) {
            put_key(&cell(place), descending, &mut self.key);
        }
        // A row sorts after earlier rows with an equal key.
        self.key > *bar || self.ties == Ties::Arrival && bar.starts_with(&self.key)
    }

    /// Keeps a row, unless it is clear that it will be cut.
    pub(crate) fn add(&mut self, cells: &[Value<'_>]) {
        self.key.clear();
        for &(place, descending) in &self.order {
            put_key(cells.get(place).unwrap_or(&Value::Null), descending, &mut self.key);
        }
        if self.ties == Ties::Arrival {
            self.added += 1;
            self.key.extend_from_slice(&self.added.to_be_bytes());
        }
        if self.bar.as_ref().is_some_and(|bar| self.key >= *bar) {
            return;
        }
        let at = self.packed.put_bytes(&self.key);
        cells.iter().for_each(|cell| self.packed.put(cell));
        self.rows.push(Sorted { start: first_eight(&self.key), at, key_len: self.key.len() });
        // If rows are cut before their cells are read, an early bar saves more than the few rows that it takes.
        let slack = if self.ties == Ties::Arrival { 1 } else { SLACK };
        if let Some(limit) = self.limit.filter(|limit| self.rows.len() >= limit.saturating_mul(2).saturating_add(slack))
        {
            self.prune(limit);
        }
    }

    /// Throws away what lies behind the first `limit` rows. Happens once in at least `limit + SLACK` rows, so it
    /// costs a constant a row.
    fn prune(&mut self, limit: usize) {
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

    /// Hands out the rows in order until `each` says stop or the limit is reached.
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

    /// Bytes that are held.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.packed.len() + self.rows.len() * size_of::<Sorted>()
    }
}

fn compare(packed: &PackedCells, a: &Sorted, b: &Sorted) -> std::cmp::Ordering {
    a.start.cmp(&b.start).then_with(|| packed.bytes(a.at, a.key_len).cmp(packed.bytes(b.at, b.key_len)))
}

/// The first eight bytes as a number: most comparisons end there, without a look into the arena.
fn first_eight(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

/// Tags of a key; their order is the order of values of different types, which one field never mixes.
mod tag {
    pub(super) const NEGATIVE: u8 = 0x10;
    pub(super) const FALSE: u8 = 0x20;
    pub(super) const TRUE: u8 = 0x21;
    pub(super) const ADDR4: u8 = 0x30;
    pub(super) const ADDR6: u8 = 0x31;
    pub(super) const TEXT: u8 = 0x40;
    pub(super) const OWNERS: u8 = 0x50;
    /// Plus the number of bytes that follow.
    pub(super) const NUMBER: u8 = 0x80;
    /// Behind everything, also behind every other tag with its bits turned.
    pub(super) const NULL: u8 = 0xff;
}

/// Appends a form of `value` whose bytes order as the values do; turned around for descending.
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
        Value::Addr(addr) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
        }
        Value::Endpoint(addr, port) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
            // Without a port before any with one.
            put_number(port.map_or(0, |port| u64::from(port) + 1), out);
        }
        Value::Prefix(addr, len) => {
            out.push(if matches!(addr, Addr::V4(_)) { tag::ADDR4 } else { tag::ADDR6 });
            out.extend_from_slice(addr.octets());
            out.push(len);
        }
        words @ (Value::Bits(..) | Value::Words(_)) => {
            words.words().iter().for_each(|word| put_text(word, out));
            // As below.
            out.push(1);
        }
        Value::Bytes(text) | Value::FirstOf(text, _) => put_text(text, out),
        Value::Name(word) | Value::Guess(word) => put_text(word.as_bytes(), out),
        Value::List(list) => {
            list.for_each(&mut |item| put_key(&item, false, out));
            // As below.
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
            // Ends the list: the shorter one of two with the same beginning is less.
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

/// Text ends with two zeros, a zero inside is followed by 0xff: so no text is the beginning of another's key.
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
