//! ICMP, ICMPv6, IGMP.

use crate::build::{DEST6, message, summed, tcp_packets, udp_packets, v4, v6};
use crate::harness::{check, check_ip, check_ip_and_damaged, cut_at_each_byte, damaged};
use record::rows::LinkType;

#[test]
fn messages() {
    let mut packets = Vec::new();
    for kind in 0..20 {
        packets
            .push(v4(1, &message(kind, 0, &[0x72, 0x67, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])));
    }
    packets.push(v4(1, &message(9, 0, &[1, 2, 7, 8, 192, 0, 2, 1, 0, 0, 0, 9])));
    check_ip_and_damaged(&packets, 20, 36);
}

#[test]
fn errors_quote_a_packet() {
    let [quoted, _] = udp_packets(5300, 4000, b"abcdefgh");
    let [segment, _] = tcp_packets((8000, 4000), 1, 2, 0x10, &[], b"");
    let mut packets = Vec::new();
    for code in 0..17 {
        packets.push(v4(1, &message(3, code, &[&[0, 0, 5, 120][..], &quoted].concat())));
    }
    for (kind, code) in
        [(3, 3), (4, 0), (5, 0), (5, 1), (5, 2), (5, 3), (5, 9), (11, 0), (11, 1), (11, 2), (12, 0), (12, 1)]
    {
        packets.push(v4(1, &message(kind, code, &[&[192, 0, 2, 1][..], &segment].concat())));
        packets.push(v4(1, &message(kind, code, &[&[0, 0, 0, 0][..], &quoted[..28]].concat())));
    }
    check_ip_and_damaged(&packets, 20, 30);
}

#[test]
fn icmp6_messages() {
    let [_, quoted] = udp_packets(5300, 4000, b"abcdefgh");
    let six = |kind: u8, code: u8, rest: &[u8]| v6(58, &summed(true, 58, 2, [&[kind, code, 0, 0][..], rest].concat()));
    let mut packets = vec![
        six(128, 0, &[0, 1, 0, 2, 1, 2, 3, 4]),
        six(129, 0, &[0, 1, 0, 2]),
        six(135, 0, &[&[0; 4][..], &DEST6, &[1, 1, 2, 0, 0, 0, 0, 1]].concat()),
        six(136, 0, &[&[0xe0, 0, 0, 0][..], &DEST6, &[2, 1, 2, 0, 0, 0, 0, 1]].concat()),
        six(133, 0, &[0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1]),
        six(2, 0, &[&[0, 0, 5, 0][..], &quoted].concat()),
    ];
    for code in 0..10 {
        packets.push(six(1, code, &[&[0; 4][..], &quoted].concat()));
    }
    for (kind, code) in [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3), (4, 9)] {
        packets.push(six(kind, code, &[&[0, 0, 0, 9][..], &quoted].concat()));
    }
    check_ip(&packets);
    // Without what `-v` adds.
    check(LinkType::RAW, &damaged(&packets, 41, 48), &["", "-e", "-q", "-X"]);
}

/// Errors, which quote a packet; node information, renumbering and RPL, which are not decoded.
const UNDECODED6: [u8; 8] = [1, 2, 3, 4, 138, 139, 140, 155];

#[test]
fn icmp6_kinds() {
    let kinds = (0..=255).filter(|kind| !UNDECODED6.contains(kind)).map(|kind| {
        let body: Vec<u8> = (1..61).collect();
        v6(58, &summed(true, 58, 2, [&[kind, 0, 0, 0][..], &body].concat()))
    });
    check(LinkType::RAW, &kinds.map(|packet| (packet.clone(), packet.len())).collect::<Vec<_>>(), &["", "-e", "-q"]);
    let listeners = [130, 131, 132, 137, 144, 146].map(|kind| {
        let body: Vec<u8> = (1..61).collect();
        v6(58, &summed(true, 58, 2, [&[kind, 0, 0, 0][..], &body].concat()))
    });
    check(LinkType::RAW, &cut_at_each_byte(&listeners), &["", "-e", "-q", "-X", "-v", "-vv"]);
    let query = |delay: [u8; 2], flags: u8, interval: u8, count: u8| {
        let head = [&[130, 0, 0, 0][..], &delay, &[0, 0], &DEST6, &[flags, interval, 0, count]].concat();
        v6(58, &summed(true, 58, 2, [&head[..], &DEST6, &DEST6].concat()))
    };
    let queries = [query([0x27, 0x10], 2, 125, 0), query([0x91, 0x23], 0x0d, 0x9a, 2), query([0, 1], 0, 0xff, 3)];
    check(LinkType::RAW, &cut_at_each_byte(&queries), &["", "-v", "-vv", "-q"]);
    check(LinkType::RAW, &damaged(&queries, 44, 70), &["", "-v", "-vv", "-q"]);
}

#[test]
fn igmp_messages() {
    let group = [239, 1, 1, 1];
    let source = [192, 0, 2, 1];
    let mut packets = Vec::new();
    for (kind, code) in [(0x11, 0), (0x11, 100), (0x11, 25), (0x12, 0), (0x16, 0), (0x17, 0), (0x44, 0)] {
        packets.push(v4(2, &message(kind, code, &group)));
    }
    packets.push(v4(2, &message(0x11, 10, &[&group[..], &[0x0a, 125, 0, 1], &source].concat())));
    packets.push(v4(2, &message(0x11, 100, &[&[0; 4][..], &[2, 0x91, 0, 0]].concat())));
    for kind in [1, 4, 6, 9] {
        packets.push(v4(2, &message(0x22, 0, &[&[0, 0, 0, 1, kind, 0, 0, 1][..], &group, &source].concat())));
    }
    // Another kind is another protocol.
    check_ip_and_damaged(&packets, 21, 99);
}
