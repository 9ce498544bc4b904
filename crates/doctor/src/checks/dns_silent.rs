//! DNS servers that do not answer.

use record::Addr;
use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};

use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest tracked queries without an answer for a finding.
const SOME: u32 = 3;
/// A window of this many seconds is longer than a server may take.
const PATIENCE_S: f64 = 0.9;

pub(super) const CHECK: Check = Check {
    id: "dns-silent",
    needs: &[Probe::Flows, Probe::Sockets],
    area: "services",
    about: "A DNS server does not answer: names take seconds to resolve, or are not found.",
    rule: "The same socket waited for a DNS server at both readings, at least 0.9 s apart, and fewer datagrams \
           arrived than were sent; or at least 3 tracked queries to it, and half of all, have no answer. A socket \
           alone is a hint: it may wait, or be kept for the next query.",
    sources: "UDP sockets connected to port 53, via sock_diag; conntrack entries to port 53",
    refuted_by: "`netwren capture 'udp port 53'` that shows answers.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    // As many datagrams received as sent: a program that keeps its sockets open has got its answers.
    let moved = |name: &str| sample.grown(Snmp, &format!("Udp{name}")) + sample.grown(Snmp6, &format!("Udp6{name}"));
    let (asked, got) = (moved("OutDatagrams"), moved("InDatagrams"));
    let is_long = sample.seconds() >= PATIENCE_S && (got == 0 || got < asked);
    let waits = |cookie: u64| cookie != 0 && sample.before.resolvers.iter().any(|before| before.cookie == cookie);
    let waiting: Vec<_> = sample.after.resolvers.iter().filter(|one| is_long && waits(one.cookie)).collect();
    let bad = |(all, silent): (u32, u32)| silent >= SOME && silent.saturating_mul(2) >= all;
    let tracked = sample.around.flows.queries.iter().filter(|(_, of)| bad(**of)).max_by_key(|(_, of)| of.1);
    let title = match (tracked, waiting.first()) {
        (Some((server, _)), _) => format!("the DNS server {} does not answer", server.unmapped()),
        (None, Some(one)) => format!("the DNS server may not answer: {} waits, or keeps its socket open", one.words()),
        (None, None) => return,
    };
    let of_tracked = tracked.map(|(server, (all, silent))| {
        state(format!("queries to {} without an answer", server.unmapped()), *silent, Some(i64::from(*all)))
    });
    let of_sockets = waiting.iter().take(4).map(|one| state(format!("{} waits", one.words()), 1, None));
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(tracked.map_or(String::new(), |(server, _): (&Addr, _)| server.unmapped().to_string()))
        .holder(waiting.first().map(|one| &one.owner))
        .proof(of_tracked)
        .proof(of_sockets)
        .proof(["UdpOutDatagrams", "UdpInDatagrams"].into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .cost("each name lookup waits five seconds or more")
        .reach(tracked.map_or(Reach::Nobody, |(_, (all, silent))| Reach::part((*silent).into(), (*all).into())), "")
        .remedy("cat /etc/resolv.conf", "shows the configured servers", "")
        .remedy("", "check that the server is running and reachable, and that no firewall drops port 53", "");
}
