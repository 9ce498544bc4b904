#![allow(clippy::unwrap_used)]
use super::*;
use record::Next;
use record::rows::Flow;

fn end(text: &str) -> Endpoint {
    let addr: std::net::SocketAddr = text.parse().unwrap();
    Endpoint { addr: addr.ip().to_string().parse().unwrap(), port: addr.port() }
}

fn connection(netns_id: u64, local: &str, peer: &str) -> Connection {
    Connection {
        netns_id,
        ifindex: 0,
        proto: Proto::Tcp,
        state: State::ESTABLISHED,
        local: end(local),
        peer: end(peer),
        recv_q: 0,
        send_q: 0,
        counters: None,
    }
}

const OUT: Verdict = Verdict { direction: Direction::Out, guessed: false };
const IN: Verdict = Verdict { direction: Direction::In, guessed: false };

fn lines(grouping: &Grouping) -> Vec<String> {
    let mut lines = Vec::new();
    grouping.emit(&mut |flow: &Flow<'_>| {
        let (direction, guessed) = (flow.direction.name(), if flow.guessed { "?" } else { "" });
        let Flow { netns_id, peer_netns_id, local_addr, peer_addr, connections, .. } = flow;
        lines.push(format!("{netns_id} {local_addr} {direction}{guessed} {peer_addr} {peer_netns_id} x{connections}"));
        Next::More
    });
    lines
}

type End<'a> = (u64, &'a str, &'a str, Verdict);

fn settled(ends: &[End<'_>]) -> Vec<String> {
    let (mut mirrors, mut grouping) = (Mirrors::new(), Grouping::new());
    for (netns, local, peer, verdict) in ends {
        assert!(mirrors.keep(&connection(*netns, local, peer), *verdict, &[], true));
    }
    let settled = mirrors.settle(&mut grouping, &Ranges::default());
    assert_eq!(settled.joined + grouping.connections(), ends.len() as u64);
    lines(&grouping)
}

const A: &str = "10.0.0.1:40000";
const B: &str = "10.0.0.2:80";

#[test]
fn two_mirrored_ends_are_one_flow_whatever_the_order() {
    let (client, service) = ((1, A, B, OUT), (2, B, A, IN));
    let expected = ["1 10.0.0.1 out 10.0.0.2 2 x1"];
    assert_eq!(settled(&[client, service]), expected);
    assert_eq!(settled(&[service, client]), expected);
}

#[test]
fn a_third_socket_with_the_same_ends_forbids_it() {
    let apart = ["1 10.0.0.1 out 10.0.0.2 0 x1", "2 10.0.0.2 in 10.0.0.1 0 x1", "3 10.0.0.2 in 10.0.0.1 0 x1"];
    let mut ends = vec![(1, A, B, OUT), (2, B, A, IN), (3, B, A, IN)];
    for _ in 0..3 {
        ends.rotate_left(1);
        assert_eq!(settled(&ends), apart);
    }
    // With two complete pairs with the same addresses and ports, it is unknown which ends belong together.
    ends.push((4, A, B, OUT));
    assert_eq!(settled(&ends).len(), 4);
}

#[test]
fn what_does_not_mirror_stays_apart() {
    for other in [
        // Has the same direction.
        (2, A, B, OUT),
        // Has the same namespace.
        (1, B, A, IN),
        // Has other ports.
        (2, B, "10.0.0.1:40001", IN),
    ] {
        assert_eq!(settled(&[(1, A, B, OUT), other]).len(), 2, "{other:?}");
    }
    let (mut mirrors, mut grouping) = (Mirrors::new(), Grouping::new());
    mirrors.keep(&connection(1, A, B), OUT, &[], true);
    mirrors.keep(&Connection { proto: Proto::Udp, ..connection(2, B, A) }, IN, &[], true);
    assert_eq!(mirrors.settle(&mut grouping, &Ranges::default()), Settled::default());
}

#[test]
fn who_is_sure_of_the_direction_tells() {
    let guessed = |direction| Verdict { direction, guessed: true };
    let unknown = Verdict { direction: Direction::Unknown, guessed: false };
    for (a, b, expected) in [
        (guessed(Direction::In), IN, "1 10.0.0.1 out 10.0.0.2 2 x1"),
        (IN, guessed(Direction::In), "2 10.0.0.2 out 10.0.0.1 1 x1"),
        (guessed(Direction::Out), guessed(Direction::In), "1 10.0.0.1 out? 10.0.0.2 2 x1"),
        (unknown, guessed(Direction::Out), "2 10.0.0.2 out? 10.0.0.1 1 x1"),
        (unknown, unknown, "1 10.0.0.1 unknown 10.0.0.2 2 x1"),
        // Neither has a listener (any more), or both have one, so the ports decide.
        (OUT, OUT, "1 10.0.0.1 out? 10.0.0.2 2 x1"),
        (IN, IN, "1 10.0.0.1 out? 10.0.0.2 2 x1"),
    ] {
        assert_eq!(settled(&[(2, B, A, b), (1, A, B, a)]), [expected]);
    }
}

#[test]
fn a_filter_that_takes_one_end_takes_the_flow() {
    for (first, second, flows, expected) in [
        (true, false, 1, Settled { joined: 1, filtered: 0 }),
        (false, true, 1, Settled { joined: 1, filtered: 0 }),
        (false, false, 0, Settled { joined: 0, filtered: 2 }),
    ] {
        let (mut mirrors, mut grouping) = (Mirrors::new(), Grouping::new());
        mirrors.keep(&connection(1, A, B), OUT, &[], first);
        mirrors.keep(&connection(2, B, A), IN, &[], second);
        assert_eq!(mirrors.settle(&mut grouping, &Ranges::default()), expected);
        assert_eq!(grouping.len(), flows);
    }
    // An end without a mirror is filtered by its own result.
    let (mut mirrors, mut grouping) = (Mirrors::new(), Grouping::new());
    mirrors.keep(&connection(1, A, B), OUT, &[], false);
    assert_eq!(mirrors.settle(&mut grouping, &Ranges::default()), Settled { joined: 0, filtered: 1 });
}

#[test]
fn what_is_too_much_is_left_alone_and_never_joined_wrongly() {
    let (mut mirrors, mut grouping) = (Mirrors::bounded(1), Grouping::new());
    assert!(mirrors.keep(&connection(1, A, B), OUT, &[], true));
    assert!(!mirrors.keep(&connection(1, "10.0.0.1:40001", B), OUT, &[], true));
    // The second end was refused, so its mirror is not kept either. The mirror of the first end is kept.
    assert!(!mirrors.keep(&connection(2, B, "10.0.0.1:40001"), IN, &[], true));
    assert!(mirrors.keep(&connection(2, B, A), IN, &[], true));
    assert_eq!(mirrors.left_alone(), 2);
    assert_eq!(mirrors.settle(&mut grouping, &Ranges::default()).joined, 1);
}
