//! Protocols over UDP and TCP: the packets of `corpus/*.hex`, named Ethernet frames.

use crate::harness::{Packet, check, damaged};
use record::rows::LinkType;

/// Offset of the data after Ethernet, IPv4, and UDP or TCP.
const UDP: usize = 14 + 20 + 8;
const TCP: usize = 14 + 20 + 20;
const ALL: usize = usize::MAX - TCP;
const SWITCHES: &[&str] = &["", "-v", "-vv", "-vvv", "-q", "-e", "-X"];

/// Reads the frames of a file: a line `# description`, then a line of hexadecimal digits.
fn frames(corpus: &str) -> Vec<Vec<u8>> {
    let digits = |line: &str, at: usize| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
    let frame = |line: &str| (0..line.len()).step_by(2).map(|at| digits(line, at)).collect();
    corpus.lines().filter(|line| !line.starts_with('#')).map(frame).collect()
}

/// Compares each frame whole, cut at each byte after the headers, and with each of `data` bytes there changed.
fn check_corpus(corpus: &str, headers: usize, data: usize) {
    let frames = frames(corpus);
    let mut packets: Vec<Packet> = frames.iter().map(|frame| (frame.clone(), frame.len())).collect();
    for frame in &frames {
        packets.extend((headers..frame.len()).map(|len| (frame[..len].to_vec(), frame.len())));
    }
    check(LinkType::ETHERNET, &packets, SWITCHES);
    check(LinkType::ETHERNET, &damaged(&frames, headers, headers + data), &["", "-vvv"]);
}

#[test]
fn vxlan() {
    check_corpus(include_str!("corpus/vxlan.hex"), UDP, 22);
}

#[test]
fn geneve() {
    check_corpus(include_str!("corpus/geneve.hex"), UDP, 22);
}

#[test]
fn dns() {
    check_corpus(include_str!("corpus/dns.hex"), UDP, ALL);
}

#[test]
fn dns_over_tcp() {
    check_corpus(include_str!("corpus/dns_tcp.hex"), TCP, ALL);
}

#[test]
fn multicast_dns() {
    check_corpus(include_str!("corpus/mdns.hex"), UDP, ALL);
}

#[test]
fn http() {
    check_corpus(include_str!("corpus/http.hex"), TCP, ALL);
}

#[test]
fn ntp() {
    check_corpus(include_str!("corpus/ntp.hex"), UDP, ALL);
}

/// Names that point to one another would turn a message of 64 KiB into hundreds of MiB of text.
#[test]
fn hostile_names_make_no_endless_text() {
    let mut message = vec![0, 1, 0x01, 0x00, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
    // A long name, then questions for it.
    (0..50).for_each(|_| message.extend_from_slice(&[&[63][..], &[0xff; 63]].concat()));
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    while message.len() < 65_000 {
        message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
    }
    let frame = crate::build::v4(17, &crate::build::udp(53, 4000, &message));
    let text = crate::harness::print(LinkType::RAW, &[(frame.clone(), frame.len())], "-vvv");
    assert!(text[0].len() < 66 * frame.len(), "{} bytes of text of {}", text[0].len(), frame.len());
}
