//! UDP.

use crate::build::{ethernet, tcp_packets, udp, udp_packets, v4, v4_with, v6};
use crate::harness::{check, check_ip, cut_at_each_byte, damaged};
use record::rows::LinkType;

#[test]
fn datagrams() {
    let mut packets = udp_packets(4000, 4001, b"abc").to_vec();
    packets.extend([
        v4(17, &udp(1, 2, b"")),
        v4(17, &[0, 1, 0, 2, 0, 4, 0, 0, 9]),
        v4(17, &[0, 1, 0, 2, 0, 99, 1, 2, 9]),
        v4(17, &[0, 1, 0, 2]),
        v4_with(17, 0, 0x2000, &[], &udp(1, 2, b"first fragment..")),
        v6(17, &udp(1, 2, b"no checksum")),
    ]);
    check_ip(&packets);
    check(LinkType::RAW, &damaged(&packets[2..6], 24, 99), &["", "-v", "-vv", "-q", "-e"]);
}

/// The switches without those that tell all of a message.
const TERSE: &[&str] = &["", "-e", "-q", "-X", "-A"];

#[test]
fn dhcp() {
    let message = |operation: u8, kind: u8, len: u8| {
        let mut bytes = vec![operation, kind, len, 0, 1, 2, 3, 4];
        bytes.resize(28, 0);
        bytes.extend_from_slice(&[2, 0, 0, 0, 0, 1]);
        bytes.resize(236, 0);
        bytes.extend_from_slice(&[0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255]);
        bytes
    };
    let mut packets = udp_packets(68, 67, &message(1, 1, 6)).to_vec();
    for [operation, kind, len] in [[2, 1, 6], [3, 1, 6], [1, 6, 6], [1, 1, 8], [1, 32, 0]] {
        packets.push(v4(17, &udp(67, 68, &message(operation, kind, len))));
    }
    check(LinkType::RAW, &cut_at_each_byte(&packets), TERSE);
    check(LinkType::RAW, &damaged(&packets[2..], 28, 99), TERSE);
}

#[test]
fn dhcp6() {
    let messages = (0..40).map(|kind| udp_packets(546, 547, &[kind, 1, 2, 3, 0, 1, 0, 2, 9, 9])[1].clone());
    let packets: Vec<_> = messages.chain([v6(17, &udp(1, 546, b""))]).collect();
    check(LinkType::RAW, &cut_at_each_byte(&packets), TERSE);
    check(LinkType::RAW, &damaged(&packets[..1], 48, 99), TERSE);
}

/// `-T`: what a datagram carries, whatever its ports say.
#[test]
fn types_of_packets() {
    let query = [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x07example\x03com\0", &[0, 1, 0, 1]].concat();
    let over_tcp = [&(query.len() as u16).to_be_bytes(), &query[..]].concat();
    let tunnelled = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(0x0800, &v4(17, &udp(1, 53, &query)))].concat();
    let mut packets = udp_packets(5300, 5301, &query).to_vec();
    packets.extend(tcp_packets((80, 5301), 1, 2, 0x18, &[], &over_tcp));
    packets.extend(udp_packets(53, 5301, &tunnelled));
    packets.extend(udp_packets(53, 5301, b""));
    packets.push(v4(17, &[0, 1, 0, 2, 0, 99, 1, 2, 9]));
    let switches = ["-T domain", "-T vxlan", "-v -T domain", "-vv -T vxlan", "-q -T domain", "-e -T vxlan"];
    check(LinkType::RAW, &cut_at_each_byte(&packets), &switches);
    check(LinkType::RAW, &damaged(&packets[..3], 20, 60), &switches);
}
