//! Geneve (RFC 8926). Because of its options, the offset of the inner headers differs between packets.

use super::ports::PortRange;
use super::{Condition, GENEVE, Generated, Generator, HEADER, HeaderPlace, Offset, PAYLOAD, TYPE};
use crate::ast::Operator;
use crate::graph::Compare;
use crate::link::LinkType;
use crate::numbers::{ethertype, ip};
use crate::value::{Size, ValueId};
use crate::words::Dir;

const PORT: u32 = 6081;
const NETWORK_MAX: u32 = 0xff_ffff;

impl Generator<'_> {
    pub(super) fn geneve(&mut self, network: Option<u32>) -> Generated {
        let ipv4 = self.test_over_udp(HeaderPlace::Ipv4Payload, network)?;
        let ipv6 = self.test_over_udp(HeaderPlace::Ipv6Payload, network)?;
        let mut parts = vec![Condition::Any(vec![ipv4, ipv6])];
        parts.extend(self.inner_headers());
        self.link = LinkType::Ethernet;
        self.header = Offset::in_slot(HEADER);
        self.link_type = Some(Offset::in_slot(TYPE));
        self.payload = Offset::in_slot(PAYLOAD);
        self.network = 0;
        self.is_geneve = true;
        Ok(Condition::All(parts))
    }

    /// Tests for Geneve version 0 over UDP, and stores the offset of its header.
    fn test_over_udp(&mut self, place: HeaderPlace, network: Option<u32>) -> Generated {
        let ports = PortRange { lowest: PORT, highest: PORT, protocol: Some(ip::UDP), is_range: false };
        let port = match place {
            HeaderPlace::Ipv4Payload => self.ipv4_ports(ports, Dir::Dst)?,
            _ => self.ipv6_ports(ports, Dir::Dst)?,
        };
        let mut parts = vec![port, self.test_masked(place, 8, Size::Byte, 0, 0xc0)];
        if let Some(network) = network {
            if network > NETWORK_MAX {
                return Err(format!("Geneve VNI {network} greater than maximum {NETWORK_MAX}"));
            }
            parts.push(self.test_masked(place, 12, Size::Word, network << 8, NETWORK_MAX << 8));
        }
        let before = match place {
            HeaderPlace::Ipv4Payload => self.ipv4_header_length(),
            _ => {
                let length = self.values.constant(40);
                match self.base(self.payload) {
                    Some(base) => self.values.binary(Operator::Add, base, length),
                    None => length,
                }
            }
        };
        let start = self.add_constant(before, self.payload.constant.wrapping_add(self.network).wrapping_add(8));
        parts.push(Condition::Store(GENEVE, start));
        Ok(Condition::All(parts))
    }

    fn add_constant(&mut self, value: ValueId, constant: u32) -> ValueId {
        let constant = self.values.constant(constant);
        self.values.binary(Operator::Add, value, constant)
    }

    /// After the options: an Ethernet frame, or a packet of another protocol without an Ethernet header.
    fn inner_headers(&mut self) -> Vec<Condition> {
        let start = self.values.slot(GENEVE);
        let protocol = self.add_constant(start, 2);
        let flags = self.values.load(Size::Byte, Some(start), 0);
        let (mask, four) = (self.values.constant(0x3f), self.values.constant(4));
        let words = self.values.binary(Operator::And, flags, mask);
        let options = self.values.binary(Operator::Mul, words, four);
        let options = self.values.binary(Operator::Add, options, start);
        let header = self.add_constant(options, 8);
        let inner = self.values.slot(HEADER);
        let (inner_type, inner_payload) = (self.add_constant(inner, 12), self.add_constant(inner, 14));
        let field = self.values.load(Size::Half, Some(start), 2);
        let ethernet = self.values.constant(ethertype::ETHERNET);
        let is_ethernet = Condition::compare(self.values, field, Compare::Equal, ethernet);
        vec![
            Condition::Store(TYPE, protocol),
            Condition::Store(HEADER, header),
            Condition::Any(vec![
                Condition::All(vec![
                    is_ethernet,
                    Condition::Store(TYPE, inner_type),
                    Condition::Store(PAYLOAD, inner_payload),
                ]),
                Condition::Store(PAYLOAD, inner),
            ]),
        ]
    }

    /// Adds the condition that there is an Ethernet header in Geneve. Without one, the payload begins in its place.
    pub(super) fn require_inner_ethernet(&mut self, condition: Condition) -> Condition {
        if !self.is_geneve {
            return condition;
        }
        let (header, payload) = (self.values.slot(HEADER), self.values.slot(PAYLOAD));
        let is_none = Condition::compare(self.values, header, Compare::Equal, payload);
        Condition::All(vec![is_none.negate(), condition])
    }
}
