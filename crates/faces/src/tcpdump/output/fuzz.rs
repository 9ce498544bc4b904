//! Prints arbitrary bytes as packets, for the fuzzer.

use super::{CapturedBytes, Dump, PacketNames, PacketType, Stamp, Tcpdump, TcpdumpOptions};
use record::rows::LinkType;

/// Most bytes of text for each byte of a packet, and for a packet without bytes: hexadecimal after the line, names of
/// options, quoted packets.
const TEXT_A_BYTE: usize = 400;

/// Names for everything, with bytes that must not reach a terminal.
#[derive(Debug)]
struct HostileNames;

impl PacketNames for HostileNames {
    fn begin_packet(&mut self, _: u64) {}

    fn host(&mut self, address: &[u8]) -> Option<&[u8]> {
        Some(b"a\x1b.\xff\n").filter(|_| address.len() != 16).map(|name| &name[..])
    }

    fn ethernet(&mut self, address: [u8; 6]) -> Option<&[u8]> {
        (address[0] & 1 == 0).then_some(b"e\x9b\x07")
    }

    fn port(&mut self, _: u8, port: u16) -> Option<&[u8]> {
        (port % 2 == 0).then_some(b"p\x1b]0;")
    }
}

/// Returns the options that packets are printed with.
fn switches() -> [TcpdumpOptions; 4] {
    let plain = TcpdumpOptions::new(|_| None);
    let all = TcpdumpOptions {
        stamp: Stamp::Date,
        link_header: true,
        verbose: 3,
        numbers: true,
        dump: Dump::HexAndText,
        dump_link_header: true,
        ..plain
    };
    [plain, TcpdumpOptions { verbose: 1, ..plain }, all, TcpdumpOptions { quiet: 1, dump: Dump::Text, ..plain }]
}

/// Prints a packet. The text must have a bounded length and contain no control characters.
fn print_bounded(printer: &mut Tcpdump, link_type: LinkType, bytes: &[u8], more: u32, out: &mut Vec<u8>) {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(more);
    out.clear();
    printer.print(&CapturedBytes { link_type, bytes, len, time_ns: u64::MAX, far: None }, &|_| None, out);
    assert!(out.len() <= (bytes.len() + 16) * TEXT_A_BYTE, "{} bytes of text", out.len());
    let is_shown = |byte: &u8| matches!(byte, b'\n' | b'\t' | b'\r' | b' '..=b'~');
    assert!(out.iter().all(is_shown), "{}", out.escape_ascii());
}

/// Prints arbitrary bytes as a packet of every link type, with and without the switches. It must not panic, and the
/// text must have a bounded length.
pub fn fuzz_tcpdump(data: &[u8]) {
    let mut out = Vec::new();
    for options in switches() {
        let mut printer = Tcpdump::new(options);
        if options.quiet == 0 {
            printer = printer.named(Box::new(HostileNames));
        }
        for link_type in [0, 1, 101, 108, 113, 276].map(LinkType) {
            for more in [0, 1, 70_000] {
                print_bounded(&mut printer, link_type, data, more, &mut out);
            }
        }
    }
}

/// Prints a packet of one link type, whole and cut.
fn print_one(link_type: LinkType, packet: &[u8], packet_type: Option<PacketType>) {
    let mut out = Vec::new();
    for options in switches() {
        let mut printer = Tcpdump::new(TcpdumpOptions { packet_type, ..options }).named(Box::new(HostileNames));
        for more in [0, 1] {
            print_bounded(&mut printer, link_type, packet, more, &mut out);
        }
    }
}

/// The contents of an Ethernet frame: the first byte chooses the type. Lengths of IEEE 802.3 mean IEEE 802.2.
const ETHER_TYPES: [u16; 9] = [0x88cc, 0x0806, 0x8035, 0x8100, 0x0800, 0x86dd, 3, 40, 1500];

/// Prints arbitrary bytes as the contents of an Ethernet frame.
pub fn fuzz_tcpdump_frame(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let kind = ETHER_TYPES[usize::from(first) % ETHER_TYPES.len()].to_be_bytes();
    print_one(LinkType::ETHERNET, &[&[2; 12][..], &kind, rest].concat(), None);
}

/// Returns an IPv4 or IPv6 packet with a correct length and `payload`.
fn packet(six: bool, proto: u8, payload: &[u8]) -> Vec<u8> {
    let len = |more: usize| u16::try_from(payload.len() + more).unwrap_or(u16::MAX).to_be_bytes();
    if six {
        return [&[0x60, 0, 0, 0][..], &len(0), &[proto, 64], &[0xfd; 32], payload].concat();
    }
    [&[0x45, 0][..], &len(20), &[0, 1, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2], payload].concat()
}

/// Prints arbitrary bytes as the payload of IP: the first byte is the protocol, the lowest bit of the second the
/// version.
pub fn fuzz_tcpdump_protocol(data: &[u8]) {
    let [proto, version, rest @ ..] = data else { return };
    print_one(LinkType::RAW, &packet(version & 1 != 0, *proto, rest), None);
}

/// Ports of protocols that are decoded; the last two are TCP's.
const PORTS: [u16; 10] = [53, 67, 123, 5353, 546, 4789, 6081, 9, 53, 80];

/// Prints arbitrary bytes as the payload of UDP and TCP: the first byte chooses the port, its highest bits `-T`.
pub fn fuzz_tcpdump_application(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let nth = usize::from(first & 63) % PORTS.len();
    let port = PORTS[nth].to_be_bytes();
    let kind = match first >> 6 {
        1 => Some(PacketType::Domain),
        2 => Some(PacketType::Vxlan),
        _ => None,
    };
    let six = port == 546_u16.to_be_bytes();
    let (proto, header) = if nth < 8 {
        let len = u16::try_from(rest.len() + 8).unwrap_or(u16::MAX).to_be_bytes();
        (17, [&[0, 9][..], &port, &len, &[0, 0]].concat())
    } else {
        (6, [&[0, 9][..], &port, &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 2, 0, 0, 0, 0, 0]].concat())
    };
    print_one(LinkType::RAW, &packet(six, proto, &[&header, rest].concat()), kind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A jumbogram with destination options of these lengths before its payload.
    fn jumbogram(length: u32, headers: &[u8], proto: u8) -> Vec<u8> {
        let mut bytes =
            [&[0x60, 0, 0, 0, 0, 0, 0, 64][..], &[0xfd; 32], &[60, 0, 0xc2, 4], &length.to_be_bytes()].concat();
        for (nth, len) in headers.iter().enumerate() {
            bytes.extend([if nth + 1 == headers.len() { proto } else { 60 }, *len]);
            bytes.resize(bytes.len() + usize::from(*len) * 8 + 6, 0);
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// The jumbogram may be longer or shorter than its headers.
        #[test]
        fn any_jumbogram_is_survived(
            headers in prop::collection::vec(240u8.., 30..40),
            length in 0x1_0000_u32..0x1_2000,
            proto in any::<u8>(),
        ) {
            print_one(LinkType::RAW, &jumbogram(length, &headers, proto), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_tcpdump(&bytes);
            fuzz_tcpdump_frame(&bytes);
            fuzz_tcpdump_protocol(&bytes);
            fuzz_tcpdump_application(&bytes);
        }

        #[test]
        fn any_ip_packet_is_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            proto in any::<u8>(),
            six in any::<bool>(),
        ) {
            let v4 = [0x45, 0, 1, 0, 0, 0, 0, 0, 64, proto];
            let v6 = [0x60, 0, 0, 0, 1, 0, proto, 64];
            fuzz_tcpdump(&[if six { &v6[..] } else { &v4 }, &bytes].concat());
        }
    }
}
