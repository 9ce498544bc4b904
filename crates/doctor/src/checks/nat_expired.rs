//! Packets for mappings of source NAT that have expired.

use record::Addr;
use record::rows::{Confidence, Severity, ip_proto};

use super::closed_port::is_answer;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DropSeen;

/// Fewest packets for a finding.
const FEW: u64 = 2;
/// Timeouts of an idle mapping, by protocol, with the smallest value that is usual, in seconds: the kernel's for UDP,
/// the keepalive time for TCP.
const TIMEOUTS: &[(u8, &str, i64)] = &[
    (ip_proto::UDP, "nf_conntrack_udp_timeout", 30),
    (ip_proto::UDP, "nf_conntrack_udp_timeout_stream", 120),
    (ip_proto::TCP, "nf_conntrack_tcp_timeout_established", 7200),
];

pub(super) const CHECK: Check = Check {
    id: "nat-expired",
    needs: &[Probe::Drops, Probe::Flows, Probe::Links, Probe::Sockets],
    area: "conntrack",
    about: "Answers reach this host after the mapping of source NAT has expired: their client waits in vain.",
    rule: "At least 2 packets from the port of a service to an address of this host were dropped as NO_SOCKET, no \
           socket of this host has their sender as peer, and clients reach the service through source NAT from that \
           address, or a rule translates sources. It is a warning if a timeout of conntrack is shorter than usual \
           (UDP: 30 s, 120 s for streams; TCP: two hours).",
    sources: "the tracepoint kfree_skb via BPF: NO_SOCKET; conntrack entries with source NAT; nft: rules of NAT; \
              nf_conntrack_udp_timeout, nf_conntrack_udp_timeout_stream, nf_conntrack_tcp_timeout_established",
    refuted_by: "a program of this host that asked the server and has gone away.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped("closed-port").only(|one| is_expired(sample, one));
    let Some((first, (from, to))) = dropped.all.first().and_then(|one| Some((*one, one.ends?))) else { return };
    if dropped.count < FEW {
        return;
    }
    let (service, port) = first.ports.unwrap_or_default();
    let of = TIMEOUTS.iter().filter(|(l4, ..)| Some(*l4) == number_of(first));
    let timeouts: Vec<(&str, i64, i64)> = of
        .filter_map(|(_, name, usual)| Some((*name, sample.setting(&format!("netfilter/{name}"), 0)?, *usual)))
        .collect();
    let is_short = timeouts.iter().any(|(_, now, usual)| now < usual);
    let title = format!(
        "answers of {} port {service} ({}) to {} port {port} find no NAT mapping: it has expired",
        from.unmapped(),
        first.proto,
        to.unmapped()
    );
    let longer = timeouts.iter().map(|(name, now, usual)| {
        let wanted = if is_short { *now.max(usual) } else { now.saturating_mul(2) };
        format!(" net.netfilter.{name}={wanted}")
    });
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(format!("{} port {service}", from.unmapped()))
        .proof(dropped.evidence())
        .proof(timeouts.iter().map(|(name, now, usual)| state(*name, *now, Some(*usual))))
        .lost(dropped.count, "packets that reach no client")
        .reach(if is_short { Reach::part(dropped.count, dropped.count) } else { Reach::Nobody }, "")
        .remedy(
            format!("sysctl -w{}", longer.collect::<String>()),
            "keeps idle mappings longer",
            "the table holds more entries",
        )
        .remedy("", "or let clients send a packet more often than the timeout (keepalive)", "");
}

fn number_of(one: &DropSeen) -> Option<u8> {
    [ip_proto::TCP, ip_proto::UDP].into_iter().find(|l4| ip_proto::name(*l4) == one.proto)
}

/// True for an answer to a client that uses this host's source NAT, without a mapping.
fn is_expired(sample: &Sample, one: &DropSeen) -> bool {
    let (Some(l4), Some((from, to)), Some((service, _))) = (number_of(one), one.ends, one.ports) else { return false };
    let (from, to): (Addr, Addr) = (from.unmapped(), to.unmapped());
    let flows = &sample.around.flows;
    let is_translated = flows.translated.contains(&(l4, from, service, to));
    let may_be = flows.has_source_nat && is_answer(sample, one);
    let mut own = sample.after.asking.iter().chain(&sample.before.asking);
    (is_translated || may_be) && !own.any(|socket| socket.peer.unmapped() == from && socket.peer_port == service)
}
