//! Packets dropped by a tc filter or an XDP program on an interface.

use record::rows::CounterSource::Iface;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::syn_retrans::wait_for;
use super::words::{argument, of_object, state};
use super::{Check, FindingBuilder, Findings, Probe, Sample};
use crate::seen::{LinkSeen, XdpSeen};

/// Fewest drops for more than a hint.
const SOME: u64 = 5;
/// Fewest drops of a driver for a finding.
const MANY: u64 = 10;
/// The share in percent from which it is a warning: a filter is there to drop some packets.
const MANY_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "tc-xdp-drop",
    needs: &[Probe::Drops, Probe::Links, Probe::Sockets],
    area: "firewall",
    about: "A tc filter, or an XDP program on an interface, drops packets.",
    rule: "Packets were dropped with the reasons TC_INGRESS, TC_EGRESS or XDP, or where XDP programs drop packets: \
           generic XDP and the driver veth give no reason. Or an XDP program runs in an interface's driver, and its \
           rx_dropped grew by at least 10. At least 5 are a warning if they are 10 % of the interface's packets, \
           because a filter is there to drop some.",
    sources: "the tracepoint kfree_skb via BPF; RTM_GETLINK: IFLA_XDP, IFLA_STATS64. Drivers of cards drop packets \
              before the tracepoint: only those that count them in rx_dropped are seen",
    refuted_by: "a program that should drop them, such as a policer.",
    run,
};

/// Returns the XDP program that runs in the driver of an interface. The driver may count its drops in rx_dropped.
pub(super) fn in_driver<'s>(sample: &'s Sample, iface: &[u8]) -> Option<(&'s LinkSeen, XdpSeen)> {
    let link = sample.around.links.iter().find(|link| link.name.as_bytes() == iface)?;
    Some((link, link.xdp.filter(|xdp| !xdp.is_generic)?))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    drops(sample, found);
    for (iface, moved) in sample.objects(Iface, "rx_dropped") {
        let Some((link, xdp)) = in_driver(sample, iface) else { continue };
        let lost = moved.grown().saturating_sub(sample.around.explained(iface).unwrap_or(0));
        if lost < MANY {
            continue;
        }
        let title = format!("{} may drop packets in the driver of {}", program(xdp), link.name);
        let draft = found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(&*link.name)
            .proof([of_object("rx_dropped", iface, moved, None), attached(link, xdp)])
            .lost(lost, "packets dropped")
            .reach(Reach::part(lost, packets(sample, &link.name) + lost).or_more_than(MANY_PERCENT), "packets");
        remedies(draft, link, xdp);
    }
}

/// Adds the finding about packets that the kernel dropped.
fn drops(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let Some(first) = dropped.all.first() else { return };
    let severity = if dropped.count >= SOME { Severity::Warning } else { Severity::Hint };
    let iface = sample.around.iface(first.ifindex);
    let link = sample.around.links.iter().find(|link| link.index == first.ifindex);
    let xdp = link.and_then(|link| link.xdp);
    let way = match first.reason.as_str() {
        "TC_EGRESS" => "egress",
        _ => "ingress",
    };
    let who = match (first.reason.as_str(), xdp) {
        ("TC_INGRESS" | "TC_EGRESS", _) => format!("a tc {way} filter"),
        (_, Some(xdp)) => program(xdp),
        _ => "an XDP program".to_owned(),
    };
    let on = if iface.is_empty() { String::new() } else { format!(" on {iface}") };
    let all = packets(sample, &iface).saturating_add(dropped.count);
    let is_tc = first.reason.starts_with("TC_");
    let proof = link.zip(xdp).filter(|_| !is_tc).map(|(link, xdp)| attached(link, xdp));
    // Connections that cannot be established are few packets.
    let reach = match wait_for(sample, &dropped) {
        true => Reach::part(dropped.count, dropped.count),
        false => Reach::part(dropped.count, all).or_more_than(MANY_PERCENT),
    };
    let draft = found
        .add(severity, Confidence::Certain, format!("{who}{on} drops packets{}", dropped.example()))
        .object(&*iface)
        .proof(dropped.evidence())
        .proof(proof)
        .lost(dropped.count, "packets dropped")
        .reach(reach, "packets");
    match link.zip(xdp) {
        Some((link, xdp)) if !is_tc => remedies(draft, link, xdp),
        _ => {
            let name = argument(&iface, "IFACE");
            draft
                .remedy(format!("tc -s filter show dev {name} {way}"), "shows the filters with their drops", "")
                .remedy(
                    format!("bpftool net show dev {name}"),
                    "shows BPF programs on the interface, which tc does not list if they are attached with tcx",
                    "",
                );
        }
    }
}

/// The program in words: `the XDP program 17 (generic mode)`.
fn program(xdp: XdpSeen) -> String {
    let mode = if xdp.is_generic { "generic" } else { "driver" };
    match xdp.program {
        0 => format!("an XDP program ({mode} mode)"),
        id => format!("the XDP program {id} ({mode} mode)"),
    }
}

fn attached(link: &LinkSeen, xdp: XdpSeen) -> record::rows::Evidence {
    state(format!("XDP program on {} (id)", link.name), xdp.program, None)
}

fn remedies(draft: FindingBuilder<'_>, link: &LinkSeen, xdp: XdpSeen) {
    let (name, mode) = (argument(&link.name, "IFACE"), if xdp.is_generic { "xdpgeneric" } else { "xdpdrv" });
    let draft = draft.remedy(format!("bpftool prog show id {}", xdp.program), "shows the program and its maps", "");
    let risk = "its owner (a load balancer, a filter against floods) no longer sees the packets";
    match xdp.link {
        Some(link) => draft.remedy(format!("bpftool link detach id {link}"), "detaches the program", risk),
        None => draft.remedy(
            format!("ip link set dev {name} {mode} off"),
            "detaches the program, unless another program holds it through a link (`bpftool link`)",
            risk,
        ),
    };
}

/// Returns the packets of an interface in both directions.
fn packets(sample: &Sample, iface: &str) -> u64 {
    let of_iface = |name| sample.objects(Iface, name).find(|(other, _)| *other == iface.as_bytes());
    ["rx_packets", "tx_packets"].into_iter().filter_map(of_iface).map(|(_, moved)| moved.grown()).sum()
}
