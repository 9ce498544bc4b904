//! Hosts, networks or ports with the same qualifiers, tested by one search.
//!
//! A small set is searched separately for each header that may contain a member. A large set is searched once for all
//! headers: the offsets of the header's fields are stored in scratch memory first.

use super::hosts::{ARP_ENDS, AddressOffsets, IPV4_ENDS, IPV6_ENDS};
use super::id::{is_plain, network};
use super::ports::protocol_of;
use super::{Condition, DESTINATION, Generated, Generator, HeaderPlace, SOURCE};
use crate::ast::{Id, Operator, Qualifiers};
use crate::numbers::ethertype;
use crate::value::{MemorySlot, Size, ValueId};
use crate::words::{Dir, IdKind, Proto};

/// The most members of a set that is searched separately for each header.
const SMALL_MAX: usize = 12;

/// The kind of a set's members. All members of a set have the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberKind {
    Ipv4,
    Ipv6,
    Ports,
}

/// Returns the kind of set that this id can join, if its qualifiers allow sets.
pub(crate) fn members(qualifiers: Qualifiers, id: &Id) -> Option<MemberKind> {
    let Qualifiers { proto, dir, kind } = qualifiers;
    if !is_plain(dir) {
        return None;
    }
    let is_host = matches!(kind, IdKind::Default | IdKind::Host | IdKind::Net);
    match id {
        Id::Ipv4(_) | Id::Ipv4Prefix(..) | Id::Ipv4Mask(..) if is_host => {
            let is_contiguous = network(id).is_ok_and(|(_, mask)| mask.leading_ones() == mask.count_ones());
            let has_addresses = matches!(proto, Proto::Default | Proto::Ip | Proto::Arp | Proto::Rarp);
            (is_contiguous && has_addresses).then_some(MemberKind::Ipv4)
        }
        Id::Ipv6(..) if is_host => matches!(proto, Proto::Default | Proto::Ipv6).then_some(MemberKind::Ipv6),
        Id::Number(port) if kind == IdKind::Port => {
            (*port <= 0xffff && protocol_of(proto, "port").is_ok()).then_some(MemberKind::Ports)
        }
        _ => None,
    }
}

/// True if only the numbers differ, not the masks, and one load can read each of them.
pub(crate) fn is_uniform(members: MemberKind, ids: &[&Id]) -> bool {
    let mask = |id: &&Id| network(id).ok().map(|(_, mask)| mask);
    match members {
        MemberKind::Ipv4 => ids.windows(2).all(|pair| pair.first().map(mask) == pair.last().map(mask)),
        MemberKind::Ipv6 => false,
        MemberKind::Ports => true,
    }
}

impl Generator<'_> {
    /// Returns the condition of all `ids` together. Each was compiled separately before, so each is valid.
    pub(crate) fn set(&mut self, qualifiers: Qualifiers, members: MemberKind, ids: &[&Id]) -> Generated {
        match members {
            MemberKind::Ipv4 => self.ipv4_set(qualifiers, ids),
            MemberKind::Ipv6 => self.ipv6_set(qualifiers, ids),
            MemberKind::Ports => self.port_set(qualifiers, ids),
        }
    }

    fn ipv4_set(&mut self, Qualifiers { proto, dir, .. }: Qualifiers, ids: &[&Id]) -> Generated {
        let mut prefixes = Vec::new();
        for id in ids {
            let (address, mask) = network(id)?;
            prefixes.push((u128::from(address) << 96, mask.leading_ones()));
        }
        let prefixes = remove_contained(prefixes);
        let mut headers: Vec<(&[u32], AddressOffsets)> = Vec::new();
        if matches!(proto, Proto::Default | Proto::Ip) {
            headers.push((&[ethertype::IP], IPV4_ENDS));
        }
        match proto {
            Proto::Default if self.labels == 0 => headers.push((&[ethertype::ARP, ethertype::RARP], ARP_ENDS)),
            Proto::Arp => headers.push((&[ethertype::ARP], ARP_ENDS)),
            Proto::Rarp => headers.push((&[ethertype::RARP], ARP_ENDS)),
            _ => {}
        }
        let is_large = ids.len() > SMALL_MAX;
        let mut any = Vec::new();
        for (types, ends) in headers {
            let types = types.iter().map(|number| self.link_type(*number)).collect::<Result<_, _>>()?;
            let mut parts = vec![Condition::Any(types)];
            if is_large {
                let (source, destination) = (self.address_of(ends.source), self.address_of(ends.destination));
                parts.push(Condition::Store(SOURCE, source));
                parts.push(Condition::Store(DESTINATION, destination));
            } else {
                let source = self.load(HeaderPlace::Network, ends.source, Size::Word);
                let destination = self.load(HeaderPlace::Network, ends.destination, Size::Word);
                parts.push(join_ends(dir, source, destination, &|value| {
                    Condition::InPrefixes(vec![value], prefixes.clone())
                }));
            }
            any.push(Condition::All(parts));
        }
        if !is_large {
            return Ok(Condition::Any(any));
        }
        let (source, destination) = (self.at_slot(SOURCE, 0, Size::Word), self.at_slot(DESTINATION, 0, Size::Word));
        let found = join_ends(dir, source, destination, &|value| Condition::InPrefixes(vec![value], prefixes.clone()));
        Ok(Condition::All(vec![Condition::Any(any), found]))
    }

    /// Returns the offset of the byte at `offset` of the network header, without the part that is the same for all
    /// packets.
    fn address_of(&mut self, offset: u32) -> ValueId {
        let offset = self.values.constant(offset);
        match self.base(self.payload) {
            Some(base) => self.values.binary(Operator::Add, base, offset),
            None => offset,
        }
    }

    /// Returns a load at the offset in `slot`.
    fn at_slot(&mut self, slot: MemorySlot, offset: u32, size: Size) -> ValueId {
        let base = self.values.slot(slot);
        let network = self.payload.constant.wrapping_add(self.network);
        self.values.load(size, Some(base), network.wrapping_add(offset))
    }

    fn ipv6_set(&mut self, Qualifiers { dir, .. }: Qualifiers, ids: &[&Id]) -> Generated {
        let prefix = |id: &&Id| match id {
            Id::Ipv6(_, address, prefix) => Some((u128::from(*address), *prefix)),
            _ => None,
        };
        let prefixes = remove_contained(ids.iter().filter_map(prefix).collect());
        let mut words = |start: u32| -> Vec<ValueId> {
            (0..4).map(|word| self.load(HeaderPlace::Network, start + 4 * word, Size::Word)).collect()
        };
        let source = Condition::InPrefixes(words(IPV6_ENDS.source), prefixes.clone());
        let destination = Condition::InPrefixes(words(IPV6_ENDS.destination), prefixes);
        let found = match dir {
            Dir::Src => source,
            Dir::Dst => destination,
            _ => Condition::Any(vec![source, destination]),
        };
        Ok(Condition::All(vec![self.link_type(ethertype::IPV6)?, found]))
    }

    fn port_set(&mut self, Qualifiers { proto, dir, .. }: Qualifiers, ids: &[&Id]) -> Generated {
        let protocol = protocol_of(proto, "port")?;
        let port = |id: &&Id| match id {
            Id::Number(port) => Some((*port, *port)),
            _ => None,
        };
        let ranges = merge_ranges(ids.iter().filter_map(port).collect());
        let is_large = ids.len() > SMALL_MAX;
        let mut any = Vec::new();
        for (link, offset, place) in
            [(ethertype::IPV6, 6, HeaderPlace::Ipv6Payload), (ethertype::IP, 9, HeaderPlace::Ipv4Payload)]
        {
            let mut parts = vec![self.link_type(link)?, self.has_ports(protocol, offset)];
            if place == HeaderPlace::Ipv4Payload {
                parts.push(self.first_fragment());
            }
            if is_large {
                let header =
                    if place == HeaderPlace::Ipv4Payload { self.ipv4_header_length() } else { self.address_of(40) };
                parts.push(Condition::Store(SOURCE, header));
            } else {
                let (source, destination) = (self.load(place, 0, Size::Half), self.load(place, 2, Size::Half));
                parts.push(join_ends(dir, source, destination, &|value| Condition::InRanges(value, ranges.clone())));
            }
            any.push(Condition::All(parts));
        }
        if !is_large {
            return Ok(Condition::Any(any));
        }
        let (source, destination) = (self.at_slot(SOURCE, 0, Size::Half), self.at_slot(SOURCE, 2, Size::Half));
        let found = join_ends(dir, source, destination, &|value| Condition::InRanges(value, ranges.clone()));
        Ok(Condition::All(vec![Condition::Any(any), found]))
    }
}

/// Returns a condition for the ends selected by `dir`.
fn join_ends(dir: Dir, source: ValueId, destination: ValueId, found: &dyn Fn(ValueId) -> Condition) -> Condition {
    match dir {
        Dir::Src => found(source),
        Dir::Dst => found(destination),
        _ => Condition::Any(vec![found(source), found(destination)]),
    }
}

/// Sorts the prefixes and removes those contained in others.
fn remove_contained(mut prefixes: Vec<(u128, u32)>) -> Vec<(u128, u32)> {
    prefixes.sort_unstable();
    let mut kept: Vec<(u128, u32)> = Vec::with_capacity(prefixes.len());
    for (address, length) in prefixes {
        let is_inside = kept.last().is_some_and(|(outer, outer_length)| {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(*outer_length)).unwrap_or(0);
            *outer_length <= length && (address & mask) == *outer
        });
        if !is_inside {
            kept.push((address, length));
        }
    }
    kept
}

/// Sorts the ranges and merges neighbours.
fn merge_ranges(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut kept: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (lowest, highest) in ranges {
        match kept.last_mut().filter(|(_, before)| lowest <= before.saturating_add(1)) {
            Some((_, before)) => *before = highest.max(*before),
            None => kept.push((lowest, highest)),
        }
    }
    kept
}
