//! Flows that never get an answer.

use record::rows::{Confidence, Evidence, Severity};

use super::reach::Reach;
use super::words::{argument, percent, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::DESTINATIONS_MAX;
use record::Addr;

/// Fewest flows for a finding.
const SOME: u64 = 100;
/// Fewest TCP connections to one destination for a finding about it.
const SOME_OF_ONE: u32 = 20;

pub(super) const CHECK: Check = Check {
    id: "ct-unreplied",
    needs: &[Probe::Flows, Probe::Links],
    area: "conntrack",
    about: "Many tracked flows never got an answer: a scan, a service that is down, or a path in one direction only.",
    rule: "At least 100 entries used within the window, and 30 % of all, have no answer. It is a warning if as many \
           TCP connections to one destination have none; otherwise a hint, because syslog and metrics need none. At \
           least 20 TCP connections to one destination without an answer are a hint, too; a warning if source NAT \
           gives them an address of this host's network that this host does not have, and no flow from that address \
           has an answer.",
    sources: "the conntrack table: status without seen_reply, timeout",
    refuted_by: "protocols that never answer: syslog, flow records, multicast.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if let Some(one) = with_foreign_source(sample) {
        return report_foreign(sample, found, one);
    }
    let flows = &sample.around.flows;
    if flows.unanswered < SOME || flows.unanswered.saturating_mul(10) < flows.entries.saturating_mul(3) {
        return of_one(sample, found);
    }
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let most = flows.silent.values().map(|count| u64::from(*count)).max().unwrap_or(0);
    let reach = if most >= SOME { Reach::part(most, flows.entries) } else { Reach::Nobody };
    let title = format!("{} of the tracked flows get no answer", percent(flows.unanswered, flows.entries));
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object("nf_conntrack")
        .proof([state("entries in use without an answer", number(flows.unanswered), Some(number(flows.entries)))])
        .cost("each takes an entry of the table until it expires; its client may wait for an answer")
        .reach(reach, "")
        .remedy("netwren nat 'not status = seen_reply' --by orig_dst --limit 10", "shows the destinations", "");
}

/// Reports the destination of most TCP connections without an answer.
fn of_one(sample: &Sample, found: &mut Findings<'_>) {
    let Some((to, count)) = sample.around.flows.silent.iter().max_by_key(|(_, count)| **count) else { return };
    if *count < SOME_OF_ONE {
        return;
    }
    found
        .add(Severity::Hint, Confidence::Likely, format!("tracked connections to {to} get no answer"))
        .object(to.to_string())
        .proof([without_answer(*to, *count)])
        .cost("their clients wait: the host may be down, drop them, or have no route back to its clients")
        .reach(Reach::Nobody, "")
        .remedy(
            format!("netwren nat 'reply_src = {to} and not status = seen_reply' --limit 10"),
            "shows some of the connections",
            "",
        );
}

/// Returns a destination whose connections have no answer, their number, and the source that source NAT gives them: an
/// address of this host's network that this host does not have.
fn with_foreign_source(sample: &Sample) -> Option<(Addr, u32, Addr)> {
    let (around, flows) = (&sample.around, &sample.around.flows);
    // An upstream router may send the answers to a pool of addresses here: then some flows have an answer.
    let answered = &flows.answered_sources;
    let is_answered = |source: Addr| answered.contains(&source) || answered.len() >= DESTINATIONS_MAX;
    let is_foreign =
        |source: Addr| !around.has_address(source) && around.iface_of(source).is_some() && !is_answered(source);
    let foreign = flows.translated.iter().filter(|(.., source)| is_foreign(*source));
    let silent = |to: &Addr| flows.silent.get(to).copied().filter(|count| *count >= SOME_OF_ONE);
    let all = foreign.filter_map(|(_, to, _, source)| Some((*to, silent(to)?, *source)));
    all.max_by_key(|(_, count, _)| *count)
}

fn report_foreign(sample: &Sample, found: &mut Findings<'_>, (to, count, source): (Addr, u32, Addr)) {
    let iface = sample.around.iface(sample.around.iface_of(source).unwrap_or(0));
    let title = format!("source NAT gives connections to {to} the source {source}, which this host does not have");
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(to.to_string())
        .proof([without_answer(to, count)])
        .cost(format!("their answers do not come back: this host does not answer its neighbours for {source}"))
        .remedy(
            format!("ip addr add {source} dev {}", argument(&iface, "IFACE")),
            "makes this host answer for the address",
            "not if another host has the address: then change the rule, which `nft list ruleset` shows",
        );
}

fn without_answer(to: Addr, count: u32) -> Evidence {
    state(format!("TCP connections to {to} without an answer"), count, None)
}
