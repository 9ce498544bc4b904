//! DNS servers that answer with errors.

use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::DnsServerSeen;

/// Fewest answers with an error for a finding. A program that fails to resolve one name asks about four times: twice
/// for each address family.
const MANY: u32 = 5;
/// The share of errors, in percent of the answers, from which it is a warning: names without a working server of their
/// own always fail, addresses of private networks among them.
const NEARLY_ALL_PERCENT: u32 = 90;

pub(super) const CHECK: Check = Check {
    id: "dns-errors",
    needs: &[Probe::Dns],
    area: "services",
    about: "A DNS server answers that it cannot or will not resolve names.",
    rule: "Within the window a server answered at least 5 queries of this host, and half of those that it answered, \
           with the response code SERVFAIL or REFUSED: a warning from 90 % on, otherwise a hint. If another server \
           answers without errors, it is a hint.",
    sources: "a packet socket for DNS messages (AF_PACKET, CAP_NET_RAW)",
    refuted_by: "`netwren capture 'udp port 53'` that shows answers with NOERROR or NXDOMAIN.",
    run,
};

fn errors(one: &DnsServerSeen) -> u32 {
    one.failed.saturating_add(one.refused)
}

/// The queries that the server answered. Anyone can add answers to queries that were not sent.
fn answered(one: &DnsServerSeen) -> u32 {
    one.answered.min(one.asked)
}

fn is_failing(one: &DnsServerSeen) -> bool {
    let errors = errors(one);
    errors >= MANY && errors.saturating_mul(2) >= answered(one)
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let servers = &sample.around.dns.servers;
    // A resolver on this host fails because the server that it asks does.
    let is_explained = |one: &&DnsServerSeen| {
        one.server.is_loopback() && servers.iter().any(|other| !other.server.is_loopback() && is_failing(other))
    };
    for one in servers.iter().filter(|one| is_failing(one)).filter(|one| !is_explained(one)) {
        add(sample, found, one);
    }
}

fn add(sample: &Sample, found: &mut Findings<'_>, one: &DnsServerSeen) {
    let (server, errors, answered) = (one.server.unmapped(), errors(one), answered(one));
    let works = |other: &&DnsServerSeen| other.server != one.server && other.answered > 0 && !is_failing(other);
    let other = sample.around.dns.servers.iter().find(works);
    let is_nearly_all = errors.saturating_mul(100) >= answered.saturating_mul(NEARLY_ALL_PERCENT);
    let severity = if is_nearly_all && other.is_none() { Severity::Warning } else { Severity::Hint };
    let (code, count, check) = if one.failed >= one.refused {
        let check = "look into the server's log: it gets no answer from the servers that it asks, or rejects their \
                     signatures (DNSSEC)";
        ("SERVFAIL", one.failed, check)
    } else {
        let check = "check that the server serves this host's network (allow-query, allow-recursion, \
                     access-control), and the names that are asked for";
        ("REFUSED", one.refused, check)
    };
    let title = format!("the DNS server {server} answers with {code}: {count} of {answered} queries");
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(server.to_string())
        .proof(
            [("SERVFAIL", one.failed), ("REFUSED", one.refused)].into_iter().filter(|(_, count)| *count > 0).map(
                |(code, count)| state(format!("answers of {server} with {code}"), count, Some(i64::from(answered))),
            ),
        )
        .proof(other.map(|other| state(format!("answers of {}", other.server.unmapped()), other.answered, None)))
        .cost("programs cannot resolve names")
        .reach(Reach::part(errors.into(), answered.into()), "")
        .remedy("cat /etc/resolv.conf", "shows the configured servers", "");
    let draft = match other {
        Some(other) => draft.remedy(
            "",
            &format!("put {} before {server} in /etc/resolv.conf", other.server.unmapped()),
            "a service that manages the file overwrites it: configure that service",
        ),
        None => draft,
    };
    draft.remedy("", check, "");
}
