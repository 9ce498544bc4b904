//! Connections that connection tracking has forgotten and a stateful firewall therefore drops.

use record::rows::CounterSource::Conntrack;
use record::rows::{Confidence, NetfilterHook, Severity};

use super::reach::{Reach, moved_packets};
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{DropSeen, RuleSeen};

/// Fewest packets for a finding; fewer are late segments of ended connections.
const SOME: u64 = 3;
/// The setting that decides how long an idle connection is remembered, and the kernel's default in seconds.
const TIMEOUT: &str = "netfilter/nf_conntrack_tcp_timeout_established";
const TIMEOUT_DEFAULT_S: i64 = 432_000;

pub(super) const CHECK: Check = Check {
    id: "ct-forgotten",
    needs: &[Probe::Drops],
    area: "conntrack",
    about: "A stateful firewall drops segments of established connections, because connection tracking no longer knows \
            them: they were idle for longer than the timeout, or the table was flushed.",
    rule: "At least 3 TCP segments with ACK, and without SYN, FIN and RST, were dropped at input or forward by a \
           policy, or by a rule about `ct state`, while connections are tracked. It is a warning if they are 10 % of \
           the packets, otherwise a hint: late segments and scans look the same.",
    sources: "the tracepoint kfree_skb via BPF: NETFILTER_DROP, with the flags of the first packet; nft: the rules; \
              net.netfilter.nf_conntrack_tcp_timeout_established",
    refuted_by: "an entry of the connection in `netwren nat entries`: then another rule drops its packets.",
    run,
};

/// Returns the drops of segments whose connections are not tracked; empty if there are too few for a finding.
pub(super) fn forgotten(sample: &Sample) -> Vec<&DropSeen> {
    use NetfilterHook::{Forward, Input, Prerouting};
    let is_tracked = sample.counter(Conntrack, "entries").is_some_and(|entries| entries.after > 0)
        || sample.grown(Conntrack, "invalid") > 0;
    let is_stateful = |rule: &RuleSeen| rule.text.contains("policy drop") || rule.text.contains("ct state");
    let is_it = |one: &&DropSeen| {
        one.is_midway()
            && !one.is_to_group()
            && matches!(one.hook, Some(Forward | Input | Prerouting))
            && one.rule.as_ref().is_some_and(is_stateful)
    };
    let found: Vec<&DropSeen> = sample.around.dropped("rule-drop").all.into_iter().filter(is_it).collect();
    let count: u64 = found.iter().map(|one| one.count).sum();
    if is_tracked && count >= SOME { found } else { Vec::new() }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let drops = forgotten(sample);
    let Some(first) = drops.first() else { return };
    let count: u64 = drops.iter().map(|one| one.count).sum();
    let all = moved_packets(sample);
    let packet = first.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
    let rule = first.rule.as_ref().map_or("", |rule| rule.text.as_str());
    let title = format!(
        "connection tracking has forgotten connections that are still in use: `{rule}` drops their segments{packet}"
    );
    let shorter = sample.setting(TIMEOUT, 0).filter(|timeout| *timeout < TIMEOUT_DEFAULT_S);
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object("nf_conntrack")
        .proof(drops.iter().take(4).map(|one| state(format!("drops: {}", one.at()), count_of(one), None)))
        .proof(sample.evidence(Conntrack, "invalid", None))
        .proof(
            sample
                .setting(TIMEOUT, 0)
                .map(|timeout| state(format!("net.{}", TIMEOUT.replace('/', ".")), timeout, None)),
        )
        .lost(count, "segments dropped; the connections hang until they time out")
        .reach(Reach::part(count, all).or_more_than(10), "packets of this network namespace");
    let draft = match shorter {
        Some(_) => draft.remedy(
            format!("sysctl -w net.netfilter.nf_conntrack_tcp_timeout_established={TIMEOUT_DEFAULT_S}"),
            "keeps idle connections for five days, as the kernel does by default",
            "entries of hosts that have left also stay as long",
        ),
        None => draft,
    };
    draft.remedy(
        "",
        "make the programs send keepalives more often than the timeout, and reject such segments with a TCP reset \
         instead of dropping them: then programs notice at once",
        "",
    );
}

fn count_of(one: &DropSeen) -> i64 {
    i64::try_from(one.count).unwrap_or(i64::MAX)
}
