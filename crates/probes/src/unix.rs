//! Unix sockets with a queue, read at the beginning of the window, and at its end in namespaces that had some.

use doctor::seen::{Holder, UNIX_MAX, UnixKind, UnixQueue};
use lookups::pillars;
use record::rows::{Socket, Sockets, UnixType, need};
use record::{Accounting, Demand, Next, Schema, State, Table, field_index};
use std::collections::{BTreeMap, BTreeSet};
use sys::Host;

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round, keep_first};
use crate::sockets::find_holder;

/// Fields of unix sockets that the probe needs.
const FIELDS: &[&str] =
    &["state", "unix_type", "path", "peer_inode", "inode", "cookie", "recv_q", "send_q", "accept_q", "accept_q_max"];

/// The field that only a recording with unix sockets has.
const OWN_FIELD: &str = "path";

/// Maximum number of processes, and of threads of each, whose sleep is read.
///
/// Bound: processes with unread datagrams in unix sockets, and threads of each, that `doctor` looks at. Beyond: whether
/// further ones wait is unknown, counted (exit code 3). By: a local user with as many processes.
const SENDERS_MAX: usize = 32;

/// Most connections of a listener that are compared: the first ones, of which clients may have gone.
const FIRST_MAX: usize = 32;

/// The kernel function in which a sender waits while the queue of its peer is full.
const WAITS_IN: &[u8] = b"unix_wait_for_peer";

/// Datagram sockets.
const DGRAM: UnixType = UnixType(2);

/// Reads unix sockets.
#[derive(Default)]
pub(crate) struct UnixReader {
    before: Readings,
}

/// A reading of each namespace that has a socket with a queue.
type Readings = BTreeMap<u64, UnixReading>;

/// Unix sockets of a namespace.
#[derive(Default)]
struct UnixReading {
    /// Sockets with a queue, by cookie.
    queues: BTreeMap<u64, Waits>,
    /// Datagram sockets that sent what has not been read, by cookie.
    senders: BTreeMap<u64, Sender>,
    /// Threads of the senders that wait for a full queue, and how often each has slept, by pid.
    threads: BTreeMap<u32, Threads>,
}

/// Waiting threads, and how often each has slept.
type Threads = BTreeMap<u32, u64>;

/// A socket with a queue.
struct Waits {
    name: String,
    owner: Holder,
    kind: UnixKind,
    inode: u32,
    queue: u32,
    /// Most connections that may wait for accept().
    limit: Option<u32>,
    /// Inodes of the clients whose connections are first in the queue; 0 for a client that has gone.
    first: Vec<u32>,
}

/// A datagram socket with unread datagrams.
struct Sender {
    owner: Holder,
    /// Inode of the socket that it is connected to.
    peer: Option<u32>,
    /// Bytes of memory that its unread datagrams use.
    memory: u32,
}

impl ProbeReader for UnixReader {
    fn begin(&mut self, round: &Round<'_>, _: &mut Accounting) {
        // The second reading will have the same errors and report them.
        self.before = read(round, &|_| true, &mut Accounting::default());
        self.before.retain(|_, reading| !reading.queues.is_empty());
    }

    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        if self.before.is_empty() {
            return;
        }
        let mut after = read(round, &|netns_id| self.before.contains_key(&netns_id), stats);
        for (netns_id, before) in &self.before {
            let (Some(after), Some(sample)) = (after.remove(netns_id), samples.get_mut(&Some(*netns_id))) else {
                continue;
            };
            sample.around.unix = both(before, &after);
        }
    }
}

/// Reads the unix sockets of the session's namespaces that are wanted.
fn read(round: &Round<'_>, wanted: &dyn Fn(u64) -> bool, stats: &mut Accounting) -> Readings {
    let (mut all, mut over) = (Readings::new(), 0);
    let host = round.session.host();
    if host.is_replay() && host.was_requested(Sockets::NAME, OWN_FIELD) != Some(true) {
        return all;
    }
    let fields: Vec<usize> = FIELDS.iter().filter_map(|name| field_index::<Sockets>(name)).collect();
    let filter = engine::filter::conjuncts(Schema::from_table::<Sockets>(), "proto = unix").unwrap_or_default();
    let mut demand = Demand::new(&fields, filter);
    demand.need |= need::UNIX_ICONS;
    let read = pillars::with_sockets(round.session, None, wanted, |sockets| {
        sockets.run(&demand, &mut |socket| {
            if wanted(socket.netns_id) && !add(&mut all, socket, &mut || find_holder(socket, round.lookups)) {
                over += 1;
            }
            Next::More
        })
    });
    match read {
        Ok(read) => stats.add_gaps(&read),
        Err(error) => {
            stats.incomplete(1, format!("unix sockets are not checked: {error}"));
        }
    }
    if over > 0 {
        stats.incomplete(over, format!("unix sockets with queues after the first {UNIX_MAX} are not checked"));
    }
    all.values_mut().for_each(|reading| read_threads(host, reading, stats));
    all
}

/// Adds a socket if it has a queue. Returns false if there are too many.
fn add(all: &mut Readings, socket: &Socket<'_>, owner: &mut dyn FnMut() -> Holder) -> bool {
    let Some(unix) = socket.unix.filter(|_| socket.cookie != 0) else { return true };
    let kind = match socket.state {
        State::LISTEN => Some(UnixKind::Listener),
        _ if unix.kind == DGRAM => Some(UnixKind::Datagrams),
        // An accepted connection has its listener's path.
        _ => unix.path.map(|_| UnixKind::Streams),
    };
    let sends = unix.kind == DGRAM && socket.wqueue > Some(0);
    let waits = kind.filter(|_| socket.rqueue > 0);
    if waits.is_none() && !sends {
        return true;
    }
    let reading = all.entry(socket.netns_id).or_default();
    if reading.queues.len().max(reading.senders.len()) >= UNIX_MAX {
        return false;
    }
    let owner = owner();
    if sends {
        let (peer, memory) = (unix.peer_inode, socket.wqueue.unwrap_or(0));
        reading.senders.insert(socket.cookie, Sender { owner: owner.clone(), peer, memory });
    }
    if let Some(kind) = waits {
        let (name, queue, inode) = (name_of(unix.path), socket.rqueue, socket.inode);
        let icons = unix.icons.unwrap_or_default().chunks_exact(size_of::<u32>()).take(FIRST_MAX);
        let first = icons.filter_map(|icon| Some(u32::from_ne_bytes(icon.try_into().ok()?))).collect();
        let limit = socket.wqueue.filter(|_| kind == UnixKind::Listener);
        reading.queues.insert(socket.cookie, Waits { name, owner, kind, inode, queue, limit, first });
    }
    true
}

/// The name of a socket as users write it: a name in the abstract namespace begins with `@`.
fn name_of(path: Option<&[u8]>) -> String {
    match path.unwrap_or_default() {
        [0, name @ ..] => format!("@{}", String::from_utf8_lossy(name)),
        path => String::from_utf8_lossy(path).into_owned(),
    }
}

/// Reads the threads of senders that may wait for one of the sockets.
fn read_threads(host: &Host, reading: &mut UnixReading, stats: &mut Accounting) {
    let receivers: BTreeSet<u32> = datagrams(reading).map(|one| one.inode).collect();
    if receivers.is_empty() {
        return;
    }
    let is_near = |one: &&Sender| one.peer.is_none_or(|peer| receivers.contains(&peer));
    let pids: BTreeSet<u32> = reading.senders.values().filter(is_near).filter_map(|one| one.owner.pid).collect();
    let mut pids: Vec<u32> = pids.into_iter().collect();
    keep_first(&mut pids, SENDERS_MAX, "processes that may wait to send to unix sockets", stats);
    reading.threads = pids.into_iter().map(|pid| (pid, waiting_threads(host, pid, stats))).collect();
}

/// The threads of a process that wait for a full queue. Threads that end, or that may not be read, are left out.
fn waiting_threads(host: &Host, pid: u32, stats: &mut Accounting) -> Threads {
    let (mut names, mut text, mut threads) = (Vec::new(), Vec::new(), Threads::new());
    if host.read_names(&format!("/proc/{pid}/task"), &mut names).is_err() {
        return threads;
    }
    let tids = names.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok()?.parse::<u32>().ok());
    let mut tids: Vec<u32> = tids.collect();
    keep_first(&mut tids, SENDERS_MAX, "threads of a process that may wait to send to unix sockets", stats);
    for tid in tids {
        let file = |name: &str| format!("/proc/{pid}/task/{tid}/{name}");
        if host.read_file(&file("wchan"), &mut text).is_err() || !text.starts_with(WAITS_IN) {
            continue;
        }
        if host.read_file(&file("status"), &mut text).is_ok() {
            threads.extend(times_slept(&text).map(|slept| (tid, slept)));
        }
    }
    threads
}

/// The number of voluntary context switches in /proc/PID/status.
fn times_slept(status: &[u8]) -> Option<u64> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"voluntary_ctxt_switches:"))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// The sockets for datagrams.
fn datagrams(reading: &UnixReading) -> impl Iterator<Item = &Waits> {
    reading.queues.values().filter(|one| one.kind == UnixKind::Datagrams)
}

/// The sockets with a queue at both readings.
fn both(before: &UnixReading, after: &UnixReading) -> Vec<UnixQueue> {
    let is_only = datagrams(after).count() == 1;
    let (mut found, mut streams) = (Vec::new(), BTreeMap::<&str, UnixQueue>::new());
    for (cookie, now) in &after.queues {
        let Some(old) = before.queues.get(cookie) else { continue };
        match now.kind {
            // A client that waits for an answer sends nothing more.
            UnixKind::Streams if now.queue == old.queue => {
                let of = streams.entry(&now.name).or_insert_with(|| queue_of(old, now));
                of.queue = (of.queue.0 + 1, of.queue.0 + 1);
            }
            UnixKind::Streams => {}
            UnixKind::Listener => found.push(queue_of(old, now)),
            UnixKind::Datagrams => found.push(with_senders(queue_of(old, now), now, is_only, before, after)),
        }
    }
    found.extend(streams.into_values());
    found
}

/// A queue, without its senders.
fn queue_of(old: &Waits, now: &Waits) -> UnixQueue {
    let is_stream = now.kind == UnixKind::Streams;
    UnixQueue {
        name: now.name.clone(),
        owner: now.owner.clone(),
        kind: now.kind,
        queue: if is_stream { (0, 0) } else { (old.queue, now.queue) },
        limit: now.limit,
        // The first connections stay where they are until one is accepted.
        is_same_first: is_stream || old.first.iter().zip(&now.first).any(|(old, now)| *old != 0 && old == now),
        senders: Vec::new(),
        is_read: false,
        memory: (0, 0),
    }
}

/// Adds the senders of a socket for datagrams; `is_only` means that the namespace has one such socket.
fn with_senders(queue: UnixQueue, now: &Waits, is_only: bool, before: &UnixReading, after: &UnixReading) -> UnixQueue {
    // A sender that is not connected may wait for any of several sockets.
    let is_for = |one: &&Sender| one.peer.map_or(is_only, |peer| peer == now.inode);
    let memory = |of: &UnixReading| of.senders.values().filter(is_for).map(|one| u64::from(one.memory)).sum();
    let shrinks = |(cookie, one): (&u64, &Sender)| {
        is_for(&one) && after.senders.get(cookie).is_none_or(|now| now.memory < one.memory)
    };
    let threads = Progress::new(before, after, &is_for);
    let is_read = threads.has_moved || before.senders.iter().any(shrinks);
    UnixQueue { senders: threads.stuck, is_read, memory: (memory(before), memory(after)), ..queue }
}

/// The senders that waited at the first reading, and whether they have run since.
struct Progress {
    /// Senders that still wait, and have not run since.
    stuck: Vec<Holder>,
    /// True if one has run since.
    has_moved: bool,
}

impl Progress {
    fn new(before: &UnixReading, after: &UnixReading, is_for: &dyn Fn(&&Sender) -> bool) -> Progress {
        let mut progress = Progress { stuck: Vec::new(), has_moved: false };
        let owners: BTreeSet<&Holder> = after.senders.values().filter(is_for).map(|one| &one.owner).collect();
        for owner in owners {
            let threads =
                |of: &UnixReading| owner.pid.and_then(|pid| of.threads.get(&pid).cloned()).unwrap_or_default();
            let (old, now) = (threads(before), threads(after));
            progress.has_moved |= old.iter().any(|(tid, slept)| now.get(tid) != Some(slept));
            if old.iter().any(|(tid, slept)| now.get(tid) == Some(slept)) {
                progress.stuck.push(owner.clone());
            }
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(memory: u32, slept: u64) -> UnixReading {
        let owner = Holder { name: "app (9)".into(), pid: Some(9), is_shared: false };
        let waits = Waits {
            name: "/a".into(),
            owner: Holder::default(),
            kind: UnixKind::Datagrams,
            inode: 5,
            queue: 60,
            limit: None,
            first: Vec::new(),
        };
        UnixReading {
            queues: BTreeMap::from([(1, waits)]),
            senders: BTreeMap::from([(2, Sender { owner, peer: Some(5), memory })]),
            threads: BTreeMap::from([(9, Threads::from([(9, slept)]))]),
        }
    }

    #[test]
    fn a_sender_that_sleeps_through_the_window_is_stuck() {
        let find = |memory, slept| both(&reading(9216, 7), &reading(memory, slept)).remove(0);
        let stuck = find(9216, 7);
        assert_eq!((stuck.senders.len(), stuck.is_read, stuck.memory), (1, false, (9216, 9216)));
        let runs = find(9216, 8);
        assert_eq!((runs.senders.len(), runs.is_read), (0, true));
        assert!(find(768, 7).is_read);
    }

    #[test]
    fn names_and_numbers_as_the_kernel_writes_them() {
        assert_eq!(
            (&*name_of(Some(b"\0bus")), &*name_of(Some(b"/run/log")), &*name_of(None)),
            ("@bus", "/run/log", "")
        );
        let status = b"Name:\tsh\nvoluntary_ctxt_switches:\t27\nnonvoluntary_ctxt_switches:\t44\n";
        assert_eq!(times_slept(status), Some(27));
        assert_eq!(times_slept(b"Name:\tsh\n"), None);
    }
}
