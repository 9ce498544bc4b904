//! Right sides of comparisons: HOST:PORT, ports, interfaces, marks, cgroups.

use super::Stop;
use super::condition::{HostCond, Hosts};
use super::environment::Environment;
use super::number;
use super::tables::{Db, Family, Selection};
use crate::ss::output::{ethertype_of, netlink_protocol_of};
use crate::text::printable;
use record::{Addr, Prefix, Proto};

/// The meaning of a bare word, which depends on the most recent left side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Address,
    Port,
    Dev,
    Mark,
    Cgroup,
}

/// The right side of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Operand {
    Host(HostCond),
    Dev(u32),
    Mark { value: u32, mask: u32 },
    Cgroup(u64),
}

/// Parses a word. If it names a family, only that family is shown.
pub(super) fn read(
    word: &[u8],
    kind: Kind,
    selection: &mut Selection,
    environment: &dyn Environment,
) -> Result<Operand, Stop> {
    match kind {
        Kind::Address | Kind::Port => host(word, kind == Kind::Port, selection, environment).map(Operand::Host),
        Kind::Dev => dev(word, environment).map(Operand::Dev),
        Kind::Mark => mark(word).ok_or_else(|| Stop::cannot_parse("mark", word)),
        Kind::Cgroup => environment.cgroup(word).map(Operand::Cgroup).map_err(|says| {
            let cannot = format!("Cannot parse cgroup {}.", printable(word));
            Stop::operand(&if says.is_empty() { cannot } else { format!("{says}\n{cannot}") })
        }),
    }
}

fn dev(word: &[u8], environment: &dyn Environment) -> Result<u32, Stop> {
    let index = environment.iface_index(word).or_else(|| number::integer(word).and_then(|n| u32::try_from(n).ok()));
    index.ok_or_else(|| Stop::operand("Cannot parse device."))
}

/// `VALUE` or `VALUE/MASK`; text after the number is ignored, as in C's scanf.
fn mark(word: &[u8]) -> Option<Operand> {
    let (value, rest) = number::leading(word)?;
    if !word.contains(&b'/') {
        return Some(Operand::Mark { value: value as u32, mask: u32::MAX });
    }
    let (mask, _) = number::leading(rest.strip_prefix(b"/")?)?;
    Some(Operand::Mark { value: value as u32, mask: mask as u32 })
}

/// Prefixes that name a family.
#[rustfmt::skip]
const FAMILY_WORDS: &[(&[u8], Family)] = &[
    (b"unix:", Family::Unix), (b"link:", Family::Packet), (b"netlink:", Family::Netlink), (b"vsock:", Family::Vsock),
    (b"inet:", Family::Inet), (b"inet6:", Family::Inet6),
];

fn host(
    word: &[u8],
    is_port: bool,
    selection: &mut Selection,
    environment: &dyn Environment,
) -> Result<HostCond, Stop> {
    let named = FAMILY_WORDS.iter().find_map(|(prefix, family)| Some((word.strip_prefix(*prefix)?, *family)));
    let (word, family) = match named {
        Some((rest, family)) => (rest, Some(family)),
        None => (word, selection.preferred),
    };
    let cond = match family {
        Some(Family::Unix) => HostCond { port: None, hosts: Hosts::Unix(word.to_vec()) },
        None | Some(Family::Inet | Family::Inet6) => inet(word, is_port, family, selection, environment)?,
        Some(Family::Packet) => protocol(word, ethertype, |port| environment.iface_index(port).map(i64::from))?,
        Some(Family::Netlink) => protocol(word, netlink_protocol, |port| (port == b"kernel").then_some(0))?,
        Some(_) => return Err(Stop::unsupported("a filter by vsock address", "use `netwren sockets 'proto = vsock'`")),
    };
    if let Some(family) = family {
        selection.only_family(family);
    }
    Ok(cond)
}

/// `PROTOCOL:PORT` for a packet or netlink socket; `*` or an empty part matches any value.
fn protocol(
    word: &[u8],
    number_of: fn(&[u8]) -> Option<u16>,
    port_of: impl Fn(&[u8]) -> Option<i64>,
) -> Result<HostCond, Stop> {
    let mut parts = word.splitn(2, |&b| b == b':');
    let (protocol, port) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let any = |part: &[u8]| matches!(part, b"" | b"*");
    let read = |part: &[u8], number: Option<i64>| match number {
        _ if any(part) => Ok(None),
        Some(number) => Ok(Some(number)),
        None => Err(Stop::operand(CANNOT)),
    };
    let hosts = match read(protocol, number_of(protocol).map(i64::from))? {
        Some(_) => Hosts::Protocol(number_of(protocol).unwrap_or_default()),
        None => Hosts::Any,
    };
    let port = read(port, number::integer(port).or_else(|| port_of(port)))?;
    // -1 means any port.
    Ok(HostCond { port: port.filter(|port| *port != -1), hosts })
}

fn ethertype(word: &[u8]) -> Option<u16> {
    ethertype_of(word).or_else(|| number::integer(word).and_then(|n| u16::try_from(n).ok()))
}

fn netlink_protocol(word: &[u8]) -> Option<u16> {
    let number = || number::integer(word).and_then(|n| u8::try_from(n).ok());
    netlink_protocol_of(word).or_else(number).map(u16::from)
}

/// The line that follows every error about an address.
const CANNOT: &str = "Cannot parse dst/src address.";

fn complain(line: &str) -> Stop {
    Stop::operand(&format!("{line}\n{CANNOT}"))
}

fn inet(
    word: &[u8],
    is_port: bool,
    family: Option<Family>,
    selection: &Selection,
    environment: &dyn Environment,
) -> Result<HostCond, Stop> {
    let (addr, mut port) = cut(word).ok_or_else(|| Stop::operand(CANNOT))?;
    if is_port {
        port = Some(word.strip_prefix(b"[").unwrap_or(word));
        if let (Some(inside), true) = (port, word.starts_with(b"[")) {
            // At this point ss has cut the word at the bracket.
            port = inside.split(|&b| b == b']').next();
        }
    }
    let port = match port.map(|p| p.strip_prefix(b":").unwrap_or(p)) {
        None | Some([] | [b'*', ..]) => None,
        Some(port) => port_number(port, selection, environment)?,
    };
    if is_port || addr.is_empty() || addr.starts_with(b"*") {
        return Ok(HostCond { port, hosts: Hosts::Any });
    }
    Ok(HostCond { port, hosts: hosts(addr, family, environment)? })
}

/// Address and port of `[ADDR]:PORT`, `*:PORT`, `ADDR/LEN:PORT`; None for a bracket that is not closed.
fn cut(word: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    if let Some(inside) = word.strip_prefix(b"[") {
        let close = inside.iter().position(|&b| b == b']')?;
        return Some((&inside[..close], inside.get(close + 1..)));
    }
    if let Some(rest) = word.strip_prefix(b"*") {
        return Some((b"*", Some(rest)));
    }
    // A colon before the slash belongs to the address.
    let from = word.iter().position(|&b| b == b'/').unwrap_or(0);
    let colon = word.get(from..)?.iter().rposition(|&b| b == b':').map(|at| from + at);
    Some(match colon {
        Some(at) => (&word[..at], word.get(at..)),
        None => (word, None),
    })
}

/// Parses a number, or the name of a service in one of the protocols shown. −1 means any port.
fn port_number(word: &[u8], selection: &Selection, environment: &dyn Environment) -> Result<Option<i64>, Stop> {
    if let Some(number) = number::integer(word) {
        return Ok((number != -1).then_some(number));
    }
    let shown = printable(word);
    let name = std::str::from_utf8(word).unwrap_or_default();
    let port = |db, proto| if selection.has(db) { environment.service(name, proto) } else { None };
    match (port(Db::Udp, Proto::Udp), port(Db::Tcp, Proto::Tcp)) {
        (Some(udp), Some(tcp)) if udp != tcp => Err(complain(&format!("Error: ambiguous port \"{shown}\"."))),
        (Some(port), _) | (None, Some(port)) => Ok(Some(port.into())),
        (None, None) => Err(complain(&format!("Error: \"{shown}\" does not look like a port."))),
    }
}

fn hosts(word: &[u8], family: Option<Family>, environment: &dyn Environment) -> Result<Hosts, Stop> {
    match prefix(word, family) {
        Some(hosts) => return Ok(hosts),
        None => {
            let name = std::str::from_utf8(word).unwrap_or_default();
            let fits = |addr: &Addr| match family {
                Some(Family::Inet) => matches!(addr, Addr::V4(_)),
                Some(Family::Inet6) => matches!(addr, Addr::V6(_)),
                _ => true,
            };
            let found: Vec<Prefix> = environment.host(name).into_iter().filter(fits).map(Prefix::host).collect();
            if !found.is_empty() {
                return Ok(Hosts::Prefixes(found));
            }
        }
    }
    let shown = printable(word);
    Err(complain(&format!("Error: an inet prefix is expected rather than \"{shown}\".")))
}

/// `ADDR[/LEN]`, `any`, `all` or `default`; None for other text, or for an address of the wrong family.
fn prefix(word: &[u8], family: Option<Family>) -> Option<Hosts> {
    let (addr, len) = match word.iter().position(|&b| b == b'/') {
        Some(at) => (&word[..at], word.get(at + 1..)),
        None => (word, None),
    };
    if matches!(addr, b"any" | b"all" | b"default") {
        return match (len, family) {
            (Some(_), _) => None,
            (None, None) => Some(Hosts::Any),
            (None, Some(Family::Inet6)) => Prefix::new(Addr::ANY6, 0).map(|p| Hosts::Prefixes(vec![p])),
            (None, Some(_)) => Prefix::new(Addr::ANY4, 0).map(|p| Hosts::Prefixes(vec![p])),
        };
    }
    let addr = match addr.contains(&b':') {
        true if family != Some(Family::Inet) => {
            Addr::V6(std::str::from_utf8(addr).ok()?.parse::<std::net::Ipv6Addr>().ok()?.octets())
        }
        false if family != Some(Family::Inet6) => Addr::V4(short_v4(addr)?),
        _ => return None,
    };
    let len = match len {
        None => addr.bits(),
        Some(len) => mask_len(len)?,
    };
    Prefix::new(addr, len).map(|p| Hosts::Prefixes(vec![p]))
}

/// `10.1.2.3`, and `10.1` for `10.1.0.0`.
fn short_v4(word: &[u8]) -> Option<[u8; 4]> {
    let mut octets = [0; 4];
    let mut parts = word.split(|&b| b == b'.');
    for octet in &mut octets {
        let Some(part) = parts.next() else { break };
        *octet = u8::try_from(number::integer(part)?).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// A prefix length, or a netmask in dots.
fn mask_len(word: &[u8]) -> Option<u8> {
    if let Some(len) = number::integer(word) {
        return u8::try_from(len).ok();
    }
    let mask = u32::from_be_bytes(short_v4(word)?);
    (mask.leading_ones() + mask.trailing_zeros() >= 32).then_some(mask.leading_ones() as u8)
}
