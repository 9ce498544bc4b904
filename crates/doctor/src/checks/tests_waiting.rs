//! Programs and peers that wait: each rule, and the nearest other cause.

use super::*;
use crate::seen::{
    Asking, Gateway, Hold, ProcessSeen, Served, Silent, Unaccepted, Unanswered, UnixKind, UnixQueue, UnreadData,
};
use record::Proto;

/// A listener at port 80 with `queue` waiting connections at both readings, of which the ones in `kept`
/// wait at both.
pub(super) fn waiting(sample: &mut Sample, identity: u64, queues: (u32, u32), before: &[u64], after: &[u64]) {
    let of = |length| Queue { drops: None, ..queue(identity, "0.0.0.0:80", length, 128) };
    sample.before.listeners.push(of(queues.0));
    sample.after.listeners.push(of(queues.1));
    let all = |identities: &[u64]| -> Vec<Unaccepted> {
        identities.iter().map(|identity| Unaccepted { identity: *identity, port: 80 }).collect()
    };
    sample.before.waiting.unaccepted.extend(all(before));
    sample.after.waiting.unaccepted.extend(all(after));
    *sample.after.waiting.listeners.entry(80).or_default() += 1;
    sample.after.served.insert((Proto::Tcp, 80), Served::default());
}

pub(super) fn process(hold: Option<Hold>) -> ProcessSeen {
    ProcessSeen { pid: 7, name: "server (7)".into(), hold, sleeps_in: "nfs_wait".into() }
}

/// Connections at port 80 with unread data.
pub(super) fn unread_at(sample: &mut Sample, identities: &[u64], read: (u64, u64)) {
    let all = |read| -> Vec<UnreadData> {
        let one = UnreadData { identity: 0, port: 80, unread: 90, read: Some(read), sent: Some(5), is_open: true };
        let of = |identity: &u64| UnreadData { identity: *identity, ..one };
        identities.iter().map(of).collect()
    };
    sample.before.waiting.unread.extend(all(read.0));
    sample.after.waiting.unread.extend(all(read.1));
    sample.after.waiting.readers.insert(80, (holder("server"), "a".into()));
    sample.after.served.insert((Proto::Tcp, 80), Served::default());
}

/// Unread bytes of a UDP socket at port 80.
pub(super) fn unread_datagrams(sample: &mut Sample, queues: (u32, u32)) {
    let of = |length| vec![Queue { drops: None, ..queue(1, "0.0.0.0:80", length, 128) }];
    (sample.before.udp, sample.after.udp) = (of(queues.0), of(queues.1));
    sample.after.served.insert((Proto::Udp, 80), Served::default());
}

pub(super) fn unix(kind: UnixKind, queue: (u32, u32)) -> UnixQueue {
    let is_listener = kind == UnixKind::Listener;
    UnixQueue {
        name: "/run/app.sock".into(),
        owner: holder("server"),
        kind,
        queue,
        limit: is_listener.then_some(5),
        is_same_first: is_listener,
        senders: if is_listener { Vec::new() } else { vec![holder("client")] },
        is_read: false,
        memory: (9000, 9000),
    }
}

pub(super) fn silent(identity: u64, what: Unanswered, again: u8) -> Silent {
    Silent {
        identity,
        name: "a".into(),
        peer: PEER.into(),
        peer_port: 80,
        owner: holder("client"),
        what,
        again,
        heard_ms: 9000,
        send_q: 50,
        segment: 50,
        acked: Some(90_000),
        local_port: 40_000,
    }
}

/// The first finding.
fn first(make: impl Fn(&mut Sample)) -> Option<(&'static str, Severity)> {
    let mut sample = Sample::of(&[]);
    make(&mut sample);
    diagnose(&[sample]).first().map(|one| (one.id, one.severity))
}

#[test]
fn a_listener_that_accepts_is_no_finding() {
    let find = |queues, before: &[u64], after: &[u64]| first(|sample| waiting(sample, 1, queues, before, after));
    let not_accepting = |severity| Some(("not-accepting", severity));
    assert_eq!(find((2, 9), &[1, 2], &[1, 2, 3]), not_accepting(Severity::Critical));
    assert_eq!(find((4, 4), &[1, 2, 3, 4], &[1, 2, 3, 4]), not_accepting(Severity::Warning));
    assert_eq!(find((1, 1), &[1], &[1]), not_accepting(Severity::Hint));
    // The queue is shorter; others wait now; it accepts slowly, and half of those that waited still do.
    assert_eq!(find((9, 2), &[1, 2], &[1, 2]), None);
    assert_eq!(find((2, 2), &[1, 2], &[3, 4]), None);
    assert_eq!(find((20, 30), &(0..20).collect::<Vec<_>>(), &(10..40).collect::<Vec<_>>()), None);
    // Clients that reset their connections after a while, at a program that hangs and at one that accepts.
    assert_eq!(find((3, 3), &[1, 2, 3], &[4, 5, 6]), None);
    assert_eq!(find((3, 6), &[1, 2, 3], &[]), not_accepting(Severity::Critical));
    assert_eq!(find((4, 7), &[1, 2, 3], &[3, 4]), not_accepting(Severity::Critical));
    // The window is too short.
    let short = |sample: &mut Sample| {
        waiting(sample, 1, (2, 9), &[1, 2], &[1, 2, 3]);
        sample.window_ns = 100_000_000;
    };
    assert_eq!(first(short), None);
}

#[test]
fn one_of_several_listeners_of_a_port_hangs() {
    let mut sample = Sample::of(&[]);
    waiting(&mut sample, 1, (1, 1), &[100], &[200]);
    waiting(&mut sample, 2, (5, 7), &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 6, 7]);
    waiting(&mut sample, 3, (2, 2), &[101, 102], &[201, 202]);
    let found = diagnose(&[sample]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].id, found[0].severity), ("not-accepting", Severity::Warning));
    assert!(found[0].title.contains("7 wait") && found[0].cost.contains("2 other listeners"), "{found:?}");
}

#[test]
fn a_reason_comes_before_the_queue() {
    let hung = |sample: &mut Sample| waiting(sample, 1, (2, 9), &[1, 2], &[1, 2, 3]);
    let find = |hold| {
        let mut sample = Sample::of(&[]);
        hung(&mut sample);
        sample.around.processes.push(process(hold));
        let found = diagnose(&[sample]);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].id, found[0].confidence, found[0].title.clone())
    };
    assert_eq!(find(None).0, "not-accepting");
    let (id, confidence, title) = find(Some(Hold::Stopped));
    assert_eq!((id, confidence), ("process-stopped", Confidence::Certain));
    assert!(title.starts_with("server (7) is stopped by a signal"), "{title}");
    let (id, confidence, title) = find(Some(Hold::Uninterruptible));
    assert_eq!((id, confidence), ("process-stopped", Confidence::Likely));
    assert!(title.contains("nfs_wait"), "{title}");
    // A process that waits for a disk at the moment of the reading, and accepts.
    let busy = |sample: &mut Sample| {
        waiting(sample, 1, (1, 2), &[1], &[2, 3]);
        sample.around.processes.push(process(Some(Hold::Uninterruptible)));
    };
    assert_eq!(first(busy), None);
    let mut sample = Sample::of(&[]);
    hung(&mut sample);
    sample.descriptors =
        vec![Descriptors { process: "server (7)".into(), pid: 7, used: 1024, limit: 1024, hard_limit: 1024 }];
    let ids: Vec<&str> = diagnose(&[sample]).iter().map(|one| one.id).collect();
    assert_eq!(ids, ["fd-limit"]);
}

#[test]
fn a_full_queue_that_is_not_served_is_no_slow_program() {
    let mut sample = Sample::of(&[(Netstat, "TcpExtListenOverflows", "", 0, 9)]);
    waiting(&mut sample, 1, (120, 129), &[1, 2], &[1, 2, 3]);
    let found = diagnose(&[sample]);
    assert_eq!((found.len(), found[0].id), (1, "listen-overflow"), "{found:?}");
    assert!(found[0].title.contains("does not accept connections"), "{found:?}");
}

#[test]
fn servers_that_read_something_are_no_warning() {
    let stale = |count: u64, extra: &dyn Fn(&mut Sample)| {
        first(|sample| {
            unread_at(sample, &(1..=count).collect::<Vec<_>>(), (5, 5));
            extra(sample);
        })
    };
    assert_eq!(stale(3, &|_| ()), Some(("unread-requests", Severity::Warning)));
    assert_eq!(stale(2, &|_| ()), None);
    assert_eq!(stale(3, &|sample| unread_at(sample, &[9], (5, 6))), Some(("unread-requests", Severity::Hint)));
    assert_eq!(first(|sample| unread_at(sample, &[1, 2, 3, 4], (5, 6))), None);
    // Clients that have given up: their connections are not closed, which is another fault.
    let closed = |sample: &mut Sample| sample.after.waiting.unread.iter_mut().for_each(|one| one.is_open = false);
    assert_eq!(stale(9, &closed), None);
    // A client's data, which it may read later.
    assert_eq!(stale(9, &|sample| sample.after.served.clear()), None);
    // A server that does not even accept.
    let hung = |sample: &mut Sample| waiting(sample, 1, (2, 9), &[1, 2], &[1, 2, 3]);
    assert_eq!(stale(3, &hung), Some(("not-accepting", Severity::Critical)));
}

#[test]
fn datagrams_that_are_read_later_are_no_finding() {
    let find = |queues, read, first_port| {
        first(|sample| {
            unread_datagrams(sample, queues);
            sample.counters_of(&[(Snmp, "UdpInDatagrams", "", 0, read)]);
            sample.add_setting("ipv4/ip_local_port_range", vec![first_port, 60_999]);
        })
    };
    assert_eq!(find((5, 9), 0, 32_768), Some(("udp-unread", Severity::Hint)));
    assert_eq!(find((5, 60), 0, 32_768), Some(("udp-unread", Severity::Warning)));
    assert_eq!(find((5, 9), 1, 32_768), None, "some program reads");
    assert_eq!(find((5, 5), 0, 32_768), None, "nothing arrives");
    assert_eq!(find((5, 9), 0, 80), None, "a client's port");
}

#[test]
fn unix_sockets_that_are_read_are_no_finding() {
    use UnixKind::{Datagrams, Listener, Streams};
    let find = |change: &dyn Fn(&mut UnixQueue), kind, queue| {
        let mut one = unix(kind, queue);
        change(&mut one);
        first(|sample| sample.around.unix.push(one.clone()))
    };
    let unix_queue = |severity| Some(("unix-queue", severity));
    assert_eq!(find(&|_| (), Listener, (2, 4)), unix_queue(Severity::Critical));
    assert_eq!(find(&|_| (), Listener, (6, 6)), unix_queue(Severity::Critical));
    assert_eq!(find(&|_| (), Listener, (3, 3)), unix_queue(Severity::Warning));
    assert_eq!(find(&|_| (), Listener, (1, 1)), unix_queue(Severity::Hint));
    assert_eq!(find(&|one| one.is_same_first = false, Listener, (6, 6)), None);
    assert_eq!(find(&|_| (), Listener, (4, 2)), None);
    assert_eq!(find(&|_| (), Datagrams, (60, 60)), unix_queue(Severity::Warning));
    assert_eq!(find(&|one| one.senders.clear(), Datagrams, (60, 60)), unix_queue(Severity::Hint));
    assert_eq!(find(&|one| one.is_read = true, Datagrams, (60, 60)), None);
    assert_eq!(find(&|_| (), Streams, (3, 3)), unix_queue(Severity::Warning));
    assert_eq!(find(&|_| (), Streams, (2, 2)), None);
    let few = |one: &mut UnixQueue| {
        one.senders.clear();
        one.memory = (768, 768);
    };
    assert_eq!(find(&few, Datagrams, (60, 60)), None);
}

#[test]
fn a_peer_that_was_heard_or_is_lost_here_is_not_dead() {
    let find = |what, again: (u8, u8), extra: &dyn Fn(&mut Sample)| {
        first(|sample| {
            sample.before.waiting.silent = vec![silent(1, what, again.0)];
            sample.after.waiting.silent = vec![silent(1, what, again.1)];
            extra(sample);
        })
    };
    let dead = |severity| Some(("dead-peer", severity));
    for what in [Unanswered::Data, Unanswered::Keepalives, Unanswered::WindowProbes] {
        assert_eq!(find(what, (2, 4), &|_| ()), dead(Severity::Warning));
        assert_eq!(find(what, (4, 4), &|_| ()), dead(Severity::Warning));
        assert_eq!(find(what, (4, 2), &|_| ()), None, "it was answered");
        assert_eq!(find(what, (0, 1), &|_| ()), None);
        assert_eq!(find(what, (2, 4), &|sample| sample.after.waiting.heard.push((PEER, 200))), None);
        assert_eq!(
            find(what, (2, 4), &|sample| sample.after.waiting.heard.push((CLIENT, 200))),
            dead(Severity::Warning)
        );
    }
    let data = |extra: &dyn Fn(&mut Sample)| find(Unanswered::Data, (2, 4), extra);
    let client = |sample: &mut Sample| sample.after.served.extend([((Proto::Tcp, 40_000), Served::default())]);
    assert_eq!(data(&client), dead(Severity::Hint));
    let first_large = |sample: &mut Sample| {
        let one = &mut sample.after.waiting.silent[0];
        (one.acked, one.segment) = (Some(100), 1448);
    };
    assert_eq!(data(&first_large), None);
    let ruled = |sample: &mut Sample| {
        dropped(sample, DropSeen { ends: Some((CLIENT, PEER)), ..drop_of("NETFILTER_DROP", "nft_do_chain", 9) });
    };
    assert_eq!(data(&ruled).map(|(id, _)| id), Some("rule-drop"));
    let gateway = |sample: &mut Sample| {
        sample.around.neighbours.push(NeighbourSeen { addr: CLIENT, ifindex: 2 });
        sample.around.gateways.push(Gateway { addr: Some(CLIENT), ifindex: 2, ..Gateway::default() });
    };
    assert_eq!(data(&gateway).map(|(id, _)| id), Some("neigh-failed"));
}

#[test]
fn a_dead_peer_is_no_bad_path_no_small_mtu_and_no_closed_window() {
    let mut sample = Sample::of(&[(Snmp, "TcpRetransSegs", "", 0, 30), (Snmp, "TcpOutSegs", "", 0, 300)]);
    let many = |again| (1..=10).map(|identity| silent(identity, Unanswered::Data, again)).collect::<Vec<_>>();
    (sample.before.waiting.silent, sample.after.waiting.silent) = (many(2), many(4));
    let all = || vec![stuck(1, false), stuck(2, false), stuck(3, true)];
    let of = || all().into_iter().map(|one| Stuck { acked: Some(90_000), ..one }).collect::<Vec<_>>();
    (sample.before.stuck, sample.after.stuck) = (of(), of());
    sample.after.at_ease.insert(PEER.into(), 1);
    let ids: Vec<&str> = diagnose(&[sample]).iter().map(|one| one.id).collect();
    assert_eq!(ids, ["dead-peer"]);
}

/// A user can open tens of thousands of sockets: no check compares each with each, which would take minutes.
#[test]
fn many_sockets_of_one_user_are_judged_one_by_one() {
    let mut sample = Sample::of(&[]);
    sample.around.processes.push(process(Some(Hold::Uninterruptible)));
    for identity in 1..=30_000_u64 {
        let port = u16::try_from(identity).unwrap_or(0);
        let [high, low] = port.to_be_bytes();
        let peer = record::Addr::V4([10, 1, high, low]);
        let of = || Queue { drops: Some(0), port, ..queue(identity, "127.0.0.1:1", 5, 4) };
        let stuck = |again| Stuck {
            identity: identity + 100_000,
            name: "a".into(),
            peer: peer.into(),
            owner: holder("client"),
            is_window: identity % 2 == 0,
            send_q: 5000,
            again,
            local_port: port,
            acked: Some(9),
        };
        let asking = |port| Asking { proto: Proto::Udp, port, peer, peer_port: 53 };
        sample.after.waiting.readers.insert(port, (holder("server"), "a".into()));
        sample.after.served.insert((Proto::Udp, port), Served::default());
        sample.after.unanswered.insert((peer.into(), 80), 2);
        for (census, again) in [(&mut sample.before, 2), (&mut sample.after, 3)] {
            census.listeners.push(of());
            census.udp.push(of());
            census.unread.push(of());
            census.resolvers.push(of());
            census.stuck.push(stuck(again));
            census.asking.push(asking(port));
            census.waiting.silent.push(silent(identity, Unanswered::Data, again));
            census.waiting.unaccepted.push(Unaccepted { identity: identity + 200_000, port });
            let one = UnreadData { identity, port, unread: 9, read: Some(1), sent: Some(1), is_open: true };
            census.waiting.unread.push(one);
        }
    }
    assert!(!diagnose(&[sample]).is_empty());
}
