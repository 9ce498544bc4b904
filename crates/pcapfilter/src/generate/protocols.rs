//! Protocols: by name, by `proto`, and after extension headers by `protochain`.

use super::{Condition, Generated, Generator, HeaderPlace};
use crate::condition::HeaderChain;
use crate::graph::Compare;
use crate::numbers::{ethertype, ip, llc, osi};
use crate::value::Size;
use crate::words::{Dir, Proto, name_of};

impl Generator<'_> {
    /// The name of a protocol without an id.
    pub(super) fn protocol_word(&mut self, proto: Proto) -> Generated {
        if let Some(number) = ip_number(proto) {
            let family = match proto {
                Proto::Icmp | Proto::Igmp | Proto::Igrp | Proto::Vrrp | Proto::Carp => Proto::Ip,
                Proto::Icmpv6 => Proto::Ipv6,
                _ => Proto::Default,
            };
            return self.protocol(number, family, Dir::Default);
        }
        if let Some(protocol) = link_number(proto) {
            return self.link_type(protocol);
        }
        match proto {
            Proto::Link => Err("link layer applied in wrong context".to_owned()),
            Proto::Radio => Err("'radio' is not a valid protocol type".to_owned()),
            Proto::Esis => self.protocol(osi::ESIS, Proto::Iso, Dir::Default),
            Proto::Isis => self.protocol(osi::ISIS, Proto::Iso, Dir::Default),
            Proto::Clnp => self.protocol(osi::CLNP, Proto::Iso, Dir::Default),
            _ => {
                let types = isis_types(proto).iter();
                let parts = types.map(|number| self.protocol(*number, Proto::Isis, Dir::Default));
                Ok(Condition::Any(parts.collect::<Result<_, _>>()?))
            }
        }
    }

    /// Protocol `number` over the protocol `family`.
    pub(super) fn protocol(&mut self, number: u32, family: Proto, dir: Dir) -> Generated {
        if dir != Dir::Default {
            return Err("direction applied to 'proto'".to_owned());
        }
        match family {
            Proto::Default => {
                let ip = self.protocol(number, Proto::Ip, dir)?;
                Ok(Condition::Any(vec![ip, self.protocol(number, Proto::Ipv6, dir)?]))
            }
            Proto::Link => self.link_type(number),
            Proto::Ip => {
                let is_ip = self.link_type(ethertype::IP)?;
                Ok(Condition::All(vec![is_ip, self.test_equal(HeaderPlace::Network, 9, Size::Byte, number)]))
            }
            Proto::Ipv6 => {
                let is_ipv6 = self.link_type(ethertype::IPV6)?;
                let direct = self.test_equal(HeaderPlace::Network, 6, Size::Byte, number);
                let is_fragment = self.test_equal(HeaderPlace::Network, 6, Size::Byte, ip::FRAGMENT);
                let behind = self.test_equal(HeaderPlace::Network, 40, Size::Byte, number);
                let either = Condition::Any(vec![direct, Condition::All(vec![is_fragment, behind])]);
                Ok(Condition::All(vec![is_ipv6, either]))
            }
            Proto::Iso => {
                let is_iso = self.link_type(llc::ISO)?;
                Ok(Condition::All(vec![
                    is_iso,
                    self.test_equal(HeaderPlace::NetworkWithoutSnap, 0, Size::Byte, number),
                ]))
            }
            Proto::Isis => {
                let is_isis = self.protocol(osi::ISIS, Proto::Iso, dir)?;
                Ok(Condition::All(vec![
                    is_isis,
                    self.test_equal(HeaderPlace::NetworkWithoutSnap, 4, Size::Byte, number),
                ]))
            }
            other => Err(no_protocols(other)),
        }
    }

    pub(super) fn protochain(&mut self, protocol: u32, family: Proto) -> Generated {
        if family == Proto::Default {
            let ip = self.protochain(protocol, Proto::Ip)?;
            return Ok(Condition::Any(vec![ip, self.protochain(protocol, Proto::Ipv6)?]));
        }
        let (is_ipv6, link) = match family {
            Proto::Ip => (false, ethertype::IP),
            Proto::Ipv6 => (true, ethertype::IPV6),
            _ => return Err("bad protocol applied for 'protochain'".to_owned()),
        };
        if self.payload.slot.is_some() {
            return Err("'protochain' not supported with variable length headers".to_owned());
        }
        let offset = self.payload.constant.wrapping_add(self.network);
        let link = self.link_type(link)?;
        Ok(Condition::All(vec![link, Condition::Chain(HeaderChain { is_ipv6, protocol, offset })]))
    }

    /// Returns the number of a protocol by name, for `proto` and `protochain`.
    pub(super) fn protocol_number(&self, name: &str, family: Proto) -> Result<u32, String> {
        const LINK: &[(&str, u32)] = &[
            ("aarp", ethertype::AARP),
            ("arp", ethertype::ARP),
            ("atalk", ethertype::APPLETALK),
            ("decnet", ethertype::DECNET),
            ("ip", ethertype::IP),
            ("ip6", ethertype::IPV6),
            ("lat", ethertype::LAT),
            ("loopback", ethertype::LOOPBACK),
            ("mopdl", ethertype::MOPDL),
            ("moprc", ethertype::MOPRC),
            ("rarp", ethertype::RARP),
            ("sca", ethertype::SCA),
            ("iso", llc::ISO),
            ("stp", llc::STP),
            ("ipx", llc::IPX),
            ("netbeui", llc::NETBEUI),
        ];
        const OSI: &[(&str, u32)] = &[("esis", osi::ESIS), ("isis", osi::ISIS), ("clnp", osi::CLNP)];
        let find = |list: &[(&str, u32)]| list.iter().find(|(one, _)| *one == name).map(|(_, number)| *number);
        match family {
            Proto::Default | Proto::Ip | Proto::Ipv6 => {
                self.names.protocol(name).map(u32::from).ok_or_else(|| format!("unknown ip proto '{name}'"))
            }
            Proto::Link => find(LINK).ok_or_else(|| format!("unknown ether proto '{name}'")),
            Proto::Iso => find(OSI).ok_or_else(|| format!("unknown osi proto '{name}'")),
            _ => Err(format!("unknown protocol: {name}")),
        }
    }

    /// Tests that this is not a later fragment of an IPv4 packet.
    pub(super) fn first_fragment(&mut self) -> Condition {
        self.test_field(HeaderPlace::Network, 6, Size::Half, Compare::AnyBit, 0x1fff).negate()
    }
}

/// Numbers of protocols above IP.
pub(super) fn ip_number(proto: Proto) -> Option<u32> {
    Some(match proto {
        Proto::Sctp => ip::SCTP,
        Proto::Tcp => ip::TCP,
        Proto::Udp => ip::UDP,
        Proto::Icmp => ip::ICMP,
        Proto::Igmp => ip::IGMP,
        Proto::Igrp => ip::IGRP,
        Proto::Pim => ip::PIM,
        Proto::Vrrp | Proto::Carp => ip::VRRP,
        Proto::Icmpv6 => ip::ICMPV6,
        Proto::Ah => ip::AH,
        Proto::Esp => ip::ESP,
        _ => return None,
    })
}

/// Numbers of protocols above the link layer.
fn link_number(proto: Proto) -> Option<u32> {
    Some(match proto {
        Proto::Ip => ethertype::IP,
        Proto::Arp => ethertype::ARP,
        Proto::Rarp => ethertype::RARP,
        Proto::Atalk => ethertype::APPLETALK,
        Proto::Aarp => ethertype::AARP,
        Proto::Decnet => ethertype::DECNET,
        Proto::Sca => ethertype::SCA,
        Proto::Lat => ethertype::LAT,
        Proto::Mopdl => ethertype::MOPDL,
        Proto::Moprc => ethertype::MOPRC,
        Proto::Ipv6 => ethertype::IPV6,
        Proto::Iso => llc::ISO,
        Proto::Stp => llc::STP,
        Proto::Ipx => llc::IPX,
        Proto::Netbeui => llc::NETBEUI,
        _ => return None,
    })
}

/// The IS-IS packet types selected by a word.
fn isis_types(proto: Proto) -> &'static [u32] {
    match proto {
        Proto::IsisL1 => &[osi::L1_PSNP, osi::L1_CSNP, osi::L1_LSP, osi::L1_HELLO, osi::POINT_TO_POINT_HELLO],
        Proto::IsisL2 => &[osi::L2_PSNP, osi::L2_CSNP, osi::L2_LSP, osi::L2_HELLO, osi::POINT_TO_POINT_HELLO],
        Proto::IsisIih => &[osi::POINT_TO_POINT_HELLO, osi::L1_HELLO, osi::L2_HELLO],
        Proto::IsisLsp => &[osi::L1_LSP, osi::L2_LSP],
        Proto::IsisSnp => &[osi::L2_PSNP, osi::L1_PSNP, osi::L1_CSNP, osi::L2_CSNP],
        Proto::IsisCsnp => &[osi::L1_CSNP, osi::L2_CSNP],
        Proto::IsisPsnp => &[osi::L1_PSNP, osi::L2_PSNP],
        _ => &[],
    }
}

/// The error for `proto` after a protocol that carries no other.
fn no_protocols(proto: Proto) -> String {
    let word = name_of(proto);
    match proto {
        Proto::Arp | Proto::Rarp => format!("{word} does not encapsulate another protocol"),
        Proto::Lat | Proto::Sca | Proto::Moprc | Proto::Mopdl => {
            format!("{} does not encapsulate another protocol", word.to_uppercase())
        }
        Proto::Atalk => "AppleTalk encapsulation is not specifiable".to_owned(),
        Proto::Decnet => "DECNET encapsulation is not specifiable".to_owned(),
        Proto::Clnp => "'clnp proto' is not supported".to_owned(),
        _ => format!("'{word} proto' is bogus"),
    }
}
