//! IPv4 with options and fragments, IPv6 with extension headers, protocols that are not decoded.

use crate::build::{udp, v4, v4_with, v6};
use crate::harness::{check, check_ip, damaged};
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
    let datagram = udp(4000, 4001, b"abc");
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
    check_ip(&packets);
}
