//! `--resolve`: rows wait for the names of their addresses, with limits on time and memory.
//!
//! The module does not know DNS: it asks a [`Names`] for each address once while rows still arrive, and lets it settle
//! after the last row. An address without a name by then stays an address.

use crate::packed_cells::PackedCells;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::text::put_u64;
use record::{Accounting, Addr, Column, Columns, Kind, Next, Round, Sink, SinkError, Value};
use std::hash::BuildHasher;

/// Most bytes of waiting rows: about half a million rows with the default columns.
///
/// Bound: bytes of rows that wait for host names. Beyond: rows are shown with numbers. By: a local user with as many
/// sockets; the name servers.
pub const HELD_BYTES_MAX: usize = 64 << 20;
/// Most distinct addresses that are resolved; later ones stay numbers.
///
/// Bound: addresses whose names are looked up. Beyond: further addresses stay numbers. By: a local user with as many
/// sockets.
pub const ADDRESSES_MAX: usize = 1 << 20;

/// A resolver of addresses to names.
pub trait Names {
    /// Starts to resolve an address that was seen for the first time, without waiting.
    fn request(&mut self, addr: Addr);

    /// Waits for answers after the last row, at most as long as the user allows.
    fn wait_for_answers(&mut self);

    /// Returns the name, if it has arrived. It is hostile until escaped.
    fn name(&self, addr: Addr) -> Option<&[u8]>;
}

/// A sink that holds rows back until their addresses have names, then passes them on with the names in their place.
///
/// If the sink keeps addresses ([`Sink::keeps_addresses`]), each name goes to a separate column. Otherwise the inner
/// sink gets `Value::Bytes` for an address with a name and `Value::Addr` for one without; in a column of addresses
/// with ports, it gets `Value::Bytes` of both, in the form `name:port`. When [`HELD_BYTES_MAX`] is reached, the held
/// rows are passed on with the names known by then, the rest of the round follows without waiting, and the accounting
/// reports it.
pub struct ResolvingSink<'s> {
    inner: &'s mut dyn Sink,
    names: &'s mut dyn Names,
    held_max: usize,
    width: usize,
    /// Indexes of the address columns.
    addresses: Vec<usize>,
    packed: PackedCells,
    /// Offset of each held row.
    rows: Vec<usize>,
    passing: bool,
    hasher: RandomState,
    asked: HashTable<Addr>,
}

impl<'s> ResolvingSink<'s> {
    /// Holds rows for `inner` until `names` has settled.
    pub fn new(inner: &'s mut dyn Sink, names: &'s mut dyn Names) -> ResolvingSink<'s> {
        ResolvingSink::with_limit(inner, names, HELD_BYTES_MAX)
    }

    /// Like [`ResolvingSink::new`], with another memory limit in bytes.
    pub fn with_limit(inner: &'s mut dyn Sink, names: &'s mut dyn Names, held_max: usize) -> ResolvingSink<'s> {
        ResolvingSink {
            inner,
            names,
            held_max,
            width: 0,
            addresses: Vec::new(),
            packed: PackedCells::default(),
            rows: Vec::new(),
            passing: false,
            hasher: RandomState::default(),
            asked: HashTable::new(),
        }
    }

    /// Requests the name of the address in a cell, if it has one.
    fn request_name(&mut self, cell: Option<&Value<'_>>) {
        let Some(addr) = cell.and_then(addr_of) else { return };
        let hash = self.hasher.hash_one(addr);
        if self.asked.len() >= ADDRESSES_MAX || self.asked.find(hash, |known| *known == addr).is_some() {
            return;
        }
        let hasher = &self.hasher;
        self.asked.insert_unique(hash, addr, |addr| hasher.hash_one(addr));
        self.names.request(addr);
    }

    /// Passes a row on, with names in the place of addresses.
    fn hand_on(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let names = &*self.names;
        let mut cells = cells.to_vec();
        if self.inner.keeps_addresses() {
            let name_at = |&place: &usize| {
                let addr = cells.get(place).and_then(addr_of);
                Value::text(addr.and_then(|addr| names.name(addr)))
            };
            let names: Vec<Value<'_>> = self.addresses.iter().map(name_at).collect();
            cells.extend(names);
            return self.inner.row(&cells);
        }
        let texts = longer_names(names, &self.addresses, &cells);
        for &place in &self.addresses {
            let Some(cell) = cells.get_mut(place) else { continue };
            if let Value::Addr(addr) = *cell {
                *cell = names.name(addr).map_or(*cell, Value::Bytes);
            }
        }
        for (place, text) in &texts {
            if let Some(cell) = cells.get_mut(*place) {
                *cell = Value::Bytes(text);
            }
        }
        self.inner.row(&cells)
    }

    /// Passes every held row on and frees its memory.
    fn release(&mut self) -> Result<Next, SinkError> {
        let packed = std::mem::take(&mut self.packed);
        let mut cells = Vec::with_capacity(self.width);
        for at in std::mem::take(&mut self.rows) {
            let mut reader = packed.read(at);
            cells.clear();
            cells.extend((0..self.width).map(|_| reader.cell()));
            if self.hand_on(&cells)? == Next::Stop {
                return Ok(Next::Stop);
            }
        }
        Ok(Next::More)
    }
}

/// Returns the address in a cell.
fn addr_of(cell: &Value<'_>) -> Option<Addr> {
    if let Value::Endpoint(addr, _) = cell { Some(*addr) } else { cell.addr() }
}

/// Returns the text of the cells whose name something follows, with their indexes: `name:port`, `name%interface`.
fn longer_names(names: &dyn Names, places: &[usize], cells: &[Value<'_>]) -> Vec<(usize, Vec<u8>)> {
    let named = places.iter().filter_map(|&place| match cells.get(place)? {
        Value::LinkAddr(link) => {
            let mut text = names.name(link.addr())?.to_vec();
            text.push(b'%');
            text.extend_from_slice(link.iface());
            Some((place, text))
        }
        Value::Endpoint(addr, port) => {
            let mut text = names.name(*addr)?.to_vec();
            if let Some(port) = port {
                text.push(b':');
                put_u64(&mut text, (*port).into());
            }
            Some((place, text))
        }
        _ => None,
    });
    named.collect()
}

impl Sink for ResolvingSink<'_> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let places =
            columns.0.iter().enumerate().filter(|(_, column)| matches!(column.kind, Kind::Addr | Kind::Endpoint));
        self.addresses = places.map(|(place, _)| place).collect();
        self.width = columns.0.len();
        self.passing = false;
        if !self.inner.keeps_addresses() {
            return self.inner.begin(columns, round);
        }
        let mut columns = columns.clone();
        for place in &self.addresses {
            let name = columns.0.get(*place).map(|column| format!("{}_name", column.name).into());
            columns.0.extend(name.map(|name| Column { name, kind: Kind::Text }));
        }
        self.inner.begin(&columns, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        for i in 0..self.addresses.len() {
            let place = self.addresses.get(i).copied().unwrap_or(0);
            self.request_name(cells.get(place));
        }
        if self.passing {
            return self.hand_on(cells);
        }
        self.rows.push(self.packed.len());
        cells.iter().take(self.width).for_each(|cell| self.packed.put(cell));
        (cells.len()..self.width).for_each(|_| self.packed.put(&Value::Null));
        if self.packed.len() + self.rows.len() * size_of::<usize>() < self.held_max {
            return Ok(Next::More);
        }
        self.passing = true;
        self.release()
    }

    /// The wait for names ends at each flush: an address without a name by then stays a number.
    fn flush(&mut self) -> Result<(), SinkError> {
        if !self.rows.is_empty() {
            self.names.wait_for_answers();
            let _ = self.release()?;
        }
        self.inner.flush()
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        if !self.passing {
            // Do not wait for names if no rows are held.
            if !self.rows.is_empty() {
                self.names.wait_for_answers();
            }
            let _ = self.release()?;
            return self.inner.end(totals);
        }
        let mut totals = totals.clone();
        let text = format!(
            "more than {} MiB of rows were waiting for names; the rest is shown without names",
            self.held_max >> 20
        );
        totals.add_reason(0, text);
        self.inner.end(&totals)
    }
}

#[cfg(test)]
mod tests;
