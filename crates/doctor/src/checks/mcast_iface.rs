//! Multicast streams that arrive on another interface than the one on which a program has joined their group.

use record::Addr;
use record::rows::CounterSource::{Netstat, Snmp6};
use record::rows::{Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, GroupSeen};

/// Fewest packets for a finding.
const SOME: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "mcast-iface",
    needs: &[Probe::Drops, Probe::Groups, Probe::Links],
    area: "udp",
    about: "A multicast stream arrives on one interface, but the program that waits for it has joined the group on \
            another, or for other sources.",
    rule: "At least 5 packets of a group beyond the link, to the port of a UDP socket, were dropped at an interface \
           without the group (or without their source), while the group is joined on another one (or for other \
           sources). Packets of groups that were delivered are not half as many: the stream does not also arrive where \
           it is joined.",
    sources: "the tracepoint kfree_skb via BPF; /proc/net/igmp, igmp6, mcfilter; netstat: InMcastPkts",
    refuted_by: "`ip maddr show` that lists the group on the interface at which it arrives.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    for one in around.drops.iter().flatten().filter(|one| one.count >= SOME) {
        let Some((group, port)) = one.unjoined() else { continue };
        let Some(listener) = around.listeners.iter().find(|listener| listener.port == port) else { continue };
        if is_also_delivered(sample, group, one.count) {
            continue;
        }
        let iface = around.iface(one.ifindex);
        let (here, elsewhere): (Vec<&GroupSeen>, Vec<&GroupSeen>) =
            around.groups.iter().filter(|of| of.group == group).partition(|of| of.iface == iface);
        let who = format!("{} at UDP port {port}", listener.owner);
        let words = argument(&iface, "IFACE");
        match (here.first(), elsewhere.first()) {
            (None, Some(other)) => {
                let title = format!("{group} arrives on {iface}, but is joined on {} only ({who})", other.iface);
                add(found, one, group, &iface, title)
                    .proof([state(format!("members of {group} on {}", other.iface), 1, None)])
                    .holder(&listener.owner)
                    .remedy("", &format!("make the program join the group on {iface} (IP_ADD_MEMBERSHIP)"), "")
                    .remedy(
                        "",
                        &format!(
                            "if it names no interface: `ip route add {group} dev {words}`, then restart it; it joins \
                             where the route leads"
                        ),
                        "this host then also sends to the group there",
                    );
            }
            (Some(of), _) if !of.sources.is_empty() && !is_wanted(of, one) => {
                let sources: Vec<String> = of.sources.iter().take(4).map(Addr::to_string).collect();
                let from = one.ends.map_or(String::new(), |(from, _)| format!(" from {}", from.unmapped()));
                let wanted = sources.join(", ");
                let title = format!("{group} arrives on {iface}{from}, but is joined for {wanted} only ({who})");
                add(found, one, group, &iface, title).holder(&listener.owner).remedy(
                    "",
                    "make the program join the group for that source, or for all (IP_ADD_MEMBERSHIP)",
                    "",
                );
            }
            _ => {}
        }
    }
}

/// True if the membership is for the source of the first packet.
fn is_wanted(of: &GroupSeen, one: &DropSeen) -> bool {
    one.ends.is_none_or(|(from, _)| of.sources.contains(&from.unmapped()))
}

/// True if programs received at least half as many packets of groups as were dropped.
fn is_also_delivered(sample: &Sample, group: Addr, lost: u64) -> bool {
    let delivered = match group {
        Addr::V4(_) => sample.grown(Netstat, "IpExtInMcastPkts"),
        // Counts all that arrived.
        Addr::V6(_) => sample.grown(Snmp6, "Ip6InMcastPkts").saturating_sub(lost),
    };
    delivered >= lost / 2
}

fn add<'f>(
    found: &'f mut Findings<'_>,
    one: &DropSeen,
    group: Addr,
    iface: &str,
    title: String,
) -> super::FindingBuilder<'f> {
    let count = i64::try_from(one.count).unwrap_or(i64::MAX);
    let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(iface)
        .proof([
            state(format!("drops on {iface}: {}{packet}", one.at()), count, None),
            state(format!("members of {group} on {iface}"), 0, Some(1)),
        ])
        .lost(one.count, "datagrams dropped")
        .remedy("ip maddr show", "shows the groups of each interface", "")
}
