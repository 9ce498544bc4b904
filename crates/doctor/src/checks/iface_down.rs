//! Interfaces with an address that are down while packets should leave through them.

use record::rows::CounterSource::{Iface, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{argument, of_object, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Holder, LinkSeen, PeerHost, SET_DOWN};

/// Fewest packets without a route that a downed interface explains.
const SOME: u64 = 3;
/// Most interfaces below another one: a VLAN on a bond on a network card.
const DEPTH_MAX: usize = 8;
/// Most ports that a finding names.
const PORTS_MAX: usize = 8;

pub(super) const CHECK: Check = Check {
    id: "iface-down",
    needs: &[Probe::Drops, Probe::Links, Probe::Neighbours, Probe::Sockets],
    area: "interfaces",
    about: "An interface with an address is down or has no carrier, and packets are lost.",
    rule: "An interface without carrier dropped packets; or an interface with an address is set down, or has no \
           carrier, while IpOutNoRoutes grows or neighbours on it do not answer. For lo: packets that this host sends \
           to itself were dropped, or its connections to 127.0.0.0/8 or ::1 are not answered. The cause of a VLAN or \
           macvlan is the interface below it, of a bridge or bond its ports.",
    sources: "flags and addresses via RTM_GETLINK, RTM_GETADDR; /proc/net/snmp: OutNoRoutes; the tracepoint kfree_skb",
    refuted_by: "`ip link show` that lists the interface as UP and LOWER_UP.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // The loopback interface has its address only while it is up.
    let is_meant = |link: &&LinkSeen| link.has_address || link.name == "lo";
    let set_down = sample.around.links.iter().filter(is_meant).filter(|link| link.down() == Some(SET_DOWN));
    let is_only_one = set_down.count() == 1;
    for link in sample.around.links.iter().filter(is_meant) {
        let Some(how) = link.down() else { continue };
        match &*link.name {
            "lo" => of_loopback(sample, found, link),
            // The check `link-flap` covers a link that goes up and down.
            name if super::link_flap::times(sample, name) > 1 => {}
            _ => of_link(sample, found, link, how, is_only_one),
        }
    }
}

/// Number of packets that were dropped on the way out of an interface that is down.
fn drops_on(sample: &Sample, link: &LinkSeen) -> u64 {
    let dropped = sample.around.dropped(CHECK.id);
    dropped.all.iter().filter(|one| one.ifindex == link.index).map(|one| one.count).sum()
}

fn of_link(sample: &Sample, found: &mut Findings<'_>, link: &LinkSeen, how: &str, is_only_one: bool) {
    let root = root_of(sample, link);
    let unrouted = sample.grown(Snmp, "IpOutNoRoutes");
    let drops = drops_on(sample, link).max(drops_on(sample, root));
    let is_asked = sample.around.neighbours.iter().any(|one| one.ifindex == link.index);
    // The routes of an interface disappear when it is set down.
    let is_unrouted = link.down() == Some(SET_DOWN) && unrouted >= SOME;
    if drops == 0 && !is_asked && !is_unrouted {
        return;
    }
    let ports = ports_of(sample, link);
    let (why, how_root) = match root.down() {
        Some(how) if root.index != link.index => (format!(", because {}, which it is on, {how}", root.name), how),
        _ if !ports.is_empty() && how != SET_DOWN => (format!(": {}", ports.join(", ")), how),
        _ => (String::new(), how),
    };
    let evidence = |link: &LinkSeen| state(format!("flags of {}", link.name), i64::from(link.flags), None);
    let draft = found
        .add(Severity::Critical, Confidence::Likely, format!("{} {how}{why}, but packets are sent to it", link.name))
        .object(link.name.clone())
        .proof([evidence(link)])
        .proof((root.index != link.index).then(|| evidence(root)))
        .proof(sample.evidence(Snmp, "IpOutNoRoutes", None))
        .proof(sample.around.dropped(CHECK.id).evidence());
    let draft = match drops.max(unrouted) {
        0 => draft.cost("all packets for this interface are lost"),
        lost => draft.lost(lost, "packets lost"),
    };
    match how_root {
        SET_DOWN if drops > 0 || is_only_one => draft.remedy(
            format!("ip link set {} up", argument(&root.name, "IFACE")),
            "brings the interface up; routes that were added by hand must be added again",
            "",
        ),
        SET_DOWN => draft.remedy("ip -br link", "shows all interfaces: several are set down", ""),
        _ if !ports.is_empty() => draft.remedy("", "bring up one of its ports, or the host at their other end", ""),
        _ => draft.remedy("", "check the cable, the switch port, or the process at the other end", ""),
    };
}

/// Returns the lowest interface below this one that is down: it takes those on top of it down too.
fn root_of<'s>(sample: &'s Sample, link: &'s LinkSeen) -> &'s LinkSeen {
    let below = |link: &&'s LinkSeen| {
        let lower = sample.around.links.iter().find(|other| link.lower != 0 && other.index == link.lower);
        lower.filter(|lower| lower.down().is_some())
    };
    std::iter::successors(Some(link), below).take(DEPTH_MAX).last().unwrap_or(link)
}

/// Describes the ports of a bridge or bond without carrier: `eth1 has no carrier`.
fn ports_of(sample: &Sample, link: &LinkSeen) -> Vec<String> {
    let ports = sample.around.links.iter().filter(|port| port.master == link.index && link.index != 0);
    let words = |port: &LinkSeen| format!("{} {}", port.name, port.down().unwrap_or("is up, but not in use"));
    ports.take(PORTS_MAX).map(words).collect()
}

/// Adds the finding of the loopback interface: packets to 127.0.0.1, and those to any other address of this host, pass
/// it. While its address is missing, packets to 127.0.0.1 leave by the default route.
fn of_loopback(sample: &Sample, found: &mut Findings<'_>, link: &LinkSeen) {
    let counted = sample.objects(Iface, "tx_dropped").find(|(of, _)| *of == link.name.as_bytes());
    let drops = drops_on(sample, link).max(counted.map_or(0, |(_, moved)| moved.grown()));
    let calls = || sample.after.unanswered.iter().filter(|((peer, _), _)| peer.addr.unmapped().is_loopback());
    let waiting = calls().map(|(_, count)| u64::from(*count)).sum::<u64>();
    let unrouted = sample.grown(Snmp, "IpOutNoRoutes");
    // An interface that was never up has no address, and without a default route 127.0.0.1 has no route.
    let is_unrouted = !link.has_address && unrouted >= SOME;
    let (lost, things, confidence) = match (drops, waiting) {
        (0, 0) if is_unrouted => (unrouted, "packets without a route, to 127.0.0.1 or elsewhere", Confidence::Likely),
        (0, 0) => return,
        (0, waiting) => (waiting, "connections to this host wait", Confidence::Certain),
        (drops, _) => (drops, "packets of this host to itself lost", Confidence::Certain),
    };
    let dropped = sample.around.dropped(CHECK.id).only(|one| one.ifindex == link.index);
    let served = calls().next().map(|((peer, port), _)| format!(", such as {peer} port {port}"));
    let such = if dropped.count > 0 { dropped.example() } else { served.unwrap_or_default() };
    let caller = sample.after.own_calls.first().map(|call| &call.owner).filter(|owner| owner.is_known());
    let who = caller.map_or("this host".to_owned(), Holder::to_string);
    let title = format!("{} is set down: {who} cannot reach this host's own services{such}", link.name);
    let waits = |((peer, port), count): (&(PeerHost, u16), &u32)| {
        state(format!("connections to {peer} port {port} without an answer"), *count, None)
    };
    let sent = sample.grown(Snmp, "IpOutRequests") + sample.grown(Snmp6, "Ip6OutRequests");
    found
        .add(Severity::Critical, confidence, title)
        .object(link.name.clone())
        .holder(caller)
        .proof([state(format!("flags of {}", link.name), i64::from(link.flags), None)])
        .proof(counted.map(|(object, moved)| of_object("tx_dropped", object, moved, None)))
        .proof(dropped.evidence())
        .proof(calls().take(4).map(waits))
        .proof(is_unrouted.then(|| sample.evidence(Snmp, "IpOutNoRoutes", None)).flatten())
        .lost(lost, things)
        .reach(Reach::part(lost, sent), "packets")
        .remedy(
            format!("ip link set {} up", argument(&link.name, "IFACE")),
            "brings it up, with 127.0.0.1 and ::1",
            "",
        );
}
