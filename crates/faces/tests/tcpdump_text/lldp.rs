//! LLDP with `-v`.

use crate::build::{DEST6, ethernet};
use crate::harness::{check, cut_at_each_byte, damaged};
use record::rows::LinkType;

/// The switches that change the text of a message.
const VERBOSE: &[&str] = &["", "-v", "-vv", "-e", "-ve"];

fn entry(kind: u8, value: &[u8]) -> Vec<u8> {
    [&(u16::from(kind) << 9 | value.len() as u16).to_be_bytes(), value].concat()
}

/// An entry of an organisation.
fn private(organisation: [u8; 3], kind: u8, value: &[u8]) -> Vec<u8> {
    entry(127, &[&organisation[..], &[kind], value].concat())
}

fn frame(entries: &[u8]) -> Vec<u8> {
    ethernet(0x88cc, &[entries, &[0, 0]].concat())
}

#[test]
fn standard_entries() {
    let address = [&[5, 1, 192, 0, 2, 1, 2, 0, 0, 0, 9][..], &[3, b'1', b'.', b'3']].concat();
    let entries: Vec<Vec<u8>> = vec![
        entry(1, &[4, 2, 0, 0, 0, 0, 1]),
        entry(1, &[7, b'h', b'o', b's', b't', 0, b'x']),
        entry(1, &[5, 1, 192, 0, 2, 1]),
        entry(1, &[5, 9, 1]),
        entry(1, &[9, 1, 2]),
        entry(2, &[3, 2, 0, 0, 0, 0, 2]),
        entry(2, b"\x05eth0\x1b\xff"),
        entry(2, &[&[4, 2][..], &DEST6].concat()),
        entry(2, &[0, 1]),
        entry(3, &[0, 120]),
        entry(4, b"port one"),
        entry(5, b"switch.example\0x"),
        entry(6, b"a switch\nof two lines"),
        entry(7, &[0, 0x14, 0, 4]),
        entry(7, &[0, 0, 0xff, 0xff]),
        entry(8, &address),
        entry(8, &[&[17, 2][..], &DEST6, &[3, 0, 0, 1, 0, 0]].concat()),
        entry(8, &[7, 6, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1]),
        entry(8, &[2, 196, 7, 1, 0, 0, 0, 1]),
        entry(9, b"reserved"),
        entry(126, b"r"),
        private([0, 0, 0x5e], 1, b"https://example.org/\x1b"),
        private([0, 0, 0x5e], 2, b"four"),
        private([0, 0, 0x5e], 1, b"x"),
        private([1, 2, 3], 1, b"unknown"),
    ];
    let mut frames: Vec<_> = entries.iter().map(|entry| frame(entry)).collect();
    frames.push(frame(&entries.concat()));
    check(LinkType::ETHERNET, &cut_at_each_byte(&frames[..entries.len()]), VERBOSE);
    check(LinkType::ETHERNET, &damaged(&frames[..entries.len()], 14, 60), VERBOSE);
    check(LinkType::ETHERNET, &damaged(&frames[entries.len()..], 14, 400), &["-v"]);
}

/// Every type of entry of each organisation, with every length up to thirty.
#[test]
fn private_entries() {
    let value: Vec<u8> = (0..30).map(|n| (n as u8).wrapping_mul(37).wrapping_add(1)).collect();
    let mut frames = Vec::new();
    for organisation in [[0, 0x80, 0xc2], [0, 0x12, 0x0f], [0, 0x12, 0xbb], [0, 0x1b, 0x21]] {
        for kind in 0..16 {
            for len in 0..=30 {
                frames.push(frame(&private(organisation, kind, &value[..len])));
            }
        }
    }
    frames.extend((0..4).map(|len| frame(&entry(127, &[0, 0x12, 0xbb, 1][..len]))));
    check(LinkType::ETHERNET, &frames.iter().map(|frame| (frame.clone(), frame.len())).collect::<Vec<_>>(), VERBOSE);
    let few: Vec<_> = frames.iter().filter(|frame| frame.len() == 14 + 2 + 4 + 25 + 2).cloned().collect();
    check(LinkType::ETHERNET, &damaged(&few, 16, 50), &["-v"]);
}

#[test]
fn places_and_data_centers() {
    let civic =
        [&[2, 17, 2, b'D', b'E'][..], &[1, 3, b'a', b'b', b'c'], &[6, 4, b's', 0, b'x', 0xff], &[3, 1, b'z']].concat();
    let mut entries: Vec<Vec<u8>> = vec![
        private([0, 0x12, 0xbb], 3, &civic),
        private([0, 0x12, 0xbb], 3, &[2, 9, 1, b'D', b'E', 1, 0, 2, 2, b'a', b'b']),
        private([0, 0x12, 0xbb], 3, &[2, 8, 9, b'D', b'E', 1, 9, 2, 2, b'a', b'b']),
        private([0, 0x12, 0xbb], 3, &[2, 4, 9, b'D', b'E', 1, 9, 2, 2, b'a', b'b']),
        private([0, 0x12, 0xbb], 3, b"\x03+49 30 1234"),
        private([0, 0x12, 0xbb], 4, &[0xd3, 3, 0xff]),
        private([0, 0x12, 0xbb], 4, &[0x12, 4, 0]),
        private([0, 0x12, 0xbb], 2, &[1, 0x45, 0x91, 0x6e]),
    ];
    let part = |kind: u16, value: &[u8]| [&(kind << 9 | value.len() as u16).to_be_bytes(), value].concat();
    let numbers: Vec<u8> = (0..24_u8).map(|n| n.wrapping_mul(11).wrapping_add(160)).collect();
    let parts: Vec<Vec<u8>> = vec![
        part(1, &numbers[..10]),
        part(2, &numbers[..17]),
        part(3, &numbers[..7]),
        part(4, &numbers[..16]),
        part(5, &numbers[..3]),
        part(1, &numbers[..9]),
        part(4, &numbers[..22]),
    ];
    for kind in [1, 2, 3] {
        entries.extend(parts.iter().map(|part| private([0, 0x1b, 0x21], kind, part)));
    }
    entries.push(private([0, 0x1b, 0x21], 2, &parts.concat()));
    entries.push(private([0, 0x1b, 0x21], 2, &[&parts[0][..], &parts[4], &[0, 0]].concat()));
    let frames: Vec<_> = entries.iter().map(|entry| frame(entry)).collect();
    check(LinkType::ETHERNET, &cut_at_each_byte(&frames), VERBOSE);
    check(LinkType::ETHERNET, &damaged(&frames, 20, 120), &["-v", "-vv"]);
}
