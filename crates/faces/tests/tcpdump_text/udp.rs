//! UDP.

use crate::build::{DEST6, SOURCE6, ethernet, tcp_packets, udp, udp_packets, v4, v4_with, v6};
use crate::harness::{check, check_ip, cut_at_each_byte, damaged, print};
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

/// The switches without those that print whole messages.
const TERSE: &[&str] = &["", "-e", "-q", "-X", "-A"];

/// The switches that change the text of a message.
const VERBOSE: &[&str] = &["", "-v", "-vv", "-vvv", "-q", "-ve"];

/// A DHCP message with these options after the magic cookie.
fn dhcp_message(operation: u8, kind: u8, len: u8, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![operation, kind, len, 0, 1, 2, 3, 4];
    bytes.resize(28, 0);
    bytes.extend_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes.resize(236, 0);
    bytes.extend_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    bytes.extend_from_slice(options);
    bytes
}

#[test]
fn dhcp() {
    let mut packets = udp_packets(68, 67, &dhcp_message(1, 1, 6, &[53, 1, 1, 255])).to_vec();
    for [operation, kind, len] in [[2, 1, 6], [3, 1, 6], [1, 6, 6], [1, 1, 8], [1, 32, 0]] {
        packets.push(v4(17, &udp(67, 68, &dhcp_message(operation, kind, len, &[53, 1, 2, 0, 0, 255, 0]))));
    }
    check(LinkType::RAW, &cut_at_each_byte(&packets), TERSE);
    check(LinkType::RAW, &damaged(&packets[2..], 28, 99), TERSE);
    check(LinkType::RAW, &cut_at_each_byte(&packets[..2]), VERBOSE);
    check(LinkType::RAW, &damaged(&packets[2..3], 28, 300), VERBOSE);
}

#[test]
fn dhcp_headers() {
    let mut full = dhcp_message(2, 1, 6, &[255]);
    full[3..28].copy_from_slice(&[7, 1, 2, 3, 4, 0, 9, 0x80, 1, 10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 3, 10, 0, 0, 4]);
    full[44..50].copy_from_slice(b"s\x1b\xffv\"!");
    full[108..112].copy_from_slice(b"boot");
    let mut unended = full.clone();
    unended[44..108].fill(b'n');
    let mut long = full.clone();
    long[108..236].fill(b'f');
    let mut cmu = full.clone();
    cmu.truncate(236);
    cmu.extend_from_slice(b"CMU\0\x03\0\0\0");
    cmu.extend((0..56).map(|n| if n / 4 == 2 { 0 } else { n }));
    let mut bare = full.clone();
    bare[236..240].fill(0);
    let mut other = full.clone();
    other[236..240].copy_from_slice(b"abcd");
    let packets = [full, unended, long, cmu, bare, other].map(|message| v4(17, &udp(67, 68, &message)));
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets[3..4], 264, 400), &["-v"]);
}

/// Each option, with every length up to ten, alone in a message.
#[test]
fn dhcp_options() {
    let value = [1, 0x1f, 0, 4, 5, 6, 7, 8, 0x80, 2, 3];
    let mut packets = Vec::new();
    for number in 0..=255 {
        for len in 0..11_u8 {
            let options = [&[number, len][..], &value[..len.into()], &[0, 0, 255, 1]].concat();
            packets.push(v4(17, &udp(67, 68, &dhcp_message(2, 1, 6, &options))));
        }
    }
    let whole: Vec<_> = packets.iter().map(|packet| (packet.clone(), packet.len())).collect();
    check(LinkType::RAW, &whole, &["-v", "-vvv"]);
    let rich: [&[u8]; 12] = [
        &[55, 9, 1, 3, 6, 15, 12, 200, 255, 0, 53],
        &[81, 12, 0x05, 1, 2, b'h', b'o', b's', b't', 0, 0x1b, b'.', b'x', b'y'],
        &[81, 5, 0xf0, 0, 0, b'a', 0xff],
        &[82, 14, 1, 4, b'e', b't', b'h', b'0', 2, 2, 9, 8, 9, 2, 7, 7],
        &[82, 9, 6, 3, b'a', b'b', b'c', 1, 9, 1, 2],
        &[121, 17, 24, 10, 0, 1, 10, 0, 0, 1, 0, 10, 0, 0, 254, 33, 1, 2, 3],
        &[121, 12, 32, 10, 0, 1, 9, 10, 0, 0, 1, 16, 1, 2],
        &[77, 9, 3, b'a', b'b', b'c', 2, b'd', b'e', 9, 1],
        &[77, 4, 0, 1, 2, 3],
        &[61, 7, 1, 2, 0, 0, 0, 0, 1, 61, 5, 0, b'n', b'a', b'm', b'e', 61, 3, 99, 1, 2],
        &[
            1, 4, 255, 255, 255, 0, 3, 8, 10, 0, 0, 1, 10, 0, 0, 2, 51, 4, 0, 1, 0x51, 0x80, 33, 9, 1, 2, 3, 4, 5, 6,
            7, 8, 9,
        ],
        &[2, 4, 0xff, 0xff, 0xff, 0, 19, 3, 0, 1, 2, 46, 2, 8, 1, 52, 1, 3, 53, 1, 99, 12, 3, b'a', 0x80, b'"'],
    ];
    let rich: Vec<_> = rich
        .iter()
        .map(|options| v4(17, &udp(67, 68, &dhcp_message(1, 1, 6, &[options, &[0, 255][..]].concat()))))
        .collect();
    let tail = |packet: &Vec<u8>| packet.len() - 40;
    let mut cut: Vec<_> = Vec::new();
    for packet in &rich {
        cut.extend((tail(packet)..=packet.len()).map(|len| (packet[..len].to_vec(), packet.len())));
    }
    check(LinkType::RAW, &cut, VERBOSE);
    check(LinkType::RAW, &damaged(&rich, 268, 320), &["-v", "-vvv"]);
}

#[test]
fn dhcp6() {
    let messages = (0..40).map(|kind| udp_packets(546, 547, &[kind, 1, 2, 3, 0, 1, 0, 2, 9, 9])[1].clone());
    let packets: Vec<_> = messages.chain([v6(17, &udp(1, 546, b""))]).collect();
    check(LinkType::RAW, &cut_at_each_byte(&packets), VERBOSE);
    check(LinkType::RAW, &damaged(&packets[..1], 48, 99), VERBOSE);
}

/// An option with its number and length before it.
fn option6(number: u16, value: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

/// Each option of DHCPv6, with every length up to 34, alone in a message.
#[test]
fn dhcp6_options() {
    let value: Vec<u8> = (0..34).map(|n| n * 7 + 1).collect();
    let mut packets = Vec::new();
    for number in (0..66).chain([112, 200, 300]) {
        for len in 0..34 {
            let message = [&[1, 1, 2, 3][..], &option6(number, &value[..len]), &option6(8, &[1, 2])].concat();
            packets.push(v6(17, &udp(546, 547, &message)));
        }
    }
    let whole: Vec<_> = packets.iter().map(|packet| (packet.clone(), packet.len())).collect();
    check(LinkType::RAW, &whole, &["-v", "-vvv"]);
}

#[test]
fn dhcp6_options_within_options() {
    let address = [&DEST6[..], &[0, 0, 1, 0, 0, 0, 2, 0]].concat();
    let prefix = [&[0, 0, 1, 0, 0, 0, 2, 0, 64][..], &SOURCE6, &option6(13, &[0, 3, b'x'])].concat();
    let addresses = [&[0, 0, 0, 9, 0, 0, 1, 0, 0, 0, 2, 0][..], &option6(5, &address), &option6(5, &address)].concat();
    let times = [&option6(1, &DEST6)[..], &option6(3, b"\x03ntp\x07example\0"), &option6(7, b"x")].concat();
    let delayed = [&[2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8][..], b"realm", &[9; 20]].concat();
    let renewed = [&[3, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1][..], &[9; 16]].concat();
    let options = [
        option6(1, &[0, 1, 0, 1, 1, 2, 3, 4, 2, 0, 0, 0, 0, 1]),
        option6(2, &[0, 2, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6]),
        option6(2, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 1]),
        option6(3, &addresses),
        option6(25, &[&[0; 12][..], &option6(26, &prefix)].concat()),
        option6(6, &[0, 23, 0, 24, 1, 44]),
        option6(24, b"\x07example\x03org\0\x01a\0"),
        option6(21, b"\x03sip\xc0\x05\0\x01a\0"),
        option6(56, &times),
        option6(64, b"\x04aftr\x07example\0"),
        option6(11, &delayed),
        option6(11, &renewed),
        option6(44, &[&[1][..], &DEST6, &option6(6, &[0, 1])].concat()),
        option6(45, &option6(46, &[0, 0, 0, 9])),
        option6(47, &[&DEST6[..], b"relay data that is long"].concat()),
        option6(41, b"CET-1CEST\0x"),
        option6(112, b"https://example.org/\x1b\xff"),
    ];
    let message = |kind: u8, options: &[u8]| [&[kind, 1, 2, 3], options].concat();
    let mut packets: Vec<_> = options.iter().map(|option| v6(17, &udp(546, 547, &message(7, option)))).collect();
    let all = message(1, &options.concat());
    let relayed = [&[12, 2][..], &SOURCE6, &DEST6, &option6(9, &all), &option6(18, b"eth0")].concat();
    let twice = [&[13, 2][..], &SOURCE6, &DEST6, &option6(9, &relayed), &option6(37, b"\0\0\0\x09remote")].concat();
    packets.extend([all, relayed, twice].map(|message| v6(17, &udp(547, 546, &message))));
    check(LinkType::RAW, &cut_at_each_byte(&packets), &["", "-v", "-vv", "-q"]);
    check(LinkType::RAW, &damaged(&packets, 48, 900), &["-v"]);
    // Options nested without end: netwren stops and treats the message as cut.
    let mut deep = Vec::new();
    for _ in 0..5000 {
        deep = [&[0, 45][..], &(deep.len() as u16).to_be_bytes(), &deep].concat();
    }
    let deep = v6(17, &udp(546, 547, &message(1, &deep)));
    let printed = print(LinkType::RAW, &[(deep.clone(), deep.len())], "-v");
    let text = String::from_utf8_lossy(&printed[0]).into_owned();
    assert!(text.ends_with(&format!("{} [|dhcp6]\n", " (LQ-client-data".repeat(17))), "{text}");
}

/// `-T` sets the protocol of a datagram, regardless of its ports.
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

/// Decoders read beyond the length that a datagram declares.
#[test]
fn lengths_that_lie() {
    let query = [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"\x07example\x03com\0", &[0, 1, 0, 1]].concat();
    let inner = ethernet(0x0800, &v4(17, &udp(1, 53, &query)));
    let mut packets = udp_packets(53, 5300, &query).to_vec();
    packets.push(v4(17, &udp(5353, 5353, &query)));
    packets.push(v4(17, &udp(123, 123, &[0x23; 48])));
    packets.push(v4(17, &udp(4789, 4789, &[&[8, 0, 0, 0, 0, 0, 42, 0], &inner[..]].concat())));
    packets.push(v4(17, &udp(6081, 6081, &[&[0, 0, 0x65, 0x58, 0, 0, 42, 0], &inner[..]].concat())));
    packets.push(v4(17, &udp(68, 67, &dhcp_message(1, 1, 6, &[53, 1, 1, 255]))));
    packets.push(v6(17, &udp(546, 547, &[1, 1, 2, 3, 0, 8, 0, 2, 9, 9])));
    check(LinkType::RAW, &damaged(&packets, 24, 26), VERBOSE);
    check(LinkType::RAW, &damaged(&packets, 44, 46), TERSE);
}

/// Names of more than 255 characters are cut.
#[test]
fn long_names() {
    let label = |len: u8, letter: u8| [&[len][..], &vec![letter; len.into()]].concat();
    let mut packets = Vec::new();
    for lens in [&[63, 63, 63, 63, 63][..], &[63, 63, 63, 62], &[63, 63, 63, 63], &[63, 63, 63, 61, 9], &[1; 140]] {
        let name: Vec<u8> = lens.iter().flat_map(|len| label(*len, b'a' + len % 26)).chain([0]).collect();
        let query = [&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &name, &[0, 1, 0, 1]].concat();
        packets.extend(udp_packets(53, 5300, &query));
    }
    // The names contain pointers.
    let name = [&label(63, b'a')[..], &label(63, b'b'), &label(63, b'c'), &[0]].concat();
    let pointing = [&label(63, b'd')[..], &label(60, b'e'), &[0xc0, 12]].concat();
    let answer = [&[0, 16, 0, 1, 0, 0, 0, 9, 0, 2, 1, b'x'][..]].concat();
    let reply = [&[1, 2, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0][..], &name, &[0, 1, 0, 1], &pointing, &answer].concat();
    packets.extend(udp_packets(53, 5300, &reply));
    check(LinkType::RAW, &cut_at_each_byte(&packets), &["", "-v", "-vv"]);
}
