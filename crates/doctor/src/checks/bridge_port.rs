//! Ports of a bridge that pass no frames.

use record::rows::CounterSource::{Iface, Snmp};
use record::rows::{Confidence, Evidence, PortState, Severity};

use super::words::{argument, of_object, state};
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::cause::VAGUE;
use crate::seen::{DropSeen, LinkSeen, SET_DOWN};

/// Fewest dropped frames for more than a hint.
const SOME: u64 = 10;
/// Fewest frames of hosts that reach no other port.
const FEW: u64 = 2;
/// Shortest delay of STP in each of two states, in hundredths of a second, that hosts notice.
const LONG_DELAY: u32 = 1000;

pub(super) const CHECK: Check = Check {
    id: "bridge-port",
    needs: &[Probe::Drops, Probe::Links],
    area: "interfaces",
    about: "A port of a bridge is up but does not forward, is isolated from the others, or all other ports are down.",
    rule: "Frames moved at the bridge, and a port with a carrier is not in the state forwarding: a warning without \
           STP, because nothing then blocks it for a reason, and while STP delays it by more than 10 s; a hint if STP \
           blocks it. Or at least 10 frames for hosts were dropped, while other ports are down, isolated as this \
           one is, or do not flood; a hint if all of them are, and this host receives no IPv4 packets itself.",
    sources: "RTM_GETLINK: IFLA_BRPORT_STATE, IFLA_BRPORT_ISOLATED, IFLA_BR_STP_STATE; the tracepoint kfree_skb",
    refuted_by: "`bridge -d link show` that lists the port as forwarding; a port that is isolated or blocked on \
                 purpose, whose hosts reach what they need.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    for bridge in around.links.iter().filter(|link| link.bridge.is_some() && link.down() != Some(SET_DOWN)) {
        let ports: Vec<&LinkSeen> = around.ports_of(bridge).collect();
        for port in &ports {
            match port.held_back() {
                Some(how) => of_held(sample, found, bridge, &ports, port, how),
                None if port.is_forwarding() => {
                    of_lonely(sample, found, bridge, &ports, port);
                    of_locked(sample, found, port);
                }
                None => {}
            }
        }
    }
}

/// Returns the growth of a counter of an interface.
fn grown(sample: &Sample, name: &str, link: &LinkSeen) -> u64 {
    let of = sample.objects(Iface, name).find(|(object, _)| *object == link.name.as_bytes());
    of.map_or(0, |(_, moved)| moved.grown())
}

/// The counter of an interface as evidence.
fn counted(sample: &Sample, name: &str, link: &LinkSeen) -> Option<Evidence> {
    let (object, moved) = sample.objects(Iface, name).find(|(object, _)| *object == link.name.as_bytes())?;
    Some(of_object(name, object, moved, None))
}

/// Drops of frames that arrived at this port, for a reason in `reasons` or without a reason in a function in `places`.
fn drops<'s>(sample: &'s Sample, port: &LinkSeen, reasons: &[&str], places: &[&str]) -> (u64, Vec<&'s DropSeen>) {
    let is_it = |one: &&DropSeen| {
        let is_vague = VAGUE.contains(&&*one.reason) && places.contains(&&*one.place);
        one.ifindex == port.index && (is_vague || reasons.contains(&&*one.reason))
    };
    let all: Vec<&DropSeen> = sample.around.drops.iter().flatten().filter(is_it).collect();
    (all.iter().map(|one| one.count).sum(), all)
}

fn drop_evidence(one: &DropSeen, port: &LinkSeen) -> Evidence {
    let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    state(format!("drops at {}: {}{packet}", port.name, one.at()), i64::try_from(one.count).unwrap_or(i64::MAX), None)
}

/// Sets the cost: the dropped frames, or a sentence if none were counted.
fn cost<'f>(draft: FindingBuilder<'f>, lost: u64, otherwise: &str) -> FindingBuilder<'f> {
    if lost > 0 { draft.lost(lost, "frames dropped") } else { draft.cost(otherwise) }
}

/// Adds the finding of a port that is up and does not forward.
fn of_held(
    sample: &Sample,
    found: &mut Findings<'_>,
    bridge: &LinkSeen,
    ports: &[&LinkSeen],
    port: &LinkSeen,
    how: &str,
) {
    let (Some(state_of), Some(of_bridge)) = (port.port, bridge.bridge) else { return };
    let reasons = ["BRIDGE_INGRESS_STP_STATE", "BRIDGE_NON_FORWARDING"];
    let (lost, all) = drops(sample, port, &reasons, &["br_handle_frame", "br_handle_frame_finish"]);
    let moved = ports.iter().map(|port| grown(sample, "rx_packets", port)).sum::<u64>();
    let (is_stp, is_delayed) = (of_bridge.stp != 0, matches!(state_of.state, 1 | 2));
    // Frames of STP itself arrive at ports that it holds back.
    if lost == 0 && (is_stp || moved == 0) {
        return;
    }
    let (name, on) = (&port.name, &bridge.name);
    let delay_s = of_bridge.forward_delay * 2 / 100;
    let (severity, why) = match (is_stp, is_delayed) {
        (false, _) => (Severity::Warning, format!("{how}, although {on} has no STP")),
        (true, true) if of_bridge.forward_delay >= LONG_DELAY => {
            (Severity::Warning, format!("{how}: STP of {on} holds it back for {delay_s} s after its link has come up"))
        }
        (true, true) => (Severity::Hint, format!("{how}: STP of {on} holds it back for {delay_s} s")),
        (true, false) if state_of.is_guarded && state_of.state == 0 => {
            (Severity::Warning, format!("{how}: its BPDU guard disabled it, because a frame of STP arrived"))
        }
        (true, false) => (Severity::Hint, format!("{how}: STP of {on} has chosen another way")),
    };
    let word = argument(name, "PORT");
    let draft = found
        .add(severity, Confidence::Certain, format!("the bridge port {name} does not forward, it is {why}"))
        .object(name.clone())
        .proof([state(format!("state of {name}"), state_of.state, Some(3))])
        .proof(all.iter().map(|one| drop_evidence(one, port)))
        .proof([counted(sample, "rx_packets", port), counted(sample, "tx_packets", port)].into_iter().flatten());
    let draft = cost(draft, lost, "no frames pass the port in either direction");
    match (is_stp, is_delayed) {
        (false, _) => draft.remedy(
            format!("ip link set {word} type bridge_slave state 3"),
            "makes the port forward",
            "frames circulate if a second way leads to the same network, and a program that manages it may block it \
             again",
        ),
        (true, true) => draft.remedy(
            format!("ip link set {} type bridge forward_delay 200", argument(on, "BRIDGE")),
            "shortens the wait to 2 x 2 s at the next change",
            "too short for a large network with STP: loops for a moment",
        ),
        (true, false) => draft.remedy(
            format!("bridge -d link show dev {word}"),
            "shows its role and cost: look for a loop, or for the failed link that should be used instead",
            "",
        ),
    };
}

/// Adds the finding of a port that forwards, and whose frames find no other port.
fn of_lonely(sample: &Sample, found: &mut Findings<'_>, bridge: &LinkSeen, ports: &[&LinkSeen], port: &LinkSeen) {
    let is_isolated = |port: &LinkSeen| port.port.is_some_and(|port| port.is_isolated);
    let others: Vec<&LinkSeen> = ports.iter().copied().filter(|other| other.index != port.index).collect();
    let is_cut = |other: &&LinkSeen| other.down().is_some() || is_isolated(other) && is_isolated(port);
    let lacks = |other: &&LinkSeen, floods: fn(&PortState) -> bool| other.port.is_some_and(|of| !floods(&of));
    if others.is_empty() {
        return;
    }
    let (lost, all) = drops(sample, port, &["NO_TX_TARGET"], &["br_flood", "br_forward"]);
    let to_hosts = all.iter().filter(|one| !one.is_to_group()).map(|one| one.count).sum::<u64>();
    let came = grown(sample, "rx_packets", port);
    let is_dropped = to_hosts >= SOME;
    let is_cut = |other: &&LinkSeen| match is_dropped {
        true => is_cut(other) || lacks(other, |of| of.floods_hosts),
        false => is_cut(other) || lacks(other, |of| of.floods_broadcasts),
    };
    let cut: Vec<&LinkSeen> = others.iter().copied().filter(is_cut).collect();
    // Hosts at such ports may need this host only.
    let is_gateway = sample.grown(Snmp, "IpInDelivers") > 0;
    let is_silent = cut.len() == others.len() && came >= FEW && !is_gateway;
    let is_dropped = is_dropped && !cut.is_empty();
    if !is_silent && !is_dropped {
        return;
    }
    let how = |other: &&LinkSeen| match other.down() {
        Some(how) => format!("{} {how}", other.name),
        None if is_isolated(port) && is_isolated(other) => format!("{} is isolated, as {} is", other.name, port.name),
        None if is_dropped => {
            format!("{} gets no frames for hosts that {} does not know (flood)", other.name, bridge.name)
        }
        None => format!("{} gets no broadcasts (bcast_flood)", other.name),
    };
    let why: Vec<String> = cut.iter().take(4).map(how).collect();
    let severity = if to_hosts >= SOME { Severity::Warning } else { Severity::Hint };
    let title =
        format!("frames that arrive at {} reach no other port of {}: {}", port.name, bridge.name, why.join(", "));
    let draft = found
        .add(severity, Confidence::Likely, title)
        .object(port.name.clone())
        .proof(all.iter().map(|one| drop_evidence(one, port)))
        .proof([counted(sample, "rx_packets", port), counted(sample, "tx_packets", port)].into_iter().flatten())
        .proof(cut.iter().take(4).map(|other| state(format!("flags of {}", other.name), i64::from(other.flags), None)));
    let draft = cost(draft, lost, "hosts at the port get no answer from the other ports");
    match cut.as_slice() {
        [other] if is_isolated(port) && other.down().is_none() => draft.remedy(
            format!("ip link set {} type bridge_slave isolated off", argument(&port.name, "PORT")),
            "lets the two ports exchange frames",
            "their hosts then reach each other, which someone may have forbidden on purpose",
        ),
        [other] if other.down().is_none() => draft.remedy(
            format!(
                "ip link set {} type bridge_slave flood on bcast_flood on learning on",
                argument(&other.name, "PORT")
            ),
            "lets these frames leave through the port, and the bridge learn the hosts there",
            "",
        ),
        [other] if other.down() == Some(SET_DOWN) => draft.remedy(
            format!("ip link set {} up", argument(&other.name, "PORT")),
            "brings up the only other port",
            "its hosts then receive the frames of this network",
        ),
        _ => draft.remedy("", "bring up the port of the host that should answer, or the host itself", ""),
    };
}

/// Adds the finding of a port that takes frames of known hosts only.
fn of_locked(sample: &Sample, found: &mut Findings<'_>, port: &LinkSeen) {
    let (lost, all) = drops(sample, port, &["BRIDGE_NON_FORWARDING"], &["br_handle_frame_finish"]);
    if lost == 0 || !port.port.is_some_and(|port| port.is_locked) {
        return;
    }
    let name = &port.name;
    let severity = if lost >= SOME { Severity::Warning } else { Severity::Hint };
    found
        .add(
            severity,
            Confidence::Likely,
            format!("the bridge port {name} is locked: frames of unknown hosts are dropped"),
        )
        .object(name.clone())
        .proof([state(format!("locked of {name}"), 1, Some(0))])
        .proof(all.iter().map(|one| drop_evidence(one, port)))
        .lost(lost, "frames dropped")
        .remedy(
            format!("bridge fdb add ADDRESS dev {} master static", argument(name, "PORT")),
            "admits a host, as 802.1X does after it has authenticated itself",
            "",
        );
}
