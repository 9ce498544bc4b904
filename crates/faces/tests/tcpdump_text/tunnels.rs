//! Packets within packets: IPv4 and IPv6 in either, GRE with its fields, versions and frames.

use crate::build::{ethernet, udp, udp_packets, v4, v4_with, v6};
use crate::harness::{check, check_ip_and_damaged, cut_at_each_byte};
use record::rows::LinkType;

const HEADER: usize = 20;

#[test]
fn ip_in_ip() {
    let [four, six] = udp_packets(4000, 4001, b"abc");
    let mut packets = vec![v4(4, &four), v4(41, &six), v6(4, &four), v6(41, &six)];
    packets.push(v4(4, &v4_with(17, 0, 0x2000, &[], &udp(1, 2, b"abcdefgh"))));
    packets.push(v4(4, &v4(4, &v4(41, &v6(4, &four)))));
    check_ip_and_damaged(&packets, HEADER, HEADER + 9);
}

#[test]
fn gre() {
    let [four, six] = udp_packets(4000, 4001, b"abc");
    let with = |head: &[u8], inner: &[u8]| v4(47, &[head, inner].concat());
    let packets = [
        with(&[0, 0, 8, 0], &four),
        with(&[0, 0, 0x86, 0xdd], &six),
        with(&[0x20, 0, 8, 0, 0, 0, 0, 42], &four),
        with(&[0x30, 0, 8, 0, 0, 0, 0, 42, 0, 0, 0, 7], &four),
        with(&[0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 42, 0, 0, 0, 7], &four),
        with(&[0x80, 0, 8, 0, 1, 2, 0, 0], &four),
        with(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &ethernet(0x0800, &four)),
        with(&[0, 0, 0x65, 0x58], &ethernet(0x0806, &[9; 28])),
        with(&[0, 0, 0x12, 0x34], b"abcd"),
        with(&[0x10, 2, 8, 0, 0, 0, 0, 1], &four),
        v6(47, &[&[0x20, 0, 0x86, 0xdd, 0, 0, 0, 1][..], &six].concat()),
    ];
    check_ip_and_damaged(&packets, HEADER, HEADER + 16);
}

#[test]
fn gre_with_source_routes() {
    let [four, _] = udp_packets(4000, 4001, b"abc");
    let routes: [&[u8]; 3] = [
        &[8, 0, 4, 8, 192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 0, 0],
        &[0xff, 0xfe, 0, 4, 0, 9, 0xab, 0xcd, 0, 0, 0, 0],
        &[0x12, 0x34, 0, 2, 1, 2, 0, 0, 0, 0],
    ];
    let packets = routes.map(|route| v4(47, &[&[0x40, 0, 8, 0, 0, 0, 0, 4][..], route, &four].concat()));
    check_ip_and_damaged(&packets, HEADER, HEADER + 16);
}

#[test]
fn gre_of_pptp() {
    let packets = [
        &[0x30, 1, 0x88, 0x0c, 0, 4, 0, 9, 0, 0, 0, 7, 1, 2, 3, 4][..],
        &[0x20, 0x81, 0x88, 0x0c, 0, 0, 0, 9, 0, 0, 0, 8],
    ]
    .map(|packet| v4(47, packet));
    check_ip_and_damaged(&packets, HEADER, HEADER + 16);
}

/// More nested packets than are followed: the line ends, but the stack does not overflow.
#[test]
fn depth_is_bounded() {
    let mut packet = udp(1, 2, b"");
    packet = v4(17, &packet);
    for _ in 0..2000 {
        packet = v4(4, &packet);
    }
    let text = crate::harness::print(LinkType::RAW, &[(packet.clone(), packet.len())], "");
    assert!(text[0].ends_with(b" [|ip]\n"), "{}", String::from_utf8_lossy(&text[0]));
    assert!(text[0].len() < 1000, "{} bytes", text[0].len());
    let shallow = v4(4, &v4(4, &v4(17, &udp(1, 2, b""))));
    check(LinkType::RAW, &cut_at_each_byte(&[shallow]), &[""]);
}
