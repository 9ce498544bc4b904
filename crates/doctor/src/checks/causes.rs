//! Findings that explain other findings.
//!
//! A fault has consequences that have checks of their own: a server without file descriptors does not accept, and its
//! accept queue overflows. The cause comes first, its consequences follow directly beneath it and name it.

use record::rows::{Confidence, Finding, Severity};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Decides whether the first finding explains the second.
type Relation = fn(&Finding, &Finding) -> bool;

/// A check, the checks whose findings its own findings may explain, and the condition.
///
/// The checks of this list form no cycle. A new check with a consequence needs a line here, nothing else.
const EXPLAINS: &[(&str, &[&str], Relation)] = &[
    ("asymmetric-route", &["ct-forgotten", "ct-invalid", "ct-unreplied"], always),
    ("asymmetric-route", &["rule-drop", "syn-retrans"], is_about_same),
    ("bridge-nf", &["ct-unreplied", "retransmits", "rule-drop", "syn-retrans"], always),
    ("checksum", &["reassembly", "retransmits"], always),
    ("close-wait", &["fd-limit"], is_about_same),
    ("closed-port", &["refused"], is_of_itself),
    ("ct-chains", &["ct-unreplied", "syn-retrans"], always),
    ("ct-evicting", &["ct-unreplied"], always),
    ("ct-full", &["ct-unreplied", "dns-silent", "retransmits", "syn-retrans"], always),
    ("ct-helper", &["rule-drop"], is_about_same),
    ("ecn-syn", &["syn-retrans"], is_about_same_or_general),
    ("dns-silent", &["dns-errors"], always),
    ("fd-limit", &["listen-overflow"], is_about_same),
    ("iface-down", &["no-route"], always),
    ("iface-down", &["dns-silent", "neigh-failed", "nic-drops", "qdisc-drop", "syn-retrans"], is_about_same),
    ("ip-conflict", &["martian"], is_about_same),
    ("link-flap", &["dns-silent", "no-route", "retransmits", "syn-retrans"], always),
    ("link-flap", &["iface-down", "neigh-failed", "nic-drops", "qdisc-drop"], is_about_same),
    ("link-mode", &["nic-drops", "nic-errors", "qdisc-drop"], is_about_same),
    ("link-mode", &["retransmits"], always),
    ("listen-overflow", &["syn-cookies", "syn-retrans"], is_general),
    ("mtu-mismatch", &["nic-drops"], is_about_same),
    ("mtu-mismatch", &["pmtu-blackhole", "reassembly", "retransmits"], always),
    ("neigh-failed", &["dns-silent", "retransmits", "syn-retrans"], is_on_the_way),
    ("neigh-full", &["neigh-failed"], always),
    ("nfqueue", &["ct-unreplied", "dns-silent", "retransmits", "syn-retrans"], always),
    ("nic-drops", &["reassembly", "retransmits"], always),
    ("nic-errors", &["checksum", "reassembly", "retransmits"], always),
    ("no-route", &["dns-silent"], always),
    ("no-route", &["dead-peer", "retransmits", "small-pmtu"], is_about_same),
    ("paws", &["retransmits"], always),
    ("pmtu-blackhole", &["retransmits"], always),
    ("qdisc-drop", &["nic-drops"], is_about_same),
    ("qdisc-drop", &["retransmits"], always),
    ("route-refuses", &["dns-silent", "syn-retrans"], is_about_same),
    ("rp-filter", &["dns-silent", "retransmits", "syn-retrans"], is_about_same_or_general),
    ("refused", &["syn-retrans"], is_by_messages),
    ("rule-drop", &["ct-unreplied"], always),
    ("rule-drop", &["dns-silent", "reassembly", "retransmits", "syn-retrans"], is_about_same_or_general),
    ("snat-ports", &["ct-unreplied", "dns-silent", "syn-retrans"], always),
    ("softnet-drop", &["reassembly", "retransmits", "syn-retrans"], always),
    ("syn-cookies", &["syn-retrans"], is_general),
    ("tc-xdp-drop", &["ct-unreplied"], always),
    ("tc-xdp-drop", &["dns-silent", "reassembly", "retransmits", "syn-retrans"], is_about_same_or_general),
    ("tcp-memory", &["orphans", "peer-window", "rcv-prune", "retransmits"], always),
    ("ttl-expired", &["dns-silent", "retransmits", "syn-retrans"], is_about_same_or_general),
    ("unread-queue", &["rcv-prune"], is_about_same),
];

/// Most findings that are considered as causes, the most harmful first: a host may have thousands of findings.
const CAUSES_MAX: usize = 64;

fn always(_: &Finding, _: &Finding) -> bool {
    true
}

/// True if the consequence names no socket, peer or interface.
fn is_general(_: &Finding, consequence: &Finding) -> bool {
    consequence.object.is_empty()
}

/// True if one of them names the object of the other: an interface, an address, a process.
fn is_about_same(cause: &Finding, consequence: &Finding) -> bool {
    names(consequence, &cause.object) || names(cause, &consequence.object)
}

fn is_about_same_or_general(cause: &Finding, consequence: &Finding) -> bool {
    is_general(cause, consequence) || is_about_same(cause, consequence)
}

/// True if the silent neighbour is the peer, or the gateway to it.
fn is_on_the_way(cause: &Finding, consequence: &Finding) -> bool {
    cause.title.starts_with("the gateway ") || is_about_same(cause, consequence)
}

/// True if this host refuses its own packets.
fn is_of_itself(cause: &Finding, _: &Finding) -> bool {
    cause.title.contains("itself")
}

/// True if hosts refuse with messages, of which they send one per second: further SYNs wait for an answer.
fn is_by_messages(cause: &Finding, _: &Finding) -> bool {
    cause.title.contains("unreachable")
}

/// True if a finding contains the name of an object: a process as a whole (`nginx (812)`), otherwise the first word.
fn names(finding: &Finding, object: &str) -> bool {
    let name = if object.contains('(') { Some(object) } else { object.split_whitespace().next() };
    let Some(name) = name else { return false };
    let texts = [&finding.title, &finding.object].into_iter().chain(finding.evidence.iter().map(|one| &one.counter));
    texts.into_iter().any(|text| has_word(text, name))
}

/// True if the text contains the name, and not as a part of a longer one: `eth0.5`, `192.0.2.91`.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let mut after = text.get(at + name.len()..).unwrap_or_default().chars();
        let goes_on = after.next().is_some_and(|c| is_part(c) || c == '.' && after.next().is_some_and(is_part));
        !goes_on && !before.is_some_and(|c| is_part(c) || c == '.')
    })
}

/// True if the first finding explains the second: in the same network namespace, or as one of the whole host. A hint
/// explains only hints.
fn explains(cause: &Finding, consequence: &Finding) -> bool {
    let is_near = cause.netns_id.is_none() || cause.netns_id == consequence.netns_id;
    let is_grave = cause.severity != Severity::Hint || consequence.severity == Severity::Hint;
    let may = |(id, of, relation): &&(&str, &[&str], Relation)| {
        *id == cause.id && of.contains(&consequence.id) && relation(cause, consequence)
    };
    is_near && is_grave && EXPLAINS.iter().any(|line| may(&line))
}

/// Sorts findings by severity, rank of their check and loss, with the consequences of each directly beneath it. A cause
/// is as severe as its consequences, and they are no more certain than it.
pub(super) fn arrange(mut found: Vec<(usize, Finding)>) -> Vec<Finding> {
    let key = |(rank, finding): &(usize, Finding)| (finding.severity, *rank, Reverse(finding.lost));
    found.sort_by_key(key);
    let causes = causes_of(&found);
    raise_causes(&mut found, &causes);
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|at| found.get(*at).map(key));
    let mut beneath: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for at in order.into_iter().rev() {
        beneath.entry(causes.get(at).copied().flatten()).or_default().push(at);
    }
    let mut rest: Vec<Option<Finding>> = found.into_iter().map(|(_, finding)| Some(finding)).collect();
    let mut arranged: Vec<Finding> = Vec::with_capacity(rest.len());
    // The next finding is the last one of the stack; its cause is already arranged.
    let mut stack: Vec<(usize, Option<(&'static str, Confidence)>)> = Vec::new();
    stack.extend(beneath.remove(&None).into_iter().flatten().map(|at| (at, None)));
    while let Some((at, cause)) = stack.pop() {
        let Some(mut finding) = rest.get_mut(at).and_then(Option::take) else { continue };
        if let Some((id, confidence)) = cause {
            finding.explained_by = Some(id);
            finding.confidence = finding.confidence.max(confidence);
        }
        let of = Some((finding.id, finding.confidence));
        stack.extend(beneath.remove(&Some(at)).into_iter().flatten().map(|at| (at, of)));
        arranged.push(finding);
    }
    arranged
}

/// Returns the place of each finding's cause among the findings: the first that explains it.
fn causes_of(found: &[(usize, Finding)]) -> Vec<Option<usize>> {
    let is_cause = |finding: &Finding| EXPLAINS.iter().any(|(id, ..)| *id == finding.id);
    let all = found.iter().enumerate().map(|(at, (_, finding))| (at, finding));
    let causes: Vec<(usize, &Finding)> = all.filter(|(_, finding)| is_cause(finding)).take(CAUSES_MAX).collect();
    let cause_of = |one: &Finding| causes.iter().find(|(_, cause)| explains(cause, one)).map(|(at, _)| *at);
    found.iter().map(|(_, finding)| cause_of(finding)).collect()
}

/// Makes each cause as severe as its consequences.
fn raise_causes(found: &mut [(usize, Finding)], causes: &[Option<usize>]) {
    for (at, cause) in causes.iter().enumerate() {
        let Some(severity) = found.get(at).map(|(_, finding)| finding.severity) else { continue };
        let mut next = *cause;
        while let Some((at, (_, finding))) = next.and_then(|at| Some((at, found.get_mut(at)?))) {
            finding.severity = finding.severity.min(severity);
            next = causes.get(at).copied().flatten();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::checks::CHECKS;

    fn finding(id: &'static str, severity: Severity, object: &str, title: &str) -> Finding {
        Finding {
            netns_id: Some(7),
            id,
            area: "",
            severity,
            confidence: Confidence::Certain,
            object: object.into(),
            title: title.into(),
            evidence: Vec::new(),
            cost: String::new(),
            lost: None,
            since_ns: None,
            window_ns: 1,
            remedy: Vec::new(),
            explained_by: None,
        }
    }

    /// The findings in their order, with their severity and cause.
    fn arranged(all: Vec<Finding>) -> Vec<(&'static str, Severity, Option<&'static str>)> {
        let ranked = all.into_iter().map(|one| (CHECKS.iter().position(|check| check.id == one.id).unwrap(), one));
        arrange(ranked.collect()).into_iter().map(|one| (one.id, one.severity, one.explained_by)).collect()
    }

    use Severity::{Critical, Hint, Warning};

    #[test]
    fn consequences_follow_their_cause() {
        let all = vec![
            finding("listen-overflow", Critical, "0.0.0.0:80", "server (7) at 0.0.0.0:80 accepts too slowly"),
            finding("listen-overflow", Critical, "0.0.0.0:81", "other (8) at 0.0.0.0:81 accepts too slowly"),
            finding("fd-limit", Warning, "server (7)", "server (7) has 95 of 100 file descriptors open"),
            finding("close-wait", Warning, "server (7)", "server (7) does not close 60 connections"),
            finding("udp-rcvbuf", Critical, "0.0.0.0:53", "a"),
        ];
        let expected = [
            ("listen-overflow", Critical, None),
            ("udp-rcvbuf", Critical, None),
            ("close-wait", Critical, None),
            ("fd-limit", Critical, Some("close-wait")),
            ("listen-overflow", Critical, Some("fd-limit")),
        ];
        assert_eq!(arranged(all), expected);
    }

    #[test]
    fn another_object_namespace_or_weight_is_no_cause() {
        let neighbour = |severity, title: &str| finding("neigh-failed", severity, "192.0.2.9", title);
        let silent = finding("syn-retrans", Warning, "192.0.2.91 port 80", "192.0.2.91 port 80 does not answer");
        let cause = |cause: Finding| arranged(vec![cause, silent.clone()])[1].2;
        assert_eq!(cause(neighbour(Warning, "the neighbour 192.0.2.9 on c0 does not answer")), None);
        assert_eq!(cause(neighbour(Warning, "the gateway 192.0.2.9 on c0 does not answer")), Some("neigh-failed"));
        assert_eq!(cause(neighbour(Warning, "the neighbour 192.0.2.91 on c0")), Some("neigh-failed"));
        assert_eq!(cause(Finding { netns_id: Some(8), ..neighbour(Warning, "the gateway") }), None);
        assert_eq!(cause(Finding { netns_id: None, ..neighbour(Warning, "the gateway ") }), Some("neigh-failed"));
        let hint = arranged(vec![neighbour(Hint, "the gateway 192.0.2.9"), silent.clone()]);
        assert_eq!(hint, [("syn-retrans", Warning, None), ("neigh-failed", Hint, None)]);
    }

    #[test]
    fn a_longer_name_is_another() {
        for text in ["on eth0", "eth0: down", "eth0.", "a (eth0)", "[fe80::2%eth0]:80"] {
            assert!(has_word(text, "eth0"), "{text}");
        }
        for text in ["on eth0.5", "veth0", "eth01", "eth0-a", "br.eth0", ""] {
            assert!(!has_word(text, "eth0"), "{text}");
        }
        assert!(has_word("192.0.2.9:80 from 10.0.0.1", "192.0.2.9") && !has_word("192.0.2.91", "192.0.2.9"));
    }

    #[test]
    fn a_consequence_is_no_more_certain_than_its_cause() {
        let down =
            Finding { confidence: Confidence::Likely, ..finding("iface-down", Critical, "c0", "c0 is set down") };
        let all = arrange(vec![(1, finding("no-route", Warning, "IPv4", "no route")), (0, down)]);
        assert_eq!((all[1].id, all[1].confidence), ("no-route", Confidence::Likely));
    }

    #[test]
    fn checks_are_known_and_form_no_cycle() {
        for (id, of, _) in EXPLAINS {
            for name in of.iter().chain([id]) {
                assert!(CHECKS.iter().any(|check| check.id == *name), "{name}");
            }
            let mut reached: Vec<&str> = of.to_vec();
            let mut at = 0;
            while let Some(next) = reached.get(at).copied() {
                assert_ne!(next, *id, "{reached:?}");
                let further = EXPLAINS.iter().filter(|(id, ..)| *id == next).flat_map(|(_, of, _)| of.iter().copied());
                let further: Vec<&str> = further.filter(|id| !reached.contains(id)).collect();
                reached.extend(further);
                at += 1;
            }
        }
    }
}
