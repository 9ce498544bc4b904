//! Queueing disciplines that drop packets instead of sending them.

use record::rows::CounterSource::{Qdisc, Snmp};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{of_object, percent};
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "qdisc-drop",
    needs: &[Probe::Drops],
    area: "interfaces",
    about: "The queue of an interface drops packets: more is sent than the link, or its rate limit, allows.",
    rule: "`drops` of a queueing discipline grew: a warning if by at least 10 and 5 % of its packets, otherwise a \
           hint: TCP fills a queue until it drops. The check `tc-xdp-drop` covers filters at ingress, which have no \
           queue.",
    sources: "RTM_GETQDISC: TCA_STATS2",
    refuted_by: "an intended rate limit: then drops are expected.",
    run,
};

/// True for the place of filters on received packets. It has no queue: only its filters drop packets.
fn is_ingress(object: &[u8]) -> bool {
    let kind = object.split(|byte| *byte == b' ').nth(1);
    kind.is_some_and(|kind| [&b"clsact"[..], b"ingress"].contains(&kind))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let are_known = sample.around.drops.is_some();
    for (object, drops) in sample.objects(Qdisc, "drops").filter(|(_, moved)| moved.grown() > 0) {
        if are_known && is_ingress(object) {
            continue;
        }
        let of = |name| sample.objects(Qdisc, name).find(|(other, _)| *other == object).map(|(_, moved)| moved);
        let (lost, sent) = (drops.grown(), of("packets").map_or(0, |moved| moved.grown()));
        let severity = if lost >= 10 { Severity::Warning } else { Severity::Hint };
        let name = String::from_utf8_lossy(object);
        let share = percent(lost, sent.saturating_add(lost));
        let waiting = [("qlen", of("qlen")), ("backlog", of("backlog")), ("packets", of("packets"))];
        let waiting = waiting.into_iter().filter_map(|(name, moved)| Some(of_object(name, object, moved?, None)));
        found
            .add(severity, Confidence::Certain, format!("the queue {name} drops {share} of its packets"))
            .object(name.clone())
            .proof([of_object("drops", object, drops, None)])
            .proof(waiting)
            // Datagrams that a queue drops also count as errors of their sockets.
            .proof(sample.evidence(Snmp, "UdpSndbufErrors", None))
            .lost(lost, "packets dropped")
            .reach(Reach::part(lost, sent.saturating_add(lost)).or_more_than(5), "")
            .remedy("", "send less, or increase the bandwidth of the link or its rate limit", "")
            .remedy("", "a longer queue (limit) drops fewer packets", "packets wait longer in it");
    }
}
