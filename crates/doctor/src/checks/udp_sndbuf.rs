//! UDP sockets with a full send buffer.

use record::rows::CounterSource::{Iface, Qdisc, Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{of_object, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::Queue;

/// Fewest errors for a finding.
const SOME: u64 = 10;
/// The share of refused datagrams, in percent, up to which a program just sends until its buffer is full, and then
/// waits.
const NORMAL_PERCENT: u64 = 10;

pub(super) const CHECK: Check = Check {
    id: "udp-sndbuf",
    needs: &[Probe::Neighbours, Probe::Sockets],
    area: "udp",
    about: "Datagrams are refused because the send buffer of their socket is full: its program sends faster than they \
            leave.",
    rule: "UdpSndbufErrors or Udp6SndbufErrors grew by at least 10 more than the drops of all queueing disciplines \
           and interfaces, which the kernel also counts there (checks `qdisc-drop`, `nic-drops`). It is a warning from \
           10 % of the datagrams; fewer come from programs that send until the buffer is full and then wait.",
    sources: "/proc/net/snmp, snmp6: SndbufErrors; SK_MEMINFO_WMEM_ALLOC of each socket via sock_diag; RTM_GETQDISC",
    refuted_by: "`netwren counters 'name ~ SndbufErrors' --watch` without growth, or drops of a queue that grow alike.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let errors = sample.grown(Snmp, "UdpSndbufErrors") + sample.grown(Snmp6, "Udp6SndbufErrors");
    let dropped = sample.objects(Qdisc, "drops").chain(sample.objects(Iface, "tx_dropped"));
    let refused = errors.saturating_sub(dropped.map(|(_, moved)| moved.grown()).sum());
    if refused < SOME {
        return;
    }
    // The queue in which the packets wait that fill the buffer.
    let waiting = sample.objects(Qdisc, "backlog").filter(|(_, moved)| moved.after > 0);
    let waiting = waiting.max_by_key(|(_, moved)| moved.after);
    // Packets to a neighbour that does not answer wait in its entry.
    if waiting.is_none() && !sample.around.neighbours.is_empty() {
        return;
    }
    let sent = sample.grown(Snmp, "UdpOutDatagrams") + sample.grown(Snmp6, "Udp6OutDatagrams");
    let to = waiting.and_then(|(object, _)| object.split(|byte| *byte == b' ').next());
    let to = to.map_or("its packets leave".to_owned(), |name| format!("{} transmits", String::from_utf8_lossy(name)));
    let full = |socket: &&Queue| socket.limit.is_some_and(|limit| u64::from(socket.queue) * 2 >= u64::from(limit));
    let socket = sample.after.senders.iter().filter(full).max_by_key(|socket| socket.queue);
    let who = socket.map_or("a program".to_owned(), Queue::words);
    let proof = [sample.evidence(Snmp, "UdpSndbufErrors", None), sample.evidence(Snmp6, "Udp6SndbufErrors", None)];
    let buffer = |socket: &Queue| {
        state(format!("send buffer of {}, bytes", socket.name), socket.queue, socket.limit.map(i64::from))
    };
    found
        .add(
            Severity::Warning,
            Confidence::Certain,
            format!("{who} sends UDP faster than {to}: its send buffer is full"),
        )
        .socket(socket)
        .proof(proof.into_iter().flatten())
        .proof(socket.map(buffer))
        .proof(waiting.map(|(object, moved)| of_object("backlog", object, moved, None)))
        .lost(refused, "datagrams refused")
        .reach(Reach::part(refused, sent.saturating_add(refused)).or_more_than(NORMAL_PERCENT), "datagrams")
        .remedy("", "make the program wait until the socket is writable (poll), or send less", "")
        .remedy(
            "",
            "give the socket a larger send buffer (SO_SNDBUF), or the interface more bandwidth",
            "packets wait",
        );
}
