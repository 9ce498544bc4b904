//! The conntrack entry of a packet, as far as known, and its cells, which logged and captured packets share.

use super::conntrack::{Conntrack, CtStatus};
use crate::Value;
use crate::named_enum::named_enum;

named_enum! {
    /// The direction of a packet within its connection (`ct direction` of nft).
    pub enum CtDirection {
        /// The direction of the first packet.
        Original => "original",
        /// The direction of the reply.
        Reply => "reply",
    }
}

named_enum! {
    /// The state of a packet in relation to its connection (`ct state` of nft).
    pub enum PacketState {
        /// The connection has not seen a reply.
        New => "new",
        /// A reply has been seen, or the packet is one.
        Established => "established",
        /// The packet is related to another connection: an ICMP error about it, or a connection that a helper
        /// expected.
        Related => "related",
    }
}

named_enum! {
    /// How the entry of a packet was obtained.
    pub enum EntrySource {
        /// The kernel sent it with the packet.
        Packet => "packet",
        /// It was looked up by the packet's addresses and ports, after the packet.
        Lookup => "lookup",
    }
}

/// The conntrack entry of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEntry<'b> {
    /// The entry.
    pub entry: Conntrack<'b>,
    /// The direction of the packet.
    pub direction: CtDirection,
    /// The state of the packet; `None` for an unknown number of a newer kernel.
    pub state: Option<PacketState>,
    /// How the entry was obtained.
    pub source: EntrySource,
}

/// The attributes of the entry that the kernel sent with a packet (`NFULA_CT` and `NFULA_CT_INFO`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtAttrs<'b> {
    /// The attributes of the entry (`CTA_…`), undecoded; empty if the kernel sent only `info`.
    pub attrs: &'b [u8],
    /// `enum ip_conntrack_info`
    pub info: u32,
}

impl PacketEntry<'_> {
    /// The same entry without borrowed data.
    pub fn without_borrowed(&self) -> PacketEntry<'static> {
        let PacketEntry { ref entry, direction, state, source } = *self;
        PacketEntry { entry: entry.without_borrowed(), direction, state, source }
    }
}

/// The cells of the columns about an entry; null without an entry.
pub(super) mod cells {
    use super::{Conntrack, CtDirection, CtStatus, PacketEntry, PacketState, Value};

    type Entry<'r> = Option<&'r PacketEntry<'r>>;

    /// A cell from the entry itself.
    #[inline(never)]
    pub(in super::super) fn entry_value<'r>(entry: Entry<'r>, cell: fn(&'r Conntrack<'r>) -> Value<'r>) -> Value<'r> {
        entry.map_or(Value::Null, |found| cell(&found.entry))
    }

    pub(in super::super) fn state<'r>(entry: Entry<'_>) -> Value<'r> {
        entry.and_then(|found| found.state).map_or(Value::Null, |state: PacketState| Value::Name(state.name()))
    }

    pub(in super::super) fn direction<'r>(entry: Entry<'_>) -> Value<'r> {
        entry.map_or(Value::Null, |found| Value::Name(CtDirection::name(found.direction)))
    }

    pub(in super::super) fn status<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| ct.status.map_or(Value::Null, |status| Value::Bits(status.0, CtStatus::NAMES)))
    }

    pub(in super::super) fn nat<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| ct.nat().map_or(Value::Null, |nat| Value::Name(nat.name())))
    }

    pub(in super::super) fn client<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| Value::Endpoint(ct.orig.src, ct.orig.sport()))
    }

    pub(in super::super) fn mapped<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| ct.mapped_source().map_or(Value::Null, |(addr, port)| Value::Endpoint(addr, port)))
    }

    pub(in super::super) fn published<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| Value::Endpoint(ct.orig.dst, ct.orig.dport()))
    }

    pub(in super::super) fn backend<'r>(entry: Entry<'r>) -> Value<'r> {
        entry_value(entry, |ct| ct.backend().map_or(Value::Null, |(addr, port)| Value::Endpoint(addr, port)))
    }
}

impl CtDirection {
    /// Converts the kernel's `enum ip_conntrack_info` (include/uapi/linux/netfilter/nf_conntrack_common.h), in which
    /// replies start at 3.
    pub fn of_info(info: u32) -> CtDirection {
        if info >= 3 { CtDirection::Reply } else { CtDirection::Original }
    }
}

impl PacketState {
    /// Converts the kernel's `enum ip_conntrack_info`.
    pub fn of_info(info: u32) -> Option<PacketState> {
        match info {
            0 | 3 => Some(PacketState::Established),
            1 | 4 => Some(PacketState::Related),
            2 => Some(PacketState::New),
            _ => None,
        }
    }

    /// The state that the kernel would assign to a packet that arrives now in this direction (`resolve_normal_ct` in
    /// net/netfilter/nf_conntrack_core.c).
    pub fn of_entry(status: CtStatus, direction: CtDirection) -> PacketState {
        match direction {
            CtDirection::Reply => PacketState::Established,
            _ if status.contains(CtStatus::SEEN_REPLY) => PacketState::Established,
            _ if status.contains(CtStatus::EXPECTED) => PacketState::Related,
            _ => PacketState::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_kernel() {
        use CtDirection::{Original, Reply};
        use PacketState::{Established, New, Related};
        let told = [0, 1, 2, 3, 4].map(|info| (PacketState::of_info(info), CtDirection::of_info(info)));
        let expected =
            [(Established, Original), (Related, Original), (New, Original), (Established, Reply), (Related, Reply)];
        assert_eq!(told, expected.map(|(state, direction)| (Some(state), direction)));
        assert_eq!(PacketState::of_info(7), None, "IP_CT_UNTRACKED");
        for (status, direction, state) in
            [(0, Original, New), (2, Original, Established), (1, Original, Related), (3, Original, Established)]
        {
            assert_eq!(PacketState::of_entry(CtStatus(status), direction), state, "{status}");
            assert_eq!(PacketState::of_entry(CtStatus(status), Reply), Established);
        }
    }
}
