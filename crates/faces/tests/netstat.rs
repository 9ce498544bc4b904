//! netstat's lines from hostile bytes: one line per socket, no control character, no panic.
#![allow(clippy::unwrap_used)]

use faces::netstat::output::{CounterBlocks, Names, Show, SocketLayout, Statistics, Writer};
use proptest::prelude::*;
use record::rows::{Endpoint, Socket, TcpInfo, UnixPart, UnixType};
use record::{Addr, Comm, Key, Lookup, LookupId, Lookups, Owner, Proto, State, Timer, Value};
use sinks::Out;

/// Returns the same bytes for every lookup.
struct Same {
    text: Vec<u8>,
    owners: [Owner; 1],
}

impl Lookup for Same {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Bytes(&self.text)
    }
    fn owners(&self, _: Key) -> &[Owner] {
        &self.owners
    }
}

fn options(bits: u16, bug_compatible: bool) -> SocketLayout {
    let bit = |n: u16| bits >> n & 1 == 1;
    SocketLayout {
        internet: true,
        unix: true,
        groups: false,
        show: Show::All,
        extended: bit(0),
        programs: bit(1),
        timers: bit(2),
        numeric_hosts: bit(3),
        numeric_ports: bit(4),
        numeric_users: bit(5),
        wide: bit(6),
        bug_compatible,
    }
}

/// The numbers of a row, with any values.
type AddressNumbers = ((u8, u8, u8), (u32, u32, u32), (u16, u16), ([u8; 16], bool));

fn row<'b>(numbers: AddressNumbers, bytes: &'b [u8]) -> Socket<'b> {
    let ((proto, state, timer), (inode, uid, queue), (here, there), (octets, six)) = numbers;
    let proto = [Proto::Tcp, Proto::Udp, Proto::Unix][usize::from(proto % 3)];
    let [a, b, c, d, ..] = octets;
    let addr = if six { Addr::V6(octets) } else { Addr::V4([a, b, c, d]) };
    let unix = UnixPart {
        kind: UnixType(timer),
        path: Some(bytes),
        peer_inode: None,
        vfs: None,
        refs: None,
        flags: Some(uid),
        icons: None,
    };
    Socket {
        proto,
        family: if six { 10 } else { 2 },
        state: State(state),
        local: Endpoint { addr, port: here },
        peer: Endpoint { addr, port: there },
        rqueue: queue,
        wqueue: Some(uid),
        inode,
        uid: Some(uid),
        timer: Timer(timer),
        timer_ms: queue,
        tcp_info: (state % 2 == 0).then_some(TcpInfo::new(bytes)),
        unix: (proto == Proto::Unix).then_some(unix),
        ..Socket::EMPTY
    }
}

fn write(options: SocketLayout, rows: &[Socket<'_>], text: &[u8]) -> Vec<u8> {
    let owner = Owner { pid: u32::MAX, fd: 1, process: Comm::new(text), started: 0 };
    let same = Same { text: text.to_vec(), owners: [owner] };
    let lookups = Lookups::empty()
        .with_lookup(LookupId::Owners, &same)
        .with_lookup(LookupId::Users, &same)
        .with_lookup(LookupId::Hosts, &same);
    let service = |_, port: u16| (port % 2 == 0).then_some(text);
    let argv0 = |_, out: &mut Vec<u8>| {
        out.extend_from_slice(text);
        text.len() % 2 == 0
    };
    let names = Names { service: &service, argv0: &argv0 };
    let mut writer = Writer::new(Out::new(Vec::new()), options, names);
    writer.begin().unwrap();
    for row in rows {
        writer.row(row, &lookups).unwrap();
    }
    writer.end().unwrap();
    writer.into_out().into_inner()
}

proptest! {
    #[test]
    fn one_line_a_socket(
        numbers in proptest::collection::vec(any::<AddressNumbers>(), 0..6),
        text in prop_oneof![proptest::collection::vec(any::<u8>(), 0..150), "/?[\\PC\t\n \
            /\u{1b}\u{202e}]{0,40}".prop_map(String::into_bytes)],
        bits: u16,
    ) {
        let rows: Vec<Socket<'_>> = numbers.iter().map(|&n| row(n, &text)).collect();
        let ours = write(options(bits, false), &rows, &text);
        prop_assert_eq!(ours.split(|&b| b == b'\n').count(), rows.len() + 5);
        // Like in netstat, a character may be cut in two at the end of a cell.
        let shown = String::from_utf8_lossy(&ours);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown}");
        // The old bytes may be anything, but writing must not panic.
        write(options(bits, true), &rows, &text);
    }

    #[test]
    fn counters_from_any_bytes(
        file in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            "((Ip|Icmp|Tcp|TcpExt|X\u{1b}): [A-Za-z0-9 -]{0,30}\n){0,8}".prop_map(String::into_bytes),
        ],
        which: (bool, bool, bool, bool),
    ) {
        let counted = CounterBlocks { raw: which.0, tcp: which.1, udp: which.2, sctp: which.3 };
        let mut statistics = Statistics::new(counted);
        let mut out = Vec::new();
        let _ = statistics.put_pairs(&mut out, &file, "");
        statistics.put_lines6(&mut out, &file);
        statistics.put_sctp(&mut out, &file);
        prop_assert!(!out.iter().any(|b| b.is_ascii_control() && *b != b'\n'));
    }
}
