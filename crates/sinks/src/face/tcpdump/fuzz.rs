//! Any bytes as a packet, for the fuzzer.

use super::{CapturedBytes, Dump, PacketNames, Stamp, Tcpdump, TcpdumpOptions};
use record::rows::LinkType;

/// What one byte of a packet adds to its lines at most, and what a packet without bytes does: hexadecimal below the
/// line, names of options, quoted packets.
const TEXT_A_BYTE: usize = 400;

/// Everything has a name, of bytes that a terminal must not see.
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

/// Prints any bytes as a packet of every link type, with and without the switches: it must neither panic nor write
/// without bounds.
pub fn fuzz_tcpdump(data: &[u8]) {
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
    let mut out = Vec::new();
    for options in
        [plain, TcpdumpOptions { verbose: 1, ..plain }, all, TcpdumpOptions { quiet: 1, dump: Dump::Text, ..plain }]
    {
        let mut printer = Tcpdump::new(options);
        if options.quiet == 0 {
            printer = printer.named(Box::new(HostileNames));
        }
        for link_type in [0, 1, 101, 108, 113, 276].map(LinkType) {
            for more in [0, 1, 70_000] {
                let len = u32::try_from(data.len()).unwrap_or(u32::MAX).saturating_add(more);
                out.clear();
                printer.print(&CapturedBytes { link_type, bytes: data, len, time_ns: u64::MAX }, &|_| None, &mut out);
                let is_shown = |byte: &u8| matches!(byte, b'\n' | b'\t' | b'\r' | b' '..=b'~');
                assert!(out.iter().all(is_shown), "{}", out.escape_ascii());
                assert!(out.len() <= (data.len() + 16) * TEXT_A_BYTE, "{} bytes of text", out.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_tcpdump(&bytes);
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
