//! Idle connections that the peer, or a firewall on the path, has forgotten.

use record::rows::CounterSource::Snmp;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::reset_groups::{Resets, resets_of};
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::ResetKind;

/// Fewest connections for a warning.
const SOME: u64 = 3;
/// Fewest segments of unknown connections for a finding.
const STRAYS: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "idle-reset",
    needs: &[Probe::Resets, Probe::Sockets],
    area: "tcp",
    about: "Idle connections have been forgotten by the peer or by a NAT or firewall on the path: the next data is \
            answered with a reset.",
    rule: "A connection was reset at the first data after a silence of one second or more, without retransmissions: a \
           warning if there are at least 3 and 1 % of the established ones (10 % at a service, whose clients may \
           leave), otherwise a hint. At least 3 segments of connections that a listener does not know are a hint: \
           scans send such segments too.",
    sources: "the tracepoints tcp_receive_reset, tcp_send_reset via BPF; /proc/net/snmp: CurrEstab, EstabResets, \
              OutRsts",
    refuted_by: "a peer that restarted while the connections were idle.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in resets_of(sample, ResetKind::ByPeerAfterIdle) {
        add_idle(sample, found, &one);
    }
    for one in resets_of(sample, ResetKind::Unknown).into_iter().filter(|one| one.sum.count >= STRAYS) {
        add_unknown(sample, found, &one);
    }
}

fn add_idle(sample: &Sample, found: &mut Findings<'_>, one: &Resets<'_>) {
    let (count, seconds) = (one.sum.count, one.sum.silent_ms as f64 / 1000.0);
    let between = if one.is_service { format!("{} at port {}", one.peer, one.port) } else { one.target() };
    let title = format!(
        "connections of {} with {between} are reset at the first data after {seconds:.0} s of silence: a NAT or \
         firewall on the path, or the peer, has forgotten them",
        one.owner
    );
    let open = sample.counter(Snmp, "TcpCurrEstab").and_then(|moved| u64::try_from(moved.after).ok()).unwrap_or(0);
    let part = Reach::part(count, open.saturating_add(count));
    let reach = match count {
        0..SOME => Reach::Nobody,
        _ if one.is_service => part.or_more_than(10),
        _ => part,
    };
    let silent_ms = i64::try_from(one.sum.silent_ms).unwrap_or(i64::MAX);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(one.target())
        .holder(one.owner)
        .proof(one.evidence(sample))
        .proof([state("longest silence before a reset, in ms", silent_ms, None)])
        .lost(count, "connections lost")
        .reach(reach, "established connections")
        .remedy(
            "",
            "make the program send keepalives (SO_KEEPALIVE, with net.ipv4.tcp_keepalive_time below the firewall's \
             timeout), or close idle connections before that timeout",
            "",
        )
        .remedy("", "on the NAT or firewall, raise net.netfilter.nf_conntrack_tcp_timeout_established", "");
}

fn add_unknown(sample: &Sample, found: &mut Findings<'_>, one: &Resets<'_>) {
    let title = format!(
        "{} sends segments of connections that {} at port {} does not know, and gets resets: a NAT on the path has \
         forgotten or changed them, or they are forged",
        one.peer, one.owner, one.port
    );
    found
        .add(Severity::Hint, Confidence::Likely, title)
        .object(format!("tcp port {}", one.port))
        .holder(one.owner)
        .proof(one.evidence(sample))
        .lost(one.sum.count, "segments answered with a reset")
        .reach(Reach::Nobody, "")
        .remedy(
            format!("netwren capture 'host {} and tcp port {}' --limit 20", one.peer, one.port),
            "shows the segments: many source addresses are a scan, one is a NAT or a host that restarted",
            "",
        );
}
