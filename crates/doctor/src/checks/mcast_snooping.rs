//! Groups that a bridge forwards to no port, because no querier asks for members.

use record::Addr;
use record::rows::{BridgeState, Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, LinkSeen};

/// Fewest packets for a finding, and for more than a hint.
const FEW: u64 = 3;
const SOME: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "mcast-snooping",
    needs: &[Probe::Drops, Probe::Links],
    area: "interfaces",
    about: "A bridge with IGMP or MLD snooping drops a multicast stream, and no querier asks for members of its group.",
    rule: "At least 3 packets of a group were dropped on a bridge with snooping. Without a querier, no other port \
           floods groups. With one, its last query is older than the membership interval, or than 1.5 query intervals; \
           or the bridge itself queries less often than members expire.",
    sources: "RTM_GETLINK: IFLA_BR_MCAST_SNOOPING, _QUERIER, _QUERIER_STATE and intervals, IFLA_BRPORT_MCAST_FLOOD; \
              the tracepoint kfree_skb via BPF",
    refuted_by: "no host that wants the group: `bridge mdb show` lists no member of it, even after a query.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    for one in around.drops.iter().flatten().filter(|one| one.count >= FEW) {
        let Some(group) = one.group() else { continue };
        let Some(link) = around.links.iter().find(|link| link.index == one.ifindex) else { continue };
        let bridge = match link.bridge {
            Some(_) => Some(link),
            None => around.links.iter().find(|bridge| link.master != 0 && bridge.index == link.master),
        };
        let Some((bridge, of)) = bridge.and_then(|bridge| Some((bridge, bridge.bridge?))) else { continue };
        if let Some(why) = of_bridge(sample, bridge, of, link, group).filter(|_| of.is_snooping) {
            add(found, bridge, of, one, group, &why);
        }
    }
}

/// Explains why the bridge forwards a group to no port, if it is for want of a querier.
fn of_bridge(sample: &Sample, bridge: &LinkSeen, of: BridgeState, link: &LinkSeen, group: Addr) -> Option<String> {
    let other = if matches!(group, Addr::V4(_)) { of.other_querier } else { of.other_querier6 };
    let seconds = |hundredths: u64| hundredths / 100;
    match other {
        Some(left) if !of.is_querier => {
            let age = of.querier_interval.saturating_sub(left);
            let is_late = age > of.membership_interval || age > of.query_interval.saturating_mul(3) / 2;
            is_late.then(|| format!("the last query for members is {} s old", seconds(age)))
        }
        _ if of.is_querier => (of.membership_interval < of.query_interval).then(|| {
            let (members, queries) = (seconds(of.membership_interval), seconds(of.query_interval));
            format!("it forgets members after {members} s, but asks for them only every {queries} s")
        }),
        _ => {
            // Then it floods the group, to the ports that allow it.
            let ports = sample.around.ports_of(bridge).filter(|port| port.is_forwarding());
            let floods = |port: &LinkSeen| port.port.is_some_and(|port| port.floods_groups);
            let (flooding, other): (Vec<&LinkSeen>, Vec<&LinkSeen>) = ports.partition(|port| floods(port));
            // The port at which the group arrives.
            let is_source = |port: &LinkSeen| link.index == bridge.index || port.index == link.index;
            let is_cut = flooding.iter().all(|port| is_source(port)) && flooding.len() <= 1;
            let names: Vec<&str> = other.iter().take(4).map(|port| &*port.name).collect();
            let is_other = !other.is_empty() && (flooding.len() == 1 || other.len() > 1);
            let why = || format!("no querier asks for members, and groups are not flooded to {}", names.join(", "));
            (is_cut && is_other).then(why)
        }
    }
}

fn add(found: &mut Findings<'_>, bridge: &LinkSeen, of: BridgeState, one: &DropSeen, group: Addr, why: &str) {
    let severity = if one.count >= SOME { Severity::Warning } else { Severity::Hint };
    let name = &bridge.name;
    let word = argument(name, "BRIDGE");
    let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    let count = i64::try_from(one.count).unwrap_or(i64::MAX);
    let draft = found
        .add(severity, Confidence::Likely, format!("{name} forwards the group {group} to no port: {why}"))
        .object(name.clone())
        .proof([
            state(format!("drops: {}{packet}", one.at()), count, None),
            state(format!("mcast_querier of {name}"), i64::from(of.is_querier), Some(1)),
        ])
        .lost(one.count, "packets dropped");
    let other = if matches!(group, Addr::V4(_)) { of.other_querier } else { of.other_querier6 };
    let draft = match of.is_querier {
        // The bridge asks nothing itself before it has forgotten the other querier.
        false if other.is_some() => draft.remedy("", "start the querier that has stopped", "").remedy(
            format!("ip link set {word} type bridge mcast_snooping 0"),
            "makes the bridge forward all groups to all ports",
            "hosts receive groups that they did not ask for",
        ),
        false => draft.remedy(
            format!("ip link set {word} type bridge mcast_querier 1"),
            "makes the bridge ask for members; it floods groups until they have answered",
            "if the network has another querier, the one with the lower address asks",
        ),
        true => draft.remedy(
            format!("ip link set {word} type bridge mcast_query_interval {}", of.membership_interval / 3),
            "makes the bridge ask before members expire",
            "",
        ),
    };
    draft.remedy(format!("bridge mdb show dev {word}"), "shows the members of groups, by port", "");
}
