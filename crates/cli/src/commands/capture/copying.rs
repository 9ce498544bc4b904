//! Copies records of packet files into another file, with everything that pcapng can express.

use crate::exit::Exit;
use crate::messages::say;
use crate::outcome::Outcome;
use crate::packet_files::{OutputFile, is_pcap};
use capture::{FileError, FileIface, FileOptions, FilePacket, OtherBlock, blocks};
use record::rows::{CapturedPacket, LinkType};
use sinks::packets::{
    CapturedPcap, CopiedPacket, put_copied_block, put_copied_iface, put_copied_packet, put_copied_section,
    put_copied_statistics,
};
use std::io;
use std::path::Path;

/// The error for a packet that does not fit into the format.
pub(super) const ONE_LINK_TYPE: &str = "pcap has one link type only: name the file .pcapng";

/// The file to copy records into.
pub(super) struct CopyWriter {
    file: OutputFile,
    /// `None` for pcapng.
    pcap: Option<CapturedPcap>,
    is_in_section: bool,
    scratch: Vec<u8>,
    pub(super) written: u64,
    pub(super) not_written: u64,
    /// Number of comments, counts and other blocks that the format cannot hold.
    left_out: u64,
    /// True once writing has failed.
    has_failed: bool,
    is_closed: bool,
}

/// A packet to copy; its options are little-endian.
pub(super) struct PacketCopy<'p> {
    pub(super) row: CapturedPacket<'p>,
    pub(super) copied: CopiedPacket<'p>,
}

impl CopyWriter {
    /// Creates the file, or empties an existing one.
    pub(super) fn create(path: &Path) -> io::Result<CopyWriter> {
        Ok(CopyWriter {
            file: OutputFile::create_packed(path)?,
            pcap: is_pcap(path).then(CapturedPcap::new),
            is_in_section: false,
            scratch: Vec::new(),
            written: 0,
            not_written: 0,
            left_out: 0,
            has_failed: false,
            is_closed: false,
        })
    }

    /// Begins a section with these options, little-endian.
    pub(super) fn begin_section(&mut self, options: &[u8]) {
        self.is_in_section = true;
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
        if self.pcap.is_some() {
            return;
        }
        self.scratch.clear();
        options.put_little_endian(blocks::INTERFACE, &mut self.scratch);
        let own = Some(iface.snaplen).filter(|own| *own != 0);
        let snaplen = own.into_iter().chain(snaplen).min().unwrap_or(0);
        put_copied_iface(iface.link_type, snaplen, &self.scratch, &mut self.file.buffer);
        self.make_room();
    }

    /// Keeps the values in the header of the copied pcap file: at most `snaplen` bytes per packet, and the length of
    /// frame checksums. pcapng stores the checksum length differently, so it is counted as left out there.
    pub(super) fn keep_header(&mut self, iface: &FileIface, snaplen: Option<u32>) {
        let Some(bits) = iface.pcap_bits else { return };
        match self.pcap.take() {
            Some(pcap) => {
                let own = Some(iface.snaplen).filter(|own| *own != 0);
                let pcap = own.into_iter().chain(snaplen).min().map_or(CapturedPcap::new(), |least| pcap.cut_to(least));
                self.pcap = Some(pcap.with_link_bits(bits));
            }
            None => self.left_out += u64::from(bits != 0),
        }
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
        if self.has_failed {
            self.not_written += 1;
            return;
        }
        match &mut self.pcap {
            None => put_copied_packet(&packet.copied, &mut self.file.buffer),
            Some(pcap) => {
                if !pcap.write(&packet.row.captured(), &mut self.file.buffer) {
                    self.refuse(1, ONE_LINK_TYPE);
                    return;
                }
                let has_comment = each_option(packet.copied.options).any(|(code, _)| code == COMMENT);
                self.left_out += u64::from(has_comment);
            }
        }
        if self.file.end_packet() {
            self.write_out();
        }
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

    /// Writes buffered data, including blocks other than packets, once there is enough of it.
    fn make_room(&mut self) {
        if self.has_failed {
            self.file.buffer.clear();
        } else if self.file.is_full() {
            self.write_out();
        }
    }

    /// True once the reader has closed the output.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Counts packets that are not written, and reports the first reason.
    pub(super) fn refuse(&mut self, packets: u64, why: &str) {
        if self.not_written == 0 {
            say(&format!("{}: packets are not written: {why}", self.file.name));
        }
        self.not_written += packets;
    }

    fn write_out(&mut self) {
        let (packets, failure) = self.file.write_out();
        self.written += packets;
        if let Some(failure) = failure {
            self.is_closed = failure.is_closed;
            self.refuse(failure.packets, &failure.why);
            // Blocks required by later ones may be missing, so nothing more is written.
            self.has_failed = true;
        }
    }

    /// Writes the rest. `link_type` is for a pcap file without packets. Returns the messages and the exit code.
    pub(super) fn finish(mut self, read: &str, link_type: u32, faults: &[FileError]) -> Outcome {
        if let Some(pcap) = &mut self.pcap {
            pcap.begin(u16::try_from(link_type).map_or(LinkType::UNKNOWN, LinkType), &mut self.file.buffer);
        } else if !self.is_in_section {
            self.begin_section(&[]);
        }
        if !self.has_failed {
            self.write_out();
        }
        let CopyWriter { file, written, not_written, left_out, .. } = self;
        let mut messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
        if left_out > 0 {
            let where_to = if is_pcap(Path::new(&file.name)) { " in pcap" } else { "" };
            messages.push(format!("{left_out} comments, counts and other blocks have no place{where_to}"));
        }
        messages.push(format!("{read}; {written} written to {}, {not_written} not written", file.name));
        let is_whole = faults.is_empty() && (not_written == 0 || self.is_closed);
        Outcome { exit: if is_whole { Exit::Ok } else { Exit::Partial }, messages }
    }
}

/// The code of `opt_comment`.
pub(super) const COMMENT: u16 = 1;

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
