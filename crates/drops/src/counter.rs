//! The counters of the program, read round after round.
use sys::Host;

use crate::error::DropsError;

/// The namespaces whose packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropScope {
    /// Those of the network namespace with this inode.
    Netns(u32),
    /// Those of every namespace.
    AllNetns,
}

#[cfg(feature = "bpf")]
pub use with_bpf::DropCounter;
#[cfg(not(feature = "bpf"))]
pub use without_bpf::DropCounter;

#[cfg(feature = "bpf")]
mod with_bpf {
    use std::collections::HashMap;

    use bpf::{DROP_KEY_BYTES, DROP_SAMPLE_BYTES, DropLosses, DropRoom, PacketDrops};

    use super::{DropScope, DropsError, Host};
    use crate::block::{self, CountedDrops, RoundHeader};
    use crate::names::{FUNCTION, REASON};
    use crate::reasons;
    use crate::symbols::Symbols;

    /// Counts drops from when it is opened to when it goes.
    #[derive(Debug)]
    pub struct DropCounter {
        program: PacketDrops,
        scope: DropScope,
        /// Packets and bytes of each key at the last reading. As many as the program's maps hold.
        before: HashMap<[u8; DROP_KEY_BYTES], (u64, u64)>,
        losses: DropLosses,
        read_ns: u64,
        symbols: Symbols,
    }

    impl DropCounter {
        /// Loads the program and attaches it: what is dropped from here on counts. 10 to 20 ms.
        pub fn open(host: &Host, scope: DropScope) -> Result<DropCounter, DropsError> {
            let netns = match scope {
                DropScope::Netns(inode) => Some(inode),
                DropScope::AllNetns => None,
            };
            let program = PacketDrops::open(host, netns, DropRoom::USUAL)?;
            let read_ns = sys::clock::monotonic_ns();
            let (before, losses, symbols) = Default::default();
            Ok(DropCounter { program, scope, before, losses, read_ns, symbols })
        }

        /// Puts what was dropped since the last reading into `block`. One system call for each new kind of drop, some
        /// more for all; and where a function has no name yet 50 to 100 ms.
        pub(crate) fn read(&mut self, host: &Host, into: &mut Vec<u8>) -> Result<(), DropsError> {
            let now = sys::clock::monotonic_ns();
            let mut rows = self.rows()?;
            // The most first.
            rows.sort_by_key(|row| (std::cmp::Reverse(row.numbers[0]), row.key));
            let losses = self.program.losses()?;
            let addresses = rows.iter().flat_map(CountedDrops::addresses);
            self.symbols.find(host, addresses);
            let header = RoundHeader {
                round_ns: now.saturating_sub(self.read_ns),
                merged: losses.merged.wrapping_sub(self.losses.merged),
                lost: losses.lost.wrapping_sub(self.losses.lost),
                missed: losses.missed.wrapping_sub(self.losses.missed),
                all_netns: self.scope == DropScope::AllNetns,
                names_hidden: self.symbols.are_hidden(),
                no_reasons: self.program.reasons().reasons.is_empty(),
            };
            (self.read_ns, self.losses) = (now, losses);
            let names = self.names(&rows);
            let names = names.iter().map(|(kind, number, name)| (*kind, *number, &**name));
            block::encode(into, &header, &rows, names);
            Ok(())
        }

        /// The keys that have counted something since the last reading.
        fn rows(&mut self) -> Result<Vec<CountedDrops>, DropsError> {
            let mut rows = Vec::new();
            let before = &mut self.before;
            self.program.each(|key, packets, bytes| {
                let (had_packets, had_bytes) = before.insert(*key, (packets, bytes)).unwrap_or_default();
                if packets != had_packets {
                    let numbers = [packets.wrapping_sub(had_packets), packets, bytes.wrapping_sub(had_bytes)];
                    rows.push(CountedDrops { key: *key, numbers, sample: [0; DROP_SAMPLE_BYTES] });
                }
            })?;
            for row in &mut rows {
                self.program.sample(&row.key, &mut row.sample)?;
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
            let names_of = self.program.reasons();
            let text = |(kind, number): (u8, u64)| match kind {
                FUNCTION => Some(self.symbols.name(number)).filter(|name| !name.is_empty()).map(<[u8]>::to_vec),
                _ if names_of.reasons.is_empty() => None,
                _ => Some(reasons::name(names_of, u32::try_from(number).unwrap_or(u32::MAX)).into_bytes()),
            };
            names.into_iter().filter_map(|(kind, number)| Some((kind, number, text((kind, number))?))).collect()
        }
    }
}

#[cfg(not(feature = "bpf"))]
mod without_bpf {
    use super::{DropScope, DropsError, Host};

    /// Cannot be opened without BPF.
    #[derive(Debug)]
    pub struct DropCounter(());

    impl DropCounter {
        /// Fails: netwren was built without BPF.
        pub fn open(_: &Host, _: DropScope) -> Result<DropCounter, DropsError> {
            Err(DropsError::WithoutBpf)
        }

        pub(crate) fn read(&mut self, _: &Host, _: &mut Vec<u8>) -> Result<(), DropsError> {
            Err(DropsError::WithoutBpf)
        }
    }
}
