//! pcap: a file header, then a short header before each packet (draft-ietf-opsawg-pcap).

use super::RECORD_MAX;
use super::error::FileFault;
use super::input::Input;
use super::interface::FileIface;
use super::options::{FileOptions, Order};
use super::packet::{FilePacket, FoundPacket};
use super::resolution::Resolution;

const MAGIC_US: u32 = 0xa1b2_c3d4;
const MAGIC_NS: u32 = 0xa1b2_3c4d;
/// The format of a libpcap shipped by Red Hat and SuSE around 2000, with longer record headers.
const MAGIC_LONG: u32 = 0xa1b2_cd34;
const HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const LONG_RECORD_HEADER: usize = 24;
/// The bits of the link type; the bits above hold the length of a frame's checksum.
const LINK_TYPE: u32 = 0x03ff_ffff;

/// The header of a pcap file.
#[derive(Debug)]
pub(super) struct PcapHeader {
    pub(super) read: Order,
    pub(super) iface: FileIface,
    ns_of_unit: u32,
    record_header: usize,
    /// Whether the two lengths of a packet are swapped; `None` if that must be guessed.
    swaps_lengths: Option<bool>,
}

impl PcapHeader {
    /// Reads the header, if the file starts with one.
    pub(super) fn of(input: &mut Input, magic: [u8; 4]) -> Option<Result<PcapHeader, FileFault>> {
        let known =
            [(MAGIC_US, 1000, RECORD_HEADER), (MAGIC_NS, 1, RECORD_HEADER), (MAGIC_LONG, 1000, LONG_RECORD_HEADER)];
        let is_it = |(number, ..): &(u32, u32, usize)| Order::of_magic(magic, *number).is_some();
        let (number, ns_of_unit, record_header) = known.into_iter().find(is_it)?;
        let read = Order::of_magic(magic, number)?;
        Some(PcapHeader::read(input, read, ns_of_unit, record_header))
    }

    fn read(input: &mut Input, read: Order, ns_of_unit: u32, record_header: usize) -> Result<PcapHeader, FileFault> {
        let got = input.fill(HEADER).map_err(FileFault::Io)?;
        let truncated = FileFault::Truncated { what: "its header", needed: HEADER as u64, got: got as u64 };
        let bytes = input.peek(HEADER);
        let numbers = (read.u16(bytes, 4), read.u16(bytes, 6), read.u32(bytes, 16), read.u32(bytes, 20));
        let (Some(major), Some(minor), Some(snaplen), Some(link_type)) = numbers else { return Err(truncated) };
        // A writer of the nineties used 543.
        let swaps_lengths = match (major, minor) {
            (2, 0..=2) | (543, _) => Some(true),
            (2, 3) => None,
            (2, _) => Some(false),
            _ => return Err(FileFault::Version(major, minor)),
        };
        input.take(HEADER);
        let iface = FileIface {
            name: Box::default(),
            link_type: link_type & LINK_TYPE,
            snaplen,
            pcap_bits: Some(link_type & !LINK_TYPE),
            has_more: false,
            resolution: Resolution::MICROSECONDS,
        };
        Ok(PcapHeader { read, iface, ns_of_unit, record_header, swaps_lengths })
    }

    /// The next packet; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&self, input: &mut Input) -> Result<Option<FoundPacket>, FileFault> {
        let header = self.record_header;
        let got = input.fill(header).map_err(FileFault::Io)?;
        let bytes = input.peek(got);
        let read = |at| self.read.u32(bytes, at);
        let numbers = (read(0), read(4), read(8), read(12));
        let (Some(s), Some(fraction), Some(mut caplen), Some(mut len)) = numbers else {
            let (needed, got) = (header as u64, got as u64);
            return if got == 0 { Ok(None) } else { Err(FileFault::Truncated { what: HEAD, needed, got }) };
        };
        if self.swaps_lengths.unwrap_or(caplen > len) {
            (caplen, len) = (len, caplen);
        }
        let Some(bytes) = Some(caplen as usize).filter(|bytes| *bytes <= RECORD_MAX) else {
            return Err(FileFault::PacketTooLong { claims: caplen });
        };
        let got = input.fill(header + bytes).map_err(FileFault::Io)?;
        if got < header + bytes {
            let got = got.saturating_sub(header) as u64;
            return Err(FileFault::Truncated { what: "a packet", needed: bytes as u64, got });
        }
        let time_ns = u64::from(s) * 1_000_000_000 + u64::from(fraction) * u64::from(self.ns_of_unit);
        let link_type = self.iface.link_type;
        let packet = FilePacket {
            time_ns,
            unusual_time: None,
            stamp: time_ns,
            iface: 0,
            iface_name: b"",
            number: 1,
            link_type,
            len,
            bytes: &[],
            packet_type: None,
            options: FileOptions::NONE,
        };
        let record = header + bytes;
        // Like libpcap, cut each packet to the header's snapshot length; 0 and values above i32::MAX mean no limit.
        let limit =
            i32::try_from(self.iface.snaplen).ok().filter(|limit| *limit > 0).map_or(bytes, |limit| limit as usize);
        let bytes = bytes.min(limit);
        Ok(Some(FoundPacket { packet, record, at: header, bytes, options_at: record, behind: 0, read: self.read }))
    }
}

/// Name of the incomplete part.
const HEAD: &str = "the header of a packet";
