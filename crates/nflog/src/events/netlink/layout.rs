//! Remembers the offsets of attributes in records.
//!
//! Records of one rule and one type of packet have the same attributes at the same offsets. A comparison of the
//! attribute headers at these offsets shows whether that holds for a message. This is faster than walking from one
//! attribute to the next, because there each offset depends on the length before it.
use netlink::{Attrs, DecodeError};
use packet::read_headers_into;
use record::rows::LogRecord;

use super::record::{decode_into, hardware_address, is_plain, read_other_packet, time_ns};
use crate::uapi::{NFGENMSG, nfula};

/// Number of layouts, indexed by the length of the message.
///
/// Bound: layouts of messages that log records share. Beyond: further records are read attribute by attribute. By: any
/// sender of packets with new lengths and types.
const SLOTS: usize = 32;
/// Size of a block of bytes that are compared at once, and the maximum number of blocks: attribute headers are at the
/// start of the message, because the packet comes last. With the longest prefix they end at 240.
const BLOCK: usize = 64;
const BLOCKS_MAX: usize = 4;
/// Number of messages that do not match a layout after which a new one replaces it.
const MISSES_MAX: u8 = 8;

/// Layouts of recent records.
#[derive(Debug)]
pub(crate) struct RecordLayouts {
    slots: Box<[RecordLayout; SLOTS]>,
    /// True to decode packet headers.
    pub(crate) reads_headers: bool,
    /// True to decode interfaces and the link layer. If false, only rows of unknown layouts have them.
    pub(crate) reads_link: bool,
    /// True if the last row has fields that no layout contains.
    is_more_set: bool,
}

/// Offsets of the attributes of a message.
#[derive(Debug, Clone, Copy, Default)]
struct RecordLayout {
    /// Size of the message; 0 without a layout.
    bytes: usize,
    /// The headers of all attributes, as bytes of the message.
    heads: [HeadBlock; BLOCKS_MAX],
    /// Number of these blocks in use.
    blocks: usize,
    places: AttrPlaces,
    misses: u8,
}

/// Part of a message in which only some bytes are compared.
#[derive(Debug, Clone, Copy, Default)]
struct HeadBlock {
    at: usize,
    bytes: [u64; BLOCK / 8],
    /// All bits of the compared bytes.
    mask: [u64; BLOCK / 8],
}

/// Offset and length of an attribute's payload. No payload starts at 0, so 0 means that the attribute is missing.
#[derive(Debug, Clone, Copy, Default)]
struct AttrPlace {
    at: u16,
    bytes: u16,
}

/// Offsets of all attributes that a layout may have, except one that is not decoded.
#[derive(Debug, Clone, Copy, Default)]
struct AttrPlaces {
    packet_hdr: AttrPlace,
    prefix: AttrPlace,
    payload: AttrPlace,
    seq: AttrPlace,
    in_ifindex: AttrPlace,
    out_ifindex: AttrPlace,
    timestamp: AttrPlace,
    hw_header: AttrPlace,
    hw_addr: AttrPlace,
    hw_type: AttrPlace,
}

impl Default for RecordLayouts {
    fn default() -> RecordLayouts {
        let slots = Box::new([RecordLayout::default(); SLOTS]);
        RecordLayouts { slots, reads_headers: true, reads_link: true, is_more_set: true }
    }
}

impl RecordLayouts {
    /// The row into which the messages of a frame are decoded, one after the other; missing attributes keep the value
    /// of `base`.
    pub(crate) fn begin_frame<'b>(&mut self, base: &LogRecord<'b>) -> LogRecord<'b> {
        self.is_more_set = true;
        *base
    }

    /// Decodes a record as [`decode_into`] does, and the packet's headers. `row` is the row of the previous message, or
    /// from [`RecordLayouts::begin_frame`]; missing attributes get the value of `base`. Clearing the whole row for each
    /// message would cost as much as decoding one.
    #[inline]
    pub(crate) fn decode_into<'b>(
        &mut self,
        message: &'b [u8],
        base: &LogRecord<'b>,
        row: &mut LogRecord<'b>,
        unknown_attrs: &mut u64,
    ) -> Result<(), DecodeError> {
        if std::mem::take(&mut self.is_more_set) {
            *row = *base;
        }
        let layout = &mut self.slots[message.len() / 4 % SLOTS];
        if layout.is_of(message) {
            layout.misses = 0;
            layout.places.read(message, base, row);
            if self.reads_link {
                layout.places.read_link(message, row);
            }
        } else {
            self.is_more_set = true;
            *row = *base;
            decode_into(message, row, unknown_attrs)?;
            layout.add_miss(message);
        }
        match is_plain(row) {
            true if self.reads_headers => read_headers_into(row.payload, &mut row.packet),
            true => {}
            // The payload may not start with the IP header.
            false => read_other_packet(row),
        }
        Ok(())
    }
}

impl HeadBlock {
    /// True if the message contains the compared bytes. Without branches, and by index: the compiler generates vector
    /// instructions for it.
    #[inline]
    fn is_in(&self, message: &[u8]) -> bool {
        let Some(block) = message.get(self.at..).and_then(|rest| rest.first_chunk::<BLOCK>()) else { return false };
        let mut differs = 0;
        for at in 0..BLOCK / 8 {
            let byte = |index: usize| block[at * 8 + index];
            let word = [byte(0), byte(1), byte(2), byte(3), byte(4), byte(5), byte(6), byte(7)];
            differs |= (u64::from_ne_bytes(word) ^ self.bytes[at]) & self.mask[at];
        }
        differs == 0
    }

    /// Adds bytes to compare, which are at offset `at` in the message, as far as they are in the block.
    fn add(&mut self, at: usize, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            let Some(within) = at.checked_sub(self.at).filter(|within| *within < BLOCK) else { continue };
            let put = |words: &mut [u64; BLOCK / 8], byte: u8| {
                let mut word = words[within / 8].to_ne_bytes();
                word[within % 8] = byte;
                words[within / 8] = u64::from_ne_bytes(word);
            };
            put(&mut self.bytes, *byte);
            put(&mut self.mask, u8::MAX);
        }
    }
}

impl AttrPlace {
    /// The payload; empty if the message lacks it.
    #[inline(always)]
    fn payload(self, message: &[u8]) -> &[u8] {
        message.get(usize::from(self.at)..usize::from(self.at) + usize::from(self.bytes)).unwrap_or_default()
    }

    /// The first bytes of the payload. A layout has no attribute that is shorter than the bytes decoded from it.
    #[inline(always)]
    fn first_bytes<const N: usize>(self, message: &[u8]) -> Option<&[u8; N]> {
        if self.at == 0 { None } else { message.get(usize::from(self.at)..)?.first_chunk() }
    }

    #[inline(always)]
    fn number(self, message: &[u8]) -> Option<u32> {
        self.first_bytes(message).map(|bytes| u32::from_be_bytes(*bytes))
    }
}

impl AttrPlaces {
    /// Decodes all fields that a layout may have, except for the ones in [`AttrPlaces::read_link`].
    #[inline]
    fn read<'b>(&self, message: &'b [u8], base: &LogRecord<'b>, row: &mut LogRecord<'b>) {
        if let Some([family, _, group_high, group_low]) = message.first_chunk::<NFGENMSG>() {
            (row.group, row.family) = (u16::from_be_bytes([*group_high, *group_low]), *family);
        }
        (row.ether_type, row.hook) = match self.packet_hdr.first_bytes(message) {
            Some([high, low, hook, _]) => (u16::from_be_bytes([*high, *low]), *hook),
            None => (base.ether_type, base.hook),
        };
        row.prefix = netlink::Attr { kind: nfula::PREFIX, payload: self.prefix.payload(message) }.c_str();
        row.payload = self.payload.payload(message);
        row.seq = self.seq.number(message);
        row.time_ns = self.timestamp.first_bytes(message).map_or(base.time_ns, time_ns);
    }

    /// Decodes the interfaces and the link layer.
    #[inline]
    fn read_link<'b>(&self, message: &'b [u8], row: &mut LogRecord<'b>) {
        row.in_ifindex = self.in_ifindex.number(message);
        row.out_ifindex = self.out_ifindex.number(message);
        row.hw_header = self.hw_header.payload(message);
        row.hw_addr = hardware_address(self.hw_addr.payload(message));
        row.hw_type = self.hw_type.first_bytes(message).map(|bytes| u16::from_be_bytes(*bytes));
    }

    /// The offset of an attribute, and the number of bytes decoded from it; `None` for attributes that are rare.
    fn place_of(&mut self, kind: u16) -> Option<(&mut AttrPlace, usize)> {
        Some(match kind {
            nfula::PACKET_HDR => (&mut self.packet_hdr, 4),
            nfula::PREFIX => (&mut self.prefix, 0),
            nfula::PAYLOAD => (&mut self.payload, 0),
            nfula::SEQ => (&mut self.seq, 4),
            nfula::IFINDEX_INDEV => (&mut self.in_ifindex, 4),
            nfula::IFINDEX_OUTDEV => (&mut self.out_ifindex, 4),
            nfula::TIMESTAMP => (&mut self.timestamp, 16),
            nfula::HWHEADER => (&mut self.hw_header, 0),
            nfula::HWADDR => (&mut self.hw_addr, 0),
            nfula::HWTYPE => (&mut self.hw_type, 2),
            _ => return None,
        })
    }
}

impl RecordLayout {
    #[inline]
    fn is_of(&self, message: &[u8]) -> bool {
        self.bytes == message.len()
            && self.blocks > 0
            && self.heads.iter().take(self.blocks).all(|block| block.is_in(message))
    }

    /// Records that a well-formed message has another layout.
    #[inline(never)]
    fn add_miss(&mut self, message: &[u8]) {
        if self.bytes != 0 && self.misses < MISSES_MAX {
            self.misses += 1;
            return;
        }
        *self = RecordLayout::from_message(message).unwrap_or_default();
    }

    /// The layout of a well-formed message; `None` if it has rare attributes, is shorter than a block, or has headers
    /// after the last block.
    fn from_message(message: &[u8]) -> Option<RecordLayout> {
        let last_block = message.len().checked_sub(BLOCK)?;
        let mut layout = RecordLayout { bytes: message.len(), ..RecordLayout::default() };
        for (index, block) in layout.heads.iter_mut().enumerate() {
            block.at = (index * BLOCK).min(last_block);
        }
        let mut at = NFGENMSG;
        for attr in Attrs::new(message.get(NFGENMSG..)?) {
            let attr = attr.ok()?;
            if attr.kind != nfula::HWLEN {
                let (place, needs) = layout.places.place_of(attr.kind)?;
                let bytes = u16::try_from(attr.payload.len()).ok().filter(|bytes| usize::from(*bytes) >= needs)?;
                *place = AttrPlace { at: u16::try_from(at + ATTR_HEAD).ok()?, bytes };
            }
            let index =
                layout.heads.iter().position(|block| (block.at..=block.at + BLOCK - ATTR_HEAD).contains(&at))?;
            layout.heads.get_mut(index)?.add(at, message.get(at..at + ATTR_HEAD)?);
            layout.blocks = layout.blocks.max(index + 1);
            at += (ATTR_HEAD + attr.payload.len()).next_multiple_of(4);
        }
        Some(layout)
    }
}

/// Size of an attribute's header.
const ATTR_HEAD: usize = 4;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::decode_record;
    use proptest::prelude::*;

    /// A message with these attributes: kind, and a number that determines the payload.
    fn message(attrs: &[(u16, u8)], cut: usize) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 5];
        for (kind, number) in attrs {
            let payload: Vec<u8> = match *kind {
                nfula::PAYLOAD => [&[0x45, 0, 0, 40][..], &[*number; 16 + 20]].concat(),
                nfula::PACKET_HDR => vec![8, 0, *number, 0],
                nfula::PREFIX => vec![b'a' + number % 3, b':', 0],
                nfula::TIMESTAMP => vec![*number; 16],
                nfula::HWADDR => vec![0, 6, 0, 0, *number, 2, 3, 4, 5, 6, 0, 0],
                _ => vec![*number; 4],
            };
            bytes.extend((payload.len() as u16 + 4).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(&payload);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        bytes
    }

    fn both(layouts: &mut RecordLayouts, message: &[u8]) {
        all_of(layouts, &[message.to_vec()]);
    }

    /// Decodes the messages of one frame into one row.
    fn all_of(layouts: &mut RecordLayouts, messages: &[Vec<u8>]) {
        let (base, mut unknown, mut expected_unknown) = (LogRecord { time_ns: 9, ..LogRecord::default() }, 0, 0);
        let mut row = layouts.begin_frame(&LogRecord { mark: Some(99), time_ns: 7, ..LogRecord::default() });
        for message in messages {
            let decoded = layouts.decode_into(message, &base, &mut row, &mut unknown).map(|()| row);
            assert_eq!(decoded, decode_record(message, 9, &mut expected_unknown));
            assert_eq!(unknown, expected_unknown);
        }
    }

    const USUAL: [u16; 10] = [1, 10, 4, 8, 15, 17, 16, 3, 12, 9];

    /// Tests known and unknown layouts.
    #[test]
    fn headers_and_the_link_layer_are_read_where_they_are_asked_for() {
        let mut layouts = RecordLayouts::default();
        for (is_known, is_asked) in [(false, true), (true, false), (true, false), (true, true)] {
            (layouts.reads_headers, layouts.reads_link) = (is_asked, is_asked);
            let message = message(&USUAL.map(|kind| (kind, 1)), 0);
            let mut row = layouts.begin_frame(&LogRecord::default());
            layouts.decode_into(&message, &LogRecord::default(), &mut row, &mut 0).unwrap();
            assert_eq!((row.packet.is_some(), row.payload.len()), (is_asked, 40));
            let link = (row.in_ifindex.is_some(), row.hw_type.is_some(), row.hw_addr.is_empty());
            assert_eq!(link, if is_asked || !is_known { (true, true, false) } else { (false, false, true) });
        }
    }

    #[test]
    fn a_layout_is_known_again() {
        let mut layouts = RecordLayouts::default();
        let usual = |number| message(&USUAL.map(|kind| (kind, number)), 0);
        let is_known =
            |layouts: &RecordLayouts, message: &[u8]| layouts.slots.iter().any(|layout| layout.is_of(message));
        for number in [7, 8, 9] {
            both(&mut layouts, &usual(number));
            assert!(is_known(&layouts, &usual(200)));
        }
        // Same length, but other layouts: one in another order, and one with a mark, which no layout contains.
        let (mut other, mut marked) = (USUAL.map(|kind| (kind, 1)), USUAL.map(|kind| (kind, 2)));
        other.swap(2, 5);
        marked[2].0 = nfula::MARK;
        for _ in 0..=MISSES_MAX {
            both(&mut layouts, &message(&other, 0));
        }
        both(&mut layouts, &message(&other, 0));
        assert!(is_known(&layouts, &message(&other, 0)) && !is_known(&layouts, &usual(1)));
        for _ in 0..=MISSES_MAX {
            both(&mut layouts, &message(&marked, 0));
        }
        assert!(!is_known(&layouts, &message(&marked, 0)) && !is_known(&layouts, &message(&other, 0)));
    }

    proptest! {
        /// Consecutive messages of few lengths, whole or cut, decode the same with and without layouts.
        #[test]
        fn messages_read_the_same(
            messages in prop::collection::vec((0usize..4, 0usize..10, 0u16..24, any::<u8>(), 0usize..6, 0u8..4), 1..60),
        ) {
            let (mut layouts, mut all) = (RecordLayouts::default(), Vec::new());
            for (shape, changed, kind, number, cut, is_cut) in messages {
                let mut attrs = USUAL.map(|kind| (kind, number)).to_vec();
                match shape {
                    0 => {}
                    1 => attrs[changed].0 = kind,
                    2 => attrs.swap(changed, 0),
                    _ => attrs.truncate(changed),
                }
                all.push(message(&attrs, if is_cut == 0 { cut } else { 0 }));
            }
            all_of(&mut layouts, &all);
        }

        #[test]
        fn any_heads_read_the_same(messages in prop::collection::vec(prop::collection::vec(0u8..24, 0..64), 1..60)) {
            all_of(&mut RecordLayouts::default(), &messages);
        }
    }
}
