//! Programs that miss packets while they capture.

use record::rows::{Confidence, Severity};

use super::losers::{Loser, losers};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "packet-drops",
    needs: &[Probe::Drops, Probe::Sockets],
    area: "capture",
    about: "A capturing program reads too slowly: packets are missing from its output.",
    rule: "The drops of a packet socket grew, or packets were dropped because the ring or queue of one was full.",
    sources: "drops of each packet socket via packet_diag (SK_MEMINFO); the tracepoint kfree_skb via BPF (its ring)",
    refuted_by: "the program's own count of dropped packets, if it does not grow.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let all = losers(&sample.before.packet, &sample.after.packet);
    let lost: u64 = all.iter().map(|one| u64::from(one.grown)).sum();
    let dropped = sample.around.dropped(CHECK.id);
    if lost == 0 && dropped.count == 0 {
        return;
    }
    let title = match all.first() {
        Some(one) if one.socket.owner.is_known() => {
            format!("{} captures too slowly: packets are missing", one.socket.owner)
        }
        _ => "a capturing program misses packets: its ring or queue is full".to_owned(),
    };
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .object(all.first().map_or(String::new(), |one| one.socket.owner.name.clone()))
        .holder(all.first().map(|one| &one.socket.owner))
        .proof(all.iter().take(8).map(Loser::evidence))
        .proof(dropped.evidence())
        .lost(lost.max(dropped.count), "packets not captured; the traffic itself is not affected")
        .remedy("netwren sockets 'proto = packet' -o wide", "shows the capturing programs", "")
        .remedy("", "use a larger ring (tcpdump -B), a narrower filter or a faster disk", "");
}
