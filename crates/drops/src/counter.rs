//! The counters of drops, read in rounds.
use std::collections::HashMap;

use sys::Host;

use crate::backend::{BackendLosses, CountsDrops, DropScope};
use crate::block::{self, CountedDrops, KEY_BYTES, RoundHeader, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::functions::FunctionNames;
use crate::names::{FUNCTION, REASON};
use crate::net_dm_backend::NetDmCounts;
use crate::reasons;
use crate::trace_backend::TraceCounts;
use crate::via::DropsVia;

/// Counts drops from the time it is opened until it is dropped.
#[derive(Debug)]
pub struct DropCounter {
    backend: Box<dyn CountsDrops>,
    scope: DropScope,
    /// Packets and bytes of each key at the last reading. Limited by the backend's table.
    before: HashMap<[u8; KEY_BYTES], (u64, u64)>,
    losses: BackendLosses,
    read_ns: u64,
    symbols: FunctionNames,
    /// A reading that the source has not taken yet.
    ahead: Option<Vec<u8>>,
    /// The last reading that was taken.
    taken: Option<Vec<u8>>,
}

impl DropCounter {
    /// Counts drops from now on, with BPF (10 to 20 ms), otherwise with the kernel's trace, otherwise with its drop
    /// monitor; or with `via` only.
    pub fn open(host: &Host, scope: DropScope, via: Option<DropsVia>) -> Result<DropCounter, DropsError> {
        let by_trace = || Ok(Box::new(TraceCounts::open(host)?) as _);
        let by_net_dm = || Ok(Box::new(NetDmCounts::open(host)?) as _);
        let backend = crate::choose::by(via, || by_bpf(host, scope), by_trace, by_net_dm)?;
        let read_ns = sys::clock::monotonic_ns();
        let (before, losses, symbols) = Default::default();
        Ok(DropCounter { backend, scope, before, losses, read_ns, symbols, ahead: None, taken: None })
    }

    /// The interface that counts.
    pub fn via(&self) -> DropsVia {
        self.backend.via()
    }

    /// Takes waiting drops out of the kernel's buffer; call it several times per second. A no-op with BPF.
    pub fn drain(&mut self) -> Result<(), DropsError> {
        self.backend.drain()
    }

    /// Makes a reading for the source to take; false if no packet was dropped since the previous reading.
    pub fn read_ahead(&mut self, host: &Host) -> Result<bool, DropsError> {
        let mut block = Vec::new();
        let has_rows = self.read_now(host, &mut block)?;
        self.ahead = Some(block);
        Ok(has_rows)
    }

    /// Lets another source take the last reading again. Without one, the next source makes a new reading.
    pub fn repeat(&mut self) {
        self.ahead = self.taken.take();
    }

    /// Puts the prepared reading into `into`, or makes one.
    pub(crate) fn read(&mut self, host: &Host, into: &mut Vec<u8>) -> Result<(), DropsError> {
        if self.ahead.is_none() {
            self.read_ahead(host)?;
        }
        self.taken = self.ahead.take();
        into.extend_from_slice(self.taken.as_deref().unwrap_or_default());
        Ok(())
    }

    /// Puts the drops since the last reading into `into`; false if there are no drops. Takes one system call per new
    /// kind of drop and some more in total; if a function has no name yet, 50 to 100 ms.
    fn read_now(&mut self, host: &Host, into: &mut Vec<u8>) -> Result<bool, DropsError> {
        let now = sys::clock::monotonic_ns();
        let mut rows = self.rows()?;
        // Sorts by packets, largest count first.
        rows.sort_by_key(|row| (std::cmp::Reverse(row.numbers[0]), row.key));
        let losses = self.backend.losses()?;
        let addresses = rows.iter().flat_map(CountedDrops::addresses);
        self.symbols.find(host, addresses.filter(|address| self.backend.function(*address).is_none()));
        let via = self.backend.via();
        let header = RoundHeader {
            round_ns: now.saturating_sub(self.read_ns),
            merged: losses.merged.wrapping_sub(self.losses.merged),
            lost: losses.lost.wrapping_sub(self.losses.lost),
            missed: losses.missed.wrapping_sub(self.losses.missed),
            all_netns: self.scope == DropScope::AllNetns || via.is_of_host(),
            names_hidden: self.symbols.are_hidden(),
            no_reasons: self.backend.lacks_reasons(),
            via,
        };
        (self.read_ns, self.losses) = (now, losses);
        let names = self.names(&rows);
        let names = names.iter().map(|(kind, number, name)| (*kind, *number, &**name));
        block::encode(into, &header, &rows, names);
        Ok(!rows.is_empty())
    }

    /// The keys whose counts grew since the last reading.
    fn rows(&mut self) -> Result<Vec<CountedDrops>, DropsError> {
        let mut rows = Vec::new();
        let before = &mut self.before;
        self.backend.each(&mut |key, packets, bytes| {
            let (had_packets, had_bytes) = before.insert(*key, (packets, bytes)).unwrap_or_default();
            if packets != had_packets {
                let numbers = [packets.wrapping_sub(had_packets), packets, bytes.wrapping_sub(had_bytes)];
                rows.push(CountedDrops { key: *key, numbers, sample: [0; SAMPLE_BYTES] });
            }
        })?;
        for row in &mut rows {
            self.backend.sample(&row.key, &mut row.sample)?;
        }
        Ok(rows)
    }

    /// The names that occur in these rows.
    fn names(&self, rows: &[CountedDrops]) -> Vec<(u8, u64, Vec<u8>)> {
        let mut names: Vec<(u8, u64)> = rows
            .iter()
            .flat_map(|row| row.addresses().map(|at| (FUNCTION, at)).chain([(REASON, row.reason().into())]))
            .collect();
        names.sort_unstable();
        names.dedup();
        let names_of = self.backend.reasons();
        let text = |(kind, number): (u8, u64)| match kind {
            FUNCTION => {
                let name = self.backend.function(number).unwrap_or_else(|| self.symbols.name(number));
                Some(name).filter(|name| !name.is_empty()).map(<[u8]>::to_vec)
            }
            _ if names_of.reasons.is_empty() => None,
            _ => Some(reasons::name(names_of, u32::try_from(number).unwrap_or(u32::MAX)).into_bytes()),
        };
        names.into_iter().filter_map(|(kind, number)| Some((kind, number, text((kind, number))?))).collect()
    }
}

#[cfg(feature = "bpf")]
fn by_bpf(host: &Host, scope: DropScope) -> Result<Box<dyn CountsDrops>, DropsError> {
    Ok(Box::new(crate::bpf_backend::BpfCounts::open(host, scope)?))
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: &Host, _: DropScope) -> Result<Box<dyn CountsDrops>, DropsError> {
    Err(DropsError::WithoutBpf)
}
