//! Ports and port ranges, over TCP, UDP and SCTP.

use super::hosts::wlan_words;
use super::{Condition, Generated, Generator, HeaderPlace};
use crate::graph::Compare;
use crate::numbers::{ethertype, ip};
use crate::value::Size;
use crate::words::{Dir, Proto};

/// Protocols with ports, in the order in which libpcap tests them.
pub(super) const WITH_PORTS: [u32; 3] = [ip::SCTP, ip::TCP, ip::UDP];

/// The lowest and the highest port, and the number of the protocol; None means all protocols with ports.
#[derive(Clone, Copy)]
pub(super) struct PortRange {
    pub(super) lowest: u32,
    pub(super) highest: u32,
    pub(super) protocol: Option<u32>,
    /// True if the qualifier is `portrange`.
    pub(super) is_range: bool,
}

impl Generator<'_> {
    pub(super) fn ports(&mut self, ports: PortRange, dir: Dir) -> Generated {
        let ipv6 = self.ipv6_ports(ports, dir)?;
        Ok(Condition::Any(vec![ipv6, self.ipv4_ports(ports, dir)?]))
    }

    pub(super) fn ipv4_ports(&mut self, ports: PortRange, dir: Dir) -> Generated {
        let link = self.link_type(ethertype::IP)?;
        let protocol = self.has_ports(ports.protocol, 9);
        let first = self.first_fragment();
        Ok(Condition::All(vec![link, protocol, first, self.test_both_ports(HeaderPlace::Ipv4Payload, ports, dir)?]))
    }

    pub(super) fn ipv6_ports(&mut self, ports: PortRange, dir: Dir) -> Generated {
        let link = self.link_type(ethertype::IPV6)?;
        let protocol = self.has_ports(ports.protocol, 6);
        Ok(Condition::All(vec![link, protocol, self.test_both_ports(HeaderPlace::Ipv6Payload, ports, dir)?]))
    }

    /// Tests whether the protocol at `offset` of the network header is the wanted one.
    pub(super) fn has_ports(&mut self, protocol: Option<u32>, offset: u32) -> Condition {
        let wanted = protocol.map_or(WITH_PORTS.to_vec(), |protocol| vec![protocol]);
        Condition::Any(
            wanted.iter().map(|number| self.test_equal(HeaderPlace::Network, offset, Size::Byte, *number)).collect(),
        )
    }

    fn test_both_ports(&mut self, place: HeaderPlace, ports: PortRange, dir: Dir) -> Generated {
        let mut end = |offset| {
            if ports.lowest == ports.highest {
                return self.test_equal(place, offset, Size::Half, ports.lowest);
            }
            let above = self.test_field(place, offset, Size::Half, Compare::GreaterOrEqual, ports.lowest);
            let beyond = self.test_field(place, offset, Size::Half, Compare::Greater, ports.highest);
            Condition::All(vec![above, beyond.negate()])
        };
        Ok(match dir {
            Dir::Src => end(0),
            Dir::Dst => end(2),
            Dir::SrcAndDst => Condition::All(vec![end(0), end(2)]),
            Dir::Default | Dir::SrcOrDst => Condition::Any(vec![end(0), end(2)]),
            Dir::Ra | Dir::Ta => return Err(not_for_ports(dir, "is not a valid qualifier", ports)),
            _ => return Err(not_for_ports(dir, "are not valid qualifiers", ports)),
        })
    }
}

fn not_for_ports(dir: Dir, are_not: &str, ports: PortRange) -> String {
    let what = if ports.is_range { "port ranges" } else { "ports" };
    format!("{} {are_not} for {what}", wlan_words(dir))
}

/// Returns the protocol before `port`. `word` is `port` or `portrange`, for the error.
pub(super) fn protocol_of(proto: Proto, word: &str) -> Result<Option<u32>, String> {
    match proto {
        Proto::Default => Ok(None),
        Proto::Tcp => Ok(Some(ip::TCP)),
        Proto::Udp => Ok(Some(ip::UDP)),
        Proto::Sctp => Ok(Some(ip::SCTP)),
        _ => Err(format!("illegal qualifier of '{word}'")),
    }
}
