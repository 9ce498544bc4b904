//! Converts primitives to conditions: finds the fields of headers for each link type and after each encapsulation.
//!
//! Primitives are processed in order, because `vlan`, `mpls`, `pppoes` and `geneve` move the headers that follow.

mod arith;
mod decnet;
mod encapsulation;
mod geneve;
mod hosts;
mod id;
mod linktype;
mod llc;
mod other;
mod ports;
mod protocols;
mod sets;

pub(crate) use sets::{MemberKind, is_uniform, members};

use crate::ast::{Leaf, Operator, Primitive};
use crate::condition::Condition;
use crate::error::FilterError;
use crate::graph::Compare;
use crate::link::LinkType;
use crate::names::NameSource;
use crate::target::FilterTarget;
use crate::value::{MemorySlot, Size, ValueId, Values};

/// A condition, or the error message.
type Generated = Result<Condition, String>;

/// An offset: a constant, or the sum of a constant and a word of scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    slot: Option<MemorySlot>,
    constant: u32,
}

impl Offset {
    fn constant(constant: u32) -> Offset {
        Offset { slot: None, constant }
    }

    fn in_slot(slot: MemorySlot) -> Offset {
        Offset { slot: Some(slot), constant: 0 }
    }
}

/// The start from which the offset of a field is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderPlace {
    LinkHeader,
    LinkType,
    /// The end of the link-layer header; the payload includes LLC's header.
    Payload,
    /// The network header.
    Network,
    /// The network header if LLC has no SNAP header.
    NetworkWithoutSnap,
    /// The previous MPLS label.
    PreviousLabel,
    /// The end of an IPv4 header.
    Ipv4Payload,
    /// The end of the IPv6 header without extension headers.
    Ipv6Payload,
}

/// Words of scratch memory for the offsets of the payload, the type, the header, and a Geneve header.
const PAYLOAD: MemorySlot = MemorySlot(0);
const TYPE: MemorySlot = MemorySlot(1);
const HEADER: MemorySlot = MemorySlot(2);
const GENEVE: MemorySlot = MemorySlot(3);
/// Words of scratch memory for both ends of a packet while they are looked up in sets. (Header chains use 4 and 5.)
const SOURCE: MemorySlot = MemorySlot(6);
const DESTINATION: MemorySlot = MemorySlot(7);

/// Slots that must be written before they are read: the kernel rejects a program that may read an unwritten word.
pub(crate) const OFFSET_SLOTS: [MemorySlot; 4] = [PAYLOAD, TYPE, HEADER, GENEVE];

/// Generates the conditions of one expression.
pub(crate) struct Generator<'a> {
    pub(crate) values: &'a mut Values,
    target: &'a FilterTarget,
    names: &'a dyn NameSource,
    /// The innermost link type.
    link: LinkType,
    header: Offset,
    payload: Offset,
    /// None for link types without a field for the type of the payload.
    link_type: Option<Offset>,
    /// Bytes from the payload to the network header.
    network: u32,
    network_without_snap: u32,
    labels: usize,
    tags: usize,
    is_geneve: bool,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(values: &'a mut Values, target: &'a FilterTarget, names: &'a dyn NameSource) -> Generator<'a> {
        let (link_type, payload, without_snap) = match target.link {
            LinkType::Ethernet => (Some(12), 14, 3),
            LinkType::Null | LinkType::Loop => (Some(0), 4, 0),
            LinkType::LinuxSll => (Some(14), 16, 0),
            LinkType::LinuxSll2 => (Some(0), 20, 0),
            LinkType::Ppp => (Some(2), 4, 0),
            _ => (None, 0, 0),
        };
        Generator {
            values,
            target,
            names,
            link: target.link,
            header: Offset::constant(0),
            payload: Offset::constant(payload),
            link_type: link_type.map(Offset::constant),
            network: 0,
            network_without_snap: without_snap,
            labels: 0,
            tags: 0,
            is_geneve: false,
        }
    }

    /// Returns the condition of a leaf.
    pub(crate) fn leaf(&mut self, leaf: &Leaf) -> Result<Condition, FilterError> {
        let condition = match &leaf.primitive {
            Primitive::Proto(proto) => self.protocol_word(*proto),
            Primitive::Id(qualifiers, id) => self.id(*qualifiers, id),
            Primitive::Relation(relation, left, right) => self.relation(*relation, left, right),
            Primitive::Broadcast(proto) => self.broadcast(*proto),
            Primitive::Multicast(proto) => self.multicast(*proto),
            Primitive::Less(bytes) => Ok(self.length(Compare::Greater, *bytes).negate()),
            Primitive::Greater(bytes) => Ok(self.length(Compare::GreaterOrEqual, *bytes)),
            Primitive::Byte(offset, sign, number) => Ok(self.byte(*offset, *sign, *number)),
            Primitive::Inbound => self.direction(false),
            Primitive::Outbound => self.direction(true),
            Primitive::Ifindex(number) => self.ifindex(*number),
            Primitive::Vlan(number) => self.vlan(*number),
            Primitive::Mpls(label) => self.mpls(*label),
            Primitive::Pppoed => self.link_type(crate::numbers::ethertype::PPPOE_DISCOVERY),
            Primitive::Pppoes(session) => self.pppoes(*session),
            Primitive::Geneve(network) => self.geneve(*network),
            Primitive::Llc(name) => self.llc(name.as_deref()),
            Primitive::Foreign(refusal) => Err((*refusal).to_owned()),
            Primitive::Extra(number, _) => Ok(Condition::Extra(*number)),
        };
        condition.map_err(|message| FilterError::new(message, leaf.at))
    }

    /// Returns the variable part of an offset, if it has one.
    fn base(&mut self, offset: Offset) -> Option<ValueId> {
        offset.slot.map(|slot| self.values.slot(slot))
    }

    /// Returns a load from `offset` bytes after a place.
    fn load(&mut self, place: HeaderPlace, offset: u32, size: Size) -> ValueId {
        let network = self.payload.constant.wrapping_add(self.network);
        let (base, start) = match place {
            HeaderPlace::LinkHeader => (self.base(self.header), self.header.constant),
            HeaderPlace::LinkType => {
                let link_type = self.link_type.unwrap_or(Offset::constant(0));
                (self.base(link_type), link_type.constant)
            }
            HeaderPlace::Payload => (self.base(self.payload), self.payload.constant),
            HeaderPlace::Network => (self.base(self.payload), network),
            HeaderPlace::NetworkWithoutSnap => {
                (self.base(self.payload), self.payload.constant.wrapping_add(self.network_without_snap))
            }
            HeaderPlace::PreviousLabel => (self.base(self.payload), network.wrapping_sub(4)),
            HeaderPlace::Ipv4Payload => (Some(self.ipv4_header_length()), network),
            HeaderPlace::Ipv6Payload => (self.base(self.payload), network.wrapping_add(40)),
        };
        self.values.load(size, base, start.wrapping_add(offset))
    }

    /// Returns the length of the IPv4 header, plus the start of the payload if that is not a constant.
    fn ipv4_header_length(&mut self) -> ValueId {
        let offset = self.payload.constant.wrapping_add(self.network);
        let Some(base) = self.base(self.payload) else { return self.values.header_length(offset) };
        let byte = self.values.load(Size::Byte, Some(base), offset);
        let (low, two) = (self.values.constant(0xf), self.values.constant(2));
        let words = self.values.binary(Operator::And, byte, low);
        let bytes = self.values.binary(Operator::ShiftLeft, words, two);
        self.values.binary(Operator::Add, bytes, base)
    }

    fn test_equal(&mut self, place: HeaderPlace, offset: u32, size: Size, number: u32) -> Condition {
        self.test_field(place, offset, size, Compare::Equal, number)
    }

    fn test_field(&mut self, place: HeaderPlace, offset: u32, size: Size, compare: Compare, number: u32) -> Condition {
        let left = self.load(place, offset, size);
        let right = self.values.constant(number);
        Condition::compare(self.values, left, compare, right)
    }

    /// Tests whether the bits of `mask` in the field have the value `number`.
    fn test_masked(&mut self, place: HeaderPlace, offset: u32, size: Size, number: u32, mask: u32) -> Condition {
        let field = self.load(place, offset, size);
        let mask = self.values.constant(mask);
        let left = self.values.binary(Operator::And, field, mask);
        let right = self.values.constant(number);
        Condition::compare(self.values, left, Compare::Equal, right)
    }

    /// Compares bytes from the last to the first, in pieces as large as possible.
    fn bytes(&mut self, place: HeaderPlace, offset: u32, bytes: &[u8]) -> Condition {
        let mut parts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (size, taken) = match rest.len() {
                4.. => (Size::Word, 4),
                2.. => (Size::Half, 2),
                _ => (Size::Byte, 1),
            };
            let (before, last) = rest.split_at(rest.len() - taken);
            let number = last.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
            parts.push(self.test_equal(place, offset.wrapping_add(before.len() as u32), size, number));
            rest = before;
        }
        Condition::All(parts)
    }
}
