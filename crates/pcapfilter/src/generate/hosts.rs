//! Hosts and networks: IPv4, IPv6, Ethernet.

use super::{Condition, Generated, Generator, HeaderPlace};
use crate::link::LinkType;
use crate::numbers::ethertype;
use crate::value::Size;
use crate::words::{Dir, IdKind, Proto, name_of};

/// The offsets of both addresses in a header.
#[derive(Clone, Copy)]
pub(super) struct AddressOffsets {
    pub(super) source: u32,
    pub(super) destination: u32,
}

pub(super) const IPV4_ENDS: AddressOffsets = AddressOffsets { source: 12, destination: 16 };
pub(super) const ARP_ENDS: AddressOffsets = AddressOffsets { source: 14, destination: 24 };
pub(super) const IPV6_ENDS: AddressOffsets = AddressOffsets { source: 8, destination: 24 };

impl Generator<'_> {
    /// An IPv4 host or network, in the headers of `proto`.
    pub(super) fn host(&mut self, address: u32, mask: u32, proto: Proto, dir: Dir, kind: IdKind) -> Generated {
        match proto {
            Proto::Default => {
                let mut parts = vec![self.host(address, mask, Proto::Ip, dir, kind)?];
                if self.labels == 0 {
                    parts.push(self.host(address, mask, Proto::Arp, dir, kind)?);
                    parts.push(self.host(address, mask, Proto::Rarp, dir, kind)?);
                }
                Ok(Condition::Any(parts))
            }
            Proto::Ip => self.address(address, mask, dir, ethertype::IP, IPV4_ENDS),
            Proto::Arp => self.address(address, mask, dir, ethertype::ARP, ARP_ENDS),
            Proto::Rarp => self.address(address, mask, dir, ethertype::RARP, ARP_ENDS),
            Proto::Decnet => self.decnet(address, dir),
            other => Err(no_host(other, kind)),
        }
    }

    fn address(&mut self, address: u32, mask: u32, dir: Dir, link: u32, ends: AddressOffsets) -> Generated {
        join_directions(dir, &mut |is_source| {
            let offset = if is_source { ends.source } else { ends.destination };
            let link = self.link_type(link)?;
            Ok(Condition::All(vec![link, self.test_masked(HeaderPlace::Network, offset, Size::Word, address, mask)]))
        })
    }

    /// An IPv6 host or network.
    pub(super) fn host6(&mut self, address: u128, prefix: u32, proto: Proto, dir: Dir, kind: IdKind) -> Generated {
        if !matches!(proto, Proto::Default | Proto::Ipv6) {
            return Err(no_host6(proto, kind));
        }
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
        join_directions(dir, &mut |is_source| {
            let offset = if is_source { IPV6_ENDS.source } else { IPV6_ENDS.destination };
            let mut parts = vec![self.link_type(ethertype::IPV6)?];
            for word in 0..4 {
                let shift = 96 - 32 * word;
                let (number, mask) = ((address >> shift) as u32, (mask >> shift) as u32);
                parts.push(self.test_masked(HeaderPlace::Network, offset + 4 * word, Size::Word, number, mask));
            }
            Ok(Condition::All(parts))
        })
    }

    /// An Ethernet address. `refusal` is the error for link types without such addresses.
    pub(super) fn ethernet_host(&mut self, address: [u8; 6], dir: Dir, refusal: &str) -> Generated {
        if self.link != LinkType::Ethernet {
            return Err(refusal.to_owned());
        }
        match dir {
            Dir::Src => Ok(self.ethernet_end(address, true)),
            Dir::Dst => Ok(self.ethernet_end(address, false)),
            Dir::SrcAndDst => {
                let source = self.ethernet_end(address, true);
                Ok(Condition::All(vec![source, self.ethernet_end(address, false)]))
            }
            Dir::Default | Dir::SrcOrDst => {
                let source = self.ethernet_end(address, true);
                Ok(Condition::Any(vec![source, self.ethernet_end(address, false)]))
            }
            Dir::Addr1 | Dir::Addr2 | Dir::Addr3 | Dir::Addr4 => {
                let words = wlan_words(dir);
                Err(format!("{words} are only supported on 802.11 with 802.11 headers"))
            }
            Dir::Ra | Dir::Ta => Err(format!("{} is only supported on 802.11 with 802.11 headers", wlan_words(dir))),
        }
        .map(|condition| self.require_inner_ethernet(condition))
    }

    pub(super) fn ethernet_end(&mut self, address: [u8; 6], is_source: bool) -> Condition {
        self.bytes(HeaderPlace::LinkHeader, if is_source { 6 } else { 0 }, &address)
    }
}

/// Returns a condition for the ends selected by `dir`.
pub(super) fn join_directions(dir: Dir, end: &mut dyn FnMut(bool) -> Generated) -> Generated {
    match dir {
        Dir::Src => end(true),
        Dir::Dst => end(false),
        Dir::SrcAndDst => Ok(Condition::All(vec![end(true)?, end(false)?])),
        Dir::Default | Dir::SrcOrDst => Ok(Condition::Any(vec![end(true)?, end(false)?])),
        Dir::Ra | Dir::Ta => {
            let word = wlan_words(dir);
            Err(format!("{word} is not a valid qualifier for addresses other than 802.11 MAC addresses"))
        }
        _ => {
            let words = wlan_words(dir);
            Err(format!("{words} are not valid qualifiers for addresses other than 802.11 MAC addresses"))
        }
    }
}

/// The words for the addresses that only 802.11 has.
pub(super) fn wlan_words(dir: Dir) -> &'static str {
    match dir {
        Dir::Addr1 => "'addr1' and 'address1'",
        Dir::Addr2 => "'addr2' and 'address2'",
        Dir::Addr3 => "'addr3' and 'address3'",
        Dir::Addr4 => "'addr4' and 'address4'",
        Dir::Ra => "'ra'",
        _ => "'ta'",
    }
}

fn kind_word(kind: IdKind) -> &'static str {
    if kind == IdKind::Net { "net" } else { "host" }
}

/// Returns the error for a host of this protocol, with libpcap's text.
fn no_host(proto: Proto, kind: IdKind) -> String {
    let (word, kind) = (name_of(proto), kind_word(kind));
    match proto {
        Proto::Link => format!("link-layer modifier applied to {kind}"),
        Proto::Atalk => "AppleTalk host filtering not implemented".to_owned(),
        Proto::Lat | Proto::Sca | Proto::Moprc | Proto::Mopdl | Proto::Aarp | Proto::Iso | Proto::Ipx => {
            format!("{} host filtering not implemented", word.to_uppercase())
        }
        Proto::Ipv6 => "'ip6' modifier applied to ip host".to_owned(),
        _ => format!("'{word}' modifier applied to {kind}"),
    }
}

fn no_host6(proto: Proto, kind: IdKind) -> String {
    let (word, kind) = (name_of(proto), kind_word(kind));
    match proto {
        Proto::Link => format!("link-layer modifier applied to ip6 {kind}"),
        Proto::Atalk => format!("AppleTalk modifier applied to ip6 {kind}"),
        _ => format!("'{word}' modifier applied to ip6 {kind}"),
    }
}
