//! Peers that reset connections of this host.

use record::rows::CounterSource::Snmp;
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::reset_groups::{Resets, resets_of};
use super::{Check, Findings, Probe, Sample};
use crate::seen::ResetKind;

/// Fewest connections for a finding; fewer end so now and then.
const SOME: u64 = 3;
/// Fewest connections, and smallest share in percent, for a finding about clients of this host.
const MANY: u64 = 10;
const MANY_PERCENT: u64 = 5;

pub(super) const CHECK: Check = Check {
    id: "peer-resets",
    needs: &[Probe::Resets, Probe::Sockets],
    area: "services",
    about: "A peer resets established connections of this host.",
    rule: "A service resets at least 3 established connections of a program of this host: a warning if they are 1 % of \
           the opened ones and requests were unanswered or unacknowledged, otherwise a hint. Clients that reset at \
           least 10 connections with data to a service of this host, and 5 % of the accepted ones, are a hint: they \
           may. Health checks without data do not count. If the service had closed most of them before, the program \
           uses them too late.",
    sources: "the tracepoint tcp_receive_reset via BPF; /proc/net/snmp: EstabResets, ActiveOpens, PassiveOpens",
    refuted_by: "programs that read the whole answer before the reset.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in resets_of(sample, ResetKind::ByPeer) {
        if one.is_service { of_clients(sample, found, &one) } else { of_service(sample, found, &one) }
    }
}

/// A service elsewhere resets connections of a program of this host.
fn of_service(sample: &Sample, found: &mut Findings<'_>, one: &Resets<'_>) {
    let sum = &one.sum;
    if sum.count < SOME {
        return;
    }
    let hurt = sum.unanswered.max(sum.unacked);
    let title = title_of_service(one);
    let opened = sample.grown(Snmp, "TcpActiveOpens").max(sum.count);
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(one.target())
        .holder(one.owner)
        .proof(one.evidence(sample))
        .proof(sample.evidence(Snmp, "TcpActiveOpens", None))
        .lost(sum.count, "connections reset by the peer")
        .reach(if hurt > 0 { Reach::part(hurt, opened) } else { Reach::Nobody }, "opened connections");
    if sum.is_after_close() {
        let advice = "make the program close idle connections before the peer does (keep-alive timeout), and check \
                      them for their end before it uses them";
        draft.remedy("", advice, "");
        return;
    }
    draft.remedy("netwren doctor", "run it on the host of the service: it names the program that resets", "").remedy(
        format!("netwren capture 'host {} and tcp port {}' --limit 50", one.peer, one.port),
        "shows the resets: another hop limit than in the peer's other segments shows that a firewall sent them",
        "",
    );
}

fn title_of_service(one: &Resets<'_>) -> String {
    let (target, owner, sum) = (one.target(), one.owner, &one.sum);
    if sum.is_after_close() {
        return format!("{owner} sends on connections that {target} has closed before, and gets resets");
    }
    let when = match (sum.unanswered == sum.count, sum.unacked > 0) {
        (true, _) => "before they have received an answer",
        (_, true) => "while data is on its way to it",
        _ => "after an answer",
    };
    format!(
        "{target} resets connections of {owner} {when}: its program aborts them, does not accept them or does not read \
         all data, or a firewall on the path resets them"
    )
}

/// Clients reset connections to a program of this host.
fn of_clients(sample: &Sample, found: &mut Findings<'_>, one: &Resets<'_>) {
    let count = one.sum.count.saturating_sub(one.sum.empty);
    let opened = sample.grown(Snmp, "TcpPassiveOpens");
    if count < MANY || count.saturating_mul(100) < opened.saturating_mul(MANY_PERCENT) {
        return;
    }
    let title = format!(
        "clients of {} on port {}, such as {}, reset their connections: they do not wait for the end of the answer",
        one.owner, one.port, one.peer
    );
    found
        .add(Severity::Hint, Confidence::Likely, title)
        .object(format!("tcp port {}", one.port))
        .holder(one.owner)
        .proof(one.evidence(sample))
        .proof(sample.evidence(Snmp, "TcpPassiveOpens", None))
        .lost(count, "connections reset by clients")
        .reach(Reach::Nobody, "")
        .remedy(
            "",
            "if users report errors, compare the time until the answer with the clients' timeouts: they may give up",
            "",
        );
}
