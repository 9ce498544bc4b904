//! IPsec: encapsulated packets, authentication headers.

use crate::build::{udp, udp_packets, v4, v6};
use crate::harness::check_ip_and_damaged;

#[test]
fn encapsulated() {
    let payload = [&[0, 0, 0x12, 0x34, 0, 0, 0, 7][..], &[9; 20]].concat();
    let packets = [v4(50, &payload), v4(50, &payload[..8]), v4(50, &payload[..3]), v6(50, &payload)];
    check_ip_and_damaged(&packets, 20, 48);
    check_ip_and_damaged(&[v4(108, &[17, 0, 0x12, 0x34, 5, 6])], 20, 26);
}

#[test]
fn authenticated() {
    let header = |next: u8, code: &[u8]| {
        let words = (code.len() / 4 + 1) as u8;
        [&[next, words, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 7][..], code].concat()
    };
    let with = |next: u8, code: &[u8], inner: &[u8]| [&header(next, code)[..], inner].concat();
    let [inner, inner6] = udp_packets(4000, 4001, b"abc");
    let code = [0x11; 12];
    let datagram = udp(1, 2, b"");
    let packets = [
        v4(51, &with(17, &code, &datagram)),
        v4(51, &with(17, &[], &datagram)),
        v4(51, &with(4, &code, &inner)),
        v4(51, &with(51, &code, &with(17, &code, &datagram))),
        v4(51, &with(50, &code, &[0, 0, 0, 1, 0, 0, 0, 2, 3, 4])),
        v4(51, &with(59, &code, b"")),
        v6(51, &with(17, &code, &datagram)),
        v6(51, &with(41, &code, &inner6)),
        v6(0, &[&[51, 0, 1, 4, 0, 0, 0, 0][..], &with(60, &code, &[17, 0, 1, 4, 0, 0, 0, 0]), &datagram].concat()),
    ];
    check_ip_and_damaged(&packets, 21, 56);
}
