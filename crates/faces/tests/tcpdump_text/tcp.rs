//! TCP: flags, options, sequence numbers relative to a connection's first.

use crate::build::{tcp_packets, v4, v4_with};
use crate::harness::{check, check_ip, check_ip_and_damaged, damaged};
use record::rows::LinkType;

const DAMAGED: &[&str] = &["", "-v", "-q", "-e", "-S"];

/// Packets of IPv4: their TCP header begins after 20 bytes.
fn heads(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().filter(|packet| packet[0] >> 4 == 4).cloned().collect()
}

#[test]
fn segments() {
    let to = (40000, 9000);
    let from = (9000, 40000);
    let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let times = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let sack = [1, 1, 5, 10, 0, 0, 4, 0, 0, 0, 5, 0];
    let mut packets = Vec::new();
    for segment in [
        tcp_packets(to, 1000, 0, 0x02, &syn, b""),
        tcp_packets(from, 2000, 1001, 0x12, &syn, b""),
        tcp_packets(to, 1001, 2001, 0x10, &times, b""),
        tcp_packets(to, 1001, 2001, 0x18, &times, b"hello, world\r\n"),
        tcp_packets(from, 2001, 1015, 0x10, &sack, b""),
        tcp_packets(from, 2001, 1015, 0xff, &[], b"x"),
        tcp_packets(to, 1015, 0, 0x04, &[], b""),
        tcp_packets(to, 1015, 5, 0x14, &[], b"because \x01 of \xff that, and of much more text"),
        tcp_packets(from, 2002, 1016, 0x00, &[], b""),
    ] {
        packets.extend(segment);
    }
    check_ip(&packets);
    check(LinkType::RAW, &damaged(&heads(&packets), 32, 60), DAMAGED);
}

#[test]
fn options() {
    let mut packets = Vec::new();
    for option in [
        &[6, 6, 0, 0, 0, 9, 7, 6, 0, 0, 0, 9][..],
        &[11, 6, 0, 0, 0, 9, 12, 6, 0, 0, 0, 9],
        &[19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 1],
        &[20, 4, 1, 2, 28, 4, 0x80, 0x09],
        &[28, 4, 0, 9, 34, 2, 1, 1],
        &[34, 6, 1, 2, 3, 4, 34, 5, 1, 2, 3, 1],
        &[254, 4, 0xf9, 0x89, 254, 6, 0xf9, 0x89, 1, 2, 1, 1],
        &[254, 8, 0xf9, 0x89, 1, 2, 3, 4],
        &[254, 6, 1, 2, 3, 4, 253, 6, 9, 9, 9, 9, 77, 2, 1, 1],
        &[2, 3, 1, 3, 4, 1, 1, 1],
        &[0, 1, 1, 1],
        &[29, 4, 1, 2, 29, 8, 1, 2, 3, 4, 5, 6],
        &[5, 9, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1],
    ] {
        packets.extend(tcp_packets((1, 2), 1, 1, 0x10, option, b""));
        packets.push(tcp_packets((1, 2), 1, 1, 0x02, option, b"")[0].clone());
    }
    check_ip(&packets);
    check(LinkType::RAW, &damaged(&heads(&packets), 32, 60), DAMAGED);
}

#[test]
fn fragments_and_lies() {
    let [packet, _] = tcp_packets((1, 2), 1, 1, 0x18, &[], b"payload");
    let segment = &packet[20..];
    check_ip(&[v4_with(6, 0, 0x2000, &[], segment), v4_with(6, 0, 3, &[], segment), v4(6, &segment[..20])]);
}

/// Multipath TCP: each type, each length, each flag of the option and of the segment.
#[test]
fn multipath() {
    let value: Vec<u8> = (0..40).map(|n: u8| n.wrapping_mul(37)).collect();
    let mut packets = Vec::new();
    for (kind, flags) in (0..=255).flat_map(|kind| [0, 1, 5, 0x0f, 0x14, 0x1d, 0x81].map(|flags| (kind, flags))) {
        for len in 2..31 {
            let option = [&[30, len as u8, kind, flags][..], &value].concat();
            let mut options = option[..len.max(4)].to_vec();
            options.resize(options.len().next_multiple_of(4), 1);
            let segment_flags = [0x02, 0x12, 0x10][(usize::from(kind) + len + usize::from(flags)) % 3];
            let [packet, _] = tcp_packets((1, 2), 1, 1, segment_flags, &options, b"");
            packets.push((packet.clone(), packet.len()));
        }
    }
    check(LinkType::RAW, &packets, &["", "-v", "-q"]);
}

#[test]
fn multipath_cut() {
    let key = [1, 2, 3, 4, 5, 6, 7, 8];
    let of = |head: &[u8], rest: &[&[u8]]| {
        let mut option = [&[30, 0][..], head, &rest.concat()].concat();
        option[1] = option.len() as u8;
        option.resize(option.len().next_multiple_of(4), 1);
        option
    };
    let mut packets = Vec::new();
    for (flags, option) in [
        (0x02, of(&[1, 1], &[])),
        (0x10, of(&[1, 0x81], &[&key, &key, &[0, 5]])),
        (0x02, of(&[0x11, 5], &[&key])),
        (0x12, of(&[0x10, 5], &[&key, &key[..4]])),
        (0x10, of(&[0x10, 5], &[&key, &key, &key[..4]])),
        (0x10, of(&[0x20, 0x1d], &[&key[..4], &key, &key[..4], &[0, 5, 0xab, 0xcd]])),
        (0x10, of(&[0x30, 7], &[&key[..4], &[0, 80], &key])),
        (0x10, of(&[0x40, 7, 8], &[])),
        (0x10, of(&[0x70, 0], &[&key])),
    ] {
        packets.extend(tcp_packets((1, 2), 1, 1, flags, &option, b"payload"));
    }
    check_ip_and_damaged(&packets, 53, 72);
}
