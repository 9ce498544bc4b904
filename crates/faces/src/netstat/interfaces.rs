//! `netstat -i`: interfaces and the labels of their IPv4 addresses, in netstat's order.

use super::complain;
use super::rounds::{RoundEnd, repeat};
use super::switches::Interfaces;
use crate::netstat::output::{INTERFACES_HEADING, INTERFACES_TITLE, Interface};
use host::Links;
use lookups::session::Session;
use record::rows::{Link, LinkAddr};
use runtime::messages;
use runtime::stdout::Stdout;
use sinks::Out;
use std::collections::BTreeMap;

/// Prints the interfaces, repeatedly if requested; returns the exit code.
pub(super) fn run(session: &Session, request: &Interfaces) -> u8 {
    let mut out = Out::new(Stdout::new());
    out.buf().extend_from_slice(INTERFACES_TITLE);
    repeat(session, request.continuous, || round(session, request, &mut out))
}

fn round(session: &Session, request: &Interfaces, out: &mut Out<Stdout>) -> Result<(), RoundEnd> {
    let links = read(session, request)?;
    if !request.long {
        out.buf().extend_from_slice(INTERFACES_HEADING);
    }
    let by_name: BTreeMap<&[u8], &Link> = links.links.iter().map(|link| (&*link.name, link)).collect();
    let first = first_addresses(&links);
    for name in names(&links) {
        let base = name.split(|&b| b == b':').next().unwrap_or(name);
        let Some(link) = by_name.get(base) else { return Err(report_missing(out, name)) };
        let addr = first.get(name).copied();
        let row = Interface { name, link, alias: base.len() < name.len(), addr, addrs6: &links.addrs6 };
        if !row.is_up() && !request.all {
            continue;
        }
        match request.long {
            true => row.put_long(out.buf(), request.bug_compatible),
            false => row.put_short(out.buf(), request.bug_compatible),
        }
        out.line_done().map_err(RoundEnd::Output)?;
    }
    out.flush().map_err(RoundEnd::Output)
}

fn read(session: &Session, request: &Interfaces) -> Result<Links, RoundEnd> {
    let (host, netns) = (session.host(), session.netns_id());
    let mut links = Links::read(host, netns, None)
        .map_err(|error| RoundEnd::Reported(complain(&format!("cannot list the interfaces: {error}"), 1)))?;
    if request.long {
        // The file is missing if IPv6 is off, and then there are no addresses.
        let _ = links.read_inet6(host, netns, None);
    }
    if links.over > 0 {
        messages::print_message(&format!("{} interfaces and addresses left out: too many", links.over));
    }
    if links.interrupted {
        messages::print_message("interfaces changed while they were read: the list may be incomplete");
    }
    Ok(links)
}

/// Reports an address whose label names an interface that does not exist, after printing all interfaces before it.
fn report_missing(out: &mut Out<Stdout>, name: &[u8]) -> RoundEnd {
    let flushed = out.flush();
    let name = String::from_utf8_lossy(name);
    complain(&format!("{name}: error fetching interface information: Device not found"), 1);
    flushed.map_or_else(RoundEnd::Output, |()| RoundEnd::Reported(1))
}

/// The first address of each label in the kernel's order, which is the address that an ioctl with this name returns.
fn first_addresses(links: &Links) -> BTreeMap<&[u8], &LinkAddr> {
    let mut first = BTreeMap::new();
    for addr in &links.addrs {
        first.entry(&*addr.label).or_insert(addr);
    }
    first
}

/// The names of interfaces and aliases, without duplicates.
fn names(links: &Links) -> Vec<&[u8]> {
    let named = links.links.iter().map(|link| &*link.name);
    let labels = links.addrs.iter().map(|addr| &*addr.label).filter(|label| !label.is_empty());
    let mut names: Vec<&[u8]> = named.chain(labels).collect();
    names.sort_by_cached_key(|name| order(name));
    names.dedup();
    names
}

/// netstat's sort key: the text before the trailing digits, these digits as a number, the alias, its number. The bytes
/// of the name break ties.
fn order(name: &[u8]) -> (Vec<u8>, i64, Vec<u8>, i64, Vec<u8>) {
    let (body, alias) = match name.iter().rposition(|b| !b.is_ascii_digit()) {
        Some(at) if name.get(at) == Some(&b':') && at + 1 < name.len() => (name.get(..at), name.get(at + 1..)),
        _ => (Some(name), None),
    };
    let body = body.unwrap_or(name);
    let text = body.iter().rposition(|b| !b.is_ascii_digit()).map_or(0, |at| at + 1);
    let (text, digits) = body.split_at_checked(text).unwrap_or((body, b""));
    (text.into(), number(digits), body.into(), alias.map_or(-1, number), alias.unwrap_or_default().into())
}

/// Parses digits; a name has at most fifteen characters.
fn number(digits: &[u8]) -> i64 {
    digits.iter().fold(0i64, |n, digit| n.saturating_mul(10).saturating_add(i64::from(digit.saturating_sub(b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let ascending = [
            "100", "1000", ":", "a", "a1b2", "a1b12", "a:", "a:b:c", "aa", "eth", "eth0", "eth0:1", "eth0:2", "eth01",
            "eth01:1", "eth1", "eth1:1", "eth1:13", "eth2", "eth20", "eth100", "lan",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(order(a.as_bytes()).cmp(&order(b.as_bytes())), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
