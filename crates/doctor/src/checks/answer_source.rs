//! Answers that come from another address than was asked.
//!
//! A client with a connected socket receives only packets from the address that it asked: the kernel rejects others,
//! and the client waits. Servers with several addresses do so if they answer from an unconnected UDP socket, and
//! destination NAT does if the answers bypass it.

use record::rows::{Confidence, Severity};
use record::{Addr, Proto};
use std::collections::{BTreeMap, BTreeSet};

use super::closed_port::is_answer;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Asking, DropSeen};

/// Fewest packets for a finding if the waiting socket is closed, or if they come from another port than was asked.
const FEW: u64 = 2;

pub(super) const CHECK: Check = Check {
    id: "answer-source",
    needs: &[Probe::Dns, Probe::Drops, Probe::Sockets],
    area: "services",
    about: "Answers come from another address than the client asked: it rejects them and waits.",
    rule: "An answer to a DNS query, with the client's address and port and the query's ID, came from another address \
           than was asked; or a packet was dropped as NO_SOCKET that came from the right port of another host to the \
           port of a connected UDP socket, or of a connection in SYN_SENT; at least 2 packets suffice if the \
           sockets to that port have one peer at both readings, or from any port for a connection.",
    sources: "a packet socket for DNS messages (AF_PACKET, CAP_NET_RAW); the tracepoint kfree_skb via BPF: NO_SOCKET; \
              sockets via sock_diag",
    refuted_by: "`netwren capture 'host ADDRESS'` that shows the answers with the address that was asked.",
    run,
};

/// Answers from another address.
struct Mismatch {
    what: String,
    asked: Addr,
    answered: Addr,
    client: Option<Addr>,
    is_own: bool,
    count: u64,
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let of_dns = sample.around.dns.mismatches.iter().max_by_key(|one| one.count).map(|one| Mismatch {
        what: "DNS answers".to_owned(),
        asked: one.asked.unmapped(),
        answered: one.answered.unmapped(),
        client: Some(one.client.unmapped()),
        is_own: one.is_own,
        count: one.count.into(),
    });
    let Some(worst) = of_dns.or_else(|| of_drops(sample)) else { return };
    let Mismatch { what, asked, answered, client, is_own, count } = worst;
    let title = match is_own {
        true => format!("this host sends {what} from {answered} although {asked} was asked: clients reject them"),
        false => format!("{what} come from {answered} although {asked} was asked: the client rejects them"),
    };
    let to = client.map_or(String::new(), |client| format!(" to {client}"));
    let number = i64::try_from(count).unwrap_or(i64::MAX);
    let finding = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(asked.to_string())
        .proof([state(format!("answers from {answered}{to} instead of {asked}"), number, None)])
        .proof(sample.around.dropped("closed-port").only(|one| is_from(one, answered)).evidence())
        .lost(count, "answers rejected")
        .also_cost("each client waits until its timeout")
        .remedy(format!("netwren capture 'host {answered}' --limit 20"), "shows the answers and their source", "");
    let finding = match is_own {
        true => {
            finding.remedy(format!("ip addr show to {asked}"), "shows the interface of the address that was asked", "")
        }
        false => finding.remedy(
            "",
            &format!("ask {answered} itself, for DNS in /etc/resolv.conf, until the server is mended"),
            "",
        ),
    };
    finding.remedy(
        "",
        "on the server, bind one socket to each address, so that it answers from the address that was asked; if \
         destination NAT leads there, also translate the source (masquerade), so that answers pass the router",
        "",
    );
}

/// Sockets that wait for answers. Those of the second reading take precedence.
struct Askers<'s> {
    /// By protocol, local port and peer's port; the first one of each local port is also stored without a peer's port.
    at: BTreeMap<(Proto, u16, Option<u16>), &'s Asking>,
    /// UDP sockets at the first and at the second reading, by the peer's port; `None` if they have several peers.
    only: [BTreeMap<u16, Option<&'s Asking>>; 2],
}

impl<'s> Askers<'s> {
    fn new(sample: &'s Sample) -> Askers<'s> {
        let (before, after) = (&sample.before.asking, &sample.after.asking);
        let mut at = BTreeMap::new();
        for one in after.iter().chain(before) {
            at.entry((one.proto, one.port, Some(one.peer_port))).or_insert(one);
            at.entry((one.proto, one.port, None)).or_insert(one);
        }
        Askers { at, only: [before, after].map(|all| only_peers(all)) }
    }

    /// The socket that waits for this packet, but from another address.
    fn asking_of(&self, sample: &Sample, one: &DropSeen) -> Option<&'s Asking> {
        let proto = match one.proto {
            "tcp" => Proto::Tcp,
            "udp" => Proto::Udp,
            _ => return None,
        };
        let ((from, _), (service, port)) = (one.ends?, one.ports?);
        // Destination NAT may also have changed the port.
        let is_any = proto == Proto::Tcp && one.count >= FEW;
        let found = self.at.get(&(proto, port, if is_any { None } else { Some(service) }));
        let found = found.copied().or_else(|| self.only_asked(sample, one, service));
        found.filter(|socket| socket.peer.unmapped() != from.unmapped())
    }

    /// A UDP socket to the only host whose service is asked, at both readings: the socket that waited for this packet
    /// is already closed.
    fn only_asked(&self, sample: &Sample, one: &DropSeen, service: u16) -> Option<&'s Asking> {
        if one.proto != "udp" || one.count < FEW || !is_answer(sample, one) {
            return None;
        }
        let [before, after] = &self.only;
        let (old, new) = ((*before.get(&service)?)?, (*after.get(&service)?)?);
        (old.peer == new.peer).then_some(new)
    }
}

/// Returns the UDP sockets by the peer's port; `None` for a port at which several peers are asked.
fn only_peers(all: &[Asking]) -> BTreeMap<u16, Option<&Asking>> {
    let mut ports: BTreeMap<u16, Option<&Asking>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.proto == Proto::Udp) {
        let of = ports.entry(one.peer_port).or_insert(Some(one));
        *of = of.filter(|first| first.peer == one.peer);
    }
    ports
}

/// Dropped packets that a waiting socket would accept from the address that it asked.
fn of_drops(sample: &Sample) -> Option<Mismatch> {
    let dropped = sample.around.dropped("closed-port");
    if dropped.all.is_empty() {
        return None;
    }
    let askers = Askers::new(sample);
    dropped.all.iter().find_map(|one| {
        let (from, to) = one.ends?;
        let asking = askers.asking_of(sample, one)?;
        Some(Mismatch {
            what: format!("answers of port {} ({})", asking.peer_port, one.proto),
            asked: asking.peer,
            answered: from.unmapped(),
            client: Some(to.unmapped()),
            is_own: false,
            count: one.count,
        })
    })
}

fn is_from(one: &DropSeen, addr: Addr) -> bool {
    one.ends.is_some_and(|(from, _)| from.unmapped() == addr)
}

/// Returns the addresses that clients asked, if answers came from other addresses.
pub(super) fn asked_in_vain(sample: &Sample) -> BTreeSet<Addr> {
    let of_dns = sample.around.dns.mismatches.iter().map(|one| one.asked.unmapped());
    of_dns.chain(of_drops(sample).map(|one| one.asked.unmapped())).collect()
}
