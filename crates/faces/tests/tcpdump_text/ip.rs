//! IPv4 with options and fragments, IPv6 with extension headers, protocols that are not decoded.

use crate::build::{DEST6, udp, v4, v4_with, v6};
use crate::harness::{check, check_ip, check_ip_and_damaged, damaged};
use record::rows::LinkType;

#[test]
fn ipv4_headers() {
    let datagram = udp(1, 2, b"");
    let mut packets = vec![v4_with(17, 0xb9, 0xe000, &[], &datagram), v4_with(17, 3, 5, &[], &datagram)];
    packets.push(v4(253, b"abcd"));
    check_ip(&packets);
}

#[test]
fn ipv4_options() {
    let datagram = udp(1, 2, b"");
    let mut packets = Vec::new();
    for option in [
        &[148, 4, 0, 0][..],
        &[148, 4, 0, 1, 130, 4, 0, 0],
        &[7, 11, 8, 10, 0, 0, 1, 10, 0, 0, 2, 0],
        &[131, 7, 4, 10, 0, 0, 1, 1],
        &[68, 12, 9, 0, 0, 0, 0, 1, 0, 0, 0, 2],
        &[68, 12, 5, 0x21, 10, 0, 0, 1, 0, 0, 0, 2],
        &[99, 4, 1, 2, 0, 0, 0, 0],
    ] {
        packets.push(v4_with(17, 0, 0, option, &datagram));
    }
    check_ip(&packets);
    check(LinkType::RAW, &damaged(&packets, 20, 36), &["", "-v", "-vv", "-e", "-q"]);
}

#[test]
fn ipv6_headers() {
    let datagram = udp(5301, 5302, b"abc");
    let mut packets = vec![v6(17, &datagram), v6(253, b"abcd"), v6(59, b"")];
    for (next, header) in [
        (0, &[17, 0, 1, 4, 0, 0, 0, 0][..]),
        (0, &[17, 0, 5, 2, 0, 0, 1, 0]),
        (60, &[17, 0, 0, 0, 0, 0, 0, 0]),
        (44, &[17, 0, 0, 1, 0, 0, 0, 9]),
        (44, &[17, 0, 0, 17, 0, 0, 0, 9]),
        (0, &[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]),
    ] {
        packets.push(v6(next, &[header, &datagram].concat()));
    }
    packets.push(v6(60, &[&[0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0][..], &datagram].concat()));
    let home = [&[17, 2, 0xc9, 16][..], &[0xfd; 16], &[1, 2, 0, 0]].concat();
    check_ip(&[v6(60, &[&home[..], &datagram].concat())]);
    check_ip_and_damaged(&packets, 41, 51);
}

/// Lengths of jumbograms: right, needless, twice, too small, missing.
#[test]
fn jumbograms() {
    let mut packets = Vec::new();
    for (length, options) in [
        (0, &[17, 0, 0xc2, 4, 0, 1, 0, 0][..]),
        (0, &[17, 0, 0xc2, 4, 0, 0, 0, 5]),
        (9, &[17, 0, 0xc2, 4, 0, 1, 0, 0]),
        (0, &[17, 1, 0xc2, 4, 0, 1, 0, 0, 0xc2, 4, 0, 1, 0, 0, 1, 0]),
        (0, &[17, 0, 1, 4, 0, 0, 0, 0]),
    ] {
        let mut packet = v6(0, &[options, &udp(5301, 5302, b"abc")].concat());
        packet[5] = if length == 0 { 0 } else { packet[5] };
        packets.push(packet);
    }
    let mut short = v6(17, &udp(1, 2, b""));
    short[5] = 0;
    packets.push(short);
    check_ip_and_damaged(&packets, 40, 56);
}

/// Extension headers that are longer than the length in the option.
#[test]
fn jumbograms_with_long_headers() {
    let header = |next: u8| [&[next, 255, 1, 255][..], &[0; 2044]].concat();
    let packet = |length: u32, count: usize| {
        let jumbo = [&[60, 0, 0xc2, 4][..], &length.to_be_bytes()].concat();
        let mut packet = v6(0, &[jumbo, header(60).repeat(count - 1), header(17), udp(1, 2, b"abc")].concat());
        (packet[4], packet[5]) = (0, 0);
        let len = packet.len();
        (packet, len)
    };
    let packets = [packet(0x1_0000, 32), packet(0x1_0000, 33), packet(0x1_0008, 32), packet(0x1_0013, 32)];
    check(LinkType::RAW, &packets, &["", "-v", "-e", "-q"]);
}

#[test]
fn routing_headers() {
    let datagram = udp(5301, 5302, b"abc");
    let mut packets = Vec::new();
    for (head, addresses) in [
        ([17, 2, 0, 1, 0, 0, 0, 0], 1),
        ([17, 4, 0, 2, 0, 0, 0, 9], 2),
        ([17, 2, 2, 1, 0, 0, 0, 0], 1),
        ([17, 4, 4, 1, 1, 0x40, 0x12, 0x34], 2),
        ([17, 0, 4, 0, 0, 0, 0, 0], 0),
        ([17, 0, 3, 1, 0x88, 0, 0, 0], 0),
        ([17, 1, 4, 1, 0, 0, 0, 0], 1),
    ] {
        packets.push(v6(43, &[&head[..], &DEST6.repeat(addresses), &datagram].concat()));
    }
    check_ip_and_damaged(&packets, 40, 66);
}
