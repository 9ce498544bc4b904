//! Packets that rules pass to a program that does not read them.

use record::rows::{Confidence, Evidence, Severity};

use super::{Check, Findings, Probe, Sample};
use crate::seen::{Moved, NfQueue};

pub(super) const CHECK: Check = Check {
    id: "nfqueue",
    needs: &[Probe::Drops, Probe::Queues],
    area: "firewall",
    about: "A rule queues packets to a program that is not running, or too slow.",
    rule: "A queue of nfnetlink_queue dropped packets (queue_dropped, user_dropped grew), or packets were dropped in \
           nf_queue: no program reads the queue.",
    sources: "/proc/net/netfilter/nfnetlink_queue; the tracepoint kfree_skb via BPF",
    refuted_by: "`queue_dropped` that does not grow in /proc/net/netfilter/nfnetlink_queue.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost_of = |queue: &NfQueue| queue.dropped.grown().saturating_add(queue.user_dropped.grown());
    let queues: Vec<&NfQueue> = sample.around.queues.iter().filter(|queue| lost_of(queue) > 0).collect();
    let dropped = sample.around.dropped(CHECK.id);
    let lost = queues.iter().map(|queue| lost_of(queue)).sum::<u64>().max(dropped.count);
    if lost == 0 {
        return;
    }
    let title = match queues.first() {
        Some(queue) => format!("packet queue {} is full: its program is too slow", queue.number),
        None if sample.around.queues.is_empty() => {
            "a rule queues packets, but no program reads the queue: they are dropped".to_owned()
        }
        None => "a rule queues packets to a queue that no program reads, or that is full".to_owned(),
    };
    let proof = queues.iter().flat_map(|queue| {
        let of = |name: &str, moved: Moved| Evidence {
            counter: format!("{name} of queue {}", queue.number),
            before: moved.before,
            after: moved.after,
            limit: None,
        };
        [of("queue_dropped", queue.dropped), of("user_dropped", queue.user_dropped)]
    });
    found
        .add(Severity::Critical, Confidence::Certain, title)
        .object(queues.first().map_or(String::new(), |queue| format!("queue {}", queue.number)))
        .proof(proof)
        .proof(dropped.evidence())
        .lost(lost, "packets dropped")
        .remedy(
            "nft list ruleset",
            "shows the rules that queue packets (iptables-legacy-save those of iptables-legacy); `queue flags bypass` \
             accepts packets if no program reads the queue",
            "",
        )
        .remedy("", "start the program that reads the queue, or make it read faster, for example with more queues", "");
}
