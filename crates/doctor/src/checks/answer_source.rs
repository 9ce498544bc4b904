//! Answers that come from another address than was asked.
//!
//! A client with a connected socket receives only packets from the address that it asked: the kernel rejects others,
//! and the client waits. Servers with several addresses do so if they answer from an unconnected UDP socket, and
//! destination NAT does if the answers bypass it.

use record::rows::{Confidence, Severity};
use record::{Addr, Proto};

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

/// Dropped packets that a waiting socket would accept from the address that it asked.
fn of_drops(sample: &Sample) -> Option<Mismatch> {
    let dropped = sample.around.dropped("closed-port");
    dropped.all.iter().find_map(|one| {
        let (from, to) = one.ends?;
        let asking = asking_of(sample, one)?;
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

/// The socket that waits for this packet, but from another address.
fn asking_of<'s>(sample: &'s Sample, one: &DropSeen) -> Option<&'s Asking> {
    let proto = match one.proto {
        "tcp" => Proto::Tcp,
        "udp" => Proto::Udp,
        _ => return None,
    };
    let ((from, _), (service, port)) = (one.ends?, one.ports?);
    let sockets = || sample.after.asking.iter().chain(&sample.before.asking);
    // Destination NAT may also have changed the port.
    let is_enough = |socket: &Asking| socket.peer_port == service || proto == Proto::Tcp && one.count >= FEW;
    let is_it = |socket: &Asking| (socket.proto, socket.port) == (proto, port) && is_enough(socket);
    let found = sockets().find(|socket| is_it(socket)).or_else(|| only_asked(sample, one, service));
    found.filter(|socket| socket.peer.unmapped() != from.unmapped())
}

/// A UDP socket to the only host whose service is asked, at both readings: the socket that waited for this packet is
/// already closed.
fn only_asked<'s>(sample: &'s Sample, one: &DropSeen, service: u16) -> Option<&'s Asking> {
    if one.proto != "udp" || one.count < FEW || !is_answer(sample, one) {
        return None;
    }
    let of = |all: &'s [Asking]| {
        let mut all = all.iter().filter(|socket| socket.proto == Proto::Udp && socket.peer_port == service);
        let first = all.next()?;
        all.all(|socket| socket.peer == first.peer).then_some(first)
    };
    of(&sample.before.asking)
        .zip(of(&sample.after.asking))
        .filter(|(old, new)| old.peer == new.peer)
        .map(|(_, new)| new)
}

fn is_from(one: &DropSeen, addr: Addr) -> bool {
    one.ends.is_some_and(|(from, _)| from.unmapped() == addr)
}

/// True if answers of another address than this one came to clients that had asked this one.
pub(super) fn explains(sample: &Sample, asked: Addr) -> bool {
    sample.around.dns.mismatches.iter().any(|one| one.asked.unmapped() == asked.unmapped())
        || of_drops(sample).is_some_and(|one| one.asked == asked.unmapped())
}
