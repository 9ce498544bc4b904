//! TCP: flags, options, sequence numbers relative to a connection's first.

use crate::build::{tcp_packets, v4, v4_with};
use crate::harness::check_ip;

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
}

#[test]
fn fragments_and_lies() {
    let [packet, _] = tcp_packets((1, 2), 1, 1, 0x18, &[], b"payload");
    let segment = &packet[20..];
    check_ip(&[v4_with(6, 0, 0x2000, &[], segment), v4_with(6, 0, 3, &[], segment), v4(6, &segment[..20])]);
}
