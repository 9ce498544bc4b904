//! DNS servers that do not answer.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Severity};
use record::{Addr, Proto};
use std::collections::{BTreeMap, BTreeSet};

use super::accepting::by_identity;
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
/// Fewest messages "destination unreachable" within the window for a server that refuses. Hosts send one per second.
const REFUSALS: u64 = 2;
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
    let servers = Servers::new(sample);
    let silent = servers.silent_by_messages().or_else(|| servers.silent_by_entries()).or_else(|| servers.slow());
    let waiting = servers.waiting_sockets();
    let refuses = silent.as_ref().is_some_and(|one| is_refused(sample, one));
    let (title, severity) = match (&silent, waiting.first()) {
        (Some(one), _) if refuses => {
            let title = "seems to refuse queries: messages \"unreachable\" arrive instead of answers";
            (format!("the DNS server {} {title}", one.server), one.severity)
        }
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
    let check = if refuses {
        "check that the server's program runs and listens on this address, and that no firewall rejects port 53"
    } else {
        "check that the server is running and reachable, and that no firewall drops port 53"
    };
    finding.remedy("", check, "");
}

/// True if messages arrive that say "unreachable" while the server answers nothing.
fn is_refused(sample: &Sample, silent: &Silent) -> bool {
    let counter = match silent.server {
        Addr::V4(_) => (Snmp, "IcmpInDestUnreachs"),
        Addr::V6(_) => (Snmp6, "Icmp6InDestUnreachs"),
    };
    let is_mute =
        sample.around.dns.servers.iter().all(|one| one.server.unmapped() != silent.server || one.answered == 0);
    is_mute && !silent.server.is_loopback() && sample.grown(counter.0, counter.1) >= REFUSALS
}

/// A server that answered within the window.
fn answering(sample: &Sample, silent: Addr) -> Option<&DnsServerSeen> {
    let all = sample.around.dns.servers.iter().filter(|one| one.answered > 0 && one.server.unmapped() != silent);
    all.max_by_key(|one| (!one.server.is_loopback(), one.answered))
}

/// The facts about servers that several rules use.
struct Servers<'s> {
    sample: &'s Sample,
    /// Servers that answered within the window.
    answered: BTreeSet<Addr>,
    /// Servers whose answers came from another address.
    in_vain: BTreeSet<Addr>,
    /// Sockets that waited for a server at the first reading, and were closed since.
    closed: BTreeMap<Addr, u32>,
}

impl<'s> Servers<'s> {
    fn new(sample: &'s Sample) -> Servers<'s> {
        let key = |one: &Asking| (one.peer, one.peer_port, one.port);
        let queries = |all: &'s [Asking]| all.iter().filter(|one| (one.proto, one.peer_port) == (Proto::Udp, DNS));
        let still: BTreeSet<_> = queries(&sample.after.asking).map(key).collect();
        let mut closed = BTreeMap::new();
        for one in queries(&sample.before.asking).filter(|one| !still.contains(&key(one))) {
            *closed.entry(one.peer.unmapped()).or_default() += 1;
        }
        let answered = sample.around.dns.servers.iter().filter(|one| one.answered > 0);
        let answered = answered.map(|one| one.server.unmapped()).collect();
        Servers { sample, answered, in_vain: answer_source::asked_in_vain(sample), closed }
    }

    /// The silent server that most queries wait for, from the messages of the window. A resolver on this host is silent
    /// because the server that it asks is.
    fn silent_by_messages(&self) -> Option<Silent> {
        let all = self.messages().filter(|(one, _)| one.severity < Severity::Hint);
        all.max_by_key(|(one, is_local)| (!is_local, one.waiting)).map(|(one, _)| one)
    }

    /// A server that did not answer a query for a while, but may be slow.
    fn slow(&self) -> Option<Silent> {
        self.messages().map(|(one, _)| one).max_by_key(|one| one.waiting)
    }

    /// Servers with waiting queries; true for those on this host.
    fn messages(&self) -> impl Iterator<Item = (Silent, bool)> + '_ {
        let closed = |server: Addr| self.closed.get(&server.unmapped()).copied().unwrap_or(0);
        let is_bad = move |one: &&DnsServerSeen| {
            let is_part = one.waiting >= SOME && one.waiting.saturating_mul(2) >= one.asked;
            one.answered == 0 && (one.waiting > 0 || one.asked > 0 && closed(one.server) > 0) || is_part
        };
        let all = self.sample.around.dns.servers.iter().filter(is_bad);
        all.filter(|one| !self.in_vain.contains(&one.server.unmapped())).map(move |one| {
            let server = one.server.unmapped();
            let patience_ms = if answering(self.sample, server).is_some() { LONG_MS } else { VERY_LONG_MS };
            let closed = closed(server);
            let is_sure = one.waiting >= FEW || one.longest_ms >= patience_ms || closed > 0;
            let severity = if is_sure { Severity::Warning } else { Severity::Hint };
            let (asked, waiting) = (one.asked.max(one.waiting) + closed, one.waiting + closed);
            (Silent { server, asked, waiting, severity }, server.is_loopback())
        })
    }

    /// The silent server of most tracked queries.
    fn silent_by_entries(&self) -> Option<Silent> {
        let flows = &self.sample.around.flows;
        let of = |server: &Addr| {
            let (asked, waiting) = flows.queries.get(server).copied().unwrap_or_default();
            let (answered, earlier) = flows.earlier.get(server).copied().unwrap_or_default();
            let is_now = waiting >= SOME && waiting.saturating_mul(2) >= asked;
            let is_ever = asked == waiting && answered == 0 && earlier > 0 && waiting + earlier >= FEW;
            let is_bad = (is_now || is_ever) && !self.is_heard(*server);
            let (asked, waiting) = if is_now { (asked, waiting) } else { (asked + earlier, waiting + earlier) };
            is_bad.then_some(Silent { server: server.unmapped(), asked, waiting, severity: Severity::Warning })
        };
        flows.queries.keys().chain(flows.earlier.keys()).filter_map(of).max_by_key(|one| one.waiting)
    }

    /// True if answers of the server arrived within the window, from its address or from another.
    fn is_heard(&self, server: Addr) -> bool {
        let server = server.unmapped();
        self.answered.contains(&server) || self.in_vain.contains(&server)
    }

    /// Sockets that waited for a server at both readings.
    fn waiting_sockets(&self) -> Vec<&'s Queue> {
        let sample = self.sample;
        // As many datagrams received as sent: a program that keeps its sockets open has got its answers.
        let moved =
            |name: &str| sample.grown(Snmp, &format!("Udp{name}")) + sample.grown(Snmp6, &format!("Udp6{name}"));
        let (asked, got) = (moved("OutDatagrams"), moved("InDatagrams"));
        if sample.seconds() < PATIENCE_S || got > 0 && got >= asked {
            return Vec::new();
        }
        let mut peers = BTreeMap::new();
        for socket in sample.after.asking.iter().filter(|socket| socket.proto == Proto::Udp) {
            peers.entry(socket.port).or_insert(socket.peer);
        }
        let is_served = |one: &Queue| peers.get(&one.port).is_some_and(|server| self.is_heard(*server));
        let before = by_identity(&sample.before.resolvers);
        let all = sample.after.resolvers.iter();
        all.filter(|one| before.contains_key(&one.identity) && !is_served(one)).collect()
    }
}
