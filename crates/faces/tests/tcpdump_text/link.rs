//! Link types, EtherTypes, VLAN tags, IEEE 802.2, ARP; times and numbers before lines.

use crate::build::{ethernet, udp, v4};
use crate::harness::{SWITCHES, check, cut_at_each_byte, damaged};
use record::rows::LinkType;

fn datagram() -> Vec<u8> {
    v4(17, &udp(1, 2, b"abc"))
}

#[test]
fn ethernet_frames() {
    let tagged = |tags: &[u8]| ethernet(u16::from_be_bytes([tags[0], tags[1]]), &[&tags[2..], &datagram()].concat());
    let packets = [
        ethernet(0x0800, &datagram()),
        tagged(&[0x81, 0, 0xf0, 0x64, 0x88, 0xa8, 1, 2, 8, 0]),
        tagged(&[0x91, 0, 0, 1, 0xaa, 0xaa]),
        ethernet(0x88b5, b"hello"),
        ethernet(0x86dd, &datagram()),
        ethernet(48, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &datagram()].concat()),
    ];
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), SWITCHES);
    // The third becomes a loopback test, which is not decoded.
    for packets in [&packets[..2], &packets[3..]] {
        check(LinkType::ETHERNET, &damaged(packets, 12, 22), &["", "-v", "-e", "-q", "-X", "-qe"]);
    }
}

#[test]
fn arp() {
    let body = |operation: u8, target: u8| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 0x10, 192, 0, 2, 10];
        ethernet(0x0806, &[&head[..], &[target; 6], &[192, 0, 2, 1]].concat())
    };
    let packets: Vec<_> = [1, 2, 3, 4, 8, 9, 10, 77].into_iter().flat_map(|op| [body(op, 0), body(op, 9)]).collect();
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), SWITCHES);
    check(LinkType::ETHERNET, &damaged(&packets, 14, 99), &["", "-v", "-e", "-q", "-X"]);
}

/// Frames of IEEE 802.3: each type of control field; right, too small and too large lengths; spanning tree.
#[test]
fn logical_link_control() {
    let mut packets = Vec::new();
    for points in [[0x42, 0x42], [2, 4], [8, 8], [2, 5], [0xfe, 0x4e], [0x8e, 0x7e], [0xaa, 0x55], [0xf0, 0xf1]] {
        for control in [3, 0, 1, 5, 9, 13, 0xff, 0xe3, 0xaf, 0xbf, 0x6f, 0x43, 0x63, 0x87, 0x0f, 0x13] {
            let frame = [&points[..], &[control], &[0x81, 1, 2, 3, 4, 5]].concat();
            packets.push(ethernet(9, &frame));
            packets.push(ethernet(u16::from(control) % 9, &frame));
            packets.push(ethernet(20, &frame));
        }
    }
    let packets = cut_at_each_byte(&packets);
    check(LinkType::ETHERNET, &packets, &["", "-e", "-q", "-X", "-v"]);
}

/// A spanning tree message; `more` follows a configuration.
fn spanning_tree(version: u8, kind: u8, flags: u8, more: &[u8]) -> Vec<u8> {
    let bridge = |priority: u8, last: u8| [0x80, priority, 2, 0, 0, 0, 0, last];
    let head = [0x42, 0x42, 3, 0, 0, version, kind, flags];
    let tail = [0x80, 1, 1, 0, 20, 0x20, 2, 0x81, 15, 0xff];
    let message = [&head[..], &bridge(0, 1), &[0, 0, 0, 4], &bridge(1, 2), &tail, more].concat();
    ethernet(message.len() as u16, &message)
}

#[test]
fn spanning_trees() {
    let mut packets: Vec<_> = [(0, 0), (2, 0), (0, 0x80), (1, 0), (9, 0), (0, 2), (0, 7), (3, 2)]
        .map(|(version, kind)| spanning_tree(version, kind, 0x55, &[]))
        .to_vec();
    packets.extend([0, 0x3c, 0xff, 8].map(|flags| spanning_tree(2, 2, flags, &[0])));
    for (instances, name) in [(0, &b"region"[..]), (1, &[b'x'; 32]), (2, b"a\x01\xff")] {
        let mut more = vec![0, 0, 64 + 16 * instances, 0];
        more.extend_from_slice(name);
        more.resize(36, 0);
        more.extend_from_slice(&[0, 7]);
        more.extend(0..16);
        more.extend_from_slice(&[0, 0, 0, 12, 0x80, 2, 2, 0, 0, 0, 0, 3, 19]);
        for n in 0..instances {
            more.extend_from_slice(&[0x7c, 0x80, n, 2, 0, 0, 0, 0, 9, 0, 0, 3, 9, 0x80, 0x90, 18]);
        }
        packets.push(spanning_tree(3, 2, 0x3e, &more));
    }
    packets.push(ethernet(43, &[&[0xaa, 0xaa, 3, 0, 0, 0xc, 1, 0xb][..], &packets[0][17..]].concat()));
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), SWITCHES);
    check(LinkType::ETHERNET, &damaged(&packets, 17, 999), &["", "-v", "-e", "-q", "-X"]);
}

#[test]
fn snap() {
    let with = |head: &[u8]| ethernet(39, &[&[0xaa, 0xaa, 3][..], head, &datagram()].concat());
    let packets = [with(&[0, 0, 0, 8, 0]), with(&[0, 0, 0xf8, 8, 0]), with(&[1, 2, 3, 4, 5])];
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), SWITCHES);
    check(LinkType::ETHERNET, &damaged(&packets[..1], 12, 22), &["", "-v", "-e", "-q", "-X"]);
}

#[test]
fn link_types_without_ethernet() {
    let packet = datagram();
    let with = |head: &[u8]| [head, &packet].concat();
    for (link_type, packets) in [
        (LinkType::NULL, vec![with(&[2, 0, 0, 0]), with(&[0, 0, 0, 2]), with(&[0xff, 0xff, 0, 0])]),
        (LinkType::LOOP, vec![with(&[0, 0, 0, 2])]),
        (LinkType::RAW, vec![with(&[]), with(&[0x10])]),
        (
            LinkType::SLL,
            vec![
                with(&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0]),
                with(&[0, 4, 0, 1, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0xaa, 0xaa]),
                with(&[0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x81, 0, 0, 1, 8, 0]),
            ],
        ),
        (
            LinkType::SLL2,
            vec![
                with(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]),
                with(&[8, 0, 0, 0, 0, 9, 0, 1, 0, 1, 4, 0, 2, 0, 0, 0, 0, 1, 0, 0]),
                with(&[0x81, 0, 0, 0, 0, 0, 0, 1, 0, 1, 3, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 7, 8, 0]),
            ],
        ),
    ] {
        check(link_type, &cut_at_each_byte(&packets), SWITCHES);
        // Cut the header, not the packet after it.
        for packet in packets {
            let header = packet.len() - datagram().len();
            check(link_type, &damaged(&[packet], 0, header), &["", "-v", "-e", "-q", "-X"]);
        }
    }
}

#[test]
fn what_stands_before_lines() {
    let packets = vec![(datagram(), 100); 12];
    check(LinkType::RAW, &packets, &["-t", "-tt", "-ttt", "-tttt", "-ttttt", "-#", "-#ttt", "-AA"]);
}

/// Link layer discovery without `-v`.
#[test]
fn link_layer_discovery() {
    let entry = |kind: u16, value: &[u8]| [&(kind << 9 | value.len() as u16).to_be_bytes()[..], value].concat();
    let head = [entry(1, &[4, 2, 0, 0, 0, 0, 1]), entry(2, b"\x05eth0"), entry(3, &[0, 120])].concat();
    let named =
        [entry(4, b"port"), entry(5, b"switch\x01\xff"), entry(6, b"system"), entry(127, &[0, 0x80, 0xc2, 1, 0, 1])];
    let with = |entries: &[u8]| ethernet(0x88cc, &[&head, entries].concat());
    let packets = [
        with(&entry(0, b"")),
        with(&[named.concat(), entry(0, b""), entry(5, b"behind")].concat()),
        with(&[entry(5, b""), entry(5, b"a"), entry(5, b"b")].concat()),
        ethernet(0x88cc, b""),
        ethernet(0x88cc, &[10]),
        ethernet(0x88cc, &[10, 99, 1]),
    ];
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), &["", "-e", "-q", "-X", "-A", "-qe"]);
    check(LinkType::ETHERNET, &damaged(&packets, 14, 99), &["", "-e", "-q"]);
}
