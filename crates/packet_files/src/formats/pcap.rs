//! The pcap format, which every reader of packets supports.

use super::{ETH_P_IP, ETH_P_IPV6, LINKTYPE_RAW, SNAPLEN, is_ip, lengths, put_bytes};
use record::Lookups;
use record::rows::LogRecord;

/// Magic number of little-endian files with microseconds.
const MAGIC: u32 = 0xa1b2_c3d4;
const VERSION: (u16, u16) = (2, 4);

/// Writes rows as records of a pcap file: little-endian, microseconds, link type RAW, like the output PCAP of ulogd2.
///
/// A packet that is not IP (ARP, say) is written as it is, as ulogd2 does: its reader takes it for IP of an unknown
/// version. [`Pcap::is_for`] tells such packets apart. VLAN tags in front of a packet are omitted. There are two
/// differences from ulogd2: the time zone in the header is always 0, as readers assume, and the original length also
/// comes from the IP header in bridge and netdev chains.
#[derive(Debug, Default)]
pub struct Pcap;

impl Pcap {
    /// A writer, which has no state.
    pub fn new() -> Pcap {
        Pcap
    }

    /// Returns the header of a file.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&VERSION.0.to_le_bytes());
        out.extend_from_slice(&VERSION.1.to_le_bytes());
        // Time zone and accuracy of times: all writers set them to 0.
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&SNAPLEN.to_le_bytes());
        out.extend_from_slice(&u32::from(LINKTYPE_RAW).to_le_bytes());
        out
    }

    /// True for an IP packet: readers take any other for IP of an unknown version.
    #[inline]
    pub fn is_for(row: &LogRecord<'_>) -> bool {
        is_ip(row) || is_tagged_ip(row)
    }

    /// Appends one record to `out`. Seconds have 32 bits, which end in 2106.
    #[inline(always)]
    pub fn write(&mut self, row: &LogRecord<'_>, _: &Lookups<'_>, out: &mut Vec<u8>) {
        if row.ether_type != ETH_P_IP && row.ether_type != ETH_P_IPV6 {
            let (ether_type, payload) = row.payload_after_tags();
            return put_record(&LogRecord { ether_type, payload, ..*row }, out);
        }
        put_record(row, out);
    }
}

#[cold]
fn is_tagged_ip(row: &LogRecord<'_>) -> bool {
    matches!(row.payload_after_tags().0, ETH_P_IP | ETH_P_IPV6)
}

#[inline(always)]
fn put_record(row: &LogRecord<'_>, out: &mut Vec<u8>) {
    let us = row.time_ns / 1000;
    let (captured, whole) = lengths(row);
    let head = [(us / 1_000_000) as u32, (us % 1_000_000) as u32, captured, whole];
    let head = head.iter().rev().fold(0, |bits, field| bits << 32 | u128::from(*field)).to_le_bytes();
    out.reserve(HEADER_BYTES + row.payload.len());
    out.extend_from_slice(&head);
    put_bytes(row.payload, out);
}

/// Bytes of the header before each packet.
const HEADER_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(row: &LogRecord<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Pcap::new().write(row, &Lookups::empty(), &mut out);
        out
    }

    /// Returns the two lengths of a record.
    fn written_lengths(row: &LogRecord<'_>) -> (u32, u32) {
        let out = record_of(row);
        let at = |at: usize| out.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
        (at(8), at(12))
    }

    #[test]
    fn the_header_is_that_of_ulogd2() {
        let expected = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0];
        assert_eq!(Pcap::new().header(), expected);
    }

    #[test]
    fn times_are_microseconds() {
        let row = LogRecord { time_ns: 1_795_265_034_699_260_999, payload: &[0x45], ..LogRecord::default() };
        let expected = [&1_795_265_034u32.to_le_bytes()[..], &699_260u32.to_le_bytes(), &[1, 0, 0, 0], &[1, 0, 0, 0]];
        assert_eq!(record_of(&row), [&expected.concat()[..], &[0x45]].concat());
    }

    #[test]
    fn packets_of_any_length_are_whole() {
        let payload: Vec<u8> = (0..200).collect();
        for length in 0..payload.len() {
            let payload = &payload[..length];
            let record = record_of(&LogRecord { payload, ..LogRecord::default() });
            assert_eq!((record.len(), &record[HEADER_BYTES..]), (HEADER_BYTES + length, payload), "{length}");
        }
    }

    #[test]
    fn only_ip_is_for_a_file_of_ip() {
        let (v4, arp) = ([0x45, 0, 0, 20], [0, 1, 8, 0]);
        let tagged = [[0, 7, 8, 0], v4].concat();
        for (ether_type, payload, expected) in [
            (0x0800, &v4[..], true),
            (0, &v4, true),
            (0x8100, &tagged, true),
            (0x0806, &arp, false),
            (0x8847, &v4, false),
            (0, &arp, false),
            (0, &[], false),
        ] {
            let row = LogRecord { ether_type, payload, ..LogRecord::default() };
            assert_eq!(Pcap::is_for(&row), expected, "{ether_type:x} {payload:x?}");
        }
    }

    #[test]
    fn the_original_length_is_in_the_ip_header() {
        let v4 = [0x45, 0, 0x05, 0xdc, 0, 0];
        let v6 = [0x60, 0, 0, 0, 0x00, 0x40];
        let short = [0x45, 0, 0];
        let arp = [0x00, 0x01, 0x08, 0x00];
        for (ether_type, payload, expected) in [
            (0x0800, &v4[..], (6, 1500)),
            (0, &v4, (6, 1500)),
            (0x86dd, &v6, (6, 104)),
            (0x0800, &short, (3, 3)),
            (0x0800, &[0x45, 0, 0, 1], (4, 4)),
            (0x0806, &arp, (4, 4)),
            (0x8847, &v4, (6, 6)),
            (0, &[], (0, 0)),
        ] {
            let row = LogRecord { ether_type, payload, ..LogRecord::default() };
            assert_eq!(written_lengths(&row), expected, "{ether_type:x} {payload:x?}");
        }
    }
}
