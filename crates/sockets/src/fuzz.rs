//! Entry points for the fuzzer: run every decoder on arbitrary bytes. None may panic or loop forever.
use std::hint::black_box;

use netlink::{Attrs, Messages};
use record::rows::{FamilyExtras, Socket, Sockets};
use record::{Lookups, Proto, Table};

use crate::backends::bpf::rows::{WalkDecoder, header};
use crate::backends::netlink::inet_diag::InetDecoder;
use crate::backends::netlink::netlink_diag::NetlinkDecoder;
use crate::backends::netlink::packet_diag::PacketDecoder;
use crate::backends::netlink::sctp_diag::SctpDecoder;
use crate::backends::netlink::tipc_diag::TipcDecoder;
use crate::backends::netlink::unix_diag::UnixDecoder;
use crate::backends::netlink::vsock_diag::decode_vsock;
use crate::backends::netlink::xdp_diag::XdpDecoder;
use crate::backends::proc::packet::{parse_proc_netlink_line, parse_proc_packet_line};
use crate::backends::proc::tcp::parse_proc_line;
use crate::backends::proc::unix::{parse_proc_unix_line, restore_abstract};
use crate::backends::proc::unix_lines::fuzz_lines;
use crate::backends::row_keys::{Keys, key_of};

// Evaluates every cell of the row, including tcp_info and socket memory.
fn walk(row: &Socket<'_>) {
    let lookups = Lookups::empty();
    for field in Sockets::FIELDS {
        black_box(field.cell(row, &lookups));
    }
    black_box(key_of(row));
}

/// Decodes bytes as receive buffers of sock_diag, as messages and as one payload, for every protocol.
pub fn fuzz_sock_diag(data: &[u8]) {
    let payloads = Messages::new(data).map_while(Result::ok).map(|message| message.payload);
    for payload in payloads.chain([data]) {
        for proto in Proto::ALL.into_iter().filter(|proto| proto.is_inet()) {
            let mut decoder = InetDecoder::new(proto, 1);
            if let Ok(row) = decoder.decode_rare(payload, &mut FamilyExtras::default()) {
                assert_eq!(row.proto, proto);
                walk(&row);
            }
        }
        if let Ok(row) = PacketDecoder::new(1).decode(payload, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = NetlinkDecoder::new(1).decode(payload, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = SctpDecoder::new(1).decode(payload, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = XdpDecoder::new(1).decode(payload, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = TipcDecoder::new(1).decode(payload, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = decode_vsock(payload, 1, &mut FamilyExtras::default()) {
            walk(&row);
        }
        let mut decoder = UnixDecoder::new(1);
        if let Ok(row) = decoder.decode(payload) {
            assert!(row.unix.is_some());
            walk(&row);
        }
        // Nested payloads (ULP) are handed out undecoded: their readers decode them.
        for attr in Attrs::new(payload).map_while(Result::ok) {
            black_box(attr.nested().count());
        }
    }
}

/// Decodes bytes as a block of the walk, and as rows after a valid header with every set of parts.
pub fn fuzz_walk_block(data: &[u8]) {
    let mut decoder = WalkDecoder::new(1, 2);
    let mut each = |row: Result<(&Socket<'_>, Keys), _>| {
        if let Ok((row, key)) = row {
            assert_eq!((row.proto, key.ends & 1), (Proto::Tcp, 1));
            walk(row);
        }
        std::ops::ControlFlow::Continue(())
    };
    let _ = decoder.visit(data, &mut each);
    for parts in 0..64u32 {
        let _ = decoder.visit(&[&header(parts)[..], data].concat(), &mut each);
    }
}

/// Parses bytes as lines of /proc/net/tcp, udp, raw, unix, packet and netlink.
pub fn fuzz_proc_line(data: &[u8]) {
    fuzz_lines(data);
    for line in data.split(|byte| *byte == b'\n') {
        for proto in [Proto::Tcp, Proto::Udp, Proto::Raw] {
            if let Ok(row) = parse_proc_line(line, proto, 1) {
                walk(&row);
            }
        }
        if let Ok(row) = parse_proc_packet_line(line, 1, &mut FamilyExtras::default()) {
            walk(&row);
        }
        if let Ok(row) = parse_proc_netlink_line(line, 1, &mut FamilyExtras::default(), &mut Vec::new()) {
            walk(&row);
        }
        let mut line = line.to_vec();
        restore_abstract(&mut line);
        if let Ok(row) = parse_proc_unix_line(&line, 1) {
            walk(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn any_bytes(data in prop::collection::vec(any::<u8>(), 0..400)) {
            fuzz_sock_diag(&data);
            fuzz_proc_line(&data);
            fuzz_walk_block(&data);
        }

        /// Messages with a valid beginning: a family, then arbitrary bytes.
        #[test]
        fn any_tail(
            family in prop::sample::select(vec![1u8, 2, 10, 16, 17, 40, 44]),
            data in prop::collection::vec(any::<u8>(), 16..200),
        ) {
            let mut data = data;
            data[0] = family;
            fuzz_sock_diag(&data);
        }

        /// Rows of a valid length, of both families.
        #[test]
        fn any_row(
            words in 6u8..40,
            family in prop::sample::select(vec![2u8, 10, 7]),
            data in prop::collection::vec(any::<u8>(), 160..400),
        ) {
            let mut data = data;
            (data[0], data[1]) = (words, family);
            fuzz_walk_block(&data);
        }

        #[test]
        fn any_words(words in prop::collection::vec("[0-9A-F:@/ ]{0,12}", 0..14)) {
            fuzz_proc_line(words.join(" ").as_bytes());
        }
    }
}
