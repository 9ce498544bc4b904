//! SCTP.

use crate::build::{v4, v6};
use crate::harness::{check, check_ip, damaged};
use record::rows::LinkType;

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut chunk = [&[kind, flags][..], &(value.len() as u16 + 4).to_be_bytes(), value].concat();
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

fn packet(chunks: &[Vec<u8>]) -> Vec<u8> {
    [&[0x13, 0x88, 0x13, 0x89, 0, 0, 0xab, 0xcd, 0, 0, 0, 0][..], &chunks.concat()].concat()
}

/// Packets with intact chunks, and some with damaged ones.
fn packets() -> Vec<Vec<u8>> {
    let init = [0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0, 0, 5];
    let parameters = [0, 5, 0, 8, 192, 0, 2, 1, 0xc0, 0, 0, 4, 0, 12, 0, 8, 0, 5, 0, 6];
    let data = [0, 0, 0, 9, 0, 1, 0, 2, 0, 0, 0, 51, b'a', b'b', b'c'];
    let sack = [0, 0, 0, 8, 0, 0, 5, 220, 0, 2, 0, 1, 0, 2, 0, 3, 0, 5, 0, 5, 0, 0, 0, 77];
    let mut packets = vec![
        packet(&[chunk(1, 0, &init)]),
        packet(&[chunk(1, 0, &[&init[..], &parameters].concat())]),
        packet(&[chunk(2, 0, &[&init[..], &[0, 7, 0, 8, 1, 2, 3, 4]].concat())]),
        packet(&[chunk(0, 3, &data), chunk(0, 7, &data), chunk(0, 0, &data)]),
        packet(&[chunk(3, 0, &sack), chunk(0, 3, &data)]),
        packet(&[chunk(10, 0, b"cookie"), chunk(0, 2, &data)]),
        packet(&[chunk(4, 0, &[0, 1, 0, 8, 1, 2, 3, 4])]),
        packet(&[chunk(6, 1, &[0, 2, 0, 8, 0, 1, 0, 0]), chunk(9, 0, &[0, 3, 0, 8, 0, 0, 0, 1])]),
        packet(&[]),
        packet(&[vec![11, 0]]),
        packet(&[vec![11, 0, 0, 64]]),
    ];
    for kind in [5, 7, 8, 11, 12, 13, 14, 15, 0x40, 0x80, 0x81, 0x82, 0xa2, 0xc0, 0xc1] {
        packets.push(packet(&[chunk(kind, 0, &[0, 0, 0, 1, 0, 0, 0, 2])]));
    }
    packets
}

#[test]
fn chunks() {
    let mut all: Vec<_> = packets().iter().map(|packet| v4(132, packet)).collect();
    all.push(v6(132, &packets()[3]));
    all.push(v6(0, &[&[132, 0, 1, 4, 0, 0, 0, 0][..], &packets()[3]].concat()));
    all.push(v4(132, &[0, 1, 0, 2, 3]));
    check_ip(&all);
    check(LinkType::RAW, &damaged(&all, 32, 999), &["", "-v", "-e", "-q", "-vv"]);
    let kinds = (0..=255).map(|kind| v4(132, &packet(&[chunk(kind, 0, &[0; 12]), vec![11, 0, 0, 5, 1]])));
    check(LinkType::RAW, &kinds.map(|packet| (packet.clone(), packet.len())).collect::<Vec<_>>(), &["", "-vv"]);
}
