//! Tracked flows that differ from what the rules of NAT say now.
//!
//! Rules of NAT are evaluated for the first packet of a flow only. As long as packets keep the entry alive, a flow of
//! datagrams follows the rule that was in force when it began.

use record::rows::{Confidence, Severity, ip_proto};

use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Difference, StaleFlow};

pub(super) const CHECK: Check = Check {
    id: "ct-stale",
    needs: &[Probe::Flows, Probe::Links, Probe::Routes],
    area: "conntrack",
    about: "Flows do not follow the rules of NAT, because their conntrack entries are older than the rules.",
    rule: "A UDP entry that was used within the window has another destination than the first matching rule gives new \
           flows; or it has no answer, and no rule gives it its destination, or a rule would translate its source. \
           Rules with a match that is not understood (marks, named sets, maps, iptables modules) decide nothing. For \
           TCP it is a hint, found in the first 4096 connections: they keep the path with which they began.",
    sources: "conntrack entries; nft: rules of NAT; interfaces via rtnetlink",
    refuted_by: "another rule that rewrites these flows: iptables-legacy, IPVS or a program attached to tc.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let stale = &sample.around.flows.stale;
    let is_udp = |one: &StaleFlow| one.flow.l4 == ip_proto::UDP;
    let Some(first) = stale.iter().find(|one| is_udp(one)).or(stale.first()) else { return };
    let is_same = |one: &&StaleFlow| {
        let of = |one: &StaleFlow| (one.flow.l4, one.flow.asked, one.flow.server);
        of(one) == of(first) && one.difference == first.difference
    };
    let count = stale.iter().filter(is_same).count() as u64;
    let flow = &first.flow;
    let ((asked, port), (server, at), proto) = (flow.asked, flow.server, ip_proto::name(flow.l4));
    let rule = &first.rule;
    let title = match &first.difference {
        Difference::Target(to) if flow.is_dnat => format!(
            "tracked flows to {asked} port {port} ({proto}) still reach {server} port {at}: they are older than the \
             rule `{rule}`, which says {to}"
        ),
        Difference::Target(to) => format!(
            "tracked flows to {asked} port {port} ({proto}) are not translated: they are older than the rule `{rule}`, \
             which says {to}"
        ),
        Difference::NoRule => {
            format!(
                "tracked flows to {asked} port {port} ({proto}) still reach {server} port {at}, but no rule says so now"
            )
        }
        Difference::Source(to) => format!(
            "tracked flows to {asked} port {port} ({proto}) leave with the source {}: they are older than the rule \
             `{rule}`, which says {to}",
            flow.source
        ),
    };
    let (client, sport) = flow.client;
    let answer = if flow.is_answered { "answered" } else { "not answered" };
    let number = i64::try_from(count).unwrap_or(i64::MAX);
    let evidence = state(
        format!("entries such as {client} port {sport} to {asked} port {port}, sent to {server} port {at}, {answer}"),
        number,
        None,
    );
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(format!("{asked} port {port}"))
        .proof([evidence])
        .cost("their packets go to the old place until the entries expire, which their packets prevent")
        .reach(if is_udp(first) { Reach::part(count, count) } else { Reach::Nobody }, "")
        .remedy(
            format!("conntrack -D -p {proto} -d {asked} --dport {port}"),
            "deletes the entries: the next packet follows the rules",
            if is_udp(first) { "" } else { "breaks the connections" },
        );
}
