//! Permanent neighbour entries through which nothing comes back.

use record::Addr;
use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity, iff};

use super::reach::Reach;
use super::syn_retrans::is_wanted;
use super::words::{argument, of_object, state};
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{Gateway, PeerHost, PermanentSeen};

/// Fewest tracked connections without an answer that prove a loss.
const SOME: u32 = 3;

pub(super) const CHECK: Check = Check {
    id: "neigh-permanent",
    needs: &[Probe::Flows, Probe::Links, Probe::Neighbours, Probe::Routes, Probe::Sockets],
    area: "neighbours",
    about: "Packets to a permanent neighbour entry get no answer: its hardware address may be that of a card that is \
            gone.",
    rule: "Connections wait for the neighbour itself, or for peers that it leads to while its interface receives less \
           than an eighth of what it sends, and none of them answers. Tunnels and overlays are left out. A warning \
           if 3 connections wait for one port, or 3 tracked connections for the neighbour; a hint if packets are \
           merely sent and none come back, and no other neighbour of the interface can be meant.",
    sources: "neighbours and routes via rtnetlink (NUD_PERMANENT); connections via sock_diag; conntrack entries; \
              rx_packets and tx_packets of the interface",
    refuted_by: "`arping -I IFACE ADDRESS` that is answered from the same hardware address: then the peer is at fault.",
    run,
};

/// The traffic that gets no answer.
struct Hurt {
    /// In words: `connections to 192.0.2.9`.
    what: String,
    count: u32,
    reach: Reach,
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    for entry in &around.permanent {
        let link = around.links.iter().find(|link| link.index == entry.ifindex);
        let Some(link) = link.filter(|link| link.flags & (iff::NOARP | iff::LOOPBACK) == 0 && !link.is_overlay) else {
            continue;
        };
        let Some(hurt) = hurt_by(sample, entry, &link.name) else { continue };
        let (addr, iface) = (entry.addr.unmapped(), &link.name);
        let hardware = entry.hardware.map(|byte| format!("{byte:02x}")).join(":");
        let title = format!(
            "{} get no answer: the permanent neighbour entry of {addr} on {iface}, {hardware}, may be out of date",
            hurt.what
        );
        let draft = found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(addr.to_string())
            .proof([state(format!("permanent entry of {addr} on {iface}: {hardware}"), 1, None)])
            .proof((hurt.count > 0).then(|| state(format!("{} without an answer", hurt.what), hurt.count, None)))
            .proof(["tx_packets", "rx_packets"].into_iter().filter_map(|name| {
                let (object, moved) = sample.objects(Iface, name).find(|(one, _)| *one == iface.as_bytes())?;
                Some(of_object(name, object, moved, None))
            }))
            .cost("the kernel never checks a permanent entry: packets to another card are lost in silence")
            .reach(hurt.reach, "");
        remedies(draft, entry, iface);
    }
}

fn remedies(draft: FindingBuilder<'_>, entry: &PermanentSeen, iface: &str) {
    let (addr, name) = (entry.addr.unmapped(), argument(iface, "IFACE"));
    let ask = match addr {
        Addr::V4(_) => format!("arping -c 3 -I {name} {addr}"),
        Addr::V6(_) => format!("ndisc6 {addr} {name}"),
    };
    draft.remedy(ask, "shows the hardware address with which the neighbour answers", "").remedy(
        format!("ip neigh del {addr} dev {name}"),
        "removes the entry: the kernel then asks for the hardware address",
        "an entry that was made against forged ARP no longer protects",
    );
}

/// Returns the traffic that the entry hurts; `None` if some of it is answered, or none is sent.
fn hurt_by(sample: &Sample, entry: &PermanentSeen, iface: &str) -> Option<Hurt> {
    let around = &sample.around;
    let is_behind = |peer: &Addr| {
        let hop = around.paths.get(peer).map(|path| &path.hop);
        hop.is_some_and(|hop| !hop.is_shared && (hop.addr, hop.ifindex) == (Some(entry.addr), entry.ifindex))
    };
    let is_direct = |peer: &Addr| {
        let hop = around.paths.get(peer).map(|path| &path.hop);
        *peer == entry.addr && hop.is_some_and(|hop| hop.addr.is_none() && hop.ifindex == entry.ifindex)
    };
    let is_one_way = sample.one_way(iface).is_some();
    // Connections that were made before the fault may be idle. New ones, and packets that arrive, are answers.
    let has_answers = |peer: &PeerHost, count: u32| !is_one_way || sample.before.at_ease.get(peer) < Some(&count);
    let mut easy = sample.after.at_ease.iter().filter(|(peer, _)| is_behind(&peer.addr) || is_direct(&peer.addr));
    if easy.any(|(peer, count)| has_answers(peer, *count)) {
        return None;
    }
    let silent = sample.silent_peers();
    let mut hurt = silent.iter().filter(|peer| is_direct(peer) || is_one_way && is_behind(peer));
    if let Some(peer) = hurt.next() {
        let reach = if is_wanted(sample) { Reach::part(1, 1) } else { Reach::Nobody };
        return Some(Hurt { what: format!("connections to {}", peer.unmapped()), count: waiting(sample, peer), reach });
    }
    if let Some(count) = around.flows.silent.get(&entry.addr).filter(|count| **count >= SOME) {
        let what = format!("tracked connections to {}", entry.addr.unmapped());
        return Some(Hurt { what, count: *count, reach: Reach::part(1, 1) });
    }
    let is_here = |addr: Addr, ifindex| ifindex == entry.ifindex && addr.bits() == entry.addr.bits();
    let is_only = around.permanent.iter().filter(|one| is_here(one.addr, one.ifindex)).count() == 1;
    let is_other = |hop: &Gateway| hop.addr.is_some_and(|addr| is_here(addr, hop.ifindex) && addr != entry.addr);
    let is_used = is_only && !around.gateways.iter().any(is_other);
    (is_one_way && silent.is_empty() && is_used).then(|| Hurt {
        what: format!("packets sent through {iface}"),
        count: 0,
        reach: Reach::Nobody,
    })
}

/// Number of connections to a peer that wait for an answer.
fn waiting(sample: &Sample, peer: &Addr) -> u32 {
    let after = &sample.after;
    let unanswered = after.unanswered.iter().filter(|((one, _), _)| one.addr == *peer).map(|(_, count)| *count);
    let stuck = after.stuck.iter().filter(|one| !one.is_window && one.peer.addr == *peer).count();
    unanswered.fold(u32::try_from(stuck).unwrap_or(u32::MAX), u32::saturating_add)
}
