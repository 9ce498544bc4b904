//! Captured packets as pcapng: each interface with its name and link type, nanoseconds, the direction of each packet.

use super::blocks::{
    COMMENT, CUSTOM_TEXT, END_OF_OPTIONS, ENTERPRISE, IF_DESCRIPTION, IF_NAME, IF_TIME_OFFSET, IF_TIME_RESOLUTION,
    INBOUND, INTERFACE, NANOSECONDS, OUTBOUND, PACKET_FLAGS, PACKET_HEAD, SNAPLEN, begin_block, end_block, pad,
    put_option, put_packet_head, put_section,
};
use super::copied::{put_copied_statistics, put_counts};
use super::put_bytes;
use record::rows::{CapturedFrame, FramePlace, LinkType, PktType, SimilarFrames, UnusualTime};
use record::text::{put_text, put_u64};
use std::num::NonZeroU32;

/// Written for a link type without a number: `LINKTYPE_USER0`.
pub(super) const LINKTYPE_USER0: u16 = 147;
/// Longest name; the rest is cut off. The kernel's names have at most 15 bytes, a file's may have any length.
const NAME_MAX: usize = 64;
/// Most notes of a packet, and most bytes of each value; the rest is omitted.
///
/// Bound: comments of a packet. Beyond: further comments are left out. By: the user.
const NOTES_MAX: usize = 16;
/// Bound: bytes of a value in a comment. Beyond: the value is cut. By: anyone whose names are in the comment.
const NOTE_MAX: usize = 256;

/// Most interfaces of a section. The next one begins another section.
const IFACES_MAX: usize = 4096;

/// Far times that share an interface's `if_tsoffset`: 544 years, whose nanoseconds fit into 64 bits.
const SPAN_S: i64 = 1 << 34;

/// Longest text of the caller; the rest is cut off.
const TEXT_MAX: usize = 256;

/// Notes about a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketNotes<'n> {
    /// A comment of its own; empty without one.
    pub text: &'n [u8],
    /// Names and values: one comment with all of them, for people (`src_process=ssh netns=blue`), and a custom option
    /// (2988) with `name=value` for each, for programs.
    pub fields: &'n [(&'n str, &'n [u8])],
}

/// Appends the description of an interface.
pub(super) type DescribeIface<'p> = &'p dyn Fn(&mut Vec<u8>);

/// The parts that the caller adds to a packet.
#[derive(Clone, Copy, Default)]
pub(super) struct PacketParts<'p> {
    /// The bytes before the frame.
    pub(super) link_header: &'p [u8],
    /// `epb_flags`; `None` for the flags of the packet's type.
    pub(super) flags: Option<u32>,
    /// Called if its interface has no block in the section yet.
    pub(super) describe: Option<DescribeIface<'p>>,
    pub(super) notes: PacketNotes<'p>,
}

/// Most bytes of a block of statistics with all counts; next, of an interface with the longest name, each byte
/// escaped; and of the header of a section.
const STATISTICS_BYTES_MAX: usize = 92;
const IFACE_BYTES_MAX: usize = 512;

/// An interface that already has a block in the section.
#[derive(Debug)]
struct WrittenIface {
    netns_id: u64,
    ifindex: u32,
    version: Option<NonZeroU32>,
    link_type: LinkType,
    /// Seconds that are added to each stamp (`if_tsoffset`); 0 unless its packets have far times.
    offset_s: i64,
    name: Box<[u8]>,
    /// Packets in the section.
    packets: u64,
}

/// An interface that a section describes.
#[derive(Clone, Copy, Debug)]
pub struct SectionIface<'w> {
    /// Inode of its network namespace; 0 if it comes from a file.
    pub netns_id: u64,
    /// Its number there.
    pub ifindex: u32,
    /// Its name.
    pub name: &'w [u8],
    /// True if it is the only interface of the section.
    pub is_only: bool,
}

/// Counts of an interface since the capture began; `None` is not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IfaceStatistics {
    /// Packets that it received (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Packets that it dropped before a packet socket could see them (`isb_ifdrop`).
    pub dropped_by_iface: Option<u64>,
    /// Packets that passed the filter (`isb_filteraccept`).
    pub accepted: Option<u64>,
    /// Packets that found no room in the ring (`isb_osdrop`).
    pub dropped_by_system: Option<u64>,
}

/// Writes rows as blocks of a pcapng file: little-endian, nanoseconds.
///
/// Packets refer to interfaces by their number in the section. The bytes written after
/// [`CapturedPcapNg::begin_section`] form a section that may begin a file, follow any other section, or be lost,
/// without harm to the others.
#[derive(Debug)]
pub struct CapturedPcapNg {
    /// The snapshot length that interfaces are described with.
    snaplen: u32,
    in_section: bool,
    ifaces: Vec<WrittenIface>,
    /// The last packet's interface, which is usually the next packet's as well.
    last: usize,
    text: Vec<u8>,
}

impl Default for CapturedPcapNg {
    fn default() -> CapturedPcapNg {
        CapturedPcapNg::new()
    }
}

impl CapturedPcapNg {
    /// A writer at the beginning of a file.
    pub fn new() -> CapturedPcapNg {
        CapturedPcapNg { snaplen: SNAPLEN, in_section: false, ifaces: Vec::new(), last: 0, text: Vec::new() }
    }

    /// The same, whose interfaces say that packets were cut to `snaplen` bytes; 0 stands for no limit.
    pub fn cut_to(self, snaplen: u32) -> CapturedPcapNg {
        CapturedPcapNg { snaplen, ..self }
    }

    /// Begins a new section with the next packet. Call this before each piece that is stored or lost as a whole.
    pub fn begin_section(&mut self) {
        self.in_section = false;
    }

    /// Appends one packet to `out`; if it is the first of its section or interface, after the header of the section or
    /// the block of the interface.
    #[inline]
    pub fn write(&mut self, packet: &CapturedFrame<'_>, out: &mut Vec<u8>) {
        let number = self.begin_packets(packet, 1, None, out);
        let place = match packet.unusual_time {
            None => packet.frame_place(),
            Some(_) => FramePlace { time_ns: stamp(packet).1, ..packet.frame_place() },
        };
        put_packet(number, packet.packet_type.map(flags), &place, packet.frame, out);
    }

    /// Appends several similar packets to `out`, and the end offset of each to `ends`.
    pub fn write_similar(&mut self, packets: &SimilarFrames<'_>, ends: &mut Vec<usize>, out: &mut Vec<u8>) {
        let number = self.begin_packets(&packets.first, packets.places.len() as u64, None, out);
        let flags = packets.first.packet_type.map(flags);
        for place in packets.places {
            put_packet(number, flags, place, packets.bytes(place), out);
            ends.push(out.len());
        }
    }

    /// Like [`CapturedPcapNg::write`], with notes about the packet. Values are escaped, and cut at 256 bytes. Notes
    /// take more than twice the bytes of their text: to keep files small, write them only with the first packet of a
    /// connection, and when they change.
    pub fn write_noted(&mut self, packet: &CapturedFrame<'_>, notes: PacketNotes<'_>, out: &mut Vec<u8>) {
        if notes.text.is_empty() && notes.fields.is_empty() {
            return self.write(packet, out);
        }
        self.write_with(packet, &PacketParts { notes, ..PacketParts::default() }, out);
    }

    /// Appends one packet with the additional parts of the caller.
    pub(super) fn write_with(&mut self, packet: &CapturedFrame<'_>, parts: &PacketParts<'_>, out: &mut Vec<u8>) {
        let number = self.begin_packets(packet, 1, parts.describe, out);
        let start = out.len();
        let captured = parts.link_header.len() + packet.frame.len();
        let len = packet.len.saturating_add(parts.link_header.len() as u32);
        put_packet_head(number, 0, &FramePlace { at: 0, captured, len, time_ns: stamp(packet).1 }, out);
        out.extend_from_slice(parts.link_header);
        out.extend_from_slice(packet.frame);
        pad(out, captured);
        if let Some(flags) = parts.flags.or(packet.packet_type.map(flags)) {
            put_option(out, PACKET_FLAGS, &flags.to_le_bytes());
        }
        self.put_notes(parts.notes, out);
        put_option(out, END_OF_OPTIONS, &[]);
        end_block(out, start);
    }

    /// Begins a section if necessary, and counts `count` packets like this one; returns the number of their interface.
    #[inline]
    fn begin_packets(
        &mut self,
        packet: &CapturedFrame<'_>,
        count: u64,
        describe: Option<DescribeIface<'_>>,
        out: &mut Vec<u8>,
    ) -> u32 {
        if !self.in_section || self.ifaces.len() >= IFACES_MAX {
            self.in_section = true;
            self.ifaces.clear();
            put_section(out);
        }
        let number = self.number(packet, describe, out);
        if let Some(iface) = self.ifaces.get_mut(self.last) {
            iface.packets += count;
        }
        number
    }

    fn put_notes(&mut self, notes: PacketNotes<'_>, out: &mut Vec<u8>) {
        let text = &mut self.text;
        if !notes.text.is_empty() {
            text.clear();
            put_text(text, notes.text.get(..TEXT_MAX).unwrap_or(notes.text));
            put_option(out, COMMENT, text);
        }
        text.clear();
        let fields = notes.fields.get(..NOTES_MAX).unwrap_or(notes.fields);
        for (nth, field) in fields.iter().enumerate() {
            if nth > 0 {
                text.push(b' ');
            }
            put_note(text, field);
        }
        if !text.is_empty() {
            put_option(out, COMMENT, text);
        }
        for field in fields {
            text.clear();
            text.extend_from_slice(&ENTERPRISE.to_le_bytes());
            put_note(text, field);
            put_option(out, CUSTOM_TEXT, text);
        }
    }

    /// Returns the most bytes that [`CapturedPcapNg::finish_with`] appends, with the description of one more
    /// interface.
    pub fn end_bytes(&self) -> usize {
        (self.ifaces.len() + 1) * STATISTICS_BYTES_MAX + IFACE_BYTES_MAX
    }

    /// Ends the section with the statistics of each interface: packets in the section, and, if there is only one
    /// interface, its `dropped` packets. A file without packets gets an interface without a name, because libpcap
    /// rejects files without an interface.
    pub fn finish(&mut self, time_ns: u64, dropped: Option<u64>, out: &mut Vec<u8>) {
        let counts = |iface: &SectionIface<'_>| IfaceStatistics {
            dropped_by_system: dropped.filter(|_| iface.is_only),
            ..IfaceStatistics::default()
        };
        self.finish_with(time_ns, &counts, out);
    }

    /// Like [`CapturedPcapNg::finish`], with the counts of each interface that the caller knows.
    pub fn finish_with(
        &mut self,
        time_ns: u64,
        counts: &dyn Fn(&SectionIface<'_>) -> IfaceStatistics,
        out: &mut Vec<u8>,
    ) {
        if !self.in_section {
            self.in_section = true;
            self.ifaces.clear();
            put_section(out);
        }
        if self.ifaces.is_empty() {
            self.add_iface(&CapturedFrame { link_type: LinkType::ETHERNET, ..CapturedFrame::default() }, None, out);
        }
        let is_only = self.ifaces.len() == 1;
        for (number, iface) in self.ifaces.iter().enumerate() {
            let WrittenIface { netns_id, ifindex, name, .. } = iface;
            let known = counts(&SectionIface { netns_id: *netns_id, ifindex: *ifindex, name, is_only });
            let mut options = Vec::new();
            let IfaceStatistics { received, dropped_by_iface, accepted, dropped_by_system } = known;
            let delivered = Some(iface.packets);
            put_counts([received, dropped_by_iface, accepted, dropped_by_system, delivered], &mut options);
            put_copied_statistics(number as u32, time_ns, &options, out);
        }
    }

    /// Returns the number of the packet's interface in this section, and writes the interface's block if necessary.
    #[inline]
    fn number(&mut self, row: &CapturedFrame<'_>, describe: Option<DescribeIface<'_>>, out: &mut Vec<u8>) -> u32 {
        let is_last = |last: &WrittenIface| {
            row.iface_version.is_some()
                && (last.version, last.netns_id, last.link_type) == (row.iface_version, row.netns_id, row.link_type)
        };
        if !self.ifaces.get(self.last).is_some_and(is_last) {
            return self.find_or_write_other(row, describe, out);
        }
        self.last as u32
    }

    fn find_or_write_other(
        &mut self,
        row: &CapturedFrame<'_>,
        describe: Option<DescribeIface<'_>>,
        out: &mut Vec<u8>,
    ) -> u32 {
        let (offset_s, _) = stamp(row);
        let is_it = |iface: &WrittenIface| {
            (iface.ifindex, iface.netns_id, iface.link_type) == (row.ifindex, row.netns_id, row.link_type)
                && iface.offset_s == offset_s
                && *iface.name == *row.iface
        };
        if !self.ifaces.get(self.last).is_some_and(is_it) {
            self.last = self.ifaces.iter().position(is_it).unwrap_or_else(|| self.add_iface(row, describe, out));
        }
        if let Some(last) = self.ifaces.get_mut(self.last) {
            last.version = row.iface_version;
        }
        self.last as u32
    }

    fn add_iface(&mut self, row: &CapturedFrame<'_>, describe: Option<DescribeIface<'_>>, out: &mut Vec<u8>) -> usize {
        let link_type = if row.link_type == LinkType::UNKNOWN { LINKTYPE_USER0 } else { row.link_type.0 };
        let start = begin_block(out, INTERFACE);
        out.extend_from_slice(&u32::from(link_type).to_le_bytes());
        out.extend_from_slice(&self.snaplen.to_le_bytes());
        self.text.clear();
        if !row.iface.is_empty() {
            put_text(&mut self.text, row.iface.get(..NAME_MAX).unwrap_or(row.iface));
        } else if row.netns_id != 0 && row.ifindex > 0 {
            self.text.extend_from_slice(b"if");
            put_u64(&mut self.text, row.ifindex.into());
        }
        // Files may have unnamed interfaces, and number them differently.
        if !self.text.is_empty() {
            put_option(out, IF_NAME, &self.text);
        }
        if let Some(describe) = describe {
            let mut description = Vec::new();
            describe(&mut description);
            self.text.clear();
            put_text(&mut self.text, description.get(..TEXT_MAX).unwrap_or(&description));
            if !self.text.is_empty() {
                put_option(out, IF_DESCRIPTION, &self.text);
            }
        }
        put_option(out, IF_TIME_RESOLUTION, &[NANOSECONDS]);
        let (offset_s, _) = stamp(row);
        if offset_s != 0 {
            put_option(out, IF_TIME_OFFSET, &offset_s.to_le_bytes());
        }
        put_option(out, END_OF_OPTIONS, &[]);
        end_block(out, start);
        self.ifaces.push(WrittenIface {
            netns_id: row.netns_id,
            ifindex: row.ifindex,
            version: row.iface_version,
            link_type: row.link_type,
            offset_s,
            name: row.iface.into(),
            packets: 0,
        });
        self.ifaces.len() - 1
    }
}

/// The seconds from 1970 to the time from which the packet's stamp counts, and its stamp in ns.
#[inline]
fn stamp(packet: &CapturedFrame<'_>) -> (i64, u64) {
    match packet.unusual_time.and_then(UnusualTime::to_far_time) {
        None => (0, packet.time_ns),
        Some(time) => {
            let within_s = time.second().rem_euclid(SPAN_S);
            (time.second() - within_s, within_s as u64 * 1_000_000_000 + u64::from(time.nanos()))
        }
    }
}

/// Appends `name=value`, escaped.
fn put_note(text: &mut Vec<u8>, (name, value): &(&str, &[u8])) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    put_text(text, value.get(..NOTE_MAX).unwrap_or(value));
}

/// `epb_flags` and the end of options.
const FLAGS_BYTES: usize = 12;
/// Bytes that are written after a packet before the surplus is removed: padding, flags, length.
const TAIL_BYTES: usize = 4 + FLAGS_BYTES + 4;

/// Appends a packet without notes; `frame` is its captured part.
#[inline(always)]
fn put_packet(number: u32, flags: Option<u32>, place: &FramePlace, frame: &[u8], out: &mut Vec<u8>) {
    let padding = frame.len().wrapping_neg() % 4;
    let options = if flags.is_some() { FLAGS_BYTES } else { 0 };
    let length = PACKET_HEAD + frame.len() + padding + options + 4;
    // The bytes after the packet: the flags and the end of options if there are flags, then the length. They form one
    // number, because loading bytes that were just stored in smaller parts would wait for those stores.
    let tail = u128::from(length as u32);
    let with_flags = |flags: u32| tail << 96 | u128::from(flags) << 32 | 4 << 16 | u128::from(PACKET_FLAGS);
    let tail = flags.map_or(tail, with_flags).to_le_bytes();
    let start = out.len();
    out.reserve(length + TAIL_BYTES);
    put_packet_head(number, length, &FramePlace { captured: frame.len(), ..*place }, out);
    put_bytes(frame, out);
    // Always copies the same number of bytes and removes the surplus: a copy of a known length needs no call.
    let end = out.len() + padding;
    out.extend_from_slice(&[0; 4]);
    out.truncate(end);
    out.extend_from_slice(&tail);
    out.truncate(start + length);
}

/// Returns `epb_flags`: the direction, and the type of destination.
fn flags(packet_type: PktType) -> u32 {
    let reception = match packet_type {
        PktType::Host => 1,
        PktType::Multicast => 2,
        PktType::Broadcast => 3,
        PktType::OtherHost => 4,
        PktType::Outgoing => 0,
    };
    reception << 2 | if packet_type.is_outgoing() { OUTBOUND } else { INBOUND }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::blocks::read_back::{blocks, options, u32_at};
    use super::super::blocks::{PACKET, SECTION_HEADER};
    use super::*;
    use record::FarTime;

    #[test]
    fn far_times_have_interfaces_with_offsets() {
        let (mut writer, mut out) = (CapturedPcapNg::new(), Vec::new());
        let far = |ns: i128| CapturedFrame {
            unusual_time: FarTime::split(ns).err().map(UnusualTime::Far),
            time_ns: FarTime::split(ns).unwrap_or_else(FarTime::nearest_ns),
            ..CapturedFrame::default()
        };
        let times = [7, -1, -(1 << 70), 1 << 64, 1 << 90, -2];
        times.iter().for_each(|ns| writer.write(&far(*ns), &mut out));
        let (mut offsets, mut found) = (Vec::new(), Vec::new());
        for block in blocks(&out) {
            let number = |at| i128::from(u32_at(&block.1, at));
            match block.0 {
                INTERFACE => {
                    let option = options(&block, 8).into_iter().find(|(code, _)| *code == IF_TIME_OFFSET);
                    offsets.push(option.map_or(0, |(_, value)| i64::from_le_bytes(value.try_into().unwrap())));
                }
                PACKET => {
                    let offset_s = offsets[number(0) as usize];
                    found.push(i128::from(offset_s) * 1_000_000_000 + (number(4) << 32 | number(8)));
                }
                _ => {}
            }
        }
        assert_eq!((found, offsets.len()), (times.to_vec(), 5));
    }

    #[test]
    fn a_section_describes_so_many_interfaces_and_no_more() {
        let (mut writer, mut out) = (CapturedPcapNg::new(), Vec::new());
        for ifindex in 0..=IFACES_MAX as u32 {
            writer.write(&CapturedFrame { ifindex, ..CapturedFrame::default() }, &mut out);
        }
        assert_eq!(blocks(&out).iter().filter(|block| block.0 == SECTION_HEADER).count(), 2);
    }

    #[test]
    fn each_interface_has_its_block_and_each_packet_its_number() {
        let mut writer = CapturedPcapNg::new();
        let mut out = Vec::new();
        let packet = CapturedFrame {
            time_ns: (7 << 32) + 9,
            ifindex: 2,
            iface: b"eth0",
            link_type: LinkType::ETHERNET,
            packet_type: Some(PktType::Outgoing),
            len: 100,
            frame: &[1, 2, 3, 4, 5],
            ..CapturedFrame::default()
        };
        let other = CapturedFrame { ifindex: 3, iface: b"wg0", link_type: LinkType::RAW, ..packet };
        for row in [packet, other, packet, CapturedFrame { iface: b"wan", ..packet }] {
            writer.write(&row, &mut out);
        }
        let written = blocks(&out);
        let kinds: Vec<u32> = written.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 1, 6, 6, 1, 6]);
        let numbers: Vec<u32> = written.iter().filter(|block| block.0 == 6).map(|block| u32_at(&block.1, 0)).collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
        let fields: Vec<u32> = (0..5).map(|nth| u32_at(&written[2].1, nth * 4)).collect();
        assert_eq!(fields, [0, 7, 9, 5, 100]);
        assert_eq!(written[2].1[20..28], [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(written[2].1[28..], [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0], "outbound");
        assert_eq!((u32_at(&written[1].1, 0), u32_at(&written[3].1, 0)), (1, 101));
        let mut statistics = Vec::new();
        writer.finish(7, None, &mut statistics);
        let delivered: Vec<u32> = blocks(&statistics).iter().map(|block| u32_at(&block.1, 16)).collect();
        assert_eq!(delivered, [2, 1, 1]);
        writer.begin_section();
        writer.write(&packet, &mut out);
        assert_eq!(blocks(&out).len(), 11, "a section of its own");
    }

    /// Packets are copied in different ways depending on their length, and padded.
    #[test]
    fn issue_13_packets_of_any_length_are_complete_with_their_trailer() {
        let bytes: Vec<u8> = (1..=200).collect();
        for (frame, packet_type) in
            (0..bytes.len()).flat_map(|length| [None, Some(PktType::Host)].map(|packet_type| (length, packet_type)))
        {
            let frame = &bytes[..frame];
            let packet = CapturedFrame { len: 300, frame, packet_type, ..CapturedFrame::default() };
            let (mut writer, mut out) = (CapturedPcapNg::new(), b"before".to_vec());
            writer.write(&packet, &mut out);
            let body = &blocks(&out[6..])[2].1;
            assert_eq!((u32_at(body, 12) as usize, &body[20..20 + frame.len()]), (frame.len(), frame));
            let (padding, options) = body[20 + frame.len()..].split_at(frame.len().next_multiple_of(4) - frame.len());
            assert!(padding.iter().all(|byte| *byte == 0), "{frame:?}");
            let inbound: &[u8] = &[2, 0, 4, 0, 5, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(options, if packet_type.is_some() { inbound } else { &[] }, "{frame:?}");
        }
    }

    #[test]
    fn issue_13_packets_that_are_alike_are_written_as_one_by_one() {
        let memory: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let place =
            |nth: usize| FramePlace { at: nth, captured: 7 * nth, len: 200, time_ns: 5_000_000_000_000 + nth as u64 };
        let mut places: Vec<FramePlace> = (0..40).map(place).collect();
        // The packet lies beyond the memory: none of its bytes are written.
        places.push(FramePlace { at: 4999, captured: 2, ..place(1) });
        for packet_type in [None, Some(PktType::Outgoing)] {
            let iface_version = NonZeroU32::new(1);
            let first = CapturedFrame {
                iface_version,
                ifindex: 3,
                iface: b"eth0",
                link_type: LinkType::ETHERNET,
                packet_type,
                ..CapturedFrame::default()
            };
            let packets = SimilarFrames { first, memory: &memory, places: &places };
            let (mut single, mut ends_of_single) = (Vec::new(), Vec::new());
            let (mut together, mut ends) = (b"before".to_vec(), Vec::new());
            let (mut writer, mut other) = (CapturedPcapNg::new(), CapturedPcapNg::new());
            for packet in packets.iter() {
                writer.write(&packet, &mut single);
                ends_of_single.push(6 + single.len());
            }
            other.write_similar(&packets, &mut ends, &mut together);
            assert_eq!((&together[6..], &ends), (&single[..], &ends_of_single));
            let (mut end, mut other_end) = (Vec::new(), Vec::new());
            writer.finish(7, None, &mut end);
            other.finish(7, None, &mut other_end);
            assert_eq!(end, other_end, "as many packets are counted");
            let (mut pcap, mut other, mut single, mut together) =
                (super::super::CapturedPcap::new(), super::super::CapturedPcap::new(), Vec::new(), Vec::new());
            packets.iter().for_each(|packet| assert!(pcap.write(&packet, &mut single)));
            assert!(other.write_similar(&packets, &mut ends, &mut together));
            assert_eq!((&together, ends.last(), ends.len()), (&single, Some(&single.len()), 82));
            let raw = CapturedFrame { link_type: LinkType::RAW, ..first };
            assert!(!other.write_similar(&SimilarFrames { first: raw, ..packets }, &mut ends, &mut together));
            assert_eq!((together.len(), ends.len()), (single.len(), 82), "no place for another link type");
        }
    }

    #[test]
    fn an_empty_name_is_not_written() {
        let of_file = CapturedFrame { link_type: LinkType::ETHERNET, len: 1, frame: &[1], ..CapturedFrame::default() };
        let (mut read, mut empty) = (Vec::new(), Vec::new());
        CapturedPcapNg::new().write(&of_file, &mut read);
        CapturedPcapNg::new().finish(7, Some(0), &mut empty);
        for written in [read, empty] {
            let described = &blocks(&written)[1];
            assert_eq!((described.0, described.1[8]), (INTERFACE, IF_TIME_RESOLUTION as u8), "its first option");
        }
    }

    #[test]
    fn notes_are_comments_and_custom_options_and_counts_of_each_interface_statistics() {
        let row = |iface: &'static [u8], ifindex| CapturedFrame {
            netns_id: 1,
            ifindex,
            iface,
            link_type: LinkType::ETHERNET,
            len: 4,
            frame: &[1, 2, 3, 4],
            ..CapturedFrame::default()
        };
        let (mut writer, mut out) = (CapturedPcapNg::new(), Vec::new());
        let notes: [(&str, &[u8]); 2] = [("src_process", b"ss\x1bh"), ("netns", &[b'x'; 300])];
        writer.write_noted(&row(b"eth0", 2), PacketNotes { text: b"to\x1b", fields: &notes }, &mut out);
        writer.write(&row(b"wg0", 3), &mut out);
        let counts = |iface: &SectionIface<'_>| match iface.name {
            b"eth0" => IfaceStatistics { dropped_by_iface: Some(7), dropped_by_system: Some(9), ..Default::default() },
            _ => IfaceStatistics::default(),
        };
        writer.finish_with(5, &counts, &mut out);
        let written = blocks(&out);
        let comment = [&b"src_process=ss\\x1bh netns="[..], &[b'x'; 256]].concat();
        let custom = |text: &[u8]| (CUSTOM_TEXT, [&[0xd9, 0x7e, 0, 0], text].concat());
        let expected = [
            (COMMENT, b"to\\x1b".to_vec()),
            (COMMENT, comment),
            custom(b"src_process=ss\\x1bh"),
            custom(&[&b"netns="[..], &[b'x'; 256]].concat()),
        ];
        assert_eq!(options(&written[2], 24), expected);
        assert_eq!(written[4].1.len(), 24, "no note, no option");
        let count = |code, count: u64| (code, count.to_le_bytes().to_vec());
        assert_eq!(options(&written[5], 12), [count(5, 7), count(7, 9), count(8, 1)]);
        assert_eq!(options(&written[6], 12), [count(8, 1)]);
    }
}
