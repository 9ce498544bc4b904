//! The format of a file that captured packets are written to.

use super::formats::{CapturedPcap, CapturedPcapNg, IfaceStatistics, SectionIface};
use super::packing::is_pcap;
use record::rows::{CapturedFrame, LinkType, UnusualTime};
use std::path::Path;

/// A writer in one of the two formats.
#[derive(Debug)]
pub enum PacketFormat {
    /// One link type; no names of interfaces, no counts.
    Pcap(CapturedPcap),
    /// Everything.
    Pcapng(CapturedPcapNg),
}

impl PacketFormat {
    /// The format that the file's name asks for.
    pub fn from_name(path: &Path) -> PacketFormat {
        match is_pcap(path) {
            true => PacketFormat::Pcap(CapturedPcap::new()),
            false => PacketFormat::Pcapng(CapturedPcapNg::new()),
        }
    }

    /// Returns the writer whose files say that packets were cut to `snaplen` bytes (0: not at all), and in pcap, that
    /// frames have checksums as `link_bits` say.
    pub(super) fn with_header(self, snaplen: u32, link_bits: u32) -> PacketFormat {
        match self {
            PacketFormat::Pcap(pcap) => PacketFormat::Pcap(pcap.cut_to(snaplen).with_link_bits(link_bits)),
            PacketFormat::Pcapng(pcapng) => PacketFormat::Pcapng(pcapng.cut_to(snaplen)),
        }
    }

    /// Maximum size of the end of the file, including the description of one more interface.
    pub(super) fn end_bytes(&self) -> usize {
        match self {
            PacketFormat::Pcap(_) => 0,
            PacketFormat::Pcapng(pcapng) => pcapng.end_bytes(),
        }
    }

    /// Appends a packet; false if the file has no place for its link type.
    #[inline]
    pub fn write(&mut self, packet: &CapturedFrame<'_>, out: &mut Vec<u8>) -> bool {
        match self {
            PacketFormat::Pcap(pcap) => pcap.write(packet, out),
            PacketFormat::Pcapng(pcapng) => {
                pcapng.write(packet, out);
                true
            }
        }
    }

    /// True if the packet has its own time in the file.
    #[inline]
    pub(super) fn holds_time_of(&self, packet: &CapturedFrame<'_>) -> bool {
        match self {
            PacketFormat::Pcap(_) => CapturedPcap::holds_time_of(packet),
            PacketFormat::Pcapng(_) => packet.unusual_time != Some(UnusualTime::Missing),
        }
    }

    /// The next packet begins another file.
    pub fn begin_file(&mut self) {
        match self {
            PacketFormat::Pcap(pcap) => pcap.begin_file(),
            PacketFormat::Pcapng(pcapng) => pcapng.begin_section(),
        }
    }

    /// Continues a file that lacks bytes: they may have contained descriptions of interfaces, which are repeated.
    pub fn continue_file(&mut self) {
        if let PacketFormat::Pcapng(pcapng) = self {
            pcapng.begin_section();
        }
    }

    /// Appends the header of a pcap file without packets.
    pub fn begin(&mut self, link_type: LinkType, out: &mut Vec<u8>) {
        if let PacketFormat::Pcap(pcap) = self {
            pcap.begin(link_type, out);
        }
    }

    /// Appends the end of the file, with the counts of each interface that the caller knows. `link_type` is for a pcap
    /// file without packets.
    pub fn end_file(
        &mut self,
        link_type: LinkType,
        counts: &dyn Fn(&SectionIface<'_>) -> IfaceStatistics,
        out: &mut Vec<u8>,
    ) {
        match self {
            PacketFormat::Pcap(pcap) => pcap.begin(link_type, out),
            PacketFormat::Pcapng(pcapng) => pcapng.finish_with(sys::clock::wall_ns(), counts, out),
        }
    }
}
