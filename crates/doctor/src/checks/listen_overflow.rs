//! Full accept queues, so that connections are not accepted.

use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::{Confidence, Severity};

use super::accepting::{by_identity, idle_listeners};
use super::reach::Reach;
use super::words::{look_at, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::Queue;

pub(super) const CHECK: Check = Check {
    id: "listen-overflow",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "The accept queue of a listener is full: its program accepts too slowly.",
    rule: "TcpExtListenOverflows grew, or more connections than its backlog wait in a listener's accept queue at both \
           readings. It is a hint if the queue is no longer full and most connections were accepted.",
    sources: "/proc/net/netstat: ListenOverflows, ListenDrops; accept queues and drops of listeners via sock_diag",
    refuted_by: "empty accept queues in `netwren sockets 'state = listen' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost = sample.grown(Netstat, "TcpExtListenOverflows");
    let full: Vec<&Queue> = sample.after.listeners.iter().filter(|one| is_full(one)).collect();
    if lost > 0 {
        return overflow(sample, found, lost, &full);
    }
    let before = by_identity(&sample.before.listeners);
    let was_full = |one: &Queue| before.get(&one.identity).is_some_and(|before| *before == one && is_full(before));
    for listener in full.into_iter().filter(|one| was_full(one)) {
        let title = format!("{} does not accept connections: its accept queue is full", listener.words());
        found
            .add(Severity::Warning, Confidence::Certain, title)
            .socket(listener)
            .proof([state(format!("accept queue of {}", listener.name), listener.queue, listener.limit.map(i64::from))])
            .cost("nothing while no client connects; the next connections are lost")
            .remedy(look_at(listener.owner.pid), "shows where its threads wait, or whether it is stopped", "");
    }
}

/// The kernel accepts one connection more than the backlog.
fn is_full(listener: &Queue) -> bool {
    listener.limit.is_some_and(|limit| listener.queue > limit)
}

/// The listener that dropped most connections within the window, and their number.
fn most_dropping(sample: &Sample) -> Option<(&Queue, u32)> {
    let before = by_identity(&sample.before.overflowing);
    let dropped = |one: &Queue| before.get(&one.identity).and_then(|old| old.drops).unwrap_or(0);
    let all = sample.after.overflowing.iter().map(|one| (one, one.drops.unwrap_or(0).saturating_sub(dropped(one))));
    all.filter(|(_, dropped)| *dropped > 0).max_by_key(|(_, dropped)| *dropped)
}

fn overflow(sample: &Sample, found: &mut Findings<'_>, lost: u64, full: &[&Queue]) {
    let dropping = most_dropping(sample);
    let is_dropping = |one: &Queue| dropping.is_none_or(|(most, _)| most.identity == one.identity);
    let worst = full.iter().copied().max_by_key(|one| (is_dropping(one), one.queue));
    // A client's kernel repeats the SYN after a second: a queue that was full for a moment costs that second.
    let opened = sample.grown(Snmp, "TcpPassiveOpens");
    let reach = match worst {
        Some(_) => Reach::part(lost, lost),
        None => Reach::part(lost, lost.saturating_add(opened)).or_more_than(50),
    };
    let is_idle = |one: &Queue| idle_listeners(sample).iter().any(|idle| idle.listener.identity == one.identity);
    let is_hung = worst.is_some_and(is_idle);
    let title = match worst {
        Some(one) if is_hung => format!("{} does not accept connections: its accept queue is full", one.words()),
        Some(one) => format!("{} accepts too slowly: its accept queue is full", one.words()),
        None => match dropping {
            Some((one, _)) => {
                let backlog = one.limit.map_or(String::new(), |limit| format!(": its backlog is {limit}"));
                format!("the accept queue of {} overflows at times{backlog}", one.words())
            }
            None => "an accept queue overflows: its program accepts too slowly".to_owned(),
        },
    };
    let named = worst.or(dropping.map(|(one, _)| one));
    let limit_of_all = sample.setting("core/somaxconn", 0);
    let is_capped = named.is_some_and(|one| one.limit.map(i64::from) == limit_of_all);
    let queues = full
        .iter()
        .take(8)
        .map(|one| state(format!("accept queue of {}", one.name), one.queue, one.limit.map(i64::from)));
    let proof = ["TcpExtListenOverflows", "TcpExtListenDrops"].map(|name| sample.evidence(Netstat, name, None));
    let draft = found
        .add(Severity::Critical, Confidence::Certain, title)
        .socket(named)
        .proof(proof.into_iter().flatten())
        .proof(queues)
        .proof(dropping.map(|(one, dropped)| state(format!("connections dropped by {}", one.name), dropped, None)))
        .lost(lost, "connections not accepted")
        .reach(reach, "");
    if let Some(one) = worst.filter(|_| is_hung) {
        draft.remedy(look_at(one.owner.pid), "shows where its threads wait: it accepted nothing within the window", "");
        return;
    }
    let draft = draft.remedy("", "make the program accept faster: more workers, no slow work between two accepts", "");
    if worst.is_none() && named.is_some() && !is_capped {
        draft.remedy("", "give the program a larger backlog: clients that connect at the same moment wait in it", "");
    } else if is_capped {
        let double = limit_of_all.unwrap_or(0).saturating_mul(2);
        draft.remedy(
            format!("sysctl -w net.core.somaxconn={double}"),
            "allows programs a longer queue; restart the program with a larger backlog",
            "clients wait longer instead of failing",
        );
    }
}
