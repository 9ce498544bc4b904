//! Builders of packets.

/// Computes the Internet checksum of bytes.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

pub(crate) const SOURCE: [u8; 4] = [192, 0, 2, 10];
pub(crate) const DEST: [u8; 4] = [198, 51, 100, 20];
pub(crate) const SOURCE6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10];
pub(crate) const DEST6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20];

/// Ethernet before `payload`.
pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10][..], &kind.to_be_bytes(), payload].concat()
}

/// IPv4 before `payload`, with a correct checksum.
pub(crate) fn v4(proto: u8, payload: &[u8]) -> Vec<u8> {
    v4_with(proto, 0, 0x4000, &[], payload)
}

/// IPv4 with a type of service, flags and offset, options.
pub(crate) fn v4_with(proto: u8, tos: u8, offset: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = (20 + options.len() + payload.len()) as u16;
    let words = 0x45 + (options.len() / 4) as u8;
    let head = [&[words, tos][..], &total.to_be_bytes(), &[0x12, 0x34], &offset.to_be_bytes(), &[64, proto]].concat();
    let sum = checksum(&[&head, &SOURCE, &DEST, options]);
    [&head, &sum[..], &SOURCE, &DEST, options, payload].concat()
}

/// IPv6 before `payload`.
pub(crate) fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0][..], &len, &[next, 64], &SOURCE6, &DEST6, payload].concat()
}

/// Fills in the checksum at `at`, over the pseudo header of IPv6 if `six`.
pub(crate) fn summed(six: bool, proto: u8, at: usize, mut bytes: Vec<u8>) -> Vec<u8> {
    let len = (bytes.len() as u32).to_be_bytes();
    let tail = [&len[..], &[0, 0, 0, proto]].concat();
    let sum =
        if six { checksum(&[&SOURCE6, &DEST6, &tail, &bytes]) } else { checksum(&[&SOURCE, &DEST, &tail, &bytes]) };
    bytes[at..at + 2].copy_from_slice(&sum);
    bytes
}

/// An ICMP or IGMP message, which has no pseudo header.
pub(crate) fn message(kind: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    let bytes = [&[kind, code, 0, 0][..], rest].concat();
    let sum = checksum(&[&bytes]);
    [&[kind, code][..], &sum, rest].concat()
}

pub(crate) fn udp(sport: u16, dport: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    [&sport.to_be_bytes()[..], &dport.to_be_bytes(), &len.to_be_bytes(), &[0, 0], payload].concat()
}

/// UDP over IPv4 and over IPv6.
pub(crate) fn udp_packets(sport: u16, dport: u16, payload: &[u8]) -> [Vec<u8>; 2] {
    let datagram = udp(sport, dport, payload);
    [v4(17, &summed(false, 17, 6, datagram.clone())), v6(17, &summed(true, 17, 6, datagram))]
}

pub(crate) fn tcp(ports: (u16, u16), seq: u32, ack: u32, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = ((20 + options.len()) / 4 * 16) as u8;
    let ports = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    let head = [&ports[..], &seq.to_be_bytes(), &ack.to_be_bytes(), &[words, flags, 2, 0, 0, 0, 0, 5]].concat();
    [&head, options, payload].concat()
}

/// TCP over IPv4 and over IPv6.
pub(crate) fn tcp_packets(
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    options: &[u8],
    payload: &[u8],
) -> [Vec<u8>; 2] {
    let segment = tcp(ports, seq, ack, flags, options, payload);
    [v4(6, &summed(false, 6, 16, segment.clone())), v6(6, &summed(true, 6, 16, segment))]
}
