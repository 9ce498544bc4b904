#![allow(clippy::unwrap_used)]
use super::*;
use crate::link::read_frame;
use record::rows::LinkType;

fn info(packet: &[u8]) -> String {
    info_of(packet, packet.len() as u32)
}

fn info_of(packet: &[u8], len: u32) -> String {
    let mut row = CapturedPacket { link_type: LinkType::RAW, frame: packet, len, ..CapturedPacket::default() };
    read_frame(&mut row);
    let mut out = Vec::new();
    put_info(&row, &mut out);
    String::from_utf8(out).unwrap()
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
fn v4(proto: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 7, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&head[..], payload].concat()
}

fn udp(sport: u16, dport: u16, data: &[u8]) -> Vec<u8> {
    let length = 8 + data.len() as u16;
    let words = [sport, dport, length, 0];
    v4(17, &[&words.map(u16::to_be_bytes).concat()[..], data].concat())
}

#[test]
fn tcp_says_flags_numbers_and_options() {
    let mut syn = vec![0x9c, 0x40, 1, 187, 0, 0, 0, 5, 0, 0, 0, 0, 0x80, 2, 0xfa, 0xf0, 0, 0, 0, 0];
    syn.extend([2, 4, 5, 0xb4, 4, 2, 1, 3, 3, 7, 0, 0]);
    assert_eq!(info(&v4(6, &syn)), "syn seq 5 win 64240 len 0 mss 1460 sackok wscale 7");
    let mut data = syn[..20].to_vec();
    (data[11], data[12], data[13]) = (9, 0x50, 0x18);
    data.extend([0; 100]);
    assert_eq!(info(&v4(6, &data)), "psh,ack seq 5 ack 9 win 64240 len 100");
    let whole = v4(6, &data);
    assert_eq!(info_of(&whole[..40], 140), "psh,ack seq 5 ack 9 win 64240 len 100", "the header is there");
    assert_eq!(info_of(&whole[..30], 140), "len 120 [cut]");
    let mut hostile = syn.clone();
    hostile[21] = 0;
    assert_eq!(info(&v4(6, &hostile)), "syn seq 5 win 64240 len 0", "an option of no length ends them");
}

#[test]
fn udp_says_its_length_or_the_names_of_dns() {
    assert_eq!(info(&udp(4000, 4001, b"hello")), "len 5");
    let question = b"\x07example\x03org\x00\x00\x1c\x00\x01";
    let query = [&[0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], question].concat();
    assert_eq!(info(&udp(4000, 53, &query)), "dns query 4711 AAAA example.org");
    let answer = [
        &[0x12, 0x67, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0][..],
        question,
        &[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1],
    ]
    .concat();
    assert_eq!(info(&udp(53, 4000, &answer)), "dns answer 4711 AAAA example.org: 192.0.2.1");
    let mut missing = answer.clone();
    (missing[3], missing[7]) = (0x83, 0);
    assert_eq!(info(&udp(53, 4000, &missing)), "dns answer 4711 AAAA example.org: NXDOMAIN");
    assert_eq!(info(&udp(53, 4000, b"no dns")), "len 6");
    let hostile = [&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4][..], b"\x1b[2J", &[0, 0, 1, 0, 1]].concat();
    assert_eq!(info(&udp(4000, 53, &hostile)), "dns query 1 A \\027[2J");
}

#[test]
fn icmp_says_what_it_is_about() {
    assert_eq!(info(&v4(1, &[8, 0, 0, 0, 0, 5, 0, 1, 1, 2])), "echo request id 5 seq 1 len 2");
    let quoted = udp(4000, 53, b"");
    let error = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
    assert_eq!(info(&v4(1, &error)), "port unreachable for udp 10.0.0.1 port 4000 to 10.0.0.2 port 53");
    let big = [&[3, 4, 0, 0, 0, 0, 5, 0x78][..], &quoted].concat();
    assert_eq!(info(&v4(1, &big)), "needs fragmentation for udp 10.0.0.1 port 4000 to 10.0.0.2 port 53 mtu 1400");
    assert_eq!(info(&v4(1, &[99, 7, 0, 0])), "type 99 code 7");
}

#[test]
fn what_has_no_words_of_its_own_says_its_number() {
    assert_eq!(info(&v4(47, &[0; 10])), "ip protocol 47 len 10");
    let mut fragment = v4(17, &[0; 16]);
    (fragment[6], fragment[7]) = (0x20, 2);
    assert_eq!(info(&fragment), "fragment id 7 offset 16 more len 16");
}

/// A ClientHello with these extensions.
fn hello(extensions: &[u8]) -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[2, 1, 1], &[0, 2, 0x13, 1], &[1, 0]].concat();
    let body = [&body[..], &(extensions.len() as u16).to_be_bytes(), extensions].concat();
    let message = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
    [&[22, 3, 1][..], &(message.len() as u16).to_be_bytes(), &message].concat()
}

fn extension(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[0, kind][..], &(value.len() as u16).to_be_bytes(), value].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    let length = name.len() as u16;
    extension(0, &[&(length + 3).to_be_bytes()[..], &[0], &length.to_be_bytes(), name].concat())
}

fn segment(data: &[u8]) -> Vec<u8> {
    let header = [0x9c, 0x40, 1, 187, 0, 0, 0, 5, 0, 0, 0, 9, 0x50, 0x18, 0xfa, 0xf0, 0, 0, 0, 0];
    v4(6, &[&header[..], data].concat())
}

#[test]
fn the_first_message_of_tls_says_server_and_protocols() {
    let said = |data: &[u8]| {
        let text = info(&segment(data));
        let head = format!("psh,ack seq 5 ack 9 win 64240 len {}", data.len());
        text.strip_prefix(&head).unwrap().to_owned()
    };
    let protocols = extension(16, b"\0\x0c\x02h2\x08http/1.1");
    let both = [extension(10, &[0; 6]), server_name(b"example.org"), protocols.clone()].concat();
    assert_eq!(said(&hello(&both)), " tls client hello example.org alpn h2,http/1.1");
    assert_eq!(said(&hello(&protocols)), " tls client hello alpn h2,http/1.1");
    assert_eq!(said(&hello(b"")), " tls client hello");
    assert_eq!(said(&hello(&server_name(b"\x1b[2J\\"))), " tls client hello \\027[2J\\\\");
    let many = extension(16, &[&[0, 18][..], &b"\x02ab".repeat(6)].concat());
    assert_eq!(said(&hello(&many)), " tls client hello alpn ab,ab,ab,ab,...");
    let long = said(&hello(&server_name(&[b'a'; 300])));
    assert!(long.ends_with("a...") && long.len() < 300, "{long}");
    assert_eq!(said(&[22, 3, 1, 0, 5, 2, 0, 0, 1, 1]), "", "no client's");
    assert_eq!(said(b"GET / HTTP/1.1"), "");
    let whole = hello(&both);
    for cut in 0..whole.len() {
        let text = said(&whole[..cut]);
        assert!(" tls client hello example.org alpn h2,http/1.1".starts_with(&text), "{cut}: {text}");
    }
}

#[test]
fn a_long_header_of_quic_says_version_kind_and_identifiers() {
    let header = |first: u8, version: u32, dest: &[u8], source: &[u8]| {
        let ids = [&[dest.len() as u8][..], dest, &[source.len() as u8], source].concat();
        [&[first][..], &version.to_be_bytes(), &ids, &[0; 9]].concat()
    };
    let dest = [0x83, 0x94, 0xc8, 0xf0];
    let of = |port: u16, data: &[u8]| info(&udp(40000, port, data));
    assert_eq!(of(443, &header(0xc3, 1, &dest, &[])), "quic v1 initial dcid 8394c8f0 len 20");
    assert_eq!(of(8443, &header(0xe3, 1, &dest, &[9])), "quic v1 handshake dcid 8394c8f0 scid 09 len 21");
    assert_eq!(of(443, &header(0xd0, 0x6b33_43cf, &[], &dest)), "quic v2 initial scid 8394c8f0 len 20");
    assert_eq!(of(443, &header(0x80, 0, &dest, &dest)), "quic version negotiation dcid 8394c8f0 scid 8394c8f0 len 24");
    assert_eq!(of(443, &header(0xc0, 0xff00_001d, &[1], &[])), "quic version 0xff00001d dcid 01 len 17");
    assert_eq!(of(9999, &header(0xc0, 0xff00_001d, &[1], &[])), "len 17", "may be anything");
    assert_eq!(of(443, &header(0x43, 1, &dest, &[])), "len 20", "a short header");
    assert_eq!(of(443, &header(0xc3, 1, &[1; 21], &[])), "len 37", "an identifier that cannot be");
    assert_eq!(of(443, &[0xc3, 0, 0, 0, 1, 20, 1, 2]), "len 8", "it ends too early");
}
