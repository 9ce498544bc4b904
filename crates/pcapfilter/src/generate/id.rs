//! Qualifiers and their ids.

use super::ports::{PortRange, protocol_of};
use super::{Condition, Generated, Generator, decnet};
use crate::ast::{Id, Qualifiers};
use crate::numbers::ip;
use crate::words::{Dir, IdKind, Proto};
use std::net::IpAddr;

const SYNTAX: &str = "syntax error in filter expression";
const MASKS_FOR_NETWORKS: &str = "Mask syntax for networks only";

impl Generator<'_> {
    pub(super) fn id(&mut self, qualifiers: Option<Qualifiers>, id: &Id) -> Generated {
        match id {
            Id::Name(name) => self.name(qualifiers.ok_or(SYNTAX)?, name),
            Id::Number(number) => self.number(qualifiers.ok_or(SYNTAX)?, *number),
            Id::Ipv4(text) => self.dotted_number(qualifiers, text),
            Id::Ipv4Prefix(..) | Id::Ipv4Mask(..) => {
                let (address, mask) = network(id)?;
                match qualifiers {
                    Some(Qualifiers { proto, dir, kind: IdKind::Net }) => {
                        self.host(address, mask, proto, dir, IdKind::Net)
                    }
                    _ => Err(MASKS_FOR_NETWORKS.to_owned()),
                }
            }
            Id::Ipv6(text, address, prefix) => self.ipv6(qualifiers, text, u128::from(*address), *prefix),
            Id::Ether(address) => match qualifiers {
                Some(Qualifiers { proto: Proto::Link, dir, kind: IdKind::Default | IdKind::Host }) => self
                    .ethernet_host(
                        *address,
                        dir,
                        "ethernet addresses supported only on ethernet/FDDI/token ring/802.11/ATM LANE/Fibre Channel",
                    ),
                _ => Err("ethernet address used in non-ether expression".to_owned()),
            },
            Id::Arcnet => Err("aid supported only on ARCnet".to_owned()),
        }
    }

    fn dotted_number(&mut self, qualifiers: Option<Qualifiers>, text: &str) -> Generated {
        if let Some(Qualifiers { proto: Proto::Decnet, dir, kind }) = qualifiers {
            let malformed = || format!("malformed decnet address '{text}'");
            return self.host(decnet::address(text).ok_or_else(malformed)?, 0, Proto::Decnet, dir, kind);
        }
        let (address, bits) = dotted_address(text)?;
        let Qualifiers { proto, dir, kind } = qualifiers.ok_or(SYNTAX)?;
        match kind {
            IdKind::Gateway => Err("'gateway' requires a name".to_owned()),
            _ if proto == Proto::Link => Err("illegal link layer address".to_owned()),
            _ => self.host(address, mask_of(bits), proto, dir, kind),
        }
    }

    fn number(&mut self, Qualifiers { proto, dir, kind }: Qualifiers, number: u32) -> Generated {
        match kind {
            IdKind::Default | IdKind::Host | IdKind::Net => match proto {
                Proto::Decnet => self.host(number, 0, proto, dir, kind),
                Proto::Link => Err("illegal link layer address".to_owned()),
                _ if kind == IdKind::Net => {
                    let (number, mask) = shift_leading(number);
                    self.host(number, mask, proto, dir, kind)
                }
                _ => self.host(number, u32::MAX, proto, dir, kind),
            },
            IdKind::Port | IdKind::Portrange => {
                let is_range = kind == IdKind::Portrange;
                let protocol = protocol_of(proto, if is_range { "portrange" } else { "port" })?;
                if number > 0xffff {
                    return Err(format!("illegal port number {number} > 65535"));
                }
                self.ports(PortRange { lowest: number, highest: number, protocol, is_range }, dir)
            }
            IdKind::Gateway => Err("'gateway' requires a name".to_owned()),
            IdKind::Proto => self.protocol(number, proto, dir),
            IdKind::Protochain => self.protochain(number, proto),
        }
    }

    fn name(&mut self, qualifiers: Qualifiers, name: &str) -> Generated {
        let Qualifiers { proto, dir, kind } = qualifiers;
        match kind {
            IdKind::Net => {
                let number = self.names.network(name).filter(|number| *number != 0);
                let (number, mask) = shift_leading(number.ok_or_else(|| format!("unknown network '{name}'"))?);
                self.host(number, mask, proto, dir, kind)
            }
            IdKind::Default | IdKind::Host => self.host_name(qualifiers, name),
            IdKind::Port | IdKind::Portrange => {
                let ports = if kind == IdKind::Port { self.port_name(proto, name) } else { self.range(proto, name) };
                self.ports(ports?, dir)
            }
            IdKind::Gateway => Err("'gateway' not supported in this configuration".to_owned()),
            IdKind::Proto => {
                let number = self.protocol_number(name, proto)?;
                self.protocol(number, proto, dir)
            }
            IdKind::Protochain => {
                let number = self.protocol_number(name, proto)?;
                self.protochain(number, proto)
            }
        }
    }

    fn host_name(&mut self, Qualifiers { proto, dir, kind }: Qualifiers, name: &str) -> Generated {
        const ONLY: &str = "only ethernet/FDDI/token ring/802.11/ATM LANE/Fibre Channel supports link-level host name";
        match proto {
            Proto::Link if self.link == crate::link::LinkType::Ethernet => {
                let unknown = || format!("unknown ether host '{name}'");
                let address = self.names.ethernet(name).ok_or_else(unknown)?;
                return self.ethernet_host(address, dir, ONLY);
            }
            Proto::Link => return Err(ONLY.to_owned()),
            Proto::Decnet => {
                return Err(format!("decnet name support not included, '{name}' cannot be translated"));
            }
            _ => {}
        }
        let addresses = self.names.host(name);
        if addresses.is_empty() {
            return Err(format!("unknown host '{name}'"));
        }
        // Without a type field, IP is the only protocol that can be tested.
        let any = proto == Proto::Default && self.link_type.is_none();
        let mut parts = Vec::new();
        for address in addresses {
            parts.push(match address {
                IpAddr::V4(address) if proto != Proto::Ipv6 => {
                    self.host(address.into(), u32::MAX, if any { Proto::Ip } else { proto }, dir, kind)?
                }
                IpAddr::V6(address) if proto != Proto::Ip => {
                    self.host6(address.into(), 128, if any { Proto::Ipv6 } else { proto }, dir, kind)?
                }
                _ => continue,
            });
        }
        if parts.is_empty() {
            return Err(format!("unknown host '{name}' for specified address family"));
        }
        Ok(Condition::Any(parts))
    }

    fn ipv6(&mut self, qualifiers: Option<Qualifiers>, text: &str, address: u128, prefix: u32) -> Generated {
        if prefix > 128 {
            return Err("mask length must be <= 128".to_owned());
        }
        if address & u128::MAX.checked_shr(prefix).unwrap_or(0) != 0 {
            return Err(format!("non-network bits set in \"{text}/{prefix}\""));
        }
        match qualifiers {
            Some(Qualifiers { kind: IdKind::Default | IdKind::Host, .. }) if prefix != 128 => {
                Err(MASKS_FOR_NETWORKS.to_owned())
            }
            Some(Qualifiers { proto, dir, kind: kind @ (IdKind::Default | IdKind::Host | IdKind::Net) }) => {
                self.host6(address, prefix, proto, dir, kind)
            }
            _ => Err("invalid qualifier against IPv6 address".to_owned()),
        }
    }

    /// Returns the port of a service and the protocol it belongs to. The protocol is None if there are several.
    fn service(&self, name: &str) -> Option<(u32, Option<u32>)> {
        let number = || name.parse::<u16>().ok();
        let tcp = self.names.port(name, "tcp").or_else(number);
        let udp = self.names.port(name, "udp").or_else(number);
        match (tcp, udp) {
            (Some(tcp), udp) => Some((tcp.into(), (udp != Some(tcp)).then_some(ip::TCP))),
            (None, Some(udp)) => Some((udp.into(), Some(ip::UDP))),
            (None, None) => None,
        }
    }

    fn port_name(&self, proto: Proto, name: &str) -> Result<PortRange, String> {
        let wanted = protocol_of(proto, "port")?;
        let (port, real) = self.service(name).ok_or_else(|| format!("unknown port '{name}'"))?;
        let protocol = choose_protocol(wanted, real).map_err(|other| format!("port '{name}' is {other}"))?;
        Ok(PortRange { lowest: port, highest: port, protocol, is_range: false })
    }

    fn range(&self, proto: Proto, name: &str) -> Result<PortRange, String> {
        let wanted = protocol_of(proto, "portrange")?;
        let unknown = || format!("unknown port in range '{name}'");
        let (first, second, real) = match numbers(name) {
            Some((first, second)) => (first, second, None),
            None => {
                let (first, second) = name.split_once('-').ok_or_else(unknown)?;
                let (first, first_real) = self.service(first).ok_or_else(unknown)?;
                let (second, real) = self.service(second).ok_or_else(unknown)?;
                (first, second, real.filter(|_| first_real == real))
            }
        };
        let protocol = choose_protocol(wanted, real).map_err(|other| format!("port in range '{name}' is {other}"))?;
        for port in [first, second] {
            if port > 0xffff {
                return Err(format!("illegal port number {port} > 65535"));
            }
        }
        Ok(PortRange { lowest: first.min(second), highest: first.max(second), protocol, is_range: true })
    }
}

/// Parses `80-90`, with any text after it.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (first, rest) = text.split_once('-')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((first.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// Returns the wanted protocol if the service has it; otherwise the name of the protocol that the service has.
fn choose_protocol(wanted: Option<u32>, real: Option<u32>) -> Result<Option<u32>, &'static str> {
    match (wanted, real) {
        (Some(wanted), Some(real)) if wanted != real => Err(if real == ip::TCP { "tcp" } else { "udp" }),
        (Some(wanted), _) => Ok(Some(wanted)),
        (None, real) => Ok(real),
    }
}

/// Shifts a network number until its first byte is not zero: 10 becomes 10.0.0.0. Also returns the mask.
fn shift_leading(number: u32) -> (u32, u32) {
    let (mut number, mut mask) = (number, u32::MAX);
    while number != 0 && number & 0xff00_0000 == 0 {
        number <<= 8;
        mask <<= 8;
    }
    (number, mask)
}

fn mask_of(bits: u32) -> u32 {
    u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0)
}

/// Parses an address of one to four numbers. Also returns how many bits they have.
fn dotted_address(text: &str) -> Result<(u32, u32), String> {
    let (mut address, mut bits) = (0_u32, 0);
    for part in text.split('.') {
        let number = part.parse::<u8>().map_err(|_| format!("invalid IPv4 address '{text}'"))?;
        address = address << 8 | u32::from(number);
        bits += 8;
    }
    Ok((address.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0), bits))
}

/// Returns the address and the mask of a network.
pub(super) fn network(id: &Id) -> Result<(u32, u32), String> {
    match id {
        Id::Ipv4(text) => dotted_address(text).map(|(address, bits)| (address, mask_of(bits))),
        Id::Ipv4Prefix(text, prefix) => {
            let (address, _) = dotted_address(text)?;
            if *prefix > 32 {
                return Err("mask length must be <= 32".to_owned());
            }
            match mask_of(*prefix) {
                mask if address & !mask == 0 => Ok((address, mask)),
                _ => Err(format!("non-network bits set in \"{text}/{prefix}\"")),
            }
        }
        Id::Ipv4Mask(text, mask_text) => {
            let ((address, _), (mask, _)) = (dotted_address(text)?, dotted_address(mask_text)?);
            if address & !mask != 0 {
                return Err(format!("non-network bits set in \"{text} mask {mask_text}\""));
            }
            Ok((address, mask))
        }
        _ => Err(SYNTAX.to_owned()),
    }
}

/// True if the qualifiers select one end, or either end; false for both ends at once and for 802.11's addresses.
pub(super) fn is_plain(dir: Dir) -> bool {
    matches!(dir, Dir::Default | Dir::Src | Dir::Dst | Dir::SrcOrDst)
}
