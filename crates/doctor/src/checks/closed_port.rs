//! Packets to ports that no program serves.

use record::Proto;
use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, Served};

/// Fewest packets for a finding; fewer are normal noise.
const SOME: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "closed-port",
    needs: &[Probe::Drops, Probe::Links, Probe::Sockets],
    area: "services",
    about: "Packets arrive for a port on which no program listens.",
    rule: "At least 10 datagrams (UdpNoPorts, Udp6NoPorts) or segments (dropped as NO_SOCKET, with resets sent) \
           arrived for a closed port, without late answers to this host's clients. It is a hint, because scans do the \
           same, unless connections to that port show that a program served it a minute ago, or the packets come \
           from this host itself.",
    sources: "/proc/net/snmp, snmp6: NoPorts, OutRsts; the tracepoint kfree_skb via BPF",
    refuted_by: "a scan: `netwren drops 'reason = NO_SOCKET' --events --for 5` then shows many ports.",
    run,
};

/// True for a late answer to a client that has gone away: from a service's port to a port of the kernel's range.
pub(super) fn is_answer(sample: &Sample, one: &DropSeen) -> bool {
    let bound = |at| sample.setting("ipv4/ip_local_port_range", at);
    let (Some(first), Some(last), Some((from, to))) = (bound(0), bound(1), one.ports) else { return false };
    let is_chosen = |port: u16| (first..=last).contains(&i64::from(port));
    is_chosen(to) && !is_chosen(from)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped(CHECK.id);
    let of_udp = dropped.all.iter().filter(|one| one.proto == "udp" && is_answer(sample, one));
    let late: u64 = of_udp.map(|one| one.count).sum();
    let datagrams = sample.grown(Snmp, "UdpNoPorts") + sample.grown(Snmp6, "Udp6NoPorts");
    let datagrams = datagrams.saturating_sub(late);
    let of_tcp = dropped.all.iter().filter(|one| one.proto == "tcp" && !is_answer(sample, one));
    let of_tcp: u64 = of_tcp.map(|one| one.count).sum();
    let segments = of_tcp.min(sample.grown(Snmp, "TcpOutRsts"));
    let lost = datagrams.saturating_add(segments);
    if lost < SOME {
        return;
    }
    let proto = if datagrams >= segments { "udp" } else { "tcp" };
    let first = dropped.all.iter().find(|one| one.proto == proto && !is_answer(sample, one));
    let port = first.and_then(|one| Some(one.ports?.1));
    let which = port.map_or("a port".to_owned(), |port| format!("{proto} port {port}"));
    let kind = if proto == "udp" { Proto::Udp } else { Proto::Tcp };
    let elsewhere = port.and_then(|port| sample.after.served.get(&(kind, port)));
    let was_served =
        port.is_some_and(|port| proto == "tcp" && sample.after.used.contains(&port)) && elsewhere.is_none();
    let asked = first.and_then(|one| one.ends);
    // The address of a server that this host also has: its packets never leave.
    let is_own = asked
        .is_some_and(|(from, to)| !to.is_loopback() && [from, to].iter().all(|end| sample.around.has_address(*end)));
    let subject = if is_own { "packets of this host to itself" } else { "packets" };
    let title = match (elsewhere, asked.filter(|_| is_own)) {
        (Some(Served { example, more: 0 }), _) if !example.is_empty() => {
            format!("{subject} for {which} are refused: its only listener is {example}")
        }
        (Some(Served { example, more }), _) if !example.is_empty() => format!(
            "{subject} for {which} are refused: its listeners have other addresses, such as {example} and {more} more"
        ),
        (Some(_), _) => format!("{subject} for {which} are refused: its listeners have other addresses"),
        (None, Some((_, to))) => format!(
            "this host asks itself for {which} of {}, which is its own address, and no program listens there",
            to.unmapped()
        ),
        (None, None) => format!("no program listens on {which}, but packets arrive for it"),
    };
    let proof = [
        sample.evidence(Snmp, "UdpNoPorts", None),
        sample.evidence(Snmp6, "Udp6NoPorts", None),
        sample.evidence(Snmp, "TcpOutRsts", None),
    ];
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(port.map_or(String::new(), |port| format!("{proto} port {port}")))
        .proof(proof.into_iter().flatten())
        .proof(dropped.evidence())
        .lost(lost, "packets refused")
        .reach(if was_served || is_own { Reach::part(lost, lost) } else { Reach::Nobody }, "")
        .remedy("netwren listeners", "lists the listeners: a service that is down is missing", "")
        .remedy("", "start the service, make it listen on that address, or reconfigure the clients", "");
}
