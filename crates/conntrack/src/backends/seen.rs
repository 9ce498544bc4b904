//! Remembers the entries that were handed out, in case the hash table is resized during the read.
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use record::hash::{mix_addr, mix_into, mix_words};
use record::rows::{Conntrack, CtTuple};

/// Keys of the rows of a read, 8 bytes each. At first they are only appended, which costs a multiplication and a store;
/// once rows may repeat, each is looked up.
#[derive(Debug)]
pub(crate) struct RowKeys {
    /// A random seed: remote hosts choose their addresses and must not be able to choose which rows pass for
    /// duplicates.
    seed: u64,
    noted: Vec<u64>,
    known: Option<HashSet<u64>>,
}

impl RowKeys {
    pub(crate) fn new() -> RowKeys {
        RowKeys { seed: RandomState::new().hash_one(0u8), noted: Vec::new(), known: None }
    }

    /// Starts to look rows up, because they may repeat from now on.
    pub(crate) fn watch(&mut self) {
        if self.known.is_none() {
            self.known = Some(std::mem::take(&mut self.noted).into_iter().collect());
        }
    }

    /// Remembers the row; true if it came before and rows may repeat.
    #[inline]
    pub(crate) fn is_double(&mut self, row: &Conntrack<'_>) -> bool {
        let key = self.key(row);
        match &mut self.known {
            None => {
                self.noted.push(key);
                false
            }
            Some(known) => !known.insert(key),
        }
    }

    // The original direction identifies an entry within its zone; the id distinguishes it from an earlier entry with
    // the same tuple.
    #[inline]
    fn key(&self, row: &Conntrack<'_>) -> u64 {
        let CtTuple { src, dst, proto, src_part, dst_part, zone } = row.orig;
        let zone = row.zone.or(zone).unwrap_or(0);
        let parts = u64::from(src_part) << 48 | u64::from(dst_part) << 32 | u64::from(zone) << 8 | u64::from(proto);
        let key = mix_into(self.seed ^ parts, row.netns_id << 32 | u64::from(row.id.unwrap_or(0)));
        mix_addr(mix_addr(key, &src), &dst)
    }
}

/// The entries that a walk has handed out, in case it is interrupted and netlink has to read the rest: 8 bytes each,
/// recorded with one store. The original direction identifies an entry within its zone and namespace: the kernel never
/// has it twice.
#[derive(Debug, Default)]
pub(crate) struct HandedOut {
    seed: u64,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Records nothing, because no other backend will take over.
    #[default]
    Off,
    Noting(Vec<u64>),
    Finishing(HashSet<u64>),
}

impl HandedOut {
    /// Starts to record entries.
    pub(crate) fn new_recording() -> HandedOut {
        HandedOut { seed: RandomState::new().hash_one(0u8), state: State::Noting(Vec::new()) }
    }

    pub(crate) fn is_noting(&self) -> bool {
        matches!(self.state, State::Noting(_))
    }

    pub(crate) fn is_finishing(&self) -> bool {
        matches!(self.state, State::Finishing(_))
    }

    /// Starts to compare, because entries come from another backend from now on.
    pub(crate) fn finish(&mut self) {
        if let State::Noting(noted) = std::mem::take(&mut self.state) {
            self.state = State::Finishing(noted.into_iter().collect());
        }
    }

    /// Records an entry of the walk, by its parts as a block contains them: ports or the values in their place (host
    /// order), zone, protocol, namespace, and both addresses one after the other.
    #[inline]
    pub(crate) fn add(&mut self, parts: [u16; 2], zone: u16, proto: u8, netns_id: u64, both: &[u8]) {
        let key = entry_key(self.seed, parts, zone, proto, netns_id, both);
        if let State::Noting(noted) = &mut self.state {
            noted.push(key);
        }
    }

    /// True if the walk has handed out this entry of another backend.
    pub(crate) fn is_out(&self, row: &Conntrack<'_>) -> bool {
        let State::Finishing(out) = &self.state else { return false };
        let CtTuple { src, dst, proto, src_part, dst_part, zone } = row.orig;
        let zone = row.zone.or(zone).or(row.reply.zone).unwrap_or(0);
        let both = [src.octets(), dst.octets()].concat();
        out.contains(&entry_key(self.seed, [src_part, dst_part], zone, proto, row.netns_id, &both))
    }
}

#[inline]
fn entry_key(seed: u64, [src, dst]: [u16; 2], zone: u16, proto: u8, netns_id: u64, both: &[u8]) -> u64 {
    let parts = u64::from(src) << 48 | u64::from(dst) << 32 | u64::from(zone) << 8 | u64::from(proto);
    mix_words(mix_into(seed ^ parts, netns_id), both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;

    #[test]
    fn twice_is_noticed_once_it_matters() {
        let row =
            |src_part: u16, id| Conntrack { orig: CtTuple { src_part, ..CtTuple::EMPTY }, id, ..Conntrack::EMPTY };
        let mut seen = RowKeys::new();
        assert!(!seen.is_double(&row(1, None)) && !seen.is_double(&row(1, None)), "nobody looks yet");
        seen.watch();
        assert!(seen.is_double(&row(1, None)));
        assert!(!seen.is_double(&row(1, Some(7))), "the same ends, another entry");
        assert!(!seen.is_double(&row(2, None)));
        assert!(seen.is_double(&row(2, None)));
    }

    #[test]
    fn what_a_walk_handed_out_is_known_by_other_interfaces() {
        let row = |src_part| Conntrack {
            orig: CtTuple { src: Addr::V4([10, 0, 0, 1]), src_part, ..CtTuple::EMPTY },
            netns_id: 7,
            id: Some(src_part.into()),
            ..Conntrack::EMPTY
        };
        let mut out = HandedOut::new_recording();
        let (dst, proto) = (row(1).orig.dst, row(1).orig.proto);
        out.add([1, row(1).orig.dst_part], 0, proto, 7, &[&[10, 0, 0, 1], dst.octets()].concat());
        assert!(!out.is_out(&row(1)), "the walk goes on");
        out.finish();
        assert!(out.is_finishing() && out.is_out(&row(1)));
        let elsewhere = [Conntrack { netns_id: 8, ..row(1) }, Conntrack { zone: Some(3), ..row(1) }, row(2)];
        assert!(!elsewhere.iter().any(|row| out.is_out(row)));
        let mut off = HandedOut::default();
        off.finish();
        assert!(!off.is_out(&row(1)) && !off.is_finishing());
    }

    #[test]
    fn keys_of_like_rows_differ() {
        let mut seen = RowKeys::new();
        seen.watch();
        for n in 0..200_000u32 {
            let src = Addr::V4((0x0a00_0000 + n / 1000).to_be_bytes());
            let orig = CtTuple { src, src_part: (n % 1000) as u16, ..CtTuple::EMPTY };
            assert!(!seen.is_double(&Conntrack { orig, ..Conntrack::EMPTY }), "{n}");
        }
    }
}
