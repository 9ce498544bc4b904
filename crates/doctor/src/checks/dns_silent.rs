//! DNS servers that do not answer.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};
use record::{Addr, Proto};

use super::answer_source;
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Asking, DnsServerSeen, Queue};

/// The port of DNS.
const DNS: u16 = 53;

/// Fewest tracked queries without an answer for a finding.
const SOME: u32 = 3;
/// Fewest queries without an answer if none at all was answered.
const FEW: u32 = 2;
/// A window of this many seconds is longer than a server may take.
const PATIENCE_S: f64 = 0.9;
/// A query that waits for this long is not answered, in milliseconds: if another server answers others, and if no other
/// server was asked.
const LONG_MS: u32 = 1000;
const VERY_LONG_MS: u32 = 2000;

pub(super) const CHECK: Check = Check {
    id: "dns-silent",
    needs: &[Probe::Dns, Probe::Flows, Probe::Links, Probe::Sockets],
    area: "services",
    about: "A DNS server does not answer: names take seconds to resolve, or are not found.",
    rule: "Within the window this host sent queries to a server, no answer came, and one query has waited for half a \
           second: a warning if two queries wait, if one waits for 2 s, or for 1 s while another server answers, or \
           if an earlier socket to the server was closed; also if at least 3 queries, and half of all, wait. Or at \
           least 3 tracked queries, and half of all, have no answer; or at least 2 in half a minute while none has \
           one. A socket that waited at both readings is a hint, unless its server answered others: it may wait, or be \
           kept for the next query.",
    sources: "a packet socket for DNS messages (AF_PACKET, CAP_NET_RAW); UDP sockets connected to port 53, via \
              sock_diag; conntrack entries to port 53",
    refuted_by: "`netwren capture 'udp port 53'` that shows answers.",
    run,
};

/// A server without answers.
struct Silent {
    server: Addr,
    asked: u32,
    waiting: u32,
    severity: Severity,
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let silent = by_messages(sample).or_else(|| by_entries(sample)).or_else(|| slow(sample));
    let waiting = waiting_sockets(sample);
    let (title, severity) = match (&silent, waiting.first()) {
        (Some(one), _) => (format!("the DNS server {} does not answer", one.server), one.severity),
        (None, Some(one)) => {
            (format!("the DNS server may not answer: {} waits, or keeps its socket open", one.words()), Severity::Hint)
        }
        (None, None) => return,
    };
    let of_queries = silent.as_ref().map(|one| {
        state(format!("queries to {} without an answer", one.server), one.waiting, Some(i64::from(one.asked)))
    });
    let of_sockets = waiting.iter().take(4).map(|one| state(format!("{} waits", one.words()), 1, None));
    let other = silent.as_ref().and_then(|one| answering(sample, one.server));
    let of_other = other.map(|one| state(format!("answers of {}", one.server.unmapped()), one.answered, None));
    let is_named = silent.is_none();
    let finding = found
        .add(severity, Confidence::Likely, title)
        .object(silent.as_ref().map_or(String::new(), |one| one.server.to_string()))
        .holder(waiting.first().filter(|_| is_named).map(|one| &one.owner))
        .proof(of_queries)
        .proof(of_other)
        .proof(of_sockets)
        .proof(["UdpOutDatagrams", "UdpInDatagrams"].into_iter().filter_map(|name| sample.evidence(Snmp, name, None)))
        .proof(sample.evidence(Snmp, "IcmpInDestUnreachs", None))
        .cost("each name lookup waits five seconds or more")
        .reach(silent.as_ref().map_or(Reach::Nobody, |one| Reach::part(one.waiting.into(), one.asked.into())), "")
        .remedy("cat /etc/resolv.conf", "shows the configured servers", "");
    let finding = match (&silent, other) {
        (Some(one), Some(other)) => finding.remedy(
            "",
            &format!(
                "put {} before {} in /etc/resolv.conf, with `options timeout:1`",
                other.server.unmapped(),
                one.server
            ),
            "a service that manages the file overwrites it: configure that service",
        ),
        _ => finding,
    };
    finding.remedy("", "check that the server is running and reachable, and that no firewall drops port 53", "");
}

/// A server that answered within the window.
fn answering(sample: &Sample, silent: Addr) -> Option<&DnsServerSeen> {
    let all = sample.around.dns.servers.iter().filter(|one| one.answered > 0 && one.server.unmapped() != silent);
    all.max_by_key(|one| (!one.server.is_loopback(), one.answered))
}

/// The silent server that most queries wait for, from the messages of the window. A resolver on this host is silent
/// because the server that it asks is.
fn by_messages(sample: &Sample) -> Option<Silent> {
    let all = messages(sample).filter(|(one, _)| one.severity < Severity::Hint);
    all.max_by_key(|(one, is_local)| (!is_local, one.waiting)).map(|(one, _)| one)
}

/// A server that did not answer a query for a while, but may be slow.
fn slow(sample: &Sample) -> Option<Silent> {
    messages(sample).map(|(one, _)| one).max_by_key(|one| one.waiting)
}

/// Servers with waiting queries; true for those on this host.
fn messages(sample: &Sample) -> impl Iterator<Item = (Silent, bool)> + '_ {
    let is_bad = |one: &&DnsServerSeen| {
        let is_part = one.waiting >= SOME && one.waiting.saturating_mul(2) >= one.asked;
        one.answered == 0 && (one.waiting > 0 || one.asked > 0 && given_up(sample, one.server) > 0) || is_part
    };
    let all = sample.around.dns.servers.iter().filter(is_bad);
    all.filter(|one| !answer_source::explains(sample, one.server)).map(|one| {
        let server = one.server.unmapped();
        let patience_ms = if answering(sample, server).is_some() { LONG_MS } else { VERY_LONG_MS };
        let given_up = given_up(sample, server);
        let is_sure = one.waiting >= FEW || one.longest_ms >= patience_ms || given_up > 0;
        let severity = if is_sure { Severity::Warning } else { Severity::Hint };
        let (asked, waiting) = (one.asked.max(one.waiting) + given_up, one.waiting + given_up);
        (Silent { server, asked, waiting, severity }, server.is_loopback())
    })
}

/// Sockets that waited for a server at the first reading, and were closed although it answered nothing.
fn given_up(sample: &Sample, server: Addr) -> u32 {
    let is_it =
        |one: &&Asking| (one.proto, one.peer_port) == (Proto::Udp, DNS) && one.peer.unmapped() == server.unmapped();
    let closed = sample.before.asking.iter().filter(is_it).filter(|one| !sample.after.asking.contains(one));
    u32::try_from(closed.count()).unwrap_or(u32::MAX)
}

/// The silent server of most tracked queries.
fn by_entries(sample: &Sample) -> Option<Silent> {
    let flows = &sample.around.flows;
    let of = |server: &Addr| {
        let (asked, waiting) = flows.queries.get(server).copied().unwrap_or_default();
        let (answered, earlier) = flows.earlier.get(server).copied().unwrap_or_default();
        let is_now = waiting >= SOME && waiting.saturating_mul(2) >= asked;
        let is_ever = asked == waiting && answered == 0 && earlier > 0 && waiting + earlier >= FEW;
        let is_bad = (is_now || is_ever) && !answered_now(sample, *server) && !answer_source::explains(sample, *server);
        let (asked, waiting) = if is_now { (asked, waiting) } else { (asked + earlier, waiting + earlier) };
        is_bad.then_some(Silent { server: server.unmapped(), asked, waiting, severity: Severity::Warning })
    };
    flows.queries.keys().chain(flows.earlier.keys()).filter_map(of).max_by_key(|one| one.waiting)
}

/// True if the server answered within the window.
fn answered_now(sample: &Sample, server: Addr) -> bool {
    let mut all = sample.around.dns.servers.iter();
    all.any(|one| one.server.unmapped() == server.unmapped() && one.answered > 0)
}

/// Sockets that waited for a server at both readings.
fn waiting_sockets(sample: &Sample) -> Vec<&Queue> {
    // As many datagrams received as sent: a program that keeps its sockets open has got its answers.
    let moved = |name: &str| sample.grown(Snmp, &format!("Udp{name}")) + sample.grown(Snmp6, &format!("Udp6{name}"));
    let (asked, got) = (moved("OutDatagrams"), moved("InDatagrams"));
    let is_long = sample.seconds() >= PATIENCE_S && (got == 0 || got < asked);
    let server = |one: &Queue| {
        let mut sockets = sample.after.asking.iter();
        sockets.find(|socket| socket.proto == Proto::Udp && socket.port == one.port).map(|socket| socket.peer)
    };
    let is_served = |one: &Queue| {
        server(one).is_some_and(|server| answered_now(sample, server) || answer_source::explains(sample, server))
    };
    let waits = |cookie: u64| cookie != 0 && sample.before.resolvers.iter().any(|before| before.cookie == cookie);
    sample.after.resolvers.iter().filter(|one| is_long && waits(one.cookie) && !is_served(one)).collect()
}
