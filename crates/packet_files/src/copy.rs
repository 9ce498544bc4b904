//! Copies records of packet files into another file, with everything that pcapng can express.

use super::formats::{
    CapturedPcap, CopiedPacket, put_copied_block, put_copied_iface, put_copied_packet, put_copied_section,
    put_copied_simple_packet, put_copied_statistics,
};
use super::output_file::OutputFile;
use super::packing::is_pcap;
use capture::{FileError, FileIface, FileOptions, FilePacket, OtherBlock, blocks};
use record::rows::{CapturedPacket, LinkType, UnusualTime};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use std::io;
use std::path::Path;

/// The error for a packet that does not fit into the format.
pub(super) const ONE_LINK_TYPE: &str = "a pcap file has a single link type: name the file .pcapng";

/// The message about a header whose length of frame checksums (FCS) was not kept.
pub(super) const LOST_CHECKSUM_LENGTH: &str =
    "the length of frame checksums is not kept: only a pcap file stores it, one for all packets";
/// Follows the number of packets with another time than in their file.
pub(super) const OTHER_TIMES: &str = "packets have another time in the file, which cannot store theirs: they have \
                                      none, or in pcap one before 1970 or after 2106";

/// The file to copy records into.
pub struct CopyWriter {
    file: OutputFile,
    /// `None` for pcapng.
    pcap: Option<CapturedPcap>,
    /// The bits above the link type that the header of the pcap file has; `None` before an interface is described.
    link_bits: Option<u32>,
    is_in_section: bool,
    /// The snapshot length of the section's first interface.
    first_snaplen: Option<u32>,
    scratch: Vec<u8>,
    /// Number of comments, counts and other blocks that the format cannot hold.
    left_out: u64,
    /// True if the length of frame checksums has no place in the file.
    loses_checksum_length: bool,
    /// Packets that have another time in the file.
    other_times: u64,
}

/// A packet to copy; its options are little-endian.
pub(super) struct PacketCopy<'p> {
    pub(super) row: CapturedPacket<'p>,
    pub(super) copied: CopiedPacket<'p>,
}

impl CopyWriter {
    /// Creates the file, or empties an existing one.
    pub fn create(path: &Path) -> io::Result<CopyWriter> {
        Ok(CopyWriter {
            file: OutputFile::create_packed(path)?,
            pcap: is_pcap(path).then(CapturedPcap::new),
            link_bits: None,
            is_in_section: false,
            first_snaplen: None,
            scratch: Vec::new(),
            left_out: 0,
            loses_checksum_length: false,
            other_times: 0,
        })
    }

    /// Begins a section with these options, little-endian.
    pub(super) fn begin_section(&mut self, options: &[u8]) {
        (self.is_in_section, self.first_snaplen) = (true, None);
        if self.pcap.is_none() {
            put_copied_section(options, &mut self.file.buffer);
        }
    }

    /// Begins a section with the options of another section.
    pub(super) fn copy_section(&mut self, options: FileOptions<'_>) {
        let mut copied = std::mem::take(&mut self.scratch);
        copied.clear();
        options.put_little_endian(blocks::SECTION, &mut copied);
        self.begin_section(&copied);
        self.scratch = copied;
    }

    /// Describes an interface; at most `snaplen` bytes of its packets are written.
    pub(super) fn iface(&mut self, iface: &FileIface, options: FileOptions<'_>, snaplen: Option<u32>) {
        if !self.is_in_section {
            self.begin_section(&[]);
        }
        self.keep_header(iface, snaplen);
        if self.pcap.is_some() {
            return;
        }
        self.scratch.clear();
        options.put_little_endian(blocks::INTERFACE, &mut self.scratch);
        let snaplen = smaller_snaplen(iface, snaplen);
        self.first_snaplen.get_or_insert(snaplen);
        put_copied_iface(iface.link_type, snaplen, &self.scratch, &mut self.file.buffer);
        self.make_room();
    }

    /// Stores what the header of a pcap file contains: the maximum number of bytes captured per packet, and the length
    /// of frame checksums. pcapng's interfaces may differ, so only `snaplen`, the maximum number of copied bytes, is
    /// stored for them.
    fn keep_header(&mut self, iface: &FileIface, snaplen: Option<u32>) {
        let bits = iface.pcap_bits.unwrap_or(0);
        let header_bits = if self.pcap.is_some() { *self.link_bits.get_or_insert(bits) } else { 0 };
        self.loses_checksum_length |= header_bits != bits;
        let Some(pcap) = self.pcap.take() else { return };
        let snaplen = iface.pcap_bits.map(|_| smaller_snaplen(iface, snaplen)).or(snaplen);
        let pcap = if let Some(snaplen) = snaplen { pcap.cut_to(snaplen) } else { pcap };
        self.pcap = Some(pcap.with_link_bits(header_bits));
        self.left_out += u64::from(iface.pcap_bits.is_none() && (iface.has_more || !iface.name.is_empty()));
    }

    /// Writes a packet and converts its options; `iface` is its interface's number in the section.
    pub(super) fn copy(&mut self, packet: &FilePacket<'_>, row: CapturedPacket<'_>, iface: u32) {
        let mut options = std::mem::take(&mut self.scratch);
        options.clear();
        packet.options.put_little_endian(blocks::PACKET, &mut options);
        let copied = CopiedPacket { iface, stamp: packet.stamp, len: packet.len, bytes: row.frame, options: &options };
        self.packet(&PacketCopy { row, copied });
        self.scratch = options;
    }

    /// Writes a packet.
    pub(super) fn packet(&mut self, packet: &PacketCopy<'_>) {
        if self.file.has_failed() {
            return self.file.refuse(1, "");
        }
        match &mut self.pcap {
            None => self.put_into_section(packet),
            Some(pcap) => {
                let frame = packet.row.to_frame();
                if !pcap.write(&frame, &mut self.file.buffer) {
                    return self.file.refuse(1, ONE_LINK_TYPE);
                }
                self.other_times += u64::from(!CapturedPcap::holds_time_of(&frame));
                let has_comment = each_option(packet.copied.options).any(|(code, _)| code == blocks::COMMENT);
                self.left_out += u64::from(has_comment);
            }
        }
        if self.file.end_packet() {
            self.file.write_out();
        }
    }

    /// Appends the packet's block. A packet without a time stays without one if a block of that kind can hold it.
    fn put_into_section(&mut self, packet: &PacketCopy<'_>) {
        let (copied, out) = (&packet.copied, &mut self.file.buffer);
        if packet.row.unusual_time != Some(UnusualTime::Missing) {
            return put_copied_packet(copied, out);
        }
        let snaplen = self.first_snaplen.filter(|snaplen| *snaplen != 0).unwrap_or(u32::MAX);
        let is_whole = copied.bytes.len() == copied.len.min(snaplen) as usize;
        if copied.iface == 0 && copied.options.is_empty() && is_whole {
            return put_copied_simple_packet(copied.len, copied.bytes, out);
        }
        put_copied_packet(copied, out);
        self.other_times += 1;
    }

    /// Writes statistics; options are little-endian.
    pub(super) fn statistics(&mut self, iface: u32, stamp: u64, options: &[u8]) {
        match &self.pcap {
            Some(_) => self.left_out += 1,
            None => put_copied_statistics(iface, stamp, options, &mut self.file.buffer),
        }
        self.make_room();
    }

    /// Writes a block of any other type.
    pub(super) fn other(&mut self, block: &OtherBlock<'_>) {
        self.scratch.clear();
        match self.pcap.is_none() && block.put_little_endian(&mut self.scratch) {
            true => put_copied_block(block.kind, &self.scratch, &mut self.file.buffer),
            false => self.left_out += 1,
        }
        self.make_room();
    }

    /// Writes buffered data, including blocks other than packets, once there is enough of it. Blocks required by later
    /// ones may be missing after a failure, so nothing more is written then.
    fn make_room(&mut self) {
        if self.file.has_failed() {
            self.file.buffer.clear();
        } else if self.file.is_full() {
            self.file.write_out();
        }
    }

    /// True once the reader has closed the output.
    pub(super) fn is_closed(&self) -> bool {
        self.file.is_closed()
    }

    /// Counts a packet that is not written, and reports the first reason.
    pub(super) fn refuse(&mut self, why: &str) {
        self.file.refuse(1, why);
    }

    /// Writes the rest. `link_type` is for a pcap file without packets. Returns the messages and the exit code.
    pub(super) fn finish(mut self, read: &str, link_type: u32, faults: &[FileError]) -> Outcome {
        if let Some(pcap) = &mut self.pcap {
            pcap.begin(u16::try_from(link_type).map_or(LinkType::UNKNOWN, LinkType), &mut self.file.buffer);
        } else if !self.is_in_section {
            self.begin_section(&[]);
        }
        if self.file.has_failed() {
            self.file.buffer.clear();
        }
        let CopyWriter { file, pcap, left_out, other_times, .. } = self;
        let end = file.finish();
        let mut messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
        if left_out > 0 {
            let what = if pcap.is_some() { "comments, counts, interface descriptions" } else { "comments, counts" };
            let where_to = if pcap.is_some() { " in pcap" } else { "" };
            messages.push(format!("{left_out} {what} and other blocks cannot be stored{where_to}"));
        }
        if self.loses_checksum_length {
            messages.push(LOST_CHECKSUM_LENGTH.to_owned());
        }
        if other_times > 0 {
            messages.push(format!("{other_times} {OTHER_TIMES}"));
        }
        messages.push(format!("{read}; {end}"));
        let is_whole = faults.is_empty() && (end.not_written == 0 || end.is_closed) && other_times == 0;
        let is_whole = is_whole && end.missing_data.is_none();
        messages.extend(end.missing_data);
        Outcome { exit: if is_whole { Exit::Ok } else { Exit::Partial }, messages }
    }
}

/// Bytes of each packet that are copied at most: of the interface's snapshot length and `cut` the smaller one; 0 for
/// all.
pub(super) fn smaller_snaplen(iface: &FileIface, cut: Option<u32>) -> u32 {
    let own = Some(iface.snaplen).filter(|own| *own != 0);
    own.into_iter().chain(cut).min().unwrap_or(0)
}

/// Iterates over little-endian options: each code with the option's bytes.
pub(super) fn each_option(options: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = options;
    std::iter::from_fn(move || {
        let [low, high, len_low, len_high, ..] = rest else { return None };
        let code = u16::from_le_bytes([*low, *high]);
        let end = 4 + usize::from(u16::from_le_bytes([*len_low, *len_high])).next_multiple_of(4);
        let (option, behind) = rest.split_at_checked(end)?;
        rest = behind;
        Some((code, option))
    })
}
