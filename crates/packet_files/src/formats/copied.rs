//! Blocks of pcapng that are copied from other files: little-endian, with their options.
//!
//! Options are passed in the form of a little-endian file, without the end-of-options option. The caller counts
//! sections and interfaces.

use super::blocks::{
    ACCEPTED, DELIVERED, DROPPED_BY_IFACE, DROPPED_BY_SYSTEM, END_OF_OPTIONS, INTERFACE, RECEIVED, SIMPLE_PACKET,
    STATISTICS, begin_block, begin_section, end_block, pad, put_option, put_packet_head,
};
use record::rows::FramePlace;

/// A packet of another file.
#[derive(Clone, Copy, Debug)]
pub struct CopiedPacket<'f> {
    /// Number of its interface in the section.
    pub iface: u32,
    /// Its time in units of that interface.
    pub stamp: u64,
    /// Its original length in bytes.
    pub len: u32,
    /// The bytes to write.
    pub bytes: &'f [u8],
    /// Its options.
    pub options: &'f [u8],
}

/// Appends the header of a section.
pub fn put_copied_section(options: &[u8], out: &mut Vec<u8>) {
    let start = begin_section(out);
    end_with(options, out, start);
}

/// Appends the description of an interface: link type, most bytes of each packet (0: no limit), options.
pub fn put_copied_iface(link_type: u32, snaplen: u32, options: &[u8], out: &mut Vec<u8>) {
    let start = begin_block(out, INTERFACE);
    // 16 bits of link type, then 16 zero bits.
    out.extend_from_slice(&(link_type & 0xffff).to_le_bytes());
    out.extend_from_slice(&snaplen.to_le_bytes());
    end_with(options, out, start);
}

/// Appends a packet.
#[inline]
pub fn put_copied_packet(packet: &CopiedPacket<'_>, out: &mut Vec<u8>) {
    let (start, captured) = (out.len(), packet.bytes.len());
    put_packet_head(packet.iface, 0, &FramePlace { at: 0, captured, len: packet.len, time_ns: packet.stamp }, out);
    out.extend_from_slice(packet.bytes);
    pad(out, packet.bytes.len());
    end_with(packet.options, out, start);
}

/// Appends a packet without a time and options, of the first interface of the section. A reader knows its captured
/// length only from `len` and the snapshot length of that interface.
pub fn put_copied_simple_packet(len: u32, bytes: &[u8], out: &mut Vec<u8>) {
    let start = begin_block(out, SIMPLE_PACKET);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
    pad(out, bytes.len());
    end_block(out, start);
}

/// Appends statistics of an interface, taken at `stamp` in its units.
pub fn put_copied_statistics(iface: u32, stamp: u64, options: &[u8], out: &mut Vec<u8>) {
    let start = begin_block(out, STATISTICS);
    for field in [iface, (stamp >> 32) as u32, stamp as u32] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    end_with(options, out, start);
}

/// Appends a block of any other type.
pub fn put_copied_block(kind: u32, body: &[u8], out: &mut Vec<u8>) {
    let start = begin_block(out, kind);
    out.extend_from_slice(body);
    end_block(out, start);
}

/// Appends the options for counts of an interface: received, dropped by it, past the filter, dropped by the system,
/// delivered. Unknown counts have no option.
pub fn put_counts(counts: [Option<u64>; 5], out: &mut Vec<u8>) {
    const CODES: [u16; 5] = [RECEIVED, DROPPED_BY_IFACE, ACCEPTED, DROPPED_BY_SYSTEM, DELIVERED];
    for (code, count) in CODES.into_iter().zip(counts) {
        if let Some(count) = count {
            put_option(out, code, &count.to_le_bytes());
        }
    }
}

fn end_with(options: &[u8], out: &mut Vec<u8>, start: usize) {
    if !options.is_empty() {
        out.extend_from_slice(options);
        put_option(out, END_OF_OPTIONS, &[]);
    }
    end_block(out, start);
}
