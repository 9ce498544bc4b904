//! Programs that reset their clients.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::reset_groups::{Resets, counters, resets_of};
use super::{Check, Findings, Probe, Sample};
use crate::seen::ResetKind;

/// Fewest connections for a finding; fewer end so now and then.
const SOME: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "service-resets",
    needs: &[Probe::Resets, Probe::Sockets],
    area: "services",
    about: "A program of this host resets its clients, which may lose its answers: it closes connections with unread \
            data, while clients are still sending, or with SO_LINGER 0.",
    rule: "A program that listens on a port closed at least 3 connections to it that the kernel then reset: because of \
           unread data, because the client sent more, or because the program asked for it. It is a warning if these \
           are 1 % of the accepted connections and, with SO_LINGER 0, data was not acknowledged; otherwise a hint. \
           Without BPF a hint if TCPAbortOnClose grew by at least 3. Clients may reset their connections.",
    sources: "the tracepoint tcp_send_reset via BPF; /proc/net/netstat: TCPAbortOnClose, TCPAbortOnData; \
              /proc/net/snmp: OutRsts, PassiveOpens",
    refuted_by: "clients that have read the whole answer before the reset arrives.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if sample.around.resets.is_none() {
        return find_counted(sample, found);
    }
    for kind in [ResetKind::Unread, ResetKind::AfterClose, ResetKind::Aborted] {
        let of_services = |one: &Resets<'_>| one.is_service && one.sum.count >= SOME;
        for one in resets_of(sample, kind).into_iter().filter(of_services) {
            add(sample, found, kind, &one);
        }
    }
}

fn add(sample: &Sample, found: &mut Findings<'_>, kind: ResetKind, one: &Resets<'_>) {
    let (count, opened) = (one.sum.count, sample.grown(Snmp, "TcpPassiveOpens"));
    let (why, remedy) = match kind {
        ResetKind::Unread => (
            format!("it closes connections before it has read all their data ({} bytes unread)", one.sum.unread_bytes),
            "make the program read until the end of the data before close(), or call shutdown(SHUT_WR) and then read",
        ),
        ResetKind::AfterClose => (
            "it closes connections while clients are still sending".to_owned(),
            "make the program call shutdown(SHUT_WR) and read until the client has closed before close() (in nginx: \
             lingering_close)",
        ),
        _ => (
            "it aborts connections (SO_LINGER with a time of 0, or close() of a listener with waiting connections)"
                .to_owned(),
            "make the program close connections without SO_LINGER 0; on a restart, hand the listener over",
        ),
    };
    let title = format!("{} resets its clients on port {}, such as {}: {why}", one.owner, one.port, one.peer);
    // Clients lose nothing if they had acknowledged everything.
    let is_lost = kind != ResetKind::Aborted || one.sum.unacked > 0;
    found
        .add(
            Severity::Warning,
            if kind == ResetKind::Aborted { Confidence::Likely } else { Confidence::Certain },
            title,
        )
        .object(format!("tcp port {}", one.port))
        .holder(one.owner)
        .proof(one.evidence(sample))
        .proof(sample.evidence(Snmp, "TcpPassiveOpens", None))
        .lost(count, "connections reset: a client loses what it has not read")
        .reach(if is_lost { Reach::part(count, opened) } else { Reach::Nobody }, "accepted connections")
        .remedy("", remedy, "")
        .remedy(
            format!("netwren capture 'tcp src port {} and tcp[13] & 4 != 0' --limit 20", one.port),
            "shows the resets of this port",
            "",
        );
}

/// Without BPF, the program and the direction are unknown: it may be a client, which may close its connections early.
fn find_counted(sample: &Sample, found: &mut Findings<'_>) {
    let count = sample.grown(Netstat, "TcpExtTCPAbortOnClose");
    // A host that opens more connections than it accepts is rather a client.
    if count < SOME || sample.grown(Snmp, "TcpPassiveOpens") < sample.grown(Snmp, "TcpActiveOpens") {
        return;
    }
    let title =
        "programs close connections with unread data: their peers get resets and may lose the answer".to_owned();
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .proof(counters(sample))
        .lost(count, "connections reset")
        .reach(Reach::Nobody, "")
        .remedy("netwren capture 'tcp[13] & 4 != 0' --limit 20", "shows the connections that are reset", "");
}
