//! Paths on which large packets vanish and small ones arrive.

use record::rows::{Confidence, Severity};

use super::census::Stuck;
use super::words::state;
use super::{Check, Findings, Sample};

/// Fewest waiting bytes for a large packet: more than a segment with the smallest usual MTU.
const LARGE: u32 = 1200;

pub(super) const CHECK: Check = Check {
    id: "pmtu-blackhole",
    area: "routing",
    about: "Large packets to a peer vanish while small ones pass, and no router says that they are too large.",
    rule: "A connection with more than 1200 bytes to be acknowledged sends the same segment again and again, twice or \
           more, at both readings, while other connections to the same peer are well, or several came about and got \
           no further than their first large segment.",
    sources: "timers, retransmissions, send queues and acknowledged bytes of connections by sock_diag",
    refuted_by: "`ping -M do -s 1472 ADDRESS` that is answered.",
    run,
};

/// True if small packets reach the peer of a stuck connection: either other connections to it are fine, or several
/// were established and got no further than their first large segment.
fn is_alive(sample: &Sample, stuck: &Stuck) -> bool {
    let is_first = |one: &Stuck| one.acked.is_some_and(|acked| acked < LARGE.into());
    let others = sample.after.stuck.iter().filter(|one| one.peer == stuck.peer && one.cookie != stuck.cookie);
    sample.after.at_ease.contains_key(&stuck.peer) || is_first(stuck) && others.filter(|one| is_first(one)).count() > 0
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let (before, after) = (&sample.before.stuck, &sample.after.stuck);
    let was_stuck = |cookie: u64| cookie != 0 && before.iter().any(|one| one.cookie == cookie && !one.is_window);
    let stuck: Vec<_> = after
        .iter()
        .filter(|one| !one.is_window && one.send_q >= LARGE && was_stuck(one.cookie))
        .filter(|one| is_alive(sample, one))
        .collect();
    let Some(first) = stuck.first() else { return };
    let title = format!("large packets to {} vanish, small ones pass: the path takes less than it says", first.peer);
    let proof = stuck.iter().take(4).map(|one| {
        state(format!("retransmissions in a row of {}, {} bytes wait", one.name, one.send_q), one.again, None)
    });
    let at_ease = sample.after.at_ease.get(&first.peer).copied().unwrap_or(0);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(first.peer.to_string())
        .proof(proof)
        .proof([state(format!("connections to {} that are well", first.peer), at_ease, None)])
        .cost("connections come about, then stand still as soon as much is sent")
        .remedy("ping -M do -s 1472 ADDRESS", "asks whether packets of 1500 bytes pass", "")
        .remedy(
            "sysctl -w net.ipv4.tcp_mtu_probing=1",
            "lets TCP find the size by itself",
            "connections that lose packets for other reasons may shrink theirs, too",
        )
        .remedy("", "let ICMP \"fragmentation needed\" and ICMPv6 \"packet too big\" pass on the way", "");
}
