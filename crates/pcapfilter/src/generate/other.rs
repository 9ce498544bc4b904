//! Lengths, broadcast and multicast, single bytes, direction and interface.

use super::{Condition, Generated, Generator, HeaderPlace};
use crate::ast::Operator;
use crate::graph::Compare;
use crate::interpret::{ANCILLARY_IFINDEX, ANCILLARY_PACKET_TYPE};
use crate::link::LinkType;
use crate::numbers::ethertype;
use crate::value::Size;
use crate::words::Proto;

/// `PACKET_OUTGOING` of include/uapi/linux/if_packet.h.
const OUTGOING: u32 = 4;

impl Generator<'_> {
    pub(super) fn length(&mut self, compare: Compare, bytes: u32) -> Condition {
        let (length, bytes) = (self.values.length(), self.values.constant(bytes));
        Condition::compare(self.values, length, compare, bytes)
    }

    /// A byte of the link-layer header. (libpcap forgets to load it for `&` and `|`.)
    pub(super) fn byte(&mut self, offset: u32, sign: u8, number: u32) -> Condition {
        let byte = self.load(HeaderPlace::LinkHeader, offset, Size::Byte);
        let right = self.values.constant(number);
        let operator = match sign {
            b'=' => return Condition::compare(self.values, byte, Compare::Equal, right),
            b'>' => return Condition::compare(self.values, byte, Compare::Greater, right),
            b'<' => return Condition::compare(self.values, byte, Compare::GreaterOrEqual, right).negate(),
            b'&' => Operator::And,
            _ => Operator::Or,
        };
        let (left, zero) = (self.values.binary(operator, byte, right), self.values.constant(0));
        Condition::compare(self.values, left, Compare::Equal, zero).negate()
    }

    pub(super) fn broadcast(&mut self, proto: Proto) -> Generated {
        match proto {
            Proto::Default | Proto::Link if self.link == LinkType::Ethernet => {
                let all = self.ethernet_end([0xff; 6], false);
                Ok(self.require_inner_ethernet(all))
            }
            Proto::Default | Proto::Link => Err("not a broadcast link".to_owned()),
            Proto::Ip => {
                let unknown = "netmask not known, so 'ip broadcast' not supported";
                let hosts = !self.target.netmask.ok_or(unknown)?;
                let is_ip = self.link_type(ethertype::IP)?;
                let none = self.test_masked(HeaderPlace::Network, 16, Size::Word, 0, hosts);
                let all = self.test_masked(HeaderPlace::Network, 16, Size::Word, hosts, hosts);
                Ok(Condition::All(vec![is_ip, Condition::Any(vec![none, all])]))
            }
            _ => Err("only link-layer/IP broadcast filters supported".to_owned()),
        }
    }

    pub(super) fn multicast(&mut self, proto: Proto) -> Generated {
        match proto {
            Proto::Default | Proto::Link if self.link == LinkType::Ethernet => {
                let group = self.test_field(HeaderPlace::LinkHeader, 0, Size::Byte, Compare::AnyBit, 1);
                Ok(self.require_inner_ethernet(group))
            }
            Proto::Ip => {
                let is_ip = self.link_type(ethertype::IP)?;
                let group = self.test_field(HeaderPlace::Network, 16, Size::Byte, Compare::GreaterOrEqual, 224);
                Ok(Condition::All(vec![is_ip, group]))
            }
            Proto::Ipv6 => {
                let is_ipv6 = self.link_type(ethertype::IPV6)?;
                Ok(Condition::All(vec![is_ipv6, self.test_equal(HeaderPlace::Network, 24, Size::Byte, 255)]))
            }
            _ => Err("link-layer multicast filters supported only on \
                ethernet/FDDI/token ring/ARCNET/802.11/ATM LANE/Fibre Channel"
                .to_owned()),
        }
    }

    pub(super) fn direction(&mut self, is_outbound: bool) -> Generated {
        let outgoing = match self.link {
            LinkType::LinuxSll => self.test_equal(HeaderPlace::LinkHeader, 0, Size::Half, OUTGOING),
            LinkType::LinuxSll2 => self.test_equal(HeaderPlace::LinkHeader, 10, Size::Byte, OUTGOING),
            link if self.target.is_file() => {
                return Err(format!("inbound/outbound not supported on {link} when reading savefiles"));
            }
            _ => {
                let kind = self.values.load(Size::Half, None, ANCILLARY_PACKET_TYPE);
                let outgoing = self.values.constant(OUTGOING);
                Condition::compare(self.values, kind, Compare::Equal, outgoing)
            }
        };
        Ok(if is_outbound { outgoing } else { outgoing.negate() })
    }

    pub(super) fn ifindex(&mut self, number: u32) -> Generated {
        match self.link {
            LinkType::LinuxSll2 => Ok(self.test_equal(HeaderPlace::LinkHeader, 4, Size::Word, number)),
            link if self.target.is_file() => Err(format!("ifindex not supported on {link} when reading savefiles")),
            _ => {
                let ifindex = self.values.load(Size::Word, None, ANCILLARY_IFINDEX);
                let number = self.values.constant(number);
                Ok(Condition::compare(self.values, ifindex, Compare::Equal, number))
            }
        }
    }
}
