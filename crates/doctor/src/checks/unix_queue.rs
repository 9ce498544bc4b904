//! Unix sockets whose program takes nothing from their queue.

use record::rows::{Confidence, Evidence, Severity};

use super::accepting::is_long;
use super::process_stopped::Held;
use super::reach::Reach;
use super::words::{look_at, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::{UnixKind, UnixQueue};

/// Fewest waiting connections for more than a hint if none arrived within the window, and fewest with unread data.
const SOME: u32 = 3;
/// The least memory of the datagrams that fill a queue: the kernel's default of `net.unix.max_dgram_qlen` is 10, and it
/// takes one more; an empty datagram uses more than 512 bytes.
const FULL_BYTES: u64 = 11 * 512;

pub(super) const CHECK: Check = Check {
    id: "unix-queue",
    needs: &[Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "services",
    about: "A program takes no connections, or no datagrams, from its unix socket: clients wait.",
    rule: "A unix listener has waiting connections at both readings, not fewer at the second, and the first one has \
           not been accepted. It is critical if the backlog is full or connections arrived within the window, a hint \
           if fewer than 3 wait and none arrived. For datagrams: a process waited during the whole window to send to a \
           socket that is not read. It is a hint if the queue seems full, and no process waits. For \
           accepted connections: at least 3 of one path have as many unread bytes at both readings.",
    sources: "unix_diag: UNIX_DIAG_RQLEN, UNIX_DIAG_ICONS, UNIX_DIAG_PEER; /proc/PID/task/TID/wchan and status",
    refuted_by: "a queue that becomes shorter in `netwren sockets 'proto = unix' --columns +path,accept_q --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    if !is_long(sample) {
        return;
    }
    let held = Held::new(sample);
    for one in sample.around.unix.iter().filter(|one| !held.has(&one.owner)) {
        match one.kind {
            UnixKind::Listener => listener(found, one),
            UnixKind::Datagrams => datagrams(found, one),
            UnixKind::Streams => streams(found, one),
        }
    }
}

fn words(one: &UnixQueue) -> String {
    let name = if one.name.is_empty() { "an unnamed unix socket" } else { &one.name };
    if one.owner.is_known() { format!("{} at {name}", one.owner) } else { name.to_owned() }
}

fn listener(found: &mut Findings<'_>, one: &UnixQueue) {
    let (before, after) = one.queue;
    if !one.is_same_first || after < before {
        return;
    }
    let is_full = one.limit.is_some_and(|limit| after > limit);
    let reach = match is_full || after > before {
        true => Reach::part(1, 1),
        false => Reach::part(u64::from(after >= SOME), 10),
    };
    let full = if is_full { "its backlog is full" } else { "its backlog fills" };
    let title = format!("{} accepts no connections: {full}, {after} wait", words(one));
    let cost = match is_full {
        true => "connect() of its clients waits, or fails with EAGAIN",
        false => "its clients wait for an answer; connect() will wait or fail when the backlog is full",
    };
    found
        .add(Severity::Critical, Confidence::Likely, title)
        .object(one.name.clone())
        .holder(&one.owner)
        .proof([Evidence {
            counter: format!("connections waiting at {}", one.name),
            before: Some(before.into()),
            after: after.into(),
            limit: one.limit.map(i64::from),
        }])
        .proof([state("first connection of both readings, still waiting", 1, None)])
        .cost(cost)
        .reach(reach, "")
        .remedy(look_at(one.owner.pid), "shows where its threads wait: a lock, a disk, another program", "")
        .remedy("", "a restart of the program drops the waiting connections, and its clients can try again", "");
}

fn streams(found: &mut Findings<'_>, one: &UnixQueue) {
    let count = one.queue.1;
    if count < SOME {
        return;
    }
    let name = format!("connections at {} with as many unread bytes at both readings", one.name);
    found
        .add(Severity::Warning, Confidence::Likely, format!("{} does not read: {count} connections wait", words(one)))
        .object(one.name.clone())
        .holder(&one.owner)
        .proof([state(name, count, None)])
        .cost("its clients wait for an answer")
        .reach(Reach::part(1, 1), "")
        .remedy(look_at(one.owner.pid), "shows where its threads wait: a lock, a disk, another program", "");
}

fn datagrams(found: &mut Findings<'_>, one: &UnixQueue) {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let seems_full = one.memory.0 == one.memory.1 && one.memory.1 >= FULL_BYTES && one.queue.0 == one.queue.1;
    if one.is_read || one.senders.is_empty() && !seems_full {
        return;
    }
    let waiting = match one.senders.as_slice() {
        [] => "its queue seems full".to_owned(),
        [only] => format!("{only} waits to send"),
        [first, rest @ ..] => format!("{first} and {} others wait to send", rest.len()),
    };
    let reach = if one.senders.is_empty() { Reach::Nobody } else { Reach::part(1, 10) };
    let memory = format!("bytes of memory that its known senders' unread datagrams use at {}", one.name);
    let senders = number(one.senders.len() as u64);
    found
        .add(Severity::Warning, Confidence::Likely, format!("{} does not read datagrams: {waiting}", words(one)))
        .object(one.name.clone())
        .holder(&one.owner)
        .proof([state(format!("processes that waited during the whole window to send to {}", one.name), senders, None)])
        .proof([state(memory, number(one.memory.1), None)])
        .cost("programs that send to it wait, or lose what they send: syslog and sd_notify, for example")
        .reach(reach, "")
        .remedy(look_at(one.owner.pid), "shows where its threads wait: a lock, a disk, another program", "")
        .remedy("", "restart the program: what is in its queue is lost, and the senders continue", "");
}
