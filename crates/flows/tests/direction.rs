//! Determines who opened a connection, row by row: the rule, and every defect of lstf that it fixes.
#![allow(clippy::unwrap_used)]

mod rows;

use flows::{Ephemeral, Listeners, direction, direction_of_lstf};
use record::State;
use record::rows::Socket;
use rows::{listener, tcp, udp, udp_service};

fn known(listeners: &[Socket<'_>]) -> Listeners {
    let mut set = Listeners::new();
    listeners.iter().for_each(|row| assert!(set.add(row)));
    set
}

/// `in`, `out` or `unknown`, with a `?` if it was guessed.
fn word(row: &Socket<'_>, listeners: &[Socket<'_>]) -> String {
    let verdict = direction(row, &known(listeners), Ephemeral::default());
    format!("{}{}", verdict.direction.name(), if verdict.guessed { "?" } else { "" })
}

fn lstf_word(row: &Socket<'_>, listeners: &[Socket<'_>]) -> &'static str {
    direction_of_lstf(row, &known(listeners)).direction.name()
}

#[test]
fn services_and_what_they_cover() {
    let any4 = listener("0.0.0.0:80");
    let any6 = listener("[::]:80");
    let v6only = Socket { v6only: Some(true), ..any6 };
    let one = listener("192.0.2.1:80");
    let mapped = listener("[::ffff:192.0.2.1]:80");
    let on_eth = Socket { ifindex: 2, ..any4 };
    let elsewhere = Socket { netns_id: 2, ..any4 };
    let client4 = tcp("192.0.2.1:80", "198.51.100.1:81");
    let client6 = tcp("[2001:db8::1]:80", "[2001:db8::2]:81");
    let client_mapped = tcp("[::ffff:192.0.2.1]:80", "[::ffff:198.51.100.1]:79");
    for (service, row, expected) in [
        (any4, client4, "in"),
        (any4, client_mapped, "in"),
        // An IPv4 wildcard does not accept IPv6.
        (any4, client6, "out"),
        (any6, client6, "in"),
        (any6, client4, "in"),
        (any6, client_mapped, "in"),
        (v6only, client6, "in"),
        (v6only, client_mapped, "out"),
        (one, client4, "in"),
        (one, client_mapped, "in"),
        (mapped, client4, "in"),
        (one, tcp("192.0.2.2:80", "198.51.100.1:79"), "out"),
        (on_eth, Socket { ifindex: 2, ..client_mapped }, "in"),
        (on_eth, Socket { ifindex: 3, ..client_mapped }, "out"),
        (elsewhere, client_mapped, "out"),
        // A UDP service is irrelevant for TCP.
        (udp_service("0.0.0.0:80"), client_mapped, "out"),
        (udp_service("0.0.0.0:80"), udp("192.0.2.1:80", "198.51.100.1:79"), "in"),
    ] {
        assert_eq!(word(&row, &[service]), expected, "{:?} at {:?}", row.local, service.local);
    }
}

/// A client may have any local port: a socket without a matching listener connected from here.
#[test]
fn issue_10_without_a_listener_it_is_outgoing() {
    for (local, peer) in [
        ("192.0.2.1:40000", "198.51.100.1:443"),
        ("10.9.1.2:40000", "10.9.1.3:60998"),
        ("10.9.1.2:1024", "10.9.1.3:27017"),
        ("192.0.2.1:22", "198.51.100.1:2000"),
        ("192.0.2.1:123", "198.51.100.1:123"),
    ] {
        assert_eq!(word(&tcp(local, peer), &[]), "out", "{local} {peer}");
        assert_eq!(word(&udp(local, peer), &[]), "out", "{local} {peer}");
        // A listener with that port at another address is irrelevant.
        assert_eq!(word(&tcp(local, peer), &[listener("127.0.0.1:40000"), listener("127.0.0.1:22")]), "out");
        assert_eq!(word(&tcp(local, peer), &[listener(local)]), "in");
    }
}

/// Ports decide only if listeners may be missing, and then the verdict is a guess; a connection to a known listener
/// stays certain.
#[test]
fn issue_10_a_guess_needs_missing_listeners() {
    let mut partial = known(&[listener("192.0.2.1:8080")]);
    partial.lacks_some_of(record::Proto::Tcp);
    let word = |row: &Socket<'_>| {
        let verdict = direction(row, &partial, Ephemeral::default());
        format!("{}{}", verdict.direction.name(), if verdict.guessed { "?" } else { "" })
    };
    for (local, peer, expected) in [
        ("192.0.2.1:8080", "198.51.100.1:40000", "in"),
        ("192.0.2.1:40000", "198.51.100.1:443", "out?"),
        ("192.0.2.1:443", "198.51.100.1:40000", "in?"),
        ("192.0.2.1:40000", "198.51.100.1:50000", "in?"),
        ("192.0.2.1:50000", "198.51.100.1:40000", "out?"),
        ("192.0.2.1:22", "198.51.100.1:2000", "in?"),
        ("192.0.2.1:32767", "198.51.100.1:32768", "in?"),
        ("192.0.2.1:60999", "198.51.100.1:61000", "out?"),
        ("192.0.2.1:123", "198.51.100.1:123", "unknown"),
    ] {
        assert_eq!(word(&tcp(local, peer)), expected, "{local} {peer}");
    }
    // The UDP services are complete.
    assert_eq!(word(&udp("192.0.2.1:443", "198.51.100.1:40000")), "out");
}

#[test]
fn a_handshake_is_certain() {
    let backwards = tcp("192.0.2.1:443", "198.51.100.1:40000");
    let state = |state| Socket { state, ..backwards };
    assert_eq!(word(&state(State::SYN_SENT), &[listener("0.0.0.0:443")]), "out");
    let forwards = tcp("192.0.2.1:40000", "198.51.100.1:443");
    assert_eq!(word(&Socket { state: State::SYN_RECV, ..forwards }, &[]), "in");
}

/// A service on an ephemeral port of this host: both ends are known, so nothing is guessed.
#[test]
fn the_other_end_of_a_loopback_connection() {
    let service = [listener("127.0.0.1:36567")];
    assert_eq!(word(&tcp("127.0.0.1:36567", "127.0.0.1:35000"), &service), "in");
    assert_eq!(word(&tcp("127.0.0.1:35000", "127.0.0.1:36567"), &service), "out");
    let service = [listener("0.0.0.0:36567")];
    assert_eq!(word(&tcp("192.0.2.1:35000", "192.0.2.1:36567"), &service), "out");
    // The same ports with a peer on another host: port 35000 still has no listener here.
    assert_eq!(word(&tcp("192.0.2.1:35000", "192.0.2.9:36567"), &service), "out");
    // The listener has closed, or both ports have one: both ends would have the same direction, so it is a guess.
    let both = [listener("127.0.0.1:36567"), listener("127.0.0.1:8080")];
    for services in [&both[..], &[]] {
        assert_eq!(word(&tcp("127.0.0.1:36567", "127.0.0.1:8080"), services), "out?");
        assert_eq!(word(&tcp("127.0.0.1:8080", "127.0.0.1:36567"), services), "in?");
    }
}

/// Defect 1 of lstf: it does not see a listener bound to one address.
#[test]
fn lstf_1_a_listener_bound_to_one_address() {
    let service = [listener("192.0.2.1:8080")];
    let row = tcp("192.0.2.1:8080", "198.51.100.1:40000");
    assert_eq!(lstf_word(&row, &service), "out");
    assert_eq!(word(&row, &service), "in");
}

/// Defect 2: a listener on 127.0.0.1 makes an outgoing connection from another address with the same port passive.
#[test]
fn lstf_2_a_local_listener_with_the_port_of_a_client() {
    let service = [listener("127.0.0.1:40000")];
    let row = tcp("192.0.2.1:40000", "198.51.100.1:443");
    assert_eq!(lstf_word(&row, &service), "in");
    assert_eq!(word(&row, &service), "out");
}

/// Defect 3: it ignores namespaces.
#[test]
fn lstf_3_a_listener_in_another_namespace() {
    let service = [Socket { netns_id: 2, ..listener("0.0.0.0:40000") }];
    let row = tcp("192.0.2.1:40000", "198.51.100.1:443");
    assert_eq!(lstf_word(&row, &service), "in");
    assert_eq!(word(&row, &service), "out");
}

/// Defect 4: when a listener has closed, its live connections become active. Between hosts this cannot be detected, and
/// port numbers are not trusted; on this host both ends are seen, and the verdict is shown as a guess.
#[test]
fn lstf_4_a_listener_that_has_closed() {
    let row = tcp("192.0.2.1:8080", "198.51.100.1:40000");
    assert_eq!(lstf_word(&row, &[]), "out");
    assert_eq!(word(&row, &[]), "out");
    let row = tcp("127.0.0.1:8080", "127.0.0.1:40000");
    assert_eq!(lstf_word(&row, &[]), "out");
    assert_eq!(word(&row, &[]), "in?");
}

/// Defect 7: it lacks UDP. (Defect 5, an abort, is a matter of the `host` crate; 6, the order, is tested in
/// tests/grouping.rs; the IPv4-mapped part of 7 above.)
#[test]
fn lstf_7_udp() {
    assert_eq!(word(&udp("192.0.2.1:40000", "198.51.100.1:53"), &[]), "out");
    assert_eq!(word(&udp("192.0.2.1:53", "198.51.100.1:40000"), &[udp_service("192.0.2.1:53")]), "in");
}

#[test]
fn sockets_that_share_a_service_are_one() {
    let mut set = Listeners::new();
    for inode in [9, 3, 5] {
        assert!(set.add(&Socket { inode, ..listener("0.0.0.0:80") }));
    }
    assert_eq!(set.len(), 1);
    let row = tcp("192.0.2.1:80", "198.51.100.1:40000");
    assert_eq!(set.of(&row).unwrap().inode, 3);
    assert!(!set.add(&row));
    set.clear();
    assert!(set.is_empty() && set.of(&row).is_none());
}
