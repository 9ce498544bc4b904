//! Flows that never get an answer.

use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::{percent, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest flows for a finding.
const SOME: u64 = 100;

pub(super) const CHECK: Check = Check {
    id: "ct-unreplied",
    needs: &[Probe::Flows],
    area: "conntrack",
    about: "Many tracked flows never got an answer: a scan, a service that is down, or a path in one direction only.",
    rule: "At least 100 entries used within the window, and 30 % of all, have no answer. It is a warning if as many \
           TCP connections to one destination have none; otherwise a hint, because syslog and metrics need none.",
    sources: "the conntrack table: status without seen_reply, timeout",
    refuted_by: "protocols that never answer: syslog, flow records, multicast.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let flows = &sample.around.flows;
    if flows.unanswered < SOME || flows.unanswered.saturating_mul(10) < flows.entries.saturating_mul(3) {
        return;
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
