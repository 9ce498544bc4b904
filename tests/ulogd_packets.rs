//! Hand-made packets of many kinds.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use sys::socket::{AF_INET, AF_INET6, SOCK_RAW, open};
use testkit::netns::Lab;

const SENDER4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const RECEIVER4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SENDER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10);
const RECEIVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const IPPROTO_RAW: i32 = 255;
const DONT_FRAGMENT: u16 = 0x4000;

/// An IPv4 packet; the kernel fills in its checksum.
struct V4<'a> {
    proto: u8,
    tos: u8,
    /// Flags and offset.
    fragment: u16,
    options: &'a [u8],
    data: Vec<u8>,
}

impl V4<'_> {
    fn bytes(&self) -> Vec<u8> {
        let words = 5 + self.options.len() / 4;
        let length = (words * 4 + self.data.len()) as u16;
        let mut packet = vec![0x40 | words as u8, self.tos];
        packet.extend(
            [length.to_be_bytes(), [0x12, 0x34], self.fragment.to_be_bytes(), [63, self.proto], [0, 0]].concat(),
        );
        packet.extend([SENDER4.octets(), RECEIVER4.octets()].concat());
        packet.extend(self.options);
        packet.extend(&self.data);
        packet
    }
}

fn v4(proto: u8, data: &[u8]) -> V4<'static> {
    V4 { proto, tos: 0, fragment: DONT_FRAGMENT, options: &[], data: data.to_vec() }
}

/// An IPv6 packet; `first` contains the traffic class and the flow label at their place in the first word.
fn v6(next: u8, first: u32, data: &[u8]) -> Vec<u8> {
    let mut packet = (6 << 28 | first).to_be_bytes().to_vec();
    packet.extend((data.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(SENDER6.octets());
    packet.extend(RECEIVER6.octets());
    packet.extend(data);
    packet
}

fn tcp(flags: u8, reserved: u8, urgent: u16, options: &[u8]) -> Vec<u8> {
    let words = (5 + options.len() / 4) as u8;
    let mut header = vec![0x9c, 0x40, 1, 187, 0x9c, 0x40, 1, 187, 0, 0, 0, 9, words << 4 | reserved, flags, 0xfa, 0xf0];
    header.extend([0xab, 0xcd]);
    header.extend(urgent.to_be_bytes());
    header.extend(options);
    header
}

/// Port 53 to 5353, twelve bytes.
const UDP: [u8; 12] = [0, 53, 0x14, 0xe9, 0, 12, 0x12, 0x34, 1, 2, 3, 4];
const SCTP: [u8; 20] = [3, 0xe8, 7, 0xd0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
const ESP: [u8; 24] = [0, 0, 0x10, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// MSS, SACK permitted, timestamps, window scale.
const TCP_OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 10, 0, 0, 0, 0, 1, 3, 3, 7];
/// UDP after an authentication header.
const AH: [u8; 24] = [17, 4, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn icmp(kind: u8, code: u8) -> Vec<u8> {
    [&[kind, code, 0x99, 0x9a, 1, 2, 3, 4][..], &[0x71; 28]].concat()
}

fn packets4() -> Vec<Vec<u8>> {
    let syn = tcp(2, 0, 0, &TCP_OPTIONS);
    let mut packets = vec![
        v4(6, &syn),
        V4 { tos: 0xb8, ..v4(6, &tcp(0x12, 0, 0, &TCP_OPTIONS)) },
        V4 { tos: 0xff, ..v4(6, &tcp(0xff, 0xf, 7, &[])) },
        V4 { fragment: 0xc000, ..v4(6, &tcp(4, 0, 0, &[])) },
        V4 { options: &[1, 1, 1, 0], ..v4(6, &syn) },
        v4(17, &UDP),
        V4 { fragment: 0x2000, ..v4(17, &[&UDP[..], &[0; 20]].concat()) },
        V4 { fragment: 4, ..v4(17, &[b'f'; 24]) },
        V4 { fragment: 0x2004, ..v4(6, &[b'f'; 40]) },
        v4(132, &SCTP),
        v4(50, &ESP),
        v4(51, &[&AH[..], &UDP].concat()),
        v4(253, b"hello"),
        v4(47, &[0; 30]),
        v4(136, &UDP),
        v4(2, &[0x11, 0x64, 0, 0, 0, 0, 0, 0]),
    ];
    let kinds =
        [(8, 0), (0, 0), (3, 0), (3, 1), (3, 3), (3, 4), (3, 5), (3, 12), (5, 0), (5, 1), (11, 0), (12, 0), (13, 0)];
    packets.extend(kinds.map(|(kind, code)| v4(1, &icmp(kind, code))));
    let short: [(u8, &[u8]); 7] =
        [(6, &syn[..3]), (6, &syn[..17]), (17, &UDP[..7]), (1, &[8]), (1, &[5, 0, 1, 1, 1]), (132, &[0, 1]), (6, &[])];
    packets.extend(short.map(|(proto, data)| v4(proto, data)));
    packets.iter().map(V4::bytes).collect()
}

fn packets6() -> Vec<Vec<u8>> {
    let fragment = |next: u8, parts: u16, data: &[u8]| {
        let header = [&[next, 0], &parts.to_be_bytes()[..], &[0xde, 0xad, 0xbe, 0xef], data].concat();
        v6(44, 0, &header)
    };
    let options = |next: u8, data: &[u8]| [&[next, 0, 1, 4, 0, 0, 0, 0], data].concat();
    let mut packets = vec![
        v6(6, 0x0abc_def1, &tcp(2, 0, 0, &TCP_OPTIONS)),
        v6(17, 0, &UDP),
        v6(132, 0, &SCTP),
        v6(50, 0, &ESP),
        v6(51, 0, &[&AH[..], &UDP].concat()),
        v6(0, 0, &options(17, &UDP)),
        v6(60, 0, &options(6, &tcp(16, 0, 0, &[]))),
        fragment(17, 0, &UDP),
        fragment(17, 1, &UDP),
        fragment(17, 24 | 1, &[b'f'; 16]),
        fragment(6, 24, &[b'f'; 24]),
        v6(59, 0, &[]),
        v6(253, 0, b"hello"),
        v6(1, 0, &icmp(8, 0)),
        v6(6, 0, &[0, 1, 2]),
        v6(58, 0, &[128]),
    ];
    let kinds = [(128, 0), (129, 0), (1, 4), (2, 0), (3, 0), (135, 0), (136, 0)];
    packets.extend(kinds.map(|(kind, code)| v6(58, 0, &icmp(kind, code))));
    packets
}

fn raw(family: i32) -> UdpSocket {
    let socket = open(family, SOCK_RAW, IPPROTO_RAW).unwrap();
    UdpSocket::from(OwnedFd::from(socket))
}

/// Sends all packets, some datagrams from the receiver, and then the last packet.
pub(crate) fn send_all(sender: &Lab, receiver: &Lab) {
    sender.run_inside(|| {
        let (four, six) = (raw(AF_INET), raw(AF_INET6));
        for packet in packets4() {
            four.send_to(&packet, SocketAddr::from((RECEIVER4, 0))).unwrap();
        }
        for packet in packets6() {
            six.send_to(&packet, SocketAddr::from((RECEIVER6, 0))).unwrap();
        }
    });
    // The datagrams cause an ARP request for the sender, and 1,600 bytes are fragmented. ulogd2 writes no XML for
    // packets larger than about 2,000 bytes.
    receiver.run_inside(|| {
        let socket = UdpSocket::bind((RECEIVER4, 0)).unwrap();
        socket.send_to(&[b'x'; 1600], (SENDER4, 9)).unwrap();
        socket.send_to(b"hi", (SENDER4, 9)).unwrap();
    });
    receiver.wait_until("the sender answered ARP", || receiver.output("ip", &["neigh"]).contains("02:00:00:00:00:10"));
    sender.run_inside(|| {
        raw(AF_INET).send_to(&v4(254, b"last").bytes(), SocketAddr::from((RECEIVER4, 0))).unwrap();
    });
}
