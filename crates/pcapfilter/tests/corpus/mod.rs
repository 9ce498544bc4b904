//! Packets of all kinds that expressions can distinguish, whole and truncated, with each link-layer header.

use pcapfilter::LinkType;

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn be16(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

/// An IPv4 header with `options`, and its payload.
pub(crate) fn ipv4(
    protocol: u8,
    source: [u8; 4],
    destination: [u8; 4],
    fragment: u16,
    options: &[u8],
    rest: &[u8],
) -> Vec<u8> {
    let words = 5 + options.len() / 4;
    let length = be16((words * 4 + rest.len()) as u16);
    let first = [0x40 | words as u8, 0, length[0], length[1], 0, 1];
    join(&[&first, &be16(fragment), &[64, protocol, 0, 0], &source, &destination, options, rest])
}

/// An IPv6 header, and its payload.
pub(crate) fn ipv6(next: u8, source: u128, destination: u128, rest: &[u8]) -> Vec<u8> {
    let first = [0x60, 0, 0, 0];
    let source = source.to_be_bytes();
    join(&[&first, &be16(rest.len() as u16), &[next, 64], &source, &destination.to_be_bytes(), rest])
}

pub(crate) fn tcp(source: u16, destination: u16, flags: u8, data: &[u8]) -> Vec<u8> {
    join(&[&be16(source), &be16(destination), &[0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0], data])
}

pub(crate) fn udp(source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
    join(&[&be16(source), &be16(destination), &be16(8 + data.len() as u16), &[0, 0], data])
}

fn arp(operation: u16, source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let first = [0, 1, 8, 0, 6, 4];
    join(&[&first, &be16(operation), &[2, 0, 0, 0, 0, 1], &source, &[0; 6], &destination, &[0; 18]])
}

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const C: [u8; 4] = [192, 168, 1, 77];
const GROUP: [u8; 4] = [224, 0, 0, 5];
const A6: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
const B6: u128 = 0x2001_0db8_0000_0001_0000_0000_0000_0002;
const GROUP6: u128 = 0xff02_0000_0000_0000_0000_0000_0000_0001;

/// Network packets with their EtherType.
pub(crate) fn network_packets() -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    let ports = [(40000, 80), (80, 40000), (53, 53), (443, 22), (1023, 1024), (6081, 8080), (123, 6081)];
    for (source, destination) in ports {
        all.push((0x800, ipv4(6, A, B, 0x4000, &[], &tcp(source, destination, 0x02, b"hello"))));
        all.push((0x800, ipv4(6, C, A, 0, &[1; 8], &tcp(source, destination, 0x12, b""))));
        all.push((0x800, ipv4(17, B, C, 0, &[], &udp(source, destination, b"data"))));
        all.push((0x800, ipv4(132, B, A, 0, &[1; 4], &udp(source, destination, b"sctp"))));
        all.push((0x86dd, ipv6(6, A6, B6, &tcp(source, destination, 0x18, b"six"))));
        all.push((0x86dd, ipv6(17, B6, A6, &udp(source, destination, b"six"))));
        all.push((0x86dd, ipv6(132, A6, B6, &udp(source, destination, b"six"))));
    }
    for flags in [0x01, 0x04, 0x10, 0x11, 0x29, 0xc2] {
        all.push((0x800, ipv4(6, B, A, 0, &[], &tcp(4000, 25, flags, b"x"))));
    }
    // Fragments.
    all.push((0x800, ipv4(6, A, C, 0x2000, &[], &tcp(80, 80, 2, b""))));
    all.push((0x800, ipv4(6, A, C, 0x2010, &[], &tcp(80, 80, 2, b""))));
    all.push((0x800, ipv4(17, A, C, 0x0001, &[], &udp(53, 53, b"later"))));
    all.push((0x86dd, ipv6(44, A6, B6, &join(&[&[6, 0, 0, 1, 0, 0, 0, 9], &tcp(80, 81, 2, b"")]))));
    // Extension headers.
    let options = [0, 0, 1, 4, 0, 0, 0, 0];
    all.push((0x86dd, ipv6(0, A6, GROUP6, &join(&[&[58, 0], &options[2..], &[143, 0, 0, 0], &[0; 8]]))));
    all.push((
        0x86dd,
        ipv6(60, A6, B6, &join(&[&[43, 0], &options[2..], &[6, 0], &options[2..], &tcp(1, 80, 2, b"")])),
    ));
    all.push((0x86dd, ipv6(59, A6, B6, &[])));
    let authentication = |next| [next, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    all.push((0x800, ipv4(51, A, B, 0, &[], &join(&[&authentication(6), &tcp(1, 80, 2, b"")]))));
    all.push((0x86dd, ipv6(51, A6, B6, &join(&[&authentication(17), &udp(1, 80, b"")]))));
    // ICMP, IGMP and the rest.
    for (kind, code) in [(0, 0), (3, 1), (3, 3), (5, 0), (8, 0), (11, 0), (13, 0)] {
        all.push((0x800, ipv4(1, A, C, 0, &[], &[kind, code, 0, 0, 0, 1, 0, 1, 9, 9])));
    }
    for kind in [1, 128, 129, 135, 136] {
        all.push((0x86dd, ipv6(58, A6, B6, &[kind, 0, 0, 0, 0, 1, 0, 1])));
    }
    for protocol in [2, 4, 9, 41, 47, 50, 89, 103, 112] {
        all.push((0x800, ipv4(protocol, C, GROUP, 0, &[], &[0x11, 1, 2, 3, 4, 5, 6, 7])));
        all.push((0x86dd, ipv6(protocol, B6, GROUP6, &[0x11, 1, 2, 3, 4, 5, 6, 7])));
    }
    all.push((0x800, ipv4(17, A, [255; 4], 0, &[], &udp(68, 67, b"dhcp"))));
    all.push((0x800, ipv4(17, A, [10, 0, 0, 255], 0, &[], &udp(137, 137, b"nb"))));
    all.push((0x806, arp(1, A, B)));
    all.push((0x806, arp(2, C, A)));
    all.push((0x8035, arp(3, B, C)));
    // DECnet: short and long headers, with and without padding.
    let area = 1_u16 << 10 | 13;
    let node = area.to_le_bytes();
    all.push((0x6003, join(&[&[20, 0, 0x02], &node, &[9, 9], &[0; 14]])));
    all.push((0x6003, join(&[&[20, 0, 0x81, 0x02], &[9, 9], &node, &[0; 14]])));
    all.push((0x6003, join(&[&[30, 0, 0x06], &[0; 6], &node, &[0; 6], &[9, 9], &[0; 6]])));
    for kind in [0x809b, 0x80f3, 0x8137, 0x6001, 0x6002, 0x6004, 0x6007, 0x88cc, 0x8863, 0x9000] {
        all.push((kind, vec![1; 30]));
    }
    // Geneve: over IPv4 with options, over IPv6, an inner IP packet without Ethernet.
    let inner = ethernet(0x800, &ipv4(6, C, B, 0, &[], &tcp(5, 80, 2, b"")));
    let geneve = |options: usize, protocol: u16, inner: &[u8]| {
        join(&[&[options as u8 / 4, 0], &be16(protocol), &[0, 0, 7, 0], &vec![0; options], inner])
    };
    all.push((0x800, ipv4(17, A, B, 0, &[], &udp(9, 6081, &geneve(8, 0x6558, &inner)))));
    all.push((0x86dd, ipv6(17, A6, B6, &udp(9, 6081, &geneve(0, 0x6558, &inner)))));
    let bare = ipv4(17, C, B, 0, &[], &udp(5, 53, b""));
    all.push((0x800, ipv4(17, A, B, 0, &[1; 4], &udp(9, 6081, &geneve(4, 0x800, &bare)))));
    all
}

/// An Ethernet frame.
pub(crate) fn ethernet(kind: u16, rest: &[u8]) -> Vec<u8> {
    join(&[&[2, 0, 0, 0, 0, 2], &[2, 0, 0, 0, 0, 1], &be16(kind), rest])
}

fn tagged(tags: &[(u16, u16)], kind: u16, rest: &[u8]) -> Vec<u8> {
    let mut inner = join(&[&be16(kind), rest]);
    for (tag_type, tag) in tags.iter().rev() {
        inner = join(&[&be16(*tag_type), &be16(*tag), &inner]);
    }
    join(&[&[0xff; 6], &[2, 0, 0, 0, 0, 1], &inner])
}

/// Frames that only Ethernet carries.
fn frames() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (kind, packet) in network_packets() {
        all.push(ethernet(kind, &packet));
    }
    for (number, (kind, packet)) in network_packets().into_iter().enumerate() {
        match number % 6 {
            0 => all.push(tagged(&[(0x8100, 77)], kind, &packet)),
            1 => all.push(tagged(&[(0x88a8, 0x6005), (0x8100, 77)], kind, &packet)),
            2 => {
                all.push(ethernet(0x8847, &join(&[&[0, 1, 0x01, 64], &packet])));
                all.push(ethernet(0x8847, &join(&[&[0, 1, 0x00, 64, 0, 2, 0x01, 64], &packet])));
            }
            3 => {
                let ppp = if kind == 0x86dd { 0x57 } else { 0x21 };
                let length = be16(packet.len() as u16 + 2);
                all.push(ethernet(0x8864, &join(&[&[0x11, 0, 0, 42], &length, &be16(ppp), &packet])));
            }
            4 => all.push(tagged(&[(0x9100, 5)], kind, &packet)),
            _ => {}
        }
    }
    // Length and LLC: STP, IS-IS, CLNP, NetBEUI, IPX in three forms, SNAP.
    let llc = |bytes: &[u8]| join(&[&[1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 1], &be16(bytes.len() as u16), bytes]);
    all.push(llc(&[0x42, 0x42, 3, 0, 0, 0, 0, 0]));
    for kind in [15, 16, 17, 18, 20, 24, 25, 26, 27] {
        all.push(llc(&[0xfe, 0xfe, 3, 0x83, 27, 1, 0, kind, 1, 0, 0]));
    }
    all.push(llc(&[0xfe, 0xfe, 3, 0x81, 1, 1]));
    all.push(llc(&[0xfe, 0xfe, 3, 0x82, 1, 1]));
    for control in [0x03, 0x63, 0x43, 0x0f, 0x6f, 0xe3, 0xaf, 0x87, 0x01, 0x05, 0x09, 0x02, 0x7f] {
        all.push(llc(&[0xf0, 0xf0, control, 1, 2, 3]));
    }
    all.push(llc(&[0xe0, 0xe0, 3, 1, 2, 3]));
    all.push(llc(&[0xff, 0xff, 0, 1, 2, 3]));
    all.push(llc(&[0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0x37, 1]));
    all.push(llc(&[0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b, 1]));
    all.push(llc(&[0xaa, 0xaa, 3, 0, 0, 0, 0x80, 0xf3, 1]));
    all
}

fn with_header(link: LinkType, kind: u16, packet: &[u8]) -> Option<Vec<u8>> {
    let is_ip = kind == 0x800 || kind == 0x86dd;
    Some(match link {
        LinkType::Ethernet => ethernet(kind, packet),
        LinkType::Raw if is_ip => packet.to_vec(),
        LinkType::Ipv4 if kind == 0x800 => packet.to_vec(),
        LinkType::Ipv6 if kind == 0x86dd => packet.to_vec(),
        LinkType::Null if is_ip => {
            let family: u32 = if kind == 0x800 { 2 } else { [10, 24, 28, 30][packet.len() % 4] };
            join(&[&family.to_ne_bytes(), packet])
        }
        LinkType::Loop if is_ip => join(&[&[0, 0, 0, if kind == 0x800 { 2 } else { 10 }], packet]),
        LinkType::LinuxSll => {
            let direction = (packet.len() % 5) as u8;
            join(&[&[0, direction, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], &be16(kind), packet])
        }
        LinkType::LinuxSll2 => {
            let direction = (packet.len() % 5) as u8;
            join(&[&be16(kind), &[0, 0, 0, 0, 0, 3, 0, 1, direction, 6, 2, 0, 0, 0, 0, 1, 0, 0], packet])
        }
        LinkType::Ppp => {
            let protocol = match kind {
                0x800 => 0x21,
                0x86dd => 0x57,
                0x6003 => 0x27,
                0x8137 => 0x2b,
                0x809b => 0x29,
                _ => 0x281,
            };
            join(&[&[0xff, 3], &be16(protocol), packet])
        }
        _ => return None,
    })
}

/// Returns all packets of a link type, each also truncated at some length.
pub(crate) fn packets(link: LinkType) -> Vec<Vec<u8>> {
    let mut all = match link {
        LinkType::Ethernet => frames(),
        _ => network_packets().iter().filter_map(|(kind, packet)| with_header(link, *kind, packet)).collect(),
    };
    let cut: Vec<Vec<u8>> = all
        .iter()
        .enumerate()
        .flat_map(|(number, packet)| {
            let lengths = [7 + number * 5 % 64, 30 + number % 40];
            lengths.map(|length| packet.iter().take(length).copied().collect())
        })
        .collect();
    all.extend(cut);
    all.push(Vec::new());
    all
}

/// A pcap file of these packets (https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap).
pub(crate) fn file(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, link] {
        bytes.extend(number.to_le_bytes());
    }
    for packet in packets {
        for number in [0, 0, packet.len() as u32, packet.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}
