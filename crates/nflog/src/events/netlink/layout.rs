//! Where the attributes of records stand.
//!
//! Records of one rule and one kind of packet have the same attributes at the same places. Whether that is so is seen
//! from the heads of the attributes, at places that are known beforehand: to walk from one attribute to the next takes
//! longer, as each place depends on the length before it.
use netlink::{Attrs, DecodeError, prefix};
use packet::read_headers_into;
use record::rows::LogRecord;

use super::record::{decode_into, hardware_address, time_ns};
use crate::uapi::{NFGENMSG, nfula};

/// Layouts that are kept, by the length of the message.
const SLOTS: usize = 32;
/// Most attributes of a layout.
const ATTRS_MAX: usize = 12;
/// Kinds of attributes: all that a layout has are below.
const KINDS: usize = 18;
/// A layout makes room for another after so many messages that it did not fit.
const MISSES_MAX: u8 = 8;

/// Layouts of the last records.
#[derive(Debug)]
pub(crate) struct RecordLayouts(Box<[RecordLayout; SLOTS]>);

/// Where the attributes of a message stand.
#[derive(Debug, Clone, Copy, Default)]
struct RecordLayout {
    /// Bytes of the message; 0 without a layout.
    bytes: usize,
    /// The head of each attribute, in the order of the message: its offset, and how it stands there.
    heads: [(u16, u32); ATTRS_MAX],
    attrs: usize,
    /// By kind: offset and length of its payload. No payload begins at 0.
    places: [(u16, u16); KINDS],
    misses: u8,
}

impl Default for RecordLayouts {
    fn default() -> RecordLayouts {
        RecordLayouts(Box::new([RecordLayout::default(); SLOTS]))
    }
}

impl RecordLayouts {
    /// The same as [`decode_into`].
    #[inline]
    pub(crate) fn decode_into<'b>(
        &mut self,
        message: &'b [u8],
        row: &mut LogRecord<'b>,
        unknown_attrs: &mut u64,
    ) -> Result<(), DecodeError> {
        let layout = &mut self.0[message.len() / 4 % SLOTS];
        if layout.is_of(message) {
            layout.misses = 0;
            layout.read(message, row);
            return Ok(());
        }
        decode_into(message, row, unknown_attrs)?;
        layout.miss(message);
        Ok(())
    }
}

impl RecordLayout {
    #[inline]
    fn is_of(&self, message: &[u8]) -> bool {
        let is_there = |(at, head): &(u16, u32)| prefix::u32_at(message, usize::from(*at)) == Some(*head);
        self.attrs > 0 && self.bytes == message.len() && self.heads.iter().take(self.attrs).all(is_there)
    }

    #[inline]
    fn read<'b>(&self, message: &'b [u8], row: &mut LogRecord<'b>) {
        if let Some([family, _, group_high, group_low]) = message.first_chunk::<NFGENMSG>() {
            (row.group, row.family) = (u16::from_be_bytes([*group_high, *group_low]), *family);
        }
        if let Some([high, low, hook, _]) = self.bytes_of(nfula::PACKET_HDR, message).first_chunk() {
            (row.ether_type, row.hook) = (u16::from_be_bytes([*high, *low]), *hook);
        }
        row.prefix = netlink::Attr { kind: nfula::PREFIX, payload: self.bytes_of(nfula::PREFIX, message) }.c_str();
        row.payload = self.bytes_of(nfula::PAYLOAD, message);
        row.seq = self.number(nfula::SEQ, message);
        row.in_ifindex = self.number(nfula::IFINDEX_INDEV, message);
        row.out_ifindex = self.number(nfula::IFINDEX_OUTDEV, message);
        if let Some(stamp) = self.bytes_of(nfula::TIMESTAMP, message).first_chunk() {
            row.time_ns = time_ns(stamp);
        }
        row.hw_header = self.bytes_of(nfula::HWHEADER, message);
        row.hw_addr = hardware_address(self.bytes_of(nfula::HWADDR, message));
        row.hw_type = prefix::be16_at(self.bytes_of(nfula::HWTYPE, message), 0);
        read_headers_into(row.payload, &mut row.packet);
    }

    /// The payload of an attribute; empty if the message has none.
    #[inline(always)]
    fn bytes_of<'b>(&self, kind: u16, message: &'b [u8]) -> &'b [u8] {
        let (at, bytes) = self.places.get(usize::from(kind)).copied().unwrap_or_default();
        message.get(usize::from(at)..usize::from(at) + usize::from(bytes)).unwrap_or_default()
    }

    #[inline(always)]
    fn number(&self, kind: u16, message: &[u8]) -> Option<u32> {
        prefix::be32_at(self.bytes_of(kind, message), 0)
    }

    /// Notes that a message, which is well-formed, has another layout.
    #[inline(never)]
    fn miss(&mut self, message: &[u8]) {
        if self.bytes != 0 && self.misses < MISSES_MAX {
            self.misses += 1;
            return;
        }
        *self = RecordLayout::of(message).unwrap_or_default();
    }

    /// The layout of a message that is well-formed; `None` if it has attributes that most have not.
    fn of(message: &[u8]) -> Option<RecordLayout> {
        let mut layout = RecordLayout { bytes: message.len(), ..RecordLayout::default() };
        let mut at = NFGENMSG;
        for attr in Attrs::new(message.get(NFGENMSG..)?) {
            let attr = attr.ok()?;
            let is_common = matches!(
                attr.kind,
                nfula::PACKET_HDR
                    | nfula::TIMESTAMP
                    | nfula::IFINDEX_INDEV
                    | nfula::IFINDEX_OUTDEV
                    | nfula::HWADDR
                    | nfula::PAYLOAD
                    | nfula::PREFIX
                    | nfula::SEQ
                    | nfula::HWTYPE
                    | nfula::HWHEADER
                    | nfula::HWLEN
            );
            let place = layout.places.get_mut(usize::from(attr.kind)).filter(|_| is_common)?;
            let head = layout.heads.get_mut(layout.attrs)?;
            *head = (u16::try_from(at).ok()?, prefix::u32_at(message, at)?);
            *place = (u16::try_from(at + ATTR_HEAD).ok()?, u16::try_from(attr.payload.len()).ok()?);
            layout.attrs += 1;
            at += (ATTR_HEAD + attr.payload.len()).next_multiple_of(4);
        }
        Some(layout)
    }
}

/// Bytes of an attribute before its payload.
const ATTR_HEAD: usize = 4;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::decode_record;
    use proptest::prelude::*;

    /// A message of these attributes, each by its kind and a number that makes its payload.
    fn message(attrs: &[(u16, u8)], cut: usize) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 5];
        for (kind, number) in attrs {
            let payload: Vec<u8> = match *kind {
                nfula::PAYLOAD => [&[0x45, 0, 0, 40][..], &[*number; 16 + 20]].concat(),
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
        let (mut row, mut unknown, mut expected_unknown) = (LogRecord { time_ns: 9, ..LogRecord::default() }, 0, 0);
        let decoded = layouts.decode_into(message, &mut row, &mut unknown).map(|()| row);
        assert_eq!(decoded, decode_record(message, 9, &mut expected_unknown));
        assert_eq!(unknown, expected_unknown);
    }

    const USUAL: [u16; 10] = [1, 10, 4, 8, 15, 17, 16, 3, 12, 9];

    #[test]
    fn a_layout_is_known_again() {
        let mut layouts = RecordLayouts::default();
        let usual = |number| message(&USUAL.map(|kind| (kind, number)), 0);
        let is_known = |layouts: &RecordLayouts, message: &[u8]| layouts.0.iter().any(|layout| layout.is_of(message));
        for number in [7, 8, 9] {
            both(&mut layouts, &usual(number));
            assert!(is_known(&layouts, &usual(200)));
        }
        // The same length: another order, and a mark, of which no layout is made.
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
        /// Messages after one another, of few lengths, whole or cut, read the same with layouts and without.
        #[test]
        fn messages_read_the_same(
            messages in prop::collection::vec((0usize..4, 0usize..10, 0u16..24, any::<u8>(), 0usize..6, 0u8..4), 1..60),
        ) {
            let mut layouts = RecordLayouts::default();
            for (shape, changed, kind, number, cut, is_cut) in messages {
                let mut attrs = USUAL.map(|kind| (kind, number)).to_vec();
                match shape {
                    0 => {}
                    1 => attrs[changed].0 = kind,
                    2 => attrs.swap(changed, 0),
                    _ => attrs.truncate(changed),
                }
                both(&mut layouts, &message(&attrs, if is_cut == 0 { cut } else { 0 }));
            }
        }

        #[test]
        fn any_heads_read_the_same(messages in prop::collection::vec(prop::collection::vec(0u8..24, 0..64), 1..60)) {
            let mut layouts = RecordLayouts::default();
            for message in messages {
                both(&mut layouts, &message);
            }
        }
    }
}
