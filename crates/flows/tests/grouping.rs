//! Connections are folded into flows.
#![allow(clippy::unwrap_used)]

mod rows;

use flows::{Ephemeral, Grouping, Listeners, OWNERS_MAX, direction};
use proptest::prelude::*;
use record::rows::{Direction, Endpoint, Socket, TcpInfo};
use record::{Addr, Comm, Next, Owner, Proto, State};
use rows::{listener, tcp, udp};

fn listeners() -> Listeners {
    let mut set = Listeners::new();
    set.add(&listener("0.0.0.0:80"));
    set.add(&listener("[2001:db8::1]:443"));
    set
}

fn group(rows: &[(Socket<'_>, Vec<Owner>)]) -> Grouping {
    let (listeners, mut grouping) = (listeners(), Grouping::new());
    for (row, owners) in rows {
        grouping.add(row, direction(row, &listeners, Ephemeral::default()), owners);
    }
    grouping
}

/// Every flow as text, in the order in which they are handed out.
fn lines(grouping: &Grouping) -> Vec<String> {
    let mut lines = Vec::new();
    let handed_out = grouping.emit(&mut |flow| {
        let port = |p: Option<u16>| p.map_or("many".to_owned(), |p| p.to_string());
        let names: Vec<_> = flow.owners.iter().map(|o| String::from_utf8_lossy(o.process.as_bytes())).collect();
        lines.push(format!(
            "{} {}{} {}:{} {}:{} {} {:?} q{}/{} b{:?}/{:?}/{:?} {} ns{}",
            flow.proto.name(),
            flow.direction.name(),
            if flow.guessed { "?" } else { "" },
            flow.local_addr,
            port(flow.local_port),
            flow.peer_addr,
            port(flow.peer_port),
            flow.connections,
            flow.states.iter().enumerate().filter(|(_, n)| **n > 0).collect::<Vec<_>>(),
            flow.recv_q,
            flow.send_q,
            flow.bytes_in,
            flow.bytes_out,
            flow.retrans_total,
            names.join(","),
            flow.netns_id,
        ));
        Next::More
    });
    assert_eq!(handed_out as usize, lines.len());
    lines
}

fn plain(row: Socket<'static>) -> (Socket<'static>, Vec<Owner>) {
    (row, Vec::new())
}

#[test]
fn the_ephemeral_side_is_folded() {
    let with = |state, rqueue, row| plain(Socket { state, rqueue, wqueue: Some(2), ..row });
    let grouping = group(&[
        with(State::ESTABLISHED, 1, tcp("192.0.2.1:80", "198.51.100.1:40000")),
        with(State::ESTABLISHED, 10, tcp("192.0.2.1:80", "198.51.100.1:40001")),
        with(State::TIME_WAIT, 0, tcp("[::ffff:192.0.2.1]:80", "[::ffff:198.51.100.1]:40002")),
        with(State::CLOSE_WAIT, 0, tcp("192.0.2.1:80", "198.51.100.1:40003")),
        plain(tcp("192.0.2.1:80", "198.51.100.2:40000")),
        plain(tcp("192.0.2.1:50000", "198.51.100.1:443")),
        plain(tcp("192.0.2.1:50001", "198.51.100.1:443")),
        plain(Socket { state: State::SYN_SENT, ..tcp("192.0.2.1:50002", "198.51.100.1:443") }),
        plain(tcp("[2001:db8::1]:443", "[2001:db8::2]:50000")),
        plain(udp("192.0.2.1:50003", "198.51.100.1:443")),
        plain(tcp("127.0.0.1:123", "127.0.0.2:123")),
        plain(Socket { netns_id: 2, ..tcp("192.0.2.1:50000", "198.51.100.1:443") }),
    ]);
    assert_eq!(
        lines(&grouping),
        [
            "tcp in 192.0.2.1:80 198.51.100.1:many 4 [(1, 2), (6, 1), (8, 1)] q11/8 bNone/None/None  ns1",
            "tcp out 192.0.2.1:many 198.51.100.1:443 3 [(1, 2), (2, 1)] q0/0 bNone/None/None  ns1",
            "tcp unknown 127.0.0.1:123 127.0.0.2:123 1 [(1, 1)] q0/0 bNone/None/None  ns1",
            "tcp out 192.0.2.1:many 198.51.100.1:443 1 [(1, 1)] q0/0 bNone/None/None  ns2",
            "tcp in 192.0.2.1:80 198.51.100.2:many 1 [(1, 1)] q0/0 bNone/None/None  ns1",
            "tcp in 2001:db8::1:443 2001:db8::2:many 1 [(1, 1)] q0/0 bNone/None/None  ns1",
            "udp out 192.0.2.1:many 198.51.100.1:443 1 [(1, 1)] q0/0 bNone/None/None  ns1",
        ]
    );
    assert_eq!(grouping.connections(), 12);
    assert_eq!(grouping.len(), 7);
}

/// Two hosts may have the same address on two links, or in two VRFs.
#[test]
fn connections_of_two_interfaces_are_two_flows() {
    let on = |ifindex, row| plain(Socket { ifindex, ..row });
    let rows = [
        on(3, tcp("[fe80::1]:40000", "[fe80::2]:22")),
        on(4, tcp("[fe80::1]:40001", "[fe80::2]:22")),
        on(3, tcp("[fe80::1]:40002", "[fe80::2]:22")),
        on(9, tcp("10.0.0.1:40003", "10.0.0.2:22")),
        on(0, tcp("10.0.0.1:40004", "10.0.0.2:22")),
    ];
    let grouping = group(&rows);
    let mut flows = Vec::new();
    grouping.emit(&mut |flow| {
        flows.push((flow.ifindex, flow.connections));
        Next::More
    });
    flows.sort_unstable();
    assert_eq!(flows, [(0, 1), (3, 2), (4, 1), (9, 1)]);
    let mut joined = Grouping::new().joining_links();
    for (row, owners) in &rows {
        joined.add(row, direction(row, &listeners(), Ephemeral::default()), owners);
    }
    assert_eq!(joined.len(), 2, "lstf shows no interface");
}

#[test]
fn bytes_are_summed_where_they_are_known() {
    let mut info = [0u8; 280];
    info[100] = 3;
    info[128] = 100;
    info[200] = 50;
    let short = [0u8; 104];
    let grouping = group(&[
        (Socket { tcp_info: Some(TcpInfo::new(&info)), ..tcp("192.0.2.1:80", "198.51.100.1:40000") }, vec![]),
        (Socket { tcp_info: Some(TcpInfo::new(&info)), ..tcp("192.0.2.1:80", "198.51.100.1:40001") }, vec![]),
        // A time-wait socket has no counters, so the sum covers only the others.
        (Socket { state: State::TIME_WAIT, ..tcp("192.0.2.1:80", "198.51.100.1:40002") }, vec![]),
        // An older kernel does not count bytes: unknown, not zero.
        (Socket { tcp_info: Some(TcpInfo::new(&short)), ..tcp("192.0.2.1:80", "198.51.100.9:40000") }, vec![]),
    ]);
    assert_eq!(
        lines(&grouping),
        [
            "tcp in 192.0.2.1:80 198.51.100.1:many 3 [(1, 2), (6, 1)] q0/0 bSome(200)/Some(100)/Some(6)  ns1",
            "tcp in 192.0.2.1:80 198.51.100.9:many 1 [(1, 1)] q0/0 bNone/None/Some(0)  ns1",
        ]
    );
}

/// Round-trip times in microseconds (`tcpi_rtt` at 68, `tcpi_min_rtt` at 148); a connection without a sample does not
/// count.
#[test]
fn issue_10_round_trips_of_a_flow() {
    let info = |rtt: u8, min: Option<u8>| {
        let mut info = [0u8; 280];
        info[68] = rtt;
        info[148..152].copy_from_slice(&min.map_or(u32::MAX, u32::from).to_ne_bytes());
        info
    };
    let infos = [info(10, Some(7)), info(21, Some(8)), info(0, None), info(40, None)];
    let mut grouping = Grouping::new();
    let mut add = |info: &[u8], peer: &str| {
        let row = Socket { tcp_info: Some(TcpInfo::new(info)), ..tcp("192.0.2.1:80", peer) };
        grouping.add(&row, direction(&row, &listeners(), Ephemeral::default()), &[]);
    };
    infos[..3].iter().for_each(|info| add(info, "198.51.100.1:40000"));
    add(&infos[2], "198.51.100.2:40000");
    add(&infos[3], "198.51.100.3:40000");
    let mut found = Vec::new();
    grouping.emit(&mut |flow| {
        found.push(flow.rtt.map(|rtt| (rtt.min_us, rtt.avg_us, rtt.max_us)));
        Next::More
    });
    assert_eq!(found, [Some((Some(7), 16, 21)), None, Some((None, 40, 40))]);
}

#[test]
fn owners_have_different_names() {
    let owner = |pid, fd, name: &str| Owner { pid, fd, process: Comm::new(name.as_bytes()), started: 0 };
    let row = tcp("192.0.2.1:80", "198.51.100.1:40000");
    let many: Vec<Owner> = (0..20).map(|n| owner(100 - n, 1, &format!("p{n}"))).collect();
    let grouping = group(&[
        (row, vec![owner(20, 3, "nginx"), owner(10, 3, "nginx")]),
        (row, vec![owner(15, 3, "helper")]),
        (row, vec![]),
        (tcp("192.0.2.1:80", "198.51.100.2:40000"), many),
    ]);
    let text = lines(&grouping);
    assert!(text[0].contains("nginx,helper"), "{text:?}");
    assert!(text[1].contains("p19,p18,p17,p16,p15,p14,p13,p12 "), "{text:?}");
    assert_eq!(OWNERS_MAX, 8);
}

#[test]
fn the_reader_may_stop_and_begin_again() {
    let mut grouping =
        group(&[plain(tcp("192.0.2.1:80", "198.51.100.1:40000")), plain(tcp("192.0.2.1:80", "198.51.100.2:40000"))]);
    assert_eq!(grouping.emit(&mut |_| Next::Stop), 1);
    grouping.clear();
    assert!(grouping.is_empty());
    assert!(lines(&grouping).is_empty());
    let row = tcp("[2001:db8::1]:443", "[2001:db8::2]:50000");
    grouping.add(&row, direction(&row, &listeners(), Ephemeral::default()), &[]);
    assert_eq!(lines(&grouping).len(), 1);
}

fn any_end(ports: &'static [u16]) -> impl Strategy<Value = Endpoint> {
    let addr = prop_oneof![
        (0u8..3).prop_map(|n| Addr::V4([192, 0, 2, n])),
        (0u8..3).prop_map(|n| Addr::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n])),
        (0u8..3).prop_map(|n| Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, n])),
    ];
    (addr, prop::sample::select(ports)).prop_map(|(addr, port)| Endpoint { addr, port })
}

prop_compose! {
    fn any_row()(
        local in any_end(&[80, 443, 40_000, 40_001]),
        peer in any_end(&[80, 443, 40_000, 40_001]),
        state in 1u8..12, udp: bool, netns_id in 1u64..3, rqueue in 0u32..3,
        owners in prop::collection::vec((1u32..30, 0u8..12), 0..3),
    ) -> (Socket<'static>, Vec<Owner>) {
        let proto = if udp { Proto::Udp } else { Proto::Tcp };
        let owners = owners.into_iter()
            .map(|(pid, name)| Owner { pid, fd: 1, process: Comm::new(&[b'a' + name]), started: 0 })
            .collect();
        (Socket { proto, state: State(state), local, peer, netns_id, rqueue, ..Socket::EMPTY }, owners)
    }
}

proptest! {
    /// Defect 6 of lstf: its order is random. Here it depends only on the rows, not on their order or on the hash seed.
    #[test]
    fn order_and_content_are_the_same_however_rows_come(
        (rows, shuffled) in prop::collection::vec(any_row(), 0..80)
            .prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
    ) {
        prop_assert_eq!(lines(&group(&rows)), lines(&group(&shuffled)));
    }

    #[test]
    fn every_connection_is_in_one_flow(rows in prop::collection::vec(any_row(), 0..200)) {
        let grouping = group(&rows);
        let (mut connections, mut states, mut flows, mut last) = (0, 0, 0, u64::MAX);
        grouping.emit(&mut |flow| {
            assert!(flow.connections <= last, "most connections first");
            last = flow.connections;
            connections += flow.connections;
            states += flow.states.iter().map(|&n| u64::from(n)).sum::<u64>();
            assert_eq!(flow.local_port.is_none(), flow.direction == Direction::Out);
            assert_eq!(flow.peer_port.is_none(), flow.direction == Direction::In);
            assert!(flow.owners.is_sorted());
            flows += 1;
            Next::More
        });
        prop_assert_eq!(connections, rows.len() as u64);
        prop_assert_eq!(states, connections);
        prop_assert_eq!(flows, grouping.len());
        prop_assert_eq!(grouping.connections(), connections);
    }
}
