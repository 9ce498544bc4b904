//! Macvlans in other network namespaces that this host cannot reach, because they are on top of its own interface.

use doctor::seen::{OwnMacvlan, Sample};
use host::neighbours::further_addresses;
use host::{Links, Namespace, Namespaces};
use record::{Accounting, Addr};
use std::collections::BTreeSet;
use sys::Host;

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round, keep_first, note_error};

/// Bound: such macvlans of a namespace. Beyond: further ones are counted (exit code 3). By: anyone who may make
/// macvlans there.
const MACVLANS_MAX: usize = 256;

/// Interfaces with further hardware addresses.
type FurtherAddresses = BTreeSet<(u32, [u8; 6])>;

/// Searches for macvlans with the addresses of neighbours that do not answer.
pub(crate) struct MacvlanReader;

impl ProbeReader for MacvlanReader {
    /// Costs one dump for a namespace with such neighbours. Only if an interface of theirs has a further hardware
    /// address, the addresses of other namespaces are read, some 10 µs each.
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let session = round.session;
        if !samples.values().any(|sample| sample.netns_id.is_some() && !sample.around.neighbours.is_empty()) {
            return;
        }
        session.in_each_namespace(&mut |netns_id| {
            let Some(sample) = samples.get_mut(&Some(netns_id)) else { return };
            if !sample.around.neighbours.is_empty() {
                sample.around.own_macvlans = own_macvlans(&InNetns::new(session, netns_id), sample, stats);
            }
        });
    }
}

fn own_macvlans(netns: &InNetns<'_>, sample: &Sample, stats: &mut Accounting) -> Vec<OwnMacvlan> {
    let (host, netns_id) = (netns.host(), netns.netns_id);
    let read = further_addresses(host, netns_id, None);
    // Recordings of earlier versions do not contain them.
    let read = if read.as_ref().is_err_and(host::HostError::is_not_recorded) { Ok(BTreeSet::new()) } else { read };
    let mut further = note_error(read, stats).unwrap_or_default();
    further.retain(|(ifindex, _)| sample.around.neighbours.iter().any(|one| one.ifindex == *ifindex));
    if further.is_empty() {
        return Vec::new();
    }
    let mut text = Vec::new();
    let read = host.bytes(&format!("own macvlans@{netns_id}"), "", &mut text, |into| {
        search(netns_id, &further, sample, stats).iter().for_each(|one| put(one, into));
        Ok(())
    });
    if read.is_err() { Vec::new() } else { String::from_utf8_lossy(&text).lines().filter_map(parse).collect() }
}

/// Searches the other namespaces. Those that cannot be entered are left out: then the finding does not name the cause.
fn search(own: u64, further: &FurtherAddresses, sample: &Sample, stats: &mut Accounting) -> Vec<OwnMacvlan> {
    let host = Host::live();
    let (namespaces, mut found) = (Namespaces::read(&host).unwrap_or_default(), Vec::new());
    for namespace in namespaces.list().iter().filter(|one| one.inode != own) {
        let Ok(inside) = namespace.open(&host, own) else { continue };
        let Ok(mut links) = Links::read(&host, namespace.inode, inside.as_ref()) else { continue };
        // A namespace without IPv6 has no such addresses.
        let _ = links.read_inet6(&host, namespace.inode, inside.as_ref());
        for link in links.links.iter().filter(|link| *link.kind == *b"macvlan") {
            let Ok(hardware) = <[u8; 6]>::try_from(&*link.address) else { continue };
            let is_on_top = further.contains(&(link.lower, hardware));
            let addrs = links.addrs.iter().filter(|addr| addr.index == link.index).map(|addr| Addr::V4(addr.local));
            let addrs6 = links.addrs6.iter().filter(|addr| addr.iface == link.name).map(|addr| Addr::V6(addr.addr));
            let silent = addrs.chain(addrs6).filter(|addr| {
                is_on_top && sample.around.neighbours.iter().any(|one| (one.addr, one.ifindex) == (*addr, link.lower))
            });
            found.extend(silent.map(|addr| OwnMacvlan {
                addr,
                ifindex: link.lower,
                name: String::from_utf8_lossy(&link.name).into_owned(),
                netns: name(namespace),
            }));
        }
    }
    keep_first(&mut found, MACVLANS_MAX, "own macvlans", stats);
    found
}

fn name(namespace: &Namespace) -> String {
    match (namespace.name(), namespace.pid) {
        (Some(name), _) => String::from_utf8_lossy(name).into_owned(),
        (None, Some(pid)) => format!("of process {pid}"),
        (None, None) => String::new(),
    }
}

/// Appends a line of a recording: interface, address, name, namespace.
fn put(one: &OwnMacvlan, into: &mut Vec<u8>) {
    let OwnMacvlan { addr, ifindex, name, netns } = one;
    let is_text = |text: &str| !text.contains(['\t', '\n']);
    if is_text(name) && is_text(netns) {
        into.extend_from_slice(format!("{ifindex}\t{addr}\t{name}\t{netns}\n").as_bytes());
    }
}

fn parse(line: &str) -> Option<OwnMacvlan> {
    let mut cells = line.split('\t');
    let (ifindex, addr) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    Some(OwnMacvlan { addr, ifindex, name: cells.next()?.to_owned(), netns: cells.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_of_a_recording() {
        let one = OwnMacvlan {
            addr: Addr::V4([192, 0, 2, 50]),
            ifindex: 2,
            name: "eth0".to_owned(),
            netns: "a b".to_owned(),
        };
        let mut text = Vec::new();
        put(&one, &mut text);
        put(&OwnMacvlan { netns: "a\tb".to_owned(), ..one.clone() }, &mut text);
        let lines: Vec<_> = std::str::from_utf8(&text).unwrap().lines().filter_map(parse).collect();
        assert_eq!((lines, parse("2\t192.0.2.50\teth0")), (vec![one], None));
    }
}
