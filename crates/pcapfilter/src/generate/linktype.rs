//! Tests which protocol follows the link-layer header.

use super::{Condition, Generated, Generator, HeaderPlace};
use crate::graph::Compare;
use crate::link::LinkType;
use crate::numbers::{ethertype, llc, ppp};
use crate::target::PacketOrigin;
use crate::value::Size;

/// `AF_INET` and `AF_INET6` of Linux.
const INET: u32 = 2;
const INET6: u32 = 10;
/// `AF_INET6` of the BSDs, FreeBSD and macOS.
const INET6_OTHERS: [u32; 3] = [24, 28, 30];

/// Protocol numbers of Linux cooked captures for frames with LLC (include/uapi/linux/if_ether.h).
const COOKED_802_3: u32 = 1;
const COOKED_802_2: u32 = 4;

impl Generator<'_> {
    /// `protocol` is an EtherType, or below 1,501 an LLC service access point.
    pub(super) fn link_type(&mut self, protocol: u32) -> Generated {
        if self.labels > 0 {
            return self.type_after_labels(protocol);
        }
        Ok(match self.link {
            LinkType::Ethernet => self.ethernet_type(protocol),
            LinkType::LinuxSll => self.cooked_type(protocol),
            LinkType::Raw => match protocol {
                ethertype::IP => self.test_masked(HeaderPlace::LinkHeader, 0, Size::Byte, 0x40, 0xf0),
                ethertype::IPV6 => self.test_masked(HeaderPlace::LinkHeader, 0, Size::Byte, 0x60, 0xf0),
                _ => Condition::Always(false),
            },
            LinkType::Ipv4 => Condition::Always(protocol == ethertype::IP),
            LinkType::Ipv6 => Condition::Always(protocol == ethertype::IPV6),
            LinkType::Ppp => self.test_equal(HeaderPlace::LinkType, 0, Size::Half, ppp_type(protocol)),
            LinkType::Null | LinkType::Loop => self.loopback_type(protocol),
            LinkType::LinuxSll2 => self.test_equal(HeaderPlace::LinkType, 0, Size::Half, protocol),
            link => return Err(format!("of {link} only less, greater, len and link[...] are tested")),
        })
    }

    /// After the last label, only the IP version shows the protocol.
    fn type_after_labels(&mut self, protocol: u32) -> Generated {
        let version = match protocol {
            ethertype::IP => 0x40,
            ethertype::IPV6 => 0x60,
            _ => return Err("unsupported protocol over mpls".to_owned()),
        };
        let is_last = self.test_masked(HeaderPlace::PreviousLabel, 2, Size::Byte, 1, 1);
        let version = self.test_masked(HeaderPlace::Network, 0, Size::Byte, version, 0xf0);
        Ok(Condition::All(vec![is_last, version]))
    }

    /// True if the type is a length, which means that LLC follows.
    pub(super) fn has_llc(&mut self) -> Condition {
        self.test_field(HeaderPlace::LinkType, 0, Size::Half, Compare::Greater, ethertype::LENGTH_MAX).negate()
    }

    fn ethernet_type(&mut self, protocol: u32) -> Condition {
        match protocol {
            llc::ISO | llc::IP | llc::NETBEUI => {
                let both = self.test_equal(HeaderPlace::Payload, 0, Size::Half, protocol << 8 | protocol);
                Condition::All(vec![self.has_llc(), both])
            }
            llc::IPX => {
                let ipx = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, ethertype::IPX);
                let in_llc = Condition::Any(vec![
                    self.snap(0, ethertype::IPX),
                    self.test_equal(HeaderPlace::Payload, 0, Size::Byte, llc::IPX),
                    // IPX immediately after the length.
                    self.test_equal(HeaderPlace::Payload, 0, Size::Half, 0xffff),
                ]);
                Condition::Any(vec![ipx, Condition::All(vec![self.has_llc(), in_llc])])
            }
            ethertype::APPLETALK | ethertype::AARP => {
                let ethernet = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, protocol);
                let snap = self.snap_of(protocol);
                Condition::Any(vec![ethernet, Condition::All(vec![self.has_llc(), snap])])
            }
            point if point <= ethertype::LENGTH_MAX => {
                let is_point = self.test_equal(HeaderPlace::LinkType, 2, Size::Byte, point);
                Condition::All(vec![self.has_llc(), is_point])
            }
            _ => self.test_equal(HeaderPlace::LinkType, 0, Size::Half, protocol),
        }
    }

    fn cooked_type(&mut self, protocol: u32) -> Condition {
        match protocol {
            llc::ISO | llc::IP | llc::NETBEUI => {
                let has_llc = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, COOKED_802_2);
                let both = self.test_equal(HeaderPlace::Payload, 0, Size::Half, protocol << 8 | protocol);
                Condition::All(vec![has_llc, both])
            }
            llc::IPX => {
                let ipx = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, ethertype::IPX);
                let old = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, COOKED_802_3);
                let has_llc = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, COOKED_802_2);
                let point = self.test_equal(HeaderPlace::Payload, 0, Size::Byte, llc::IPX);
                let in_llc = Condition::Any(vec![point, self.snap(0, ethertype::IPX)]);
                Condition::Any(vec![ipx, old, Condition::All(vec![has_llc, in_llc])])
            }
            ethertype::APPLETALK | ethertype::AARP => {
                let ethernet = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, protocol);
                let has_llc = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, COOKED_802_2);
                let snap = self.snap_of(protocol);
                Condition::Any(vec![ethernet, Condition::All(vec![has_llc, snap])])
            }
            point if point <= ethertype::LENGTH_MAX => {
                let has_llc = self.test_equal(HeaderPlace::LinkType, 0, Size::Half, COOKED_802_2);
                let is_point = self.test_equal(HeaderPlace::LinkHeader, self.payload.constant, Size::Byte, point);
                Condition::All(vec![has_llc, is_point])
            }
            _ => self.test_equal(HeaderPlace::LinkType, 0, Size::Half, protocol),
        }
    }

    /// The address family before the packet.
    fn loopback_type(&mut self, protocol: u32) -> Condition {
        match protocol {
            ethertype::IP => self.family(INET),
            // A file may come from any operating system.
            ethertype::IPV6 if self.target.is_file() => {
                let [bsd, freebsd, macos] = INET6_OTHERS;
                let first = self.family(macos);
                Condition::Any(vec![first, self.family(bsd), self.family(freebsd)])
            }
            ethertype::IPV6 => self.family(INET6),
            _ => Condition::Always(false),
        }
    }

    fn family(&mut self, family: u32) -> Condition {
        let is_big_endian = match (self.link, self.target.origin) {
            (LinkType::Loop, _) => true,
            (_, PacketOrigin::File { is_swapped }) => is_swapped != cfg!(target_endian = "big"),
            _ => cfg!(target_endian = "big"),
        };
        let number = if is_big_endian { family } else { family.swap_bytes() };
        self.test_equal(HeaderPlace::LinkHeader, 0, Size::Word, number)
    }

    fn snap_of(&mut self, protocol: u32) -> Condition {
        let organisation = if protocol == ethertype::APPLETALK { 0x08_0007 } else { 0 };
        self.snap(organisation, protocol)
    }

    /// LLC's SNAP header.
    fn snap(&mut self, organisation: u32, protocol: u32) -> Condition {
        let point = llc::SNAP as u8;
        let [_, first, second, third] = organisation.to_be_bytes();
        let [_, _, high, low] = protocol.to_be_bytes();
        self.bytes(HeaderPlace::Payload, 0, &[point, point, 3, first, second, third, high, low])
    }
}

/// Returns PPP's number for an EtherType; PPP's own numbers do not change.
fn ppp_type(protocol: u32) -> u32 {
    match protocol {
        ethertype::IP => ppp::IP,
        ethertype::IPV6 => ppp::IPV6,
        ethertype::DECNET => ppp::DECNET,
        ethertype::APPLETALK => ppp::APPLETALK,
        ethertype::XEROX_NS => ppp::XEROX_NS,
        llc::ISO => ppp::OSI,
        llc::STP => ppp::BRIDGE,
        llc::IPX => ppp::IPX,
        _ => protocol,
    }
}
