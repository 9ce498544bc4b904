//! Any bytes as a packet, for the fuzzer.

use super::{CapturedBytes, Dump, Stamp, Tcpdump, TcpdumpOptions};
use record::rows::LinkType;

/// What one byte of a packet adds to its lines at most, and what a packet without bytes does: hexadecimal below the
/// line, names of options, quoted packets.
const TEXT_A_BYTE: usize = 400;

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
        for link_type in [0, 1, 101, 108, 113, 276].map(LinkType) {
            for more in [0, 1, 70_000] {
                let len = u32::try_from(data.len()).unwrap_or(u32::MAX).saturating_add(more);
                out.clear();
                printer.print(&CapturedBytes { link_type, bytes: data, len, time_ns: u64::MAX }, &|_| None, &mut out);
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
