//! The blocks of pcapng, little-endian (draft-ietf-opsawg-pcapng).

use record::rows::FramePlace;

/// Largest packet that libpcap accepts.
pub(super) const SNAPLEN: u32 = 256 << 10;
/// Block types.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const STATISTICS: u32 = 5;
pub(super) const PACKET: u32 = 6;
/// Options of any block.
pub(super) const END_OF_OPTIONS: u16 = 0;
pub(super) const COMMENT: u16 = 1;
/// Custom option with text that may be copied (`opt_custom_utf8`). Its first four bytes are the number of a private
/// enterprise. 32473 is reserved for examples (RFC 5612), because netwren has no number: readers recognise our options
/// by the names of their fields.
pub(super) const CUSTOM_TEXT: u16 = 2988;
pub(super) const ENTERPRISE: u32 = 32_473;
/// Options of a section header.
pub(super) const USER_APPLICATION: u16 = 4;
/// Options of an interface.
pub(super) const IF_NAME: u16 = 2;
pub(super) const IF_DESCRIPTION: u16 = 3;
pub(super) const IF_TIME_RESOLUTION: u16 = 9;
pub(super) const IF_TIME_OFFSET: u16 = 14;
/// Stamps count units of 10^-9 seconds.
pub(super) const NANOSECONDS: u8 = 9;
/// Options of statistics: `isb_ifrecv`, `isb_ifdrop`, `isb_filteraccept`, `isb_osdrop`, `isb_usrdeliv`.
pub(super) const RECEIVED: u16 = 4;
pub(super) const DROPPED_BY_IFACE: u16 = 5;
pub(super) const ACCEPTED: u16 = 6;
pub(super) const DROPPED_BY_SYSTEM: u16 = 7;
pub(super) const DELIVERED: u16 = 8;
/// Options of a packet.
pub(super) const PACKET_FLAGS: u16 = 2;
pub(super) const UNKNOWN: u32 = 0;
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;

/// Begins the header of a section; returns its offset.
pub(super) fn begin_section(out: &mut Vec<u8>) -> usize {
    let start = begin_block(out, SECTION_HEADER);
    out.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
    // Version 1.0.
    out.extend_from_slice(&1_u32.to_le_bytes());
    // The length of the section is unknown.
    out.extend_from_slice(&u64::MAX.to_le_bytes());
    start
}

/// Appends the header of a section of our own.
pub(super) fn put_section(out: &mut Vec<u8>) {
    let start = begin_section(out);
    put_option(out, USER_APPLICATION, concat!("netwren ", env!("CARGO_PKG_VERSION")).as_bytes());
    put_option(out, END_OF_OPTIONS, &[]);
    end_block(out, start);
}

/// Begins a block, whose length [`end_block`] fills in; returns its offset.
pub(super) fn begin_block(out: &mut Vec<u8>, kind: u32) -> usize {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    start
}

/// Fills in the length of a block, which is both before and after its contents.
pub(super) fn end_block(out: &mut Vec<u8>, start: usize) {
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    if let Some(slot) = out.get_mut(start + 4..start + 8) {
        slot.copy_from_slice(&length);
    }
    out.extend_from_slice(&length);
}

/// Appends one option; `value` is far shorter than the 64 KiB that its length field allows.
pub(super) fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

/// Pads to a multiple of four bytes.
pub(super) fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice([0; 3].get(..len.wrapping_neg() % 4).unwrap_or_default());
}

/// Type, length, interface, stamp (two halves), bytes captured, bytes of the packet.
pub(super) const PACKET_HEAD: usize = 28;

/// Appends everything before the bytes of a packet. The stamp is in units of the interface; the length of the block may
/// be 0 until [`end_block`] fills it in.
#[inline]
pub(super) fn put_packet_head(iface: u32, length: usize, place: &FramePlace, out: &mut Vec<u8>) {
    let captured = u32::try_from(place.captured).unwrap_or(u32::MAX);
    let stamp = [(place.time_ns >> 32) as u32, place.time_ns as u32];
    let fields = [PACKET, length as u32, iface, stamp[0], stamp[1], captured, place.len.max(captured)];
    let mut head = [0; PACKET_HEAD];
    for (place, field) in head.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(&head);
}

/// Parsing of blocks, for tests.
#[cfg(test)]
pub(super) mod read_back {
    #![allow(clippy::unwrap_used)]
    use super::END_OF_OPTIONS;

    /// A parsed block: its type and its body.
    pub(crate) type Block = (u32, Vec<u8>);

    pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// Parses all blocks and checks both lengths of each.
    pub(crate) fn blocks(mut bytes: &[u8]) -> Vec<Block> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let length = u32_at(bytes, 4) as usize;
            assert!(length % 4 == 0 && u32_at(bytes, length - 4) as usize == length);
            found.push((u32_at(bytes, 0), bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        found
    }

    /// Parses the options after the first `skip` bytes of a block.
    pub(crate) fn options(block: &Block, skip: usize) -> Vec<(u16, Vec<u8>)> {
        let mut rest = &block.1[skip..];
        let mut found = Vec::new();
        loop {
            let code = u16::from_le_bytes([rest[0], rest[1]]);
            let length = usize::from(u16::from_le_bytes([rest[2], rest[3]]));
            if code == END_OF_OPTIONS {
                assert_eq!(rest, [0; 4], "the last");
                return found;
            }
            found.push((code, rest[4..4 + length].to_vec()));
            rest = &rest[4 + length.next_multiple_of(4)..];
        }
    }
}
