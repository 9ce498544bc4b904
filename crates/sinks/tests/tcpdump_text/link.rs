//! Link types, EtherTypes, VLAN tags, IEEE 802.2, ARP; times and numbers before lines.

use crate::build::{ethernet, udp, v4};
use crate::harness::{SWITCHES, check, cut_at_each_byte};
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
}

#[test]
fn arp() {
    let body = |operation: u8, target: u8| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 0x10, 192, 0, 2, 10];
        ethernet(0x0806, &[&head[..], &[target; 6], &[192, 0, 2, 1]].concat())
    };
    let packets: Vec<_> = [1, 2, 3, 4, 8, 9, 10, 77].into_iter().flat_map(|op| [body(op, 0), body(op, 9)]).collect();
    check(LinkType::ETHERNET, &cut_at_each_byte(&packets), SWITCHES);
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
    }
}

#[test]
fn what_stands_before_lines() {
    let packets = vec![(datagram(), 100); 12];
    check(LinkType::RAW, &packets, &["-t", "-tt", "-ttt", "-tttt", "-ttttt", "-#", "-#ttt", "-AA"]);
}
