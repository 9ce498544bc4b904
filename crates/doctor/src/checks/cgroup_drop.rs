//! Packets dropped by a BPF program of a cgroup.

use record::Proto;
use record::rows::{Confidence, Severity};

use super::dropped::Dropped;
use super::reach::{Reach, moved_packets};
use super::syn_retrans::wait_for;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{CgroupSeen, DropSeen};

/// Fewest drops for more than a hint.
const SOME: u64 = 5;
/// Fewest drops for a finding about received packets: a program may refuse strangers.
const FEW: u64 = 3;

pub(super) const CHECK: Check = Check {
    id: "cgroup-drop",
    needs: &[Probe::Cgroups, Probe::Drops, Probe::Sockets],
    area: "firewall",
    about: "A BPF program of a cgroup drops packets that programs of the cgroup send or receive.",
    rule: "Packets to send were dropped with the reason BPF_CGROUP_EGRESS, or at least 3 received ones with the reason \
           SOCKET_FILTER for a socket whose cgroup, or one of its parents, has programs for received packets.",
    sources: "the tracepoint kfree_skb via BPF; programs of cgroups via bpf(2): BPF_PROG_QUERY; the cgroup of a socket \
              via sock_diag",
    refuted_by: "for received packets: a program that attached a filter to its socket (SO_ATTACH_FILTER, \
                 SO_ATTACH_BPF), which has the same reason.",
    run,
};

/// Returns the cgroups with programs for received packets that also decide for the socket which would have got these
/// packets.
pub(super) fn ingress_of<'s>(sample: &'s Sample, one: &DropSeen) -> Vec<&'s CgroupSeen> {
    let around = &sample.around;
    let (Some((_, port)), Some(proto)) = (one.ports, proto_of(one)) else { return Vec::new() };
    let is_its = |cgroup: &&CgroupSeen| {
        let sockets = around.cgroups_of_sockets.iter().filter(|socket| (socket.proto, socket.port) == (proto, port));
        cgroup.ingress > 0 && sockets.into_iter().any(|socket| cgroup.holds(&socket.path))
    };
    around.cgroups.iter().filter(is_its).collect()
}

fn proto_of(one: &DropSeen) -> Option<Proto> {
    match one.proto {
        "tcp" => Some(Proto::Tcp),
        "udp" => Some(Proto::Udp),
        _ => None,
    }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let received = sample.around.dropped("socket-filter").only(|one| !ingress_of(sample, one).is_empty());
    if let Some(first) = received.all.first().filter(|_| received.count >= FEW) {
        let cgroups = ingress_of(sample, first);
        add(sample, found, &received, &cgroups, false);
    }
    let sent = sample.around.dropped(CHECK.id);
    if let Some(first) = sent.all.first() {
        let cgroups = egress_of(sample, first);
        add(sample, found, &sent, &cgroups, true);
    }
}

/// Returns the cgroups with programs for packets to send: only the sending socket's cgroups if the socket is known.
fn egress_of<'s>(sample: &'s Sample, one: &DropSeen) -> Vec<&'s CgroupSeen> {
    let around = &sample.around;
    let all = || around.cgroups.iter().filter(|cgroup| cgroup.egress > 0);
    let (Some((port, _)), Some(proto)) = (one.ports, proto_of(one)) else { return all().collect() };
    let sockets = || around.cgroups_of_sockets.iter().filter(|socket| (socket.proto, socket.port) == (proto, port));
    let its: Vec<_> = all().filter(|cgroup| sockets().any(|socket| cgroup.holds(&socket.path))).collect();
    if its.is_empty() { all().collect() } else { its }
}

fn add(sample: &Sample, found: &mut Findings<'_>, dropped: &Dropped<'_>, cgroups: &[&CgroupSeen], is_sent: bool) {
    let severity = if dropped.count >= SOME { Severity::Warning } else { Severity::Hint };
    let who = match cgroups {
        [one] => format!("a BPF program of the cgroup {}", one.path),
        _ => "a BPF program of a cgroup".to_owned(),
    };
    let (way, kind) = if is_sent { ("packets to send", "egress") } else { ("received packets", "ingress") };
    let confidence = if is_sent { Confidence::Certain } else { Confidence::Likely };
    let programs = cgroups.iter().take(4).map(|one| {
        let count = if is_sent { one.egress } else { one.ingress };
        state(format!("{kind} programs of the cgroup {}", one.path), count, None)
    });
    let reach = match is_sent && wait_for(sample, dropped) {
        true => Reach::part(dropped.count, dropped.count),
        false => Reach::part(dropped.count, moved_packets(sample)).or_more_than(5),
    };
    found
        .add(severity, confidence, format!("{who} drops {way}{}", dropped.example()))
        .object(cgroups.first().map_or("", |one| &one.path))
        .proof(dropped.evidence())
        .proof(programs)
        .lost(dropped.count, "packets dropped")
        .reach(reach, "packets of this network namespace")
        .remedy("bpftool cgroup tree", "shows the programs of all cgroups (run it outside of containers)", "")
        .remedy(
            "",
            "systemd attaches such programs for IPAddressDeny= and IPAddressAllow= of a unit; others come from \
             container runtimes or agents",
            "",
        );
}
