//! Entry point for the fuzzer: no bytes may make a decoder panic, and all decoders agree.
use std::hint::black_box;

use crate::headers::{is_extension, read_headers, read_network_into, read_quoted_v6, read_transport};
use crate::tuple::packet_tuple;
use record::Addr;
use record::rows::{PacketHeaders, Transport};

/// Reads any bytes as a packet, in all ways.
pub fn fuzz_headers(data: &[u8]) {
    let (read, quoted, mut network) = (read_headers(data), read_quoted_v6(data), None);
    read_network_into(data, &mut network);
    for (proto, bytes) in data.iter().map(|proto| (*proto, data)) {
        black_box(read_transport(proto, bytes));
    }
    assert_eq!(read.is_some(), network.is_some());
    let (Some(read), Some(network)) = (read, network) else { return };
    black_box(packet_tuple(&read));
    assert_eq!(network.transport, Transport::Other);
    assert!(network.payload.ends_with(read.payload) && data.ends_with(network.payload));
    let is_later = read.fragment.is_some_and(|fragment| fragment.offset != 0);
    let transport = if is_later { Transport::Other } else { read_transport(read.proto, read.payload) };
    assert_eq!(read.transport, transport);
    match read.src {
        Addr::V4(_) => assert_eq!(PacketHeaders { transport, ..network }, read),
        Addr::V6(_) => {
            let PacketHeaders { id, fragment, proto, header, payload, .. } = read;
            assert_eq!(PacketHeaders { id, fragment, proto, transport, header, payload, ..network }, read);
            // The packet in an ICMPv6 error is read beyond the greatest number of extension headers.
            assert!(is_extension(proto) || quoted == Some(read));
        }
    }
}
