//! ICMP, ICMPv6, IGMP.

use crate::build::{DEST6, message, summed, tcp_packets, udp, udp_packets, v4, v6};
use crate::harness::{check, check_ip, check_ip_and_damaged, cut_at_each_byte, damaged};
use record::rows::LinkType;

#[test]
fn messages() {
    let mut packets = Vec::new();
    for kind in 0..20 {
        packets
            .push(v4(1, &message(kind, 0, &[0x72, 0x67, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])));
    }
    packets.push(v4(1, &message(9, 0, &[1, 2, 7, 8, 192, 0, 2, 1, 0, 0, 0, 9])));
    check_ip_and_damaged(&packets, 20, 36);
}

#[test]
fn errors_quote_a_packet() {
    let [quoted, _] = udp_packets(5300, 4000, b"abcdefgh");
    let [segment, _] = tcp_packets((8000, 4000), 1, 2, 0x10, &[], b"");
    let mut packets = Vec::new();
    for code in 0..17 {
        packets.push(v4(1, &message(3, code, &[&[0, 0, 5, 120][..], &quoted].concat())));
    }
    for (kind, code) in
        [(3, 3), (4, 0), (5, 0), (5, 1), (5, 2), (5, 3), (5, 9), (11, 0), (11, 1), (11, 2), (12, 0), (12, 1)]
    {
        packets.push(v4(1, &message(kind, code, &[&[192, 0, 2, 1][..], &segment].concat())));
        packets.push(v4(1, &message(kind, code, &[&[0, 0, 0, 0][..], &quoted[..28]].concat())));
    }
    check_ip_and_damaged(&packets, 20, 30);
}

/// RFC 4884, with and without the length of the quoted packet, with a right and a wrong checksum.
#[test]
fn extensions() {
    let [quoted, _] = udp_packets(5300, 4000, b"abcdefgh");
    let labels = [0, 12, 1, 1, 0x12, 0x34, 0x5e, 7, 0x12, 0x34, 0x5f, 8];
    let interface = [0, 8, 2, 9, 1, 2, 3, 4];
    let mut packets = Vec::new();
    let objects: [&[u8]; 8] = [
        &labels,
        &[&labels[..], &interface].concat(),
        &[0, 9, 9, 1, 1, 2, 3, 4, 5],
        &[0, 8, 1, 2, 1, 2, 3, 4, 0, 4, 0, 1, 1],
        &[0, 3, 1, 1, 1],
        &[0, 99, 2, 1, 1, 2, 3],
        &[1],
        b"",
    ];
    for (nth, objects) in objects.iter().enumerate() {
        for (words, version, sum) in
            [(32, 0x20, true), (0, 0x20, true), (32, 0x20, false), (0, 0x20, false), (32, 0x10, true)]
        {
            let mut padded = quoted.clone();
            padded.resize(128, 0);
            let mut header = message(version, 0, objects);
            header[2] ^= u8::from(!sum);
            let kind = [3, 11, 12, 5][nth % 4];
            packets.push(v4(1, &message(kind, 1, &[&[0, words, 0, 0][..], &padded, &header].concat())));
        }
    }
    packets.push(v4(1, &message(11, 0, &[&[0; 4][..], &quoted, &[7; 20]].concat())));
    let cut = packets.iter().flat_map(|packet| (150..=packet.len()).map(|len| (packet[..len].to_vec(), packet.len())));
    check(LinkType::RAW, &cut.collect::<Vec<_>>(), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 150, 200), &["-v", "-vv"]);
}

#[test]
fn icmp6_messages() {
    let [_, quoted] = udp_packets(5300, 4000, b"abcdefgh");
    let six = |kind: u8, code: u8, rest: &[u8]| v6(58, &summed(true, 58, 2, [&[kind, code, 0, 0][..], rest].concat()));
    let mut packets = vec![
        six(128, 0, &[0, 1, 0, 2, 1, 2, 3, 4]),
        six(129, 0, &[0, 1, 0, 2]),
        six(135, 0, &[&[0; 4][..], &DEST6, &[1, 1, 2, 0, 0, 0, 0, 1]].concat()),
        six(136, 0, &[&[0xe0, 0, 0, 0][..], &DEST6, &[2, 1, 2, 0, 0, 0, 0, 1]].concat()),
        six(133, 0, &[0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1]),
        six(2, 0, &[&[0, 0, 5, 0][..], &quoted].concat()),
    ];
    for code in 0..10 {
        packets.push(six(1, code, &[&[0; 4][..], &quoted].concat()));
    }
    for (kind, code) in [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3), (4, 9)] {
        packets.push(six(kind, code, &[&[0, 0, 0, 9][..], &quoted].concat()));
    }
    check_ip(&packets);
    check(LinkType::RAW, &damaged(&packets, 41, 140), VERBOSE);
}

/// The switches that change the text of a message.
const VERBOSE: &[&str] = &["", "-v", "-vv", "-q", "-ve"];

#[test]
fn icmp6_kinds() {
    // Messages of RPL (routing for low-power networks) are not decoded.
    let kinds = (0..=255).filter(|kind| *kind != 155).map(|kind| {
        let body: Vec<u8> = (1..61).collect();
        v6(58, &summed(true, 58, 2, [&[kind, 0, 0, 0][..], &body].concat()))
    });
    check(LinkType::RAW, &cut_at_each_byte(&kinds.collect::<Vec<_>>()), VERBOSE);
    let listeners = [130, 131, 132, 137, 144, 146].map(|kind| {
        let body: Vec<u8> = (1..61).collect();
        v6(58, &summed(true, 58, 2, [&[kind, 0, 0, 0][..], &body].concat()))
    });
    check(LinkType::RAW, &cut_at_each_byte(&listeners), &["", "-e", "-q", "-X", "-v", "-vv"]);
    let query = |delay: [u8; 2], flags: u8, interval: u8, count: u8| {
        let head = [&[130, 0, 0, 0][..], &delay, &[0, 0], &DEST6, &[flags, interval, 0, count]].concat();
        v6(58, &summed(true, 58, 2, [&head[..], &DEST6, &DEST6].concat()))
    };
    let queries = [query([0x27, 0x10], 2, 125, 0), query([0x91, 0x23], 0x0d, 0x9a, 2), query([0, 1], 0, 0xff, 3)];
    check(LinkType::RAW, &cut_at_each_byte(&queries), &["", "-v", "-vv", "-q"]);
    check(LinkType::RAW, &damaged(&queries, 44, 70), &["", "-v", "-vv", "-q"]);
}

/// An ICMPv6 message with a correct checksum.
fn icmp6(kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    v6(58, &summed(true, 58, 2, [&[kind, code, 0, 0][..], rest].concat()))
}

#[test]
fn neighbour_options() {
    let prefix = [&[3, 4, 64, 0xc0, 0, 0, 14, 16, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0][..], &DEST6].concat();
    let servers = [&[25, 5, 0, 0, 0, 0, 2, 88][..], &DEST6, &DEST6].concat();
    let options: Vec<Vec<u8>> = vec![
        vec![1, 1, 2, 0, 0, 0, 0, 1],
        vec![2, 2, 2, 0, 0, 0, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10],
        prefix.clone(),
        [&[3, 3, 64, 0x20][..], &prefix[4..24]].concat(),
        [&[4, 2, 0, 0, 0, 0, 0, 0][..], &[9; 8]].concat(),
        vec![5, 1, 0, 0, 0, 0, 5, 220],
        [&[5, 2, 0, 0, 0, 0, 5, 220][..], &[0; 8]].concat(),
        vec![7, 1, 0, 0, 0, 0, 3, 232],
        vec![8, 1, 0, 0, 0, 5, 1, 44],
        vec![24, 1, 0, 0x08, 0, 0, 0, 9],
        [&[24, 2, 48, 0x18, 0xff, 0xff, 0xff, 0xff][..], &DEST6[..8]].concat(),
        [&[24, 3, 64, 0x10, 0, 0, 0, 9][..], &DEST6].concat(),
        [&[24, 4, 64, 0, 0, 0, 0, 9][..], &DEST6, &[0; 8]].concat(),
        servers.clone(),
        [&[25, 4, 0, 0, 0, 0, 2, 88][..], &DEST6, &[0; 8]].concat(),
        [&[31, 4, 0, 0, 0, 0, 0, 9][..], b"\x07example\x03org\0\x02a\xff\0\0\0\0\0\0\0\0"].concat(),
        [&[31, 3, 0, 0, 0, 0, 0, 9][..], b"\x04lab1\xc0\x0b\0\x01b\0\0\0\0\0\0"].concat(),
        vec![14, 1, 1, 2, 3, 4, 5, 6],
        vec![99, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
        vec![1, 0, 1, 2, 3, 4, 5, 6],
        vec![1, 3, 1, 2, 3, 4, 5, 6],
    ];
    let advertisement =
        |options: &[u8]| icmp6(134, 0, &[&[64, 0xc8, 7, 8, 0, 0, 1, 0, 0, 0, 2, 0][..], options].concat());
    let mut packets: Vec<_> = options.iter().map(|option| advertisement(option)).collect();
    packets.push(advertisement(&options[..3].concat()));
    packets.push(advertisement(&[prefix.clone(), servers.clone(), options[15].clone()].concat()));
    packets.push(advertisement(&[&prefix[..], &[1]].concat()));
    packets.push(icmp6(133, 0, &[&[0; 4][..], &options[0]].concat()));
    packets.push(icmp6(135, 0, &[&[0; 4][..], &DEST6, &options[0], &options[17]].concat()));
    packets.push(icmp6(136, 0, &[&[0x60, 0, 0, 0][..], &DEST6, &options[1]].concat()));
    packets.push(icmp6(137, 0, &[&[0; 4][..], &DEST6, &DEST6, &options[4]].concat()));
    packets.push(icmp6(145, 0, &[&[1, 2, 0, 0][..], &DEST6, &DEST6].concat()));
    packets.push(icmp6(147, 0, &[&[1, 2, 0xc0, 0][..], &prefix].concat()));
    packets.push(v6(58, b""));
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 40, 140), &["", "-v", "-vv"]);
}

#[test]
fn node_information() {
    let head = |asked: u8, flags: u8| [0, asked, 0, flags, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut packets = vec![icmp6(139, 0, &[0; 8]), icmp6(139, 0, &[0; 5])];
    for asked in 0..6 {
        for (code, subject) in [
            (0, &DEST6[..]),
            (0, &DEST6[..9]),
            (0, &[7; 20]),
            (1, b"\x04host\x07example\0"),
            (1, b"\x04host\x07example\0\0"),
            (1, b"\x04host\x07exam"),
            (1, b"\x04host\0ab"),
            (1, b"\x06h\x1bst\xff\""),
            (2, &[192, 0, 2, 1]),
            (2, &[192, 0, 2, 1, 5]),
            (2, &[192, 0]),
            (9, b"x"),
            (1, b""),
        ] {
            packets.push(icmp6(139, code, &[&head(asked, asked * 21)[..], subject].concat()));
        }
        for code in 0..4 {
            let named = [&head(asked, 1)[..], &[0, 0, 0, 9], b"\x04host\x03org\0"].concat();
            let addresses = [&head(asked, 0x7f)[..], &[0, 0, 0, 9], &DEST6, &[0, 0, 0, 8], &DEST6, &[1, 2]].concat();
            packets.push(icmp6(140, code, &named));
            packets.push(icmp6(140, code, &addresses));
            packets.push(icmp6(140, code, &head(asked, 0)));
        }
    }
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 41, 90), &["", "-v"]);
}

#[test]
fn renumbering() {
    let prefix = |code: u8, len: u8| [&[code, len, 7, 48, 1, 128, 0, 0][..], &DEST6].concat();
    let new = |flags: u8, seconds: [u8; 4]| {
        [&[16, 48, 0xc0, 0x80][..], &seconds, &[0, 0, 1, 0], &[flags, 0, 0, 0], &DEST6].concat()
    };
    let header = [0, 0, 0, 9, 3, 0xf8, 0, 100, 0, 0, 0, 0];
    let mut packets = Vec::new();
    for code in [0, 1, 2, 255] {
        for (kind, len) in [(1, 3), (2, 7), (3, 11), (4, 4), (1, 2), (1, 15)] {
            let uses = [new(0xc0, [0xff; 4]), new(1, [0, 0, 0, 5])].concat();
            packets.push(icmp6(138, code, &[&header[..], &prefix(kind, len), &uses].concat()));
        }
    }
    packets.push(icmp6(138, 0, &[0, 0, 0, 9, 3, 0, 0, 100, 0, 0, 0, 1]));
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 41, 150), &["", "-v", "-vv"]);
}

/// Errors look for the port after the headers of the packet that they quote.
#[test]
fn icmp6_quoted_headers() {
    let error = |quoted: &[u8]| icmp6(1, 4, &[&[0; 4][..], quoted].concat());
    let datagram = udp(5300, 4000, b"abcdefgh");
    let behind = |next: u8, header: &[u8]| v6(next, &[header, &datagram].concat());
    let packets = [
        error(&behind(0, &[17, 0, 1, 4, 0, 0, 0, 0])),
        error(&behind(60, &[43, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0])),
        error(&behind(44, &[17, 0, 0, 1, 0, 0, 0, 9])),
        error(&behind(44, &[17, 0, 0, 8, 0, 0, 0, 9])),
        error(&behind(51, &[17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2])),
        error(&behind(51, &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2])),
        error(&behind(58, &[])),
        error(&behind(59, &[])),
        error(&behind(0, &[0, 9, 1, 4, 0, 0, 0, 0])),
    ];
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 40, 120), &["", "-v"]);
}

#[test]
fn listeners() {
    let record = |kind: u8, count: u8| [&[kind, 0, 0, count][..], &DEST6, &DEST6.repeat(count.into())].concat();
    let mut packets: Vec<_> =
        (0..8).map(|kind| icmp6(143, 0, &[&[0, 0, 0, 1][..], &record(kind, kind % 3)].concat())).collect();
    packets.push(icmp6(143, 0, &[&[0, 0, 0, 3][..], &record(1, 2), &record(4, 0), &record(9, 1)].concat()));
    packets.push(icmp6(143, 0, &[0, 0]));
    for len in [2, 16, 20, 22, 24, 40] {
        packets.push(icmp6(130, 0, &[&[0, 9, 0, 0][..], &DEST6, &[0; 24]].concat()[..len]));
    }
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 40, 90), &["", "-v", "-vv"]);
}

#[test]
fn igmp_messages() {
    let group = [239, 1, 1, 1];
    let source = [192, 0, 2, 1];
    let mut packets = Vec::new();
    for (kind, code) in [(0x11, 0), (0x11, 100), (0x11, 25), (0x12, 0), (0x16, 0), (0x17, 0), (0x44, 0)] {
        packets.push(v4(2, &message(kind, code, &group)));
    }
    packets.push(v4(2, &message(0x11, 10, &[&group[..], &[0x0a, 125, 0, 1], &source].concat())));
    packets.push(v4(2, &message(0x11, 100, &[&[0; 4][..], &[2, 0x91, 0, 0]].concat())));
    for kind in [1, 4, 6, 9] {
        packets.push(v4(2, &message(0x22, 0, &[&[0, 0, 0, 1, kind, 0, 0, 1][..], &group, &source].concat())));
    }
    // Another message type would be another protocol.
    check_ip_and_damaged(&packets, 21, 99);
}
