//! UDP.

use crate::build::{udp, udp_packets, v4, v4_with, v6};
use crate::harness::check_ip;

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
}
