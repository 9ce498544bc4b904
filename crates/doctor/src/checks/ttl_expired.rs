//! Packets whose hop limit is used up.

use record::Addr;
use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{iface_setting, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest packets for a finding.
const SOME: u64 = 10;
/// Lower initial hop limits do not reach every host of the internet, whose paths have up to some 30 routers.
const SMALL: i64 = 32;
/// Initial hop limits up to this one fail at nearby hosts.
const TINY: i64 = 8;

pub(super) const CHECK: Check = Check {
    id: "ttl-expired",
    needs: &[Probe::Drops, Probe::Links, Probe::Sockets],
    area: "routing",
    about: "Packets exceed their hop limit: they are in a routing loop, or start with a limit that is too small.",
    rule: "At least 10 packets to be forwarded had no hop left (dropped in ip_forward or ip6_forward), other than \
           ICMP and datagrams to traceroute's ports. Or this host's own packets start with a limit below 32, and \
           messages report that it was exceeded, or IPv6 connections wait and the limit is at most 8. It is a hint if \
           only counters of ICMP messages show it, here or from the path; from the path it is a warning if \
           connections of this host wait for answers.",
    sources: "the tracepoint kfree_skb via BPF; /proc/net/snmp, snmp6: TimeExcds, InHdrErrors; ip_default_ttl; \
              hop_limit of each interface via RTM_GETLINK",
    refuted_by: "a running traceroute, or no router twice in `traceroute -n ADDRESS`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let is_own = [of_own_limit(sample, found), of_own_limit6(sample, found)].contains(&true);
    let dropped = sample.around.dropped(CHECK.id).only(|one| !one.is_probe());
    let told = sample.grown(Snmp, "IcmpOutTimeExcds") + sample.grown(Snmp6, "Icmp6OutTimeExcds");
    let heard = sample.grown(Snmp, "IcmpInTimeExcds") + sample.grown(Snmp6, "Icmp6InTimeExcds");
    let is_waiting = !sample.after.unanswered.is_empty() || !sample.after.stuck.is_empty();
    let (lost, place, is_hurt) = match dropped.count {
        here if here >= SOME => (here, "here", true),
        // traceroute and mtr cause such messages on purpose.
        _ if sample.around.drops.is_none() && told >= SOME => (told, "here", false),
        _ if heard >= SOME && !is_own => (heard, "on the path", is_waiting),
        _ => return,
    };
    let forwarded = sample.grown(Snmp, "IpForwDatagrams") + sample.grown(Snmp6, "Ip6OutForwDatagrams");
    let why = match place {
        // A packet in a loop was forwarded many times before.
        "here" if forwarded < lost.saturating_mul(2) => "their senders start with a small one, or loop elsewhere",
        "here" => "a routing loop",
        _ => "a routing loop, or a program that sets a small limit",
    };
    let title = format!("packets exceed their hop limit {place}: {why}{}", dropped.example());
    let to = dropped.all.iter().find_map(|one| one.ends).map(|(_, to)| to.unmapped());
    let traces =
        to.map(|to| (format!("traceroute -n {to}"), "shows the routers: one that appears twice is in the loop", ""));
    let proof = [
        sample.evidence(Snmp, "IpInHdrErrors", None),
        sample.evidence(Snmp, "IcmpOutTimeExcds", None),
        sample.evidence(Snmp, "IcmpInTimeExcds", None),
        sample.evidence(Snmp6, "Icmp6OutTimeExcds", None),
        sample.evidence(Snmp6, "Icmp6InTimeExcds", None),
    ];
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .proof(dropped.evidence())
        .proof(proof.into_iter().flatten())
        .lost(lost, "packets dropped")
        .reach(if is_hurt { Reach::part(lost, lost) } else { Reach::Nobody }, "")
        .remedies(traces)
        .remedy("", "correct the route of the router that sends the packets back", "");
}

/// Adds the finding of IPv4 packets that this host sends with a small limit.
fn of_own_limit(sample: &Sample, found: &mut Findings<'_>) -> bool {
    let heard = sample.grown(Snmp, "IcmpInTimeExcds");
    let small = sample.setting("ipv4/ip_default_ttl", 0).filter(|limit| (1..SMALL).contains(limit) && heard > 0);
    let Some(limit) = small else { return false };
    let title = format!("packets of this host expire on their way: they start with a hop limit of {limit}");
    let setting = "net.ipv4.ip_default_ttl";
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object("IPv4")
        .proof([state(setting, limit, Some(64))])
        .proof(sample.evidence(Snmp, "IcmpInTimeExcds", None))
        .lost(heard, "messages about expired packets; routers send few of them")
        .remedy(format!("sysctl -w {setting}=64"), "lets packets pass up to 64 routers", "")
        .remedy("", "refuted if `traceroute -n` to the destination shows a router twice: a loop", "");
    true
}

/// Adds the finding of IPv6 packets that leave with a small limit.
fn of_own_limit6(sample: &Sample, found: &mut Findings<'_>) -> bool {
    let links =
        sample.around.links.iter().filter(|link| link.has_address && link.name != "lo" && link.down().is_none());
    let limits = links.filter_map(|link| Some((link, i64::from(link.hop_limit?))));
    let small = limits.filter(|(_, limit)| (1..SMALL).contains(limit)).min_by_key(|(_, limit)| *limit);
    let Some((link, limit)) = small else { return false };
    let heard = sample.grown(Snmp6, "Icmp6InTimeExcds");
    let is_far =
        |peer: &Addr| matches!(peer.unmapped(), Addr::V6(_)) && !peer.is_link_local_v6() && !peer.is_loopback();
    let calls = sample.after.unanswered.iter().filter(|((peer, _), _)| is_far(&peer.addr));
    let waiting = calls.map(|(_, count)| u64::from(*count)).sum::<u64>();
    if heard == 0 && (limit > TINY || waiting == 0) {
        return false;
    }
    let name = &link.name;
    let title = format!("IPv6 packets of this host expire on their way: they leave {name} with a hop limit of {limit}");
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(name.clone())
        .proof([state(format!("net.ipv6.conf.{name}.hop_limit"), limit, Some(64))])
        .proof(sample.evidence(Snmp6, "Icmp6InTimeExcds", None));
    let draft = match heard {
        0 => draft.cost(format!("{waiting} IPv6 connections wait for an answer")),
        heard => draft.lost(heard, "messages about expired packets; routers send few of them"),
    };
    draft
        .remedy(
            format!("sysctl -w {}=64", iface_setting("ipv6", name, "hop_limit")),
            "lets packets pass up to 64 routers",
            "a router advertisement may set it again",
        )
        .remedy("", "refuted if `traceroute -n` to the destination shows a router twice: a loop", "");
    true
}
