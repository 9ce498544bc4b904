//! Listens for hosts that send ARP with one of this host's IPv4 addresses, or ask for one.

use doctor::seen::{Conflict, Sample};
use host::Links;
use host::arp_claims::{self, ArpClaim, ArpHeard, ArpWatch};
use record::rows::{Link, LinkAddr};
use record::{Accounting, Addr};
use std::collections::{BTreeMap, BTreeSet};
use sys::{ARP_ADDRESSES_MAX, Host};

use crate::ignored_arp;
use crate::probe::{ChosenNetns, InNetns, ProbeReader, close_in_parallel, note_error};

/// Maximum number of namespaces to listen in; each takes one descriptor. The host's own namespace comes first, and
/// users share the rest equally.
///
/// Bound: namespaces in which `doctor` receives ARP: the host's first, then equal parts for each user. Beyond: further
/// namespaces are counted (exit code 3). By: a user who makes namespaces, for that user's namespaces.
const NAMESPACES_MAX: usize = 256;

/// Flags of interfaces without ARP (`IFF_NOARP`) and of loopback: include/uapi/linux/if.h.
const NO_ARP: u32 = 0x80 | 0x8;

/// Pairs of interface and address.
type InterfaceAddresses = BTreeSet<(u32, [u8; 4])>;

/// Listens for ARP during the window.
#[derive(Default)]
pub(crate) struct ArpReader {
    /// Listeners by namespace, with the interfaces and addresses present at the start.
    open: BTreeMap<u64, (ArpWatch, InterfaceAddresses)>,
    /// The namespaces to listen in.
    chosen: ChosenNetns,
}

impl Drop for ArpReader {
    fn drop(&mut self) {
        close_in_parallel(std::mem::take(&mut self.open).into_values().collect());
    }
}

impl ProbeReader for ArpReader {
    /// Listens in the namespace. Costs one dump, and one socket if the namespace has addresses.
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        let (host, netns_id) = (netns.host(), netns.netns_id);
        let Some(links) = note_error(Links::read_inet(host, netns_id, None), stats) else { return };
        let of_link = links.addrs.iter().filter(|addr| addr.local[0] != 127 && addr.local != [0; 4]);
        let addresses: InterfaceAddresses = of_link.map(|addr| (addr.index, addr.local)).collect();
        if addresses.is_empty() || host.is_replay() {
            return;
        }
        if !self.chosen.has(netns, NAMESPACES_MAX) {
            let text = format!(
                "duplicate IPv4 addresses are searched for in {NAMESPACES_MAX} network namespaces, but not in \
                    this one"
            );
            stats.incomplete(1, text);
            return;
        }
        let heard: BTreeSet<[u8; 4]> = addresses.iter().map(|(_, addr)| *addr).collect();
        match ArpWatch::open(&heard.into_iter().collect::<Vec<_>>()) {
            Ok(watch) if watch.over() > 0 => {
                let text = format!("IPv4 addresses after the first {ARP_ADDRESSES_MAX} are not checked for duplicates");
                stats.incomplete(watch.over(), text);
                self.open.insert(netns_id, (watch, addresses));
            }
            Ok(watch) => drop(self.open.insert(netns_id, (watch, addresses))),
            Err(error) => {
                let needs = if error.errno.is_denied() { " (needs CAP_NET_RAW)" } else { "" };
                stats.incomplete(0, format!("duplicate IPv4 addresses are not searched for: {error}{needs}"));
            }
        }
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let Some(links) = netns.links(stats) else { return };
        let heard = match self.open.get(&netns.netns_id).map(|(watch, _)| watch.heard()).transpose() {
            Ok(heard) => heard.unwrap_or_default(),
            Err(error) => {
                stats.incomplete(1, format!("duplicate IPv4 addresses are not searched for: {error}"));
                ArpHeard::default()
            }
        };
        sample.around.conflicts = self.conflicts(netns.host(), netns.netns_id, links, &heard);
        sample.around.ignored_arp = ignored_arp::read(netns, links, &heard.requests);
    }

    /// A recording of everything has no window to listen in.
    fn save(&mut self, _: &InNetns<'_>, _: &mut Accounting) {}
}

impl ArpReader {
    /// The hosts that were heard with an address that the interface had during the whole observation.
    fn conflicts(&self, host: &Host, netns_id: u64, links: &Links, heard: &ArpHeard) -> Vec<Conflict> {
        let watch = self.open.get(&netns_id);
        let mut bytes = Vec::new();
        // Recordings of earlier versions do not contain them.
        let _ = host.bytes(&format!("arp senders@{netns_id}"), "", &mut bytes, |into| {
            if let Some((_, addresses)) = watch {
                let is_had = |claim: &&ArpClaim| addresses.contains(&(claim.ifindex, claim.addr));
                heard.claims.iter().filter(is_had).for_each(|claim| claim.put(into));
            }
            Ok(())
        });
        arp_claims::parse(&bytes).into_iter().filter_map(|claim| conflict(claim, &links.links, &links.addrs)).collect()
    }
}

/// Makes a conflict of a claim, if the interface that received it has the address and does ARP, and the sender is not
/// this host.
fn conflict(claim: ArpClaim, links: &[Link], addrs: &[LinkAddr]) -> Option<Conflict> {
    let ArpClaim { ifindex, addr, hardware, count } = claim;
    let link = links.iter().find(|link| link.index == ifindex && link.flags & NO_ARP == 0)?;
    let is_ours = addrs.iter().any(|own| (own.index, own.local) == (ifindex, addr));
    let is_own = links.iter().any(|own| *own.address == hardware);
    (is_ours && !is_own).then(|| Conflict {
        addr: Addr::V4(addr),
        iface: String::from_utf8_lossy(&link.name).into_owned(),
        hardware,
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_with_our_address_on_its_own_interface() {
        let link = |index: u32, name: &str, last: u8, flags: u32| Link {
            index,
            name: name.as_bytes().into(),
            address: Box::from([2, 0, 0, 0, 0, last]),
            flags,
            ..Link::default()
        };
        let links = [link(2, "eth0", 1, 1), link(3, "eth1", 2, 1), link(4, "tun0", 3, 0x81)];
        let addr = |index, local| {
            let (label, peer, broadcast, prefix_len) = (Box::default(), local, [0; 4], 24);
            LinkAddr { index, label, local, peer, broadcast, prefix_len }
        };
        let addrs = [addr(2, [192, 0, 2, 1]), addr(3, [192, 0, 2, 7]), addr(4, [192, 0, 2, 9])];
        let heard = |ifindex, last, addr| {
            let claim = ArpClaim { ifindex, addr: [192, 0, 2, addr], hardware: [2, 0, 0, 0, 0, last], count: 3 };
            conflict(claim, &links, &addrs).map(|one| (one.iface, one.addr.to_string()))
        };
        assert_eq!(heard(2, 9, 1), Some(("eth0".to_owned(), "192.0.2.1".to_owned())));
        assert_eq!(heard(2, 2, 1), None, "our own other interface on the same link");
        assert_eq!(heard(3, 9, 1), None, "another link");
        assert_eq!(heard(2, 9, 8), None, "an address that we have no more");
        assert_eq!(heard(4, 9, 9), None, "an interface without ARP");
    }
}
