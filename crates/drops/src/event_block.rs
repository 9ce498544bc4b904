//! Single drops as bytes: stored in a recording and decoded into rows.
//!
//! ```text
//! header  magic, what must be added to the events' clock for the time since 1970, drops that found the ring full,
//!         drops that interrupted the program, bytes of events, bytes of one event, flags
//! events  ns, key, sample as far as it is there; with packets: length, bytes that are here, link type, bytes
//! names   kind, number, length, text: those that no block before had
//! ```
use std::collections::HashMap;

use record::rows::{DropEvent, DroppedFrame, LinkType, PacketDrop};

use crate::block::{
    KEY_BYTES, NETFILTER_DROP, packet, put_function, put_stack, stack, u16_at, u32_at, u64_at, via_of,
    without_made_numbers,
};
use crate::error::DropsError;
use crate::hook;
use crate::meaning::{DropMeaning, is_benign, meaning_of};
use crate::names::{FUNCTION, REASON, read_names};

const MAGIC: u64 = u64::from_ne_bytes(*b"nwevent1");
pub(crate) const HEADER_BYTES: usize = 56;
/// Size of an event without and with its stack.
pub(crate) const EVENT_BYTES: usize = 88;
pub(crate) const STACK_EVENT_BYTES: usize = 280;
/// Size of an event with its packet, without the packet's bytes.
pub(crate) const FRAME_EVENT_BYTES: usize = EVENT_BYTES + 8;
/// Maximum bytes of a packet (`SNAPLEN_MAX` of the program).
pub(crate) const SNAPLEN_MAX: usize = 4096;
/// Flag: the kernel hides the names of its functions.
pub(crate) const NAMES_HIDDEN: u64 = 1;
/// Flag: the events cover every namespace.
pub(crate) const ALL_NETNS: u64 = 1 << 1;
/// Flag: events contain packets.
pub(crate) const WITH_FRAMES: u64 = 1 << 2;
/// Flag: events come from the kernel's trace.
pub(crate) const BY_TRACE: u64 = 1 << 3;
/// Flag: events come from the kernel's drop monitor.
pub(crate) const BY_NET_DM: u64 = 1 << 4;
const KEY_AT: usize = 8;
const SAMPLE_AT: usize = KEY_AT + KEY_BYTES;

/// The header of a block of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventHeader {
    pub(crate) epoch_ns: u64,
    /// Number of drops so far that were lost because the ring was full.
    pub(crate) lost: u64,
    /// Number of drops so far that happened in interrupts of the program.
    pub(crate) missed: u64,
    /// Bytes of all events of the block, and of one event.
    pub(crate) events: u64,
    pub(crate) event: u64,
    /// `NAMES_HIDDEN`, `ALL_NETNS`, `WITH_FRAMES`, `BY_TRACE`, `BY_NET_DM`.
    pub(crate) flags: u64,
}

impl EventHeader {
    pub(crate) fn put(&self, into: &mut [u8]) {
        let counts = [self.lost, self.missed, self.events, self.event, self.flags];
        let numbers = [MAGIC, self.epoch_ns].into_iter().chain(counts);
        for (place, number) in into.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
    }
}

/// The place of an event and the addresses of its stack.
pub(crate) fn addresses(event: &[u8]) -> impl Iterator<Item = u64> {
    let sample = event.get(SAMPLE_AT..).unwrap_or_default();
    Some(u64_at(event, KEY_AT)).into_iter().chain(stack(sample))
}

/// The reason of an event.
pub(crate) fn reason(event: &[u8]) -> u32 {
    packet(event.get(KEY_AT..).unwrap_or_default(), &[]).reason_number
}

/// The words shared by all drops of one reason at one place.
#[derive(Debug)]
struct KnownPlace {
    reason: Box<[u8]>,
    place: Box<[u8]>,
    meaning: DropMeaning,
    benign: bool,
}

/// Decodes the blocks of one run.
#[derive(Debug, Default)]
pub(crate) struct EventDecoder {
    /// Names of reasons and functions. Limited by the number of places and reasons in the kernel's code, and their
    /// callers.
    names: HashMap<(u8, u64), Box<[u8]>>,
    places: HashMap<(u32, u64), KnownPlace>,
}

impl EventDecoder {
    /// Decodes a block and survives any bytes without panicking: calls back with each event and the flags of the block,
    /// until the callback returns false, and returns the header.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut each: impl FnMut(&DropEvent<'_>, u64) -> bool,
    ) -> Result<EventHeader, DropsError> {
        let cut = DropsError::Malformed("drop records are truncated");
        let (head, rest) = block.split_at_checked(HEADER_BYTES).ok_or(cut.clone())?;
        let word = |n: usize| u64_at(head, n * 8);
        if word(0) != MAGIC {
            return Err(DropsError::Malformed("drop records of another version"));
        }
        let [epoch_ns, events, event] = [word(1), word(4), word(5)];
        let header = EventHeader { epoch_ns, lost: word(2), missed: word(3), events, event, flags: word(6) };
        let bytes = usize::try_from(events).map_err(|_| cut.clone())?;
        let (events, names) = rest.split_at_checked(bytes).ok_or(cut.clone())?;
        self.learn(names)?;
        let has_frames = header.flags & WITH_FRAMES != 0;
        let via = via_of(header.flags & BY_TRACE != 0, header.flags & BY_NET_DM != 0);
        let is_known = |bytes: &usize| match has_frames {
            true => (FRAME_EVENT_BYTES..=FRAME_EVENT_BYTES + SNAPLEN_MAX).contains(bytes),
            false => [EVENT_BYTES, STACK_EVENT_BYTES].contains(bytes),
        };
        let bytes = usize::try_from(event).ok().filter(is_known);
        let mut stack = Vec::new();
        for event in events.chunks_exact(bytes.ok_or(DropsError::Malformed("drop records of an unexpected length"))?) {
            let frame = has_frames.then(|| frame_of(event));
            let row = self.row(event, epoch_ns, &mut stack);
            let packet = without_made_numbers(row.packet, via);
            if !each(&DropEvent { frame, packet, ..row }, header.flags) {
                break;
            }
        }
        Ok(header)
    }

    fn learn(&mut self, names: &[u8]) -> Result<(), DropsError> {
        read_names(names, |kind, number, name| _ = self.names.insert((kind, number), name.into()))
    }

    fn row<'r>(&'r mut self, event: &[u8], epoch_ns: u64, stack_text: &'r mut Vec<u8>) -> DropEvent<'r> {
        let (key, sample) = event.get(KEY_AT..).and_then(|rest| rest.split_at_checked(KEY_BYTES)).unwrap_or_default();
        let packet = packet(key, sample);
        let names = &self.names;
        let name = |address: u64| names.get(&(FUNCTION, address)).map_or(&[][..], |name| name);
        let id = (packet.reason_number, packet.place_address);
        let known = self.places.entry(id).or_insert_with(|| {
            let reason = names.get(&(REASON, packet.reason_number.into())).map_or(&[][..], |name| name);
            let mut place = Vec::new();
            put_function(&mut place, name(packet.place_address), packet.place_address);
            let (meaning, benign) = (meaning_of(reason, &place), is_benign(reason, &place));
            KnownPlace { reason: reason.into(), place: place.into(), meaning, benign }
        });
        stack_text.clear();
        put_stack(stack_text, packet.place_address, sample, name);
        let by_stack = || hook::of_stack(stack(sample).map(name));
        let hook = if *known.reason == *NETFILTER_DROP { by_stack().or(packet.hook) } else { None };
        DropEvent {
            time_ns: u64_at(event, 0).wrapping_add(epoch_ns),
            frame: None,
            owners: &[],
            owners_seen_ns: 0,
            packet: PacketDrop {
                count: 1,
                reason: &known.reason,
                place: &known.place,
                stack: stack_text,
                meaning: known.meaning.says,
                ask: known.meaning.ask,
                remedy: known.meaning.remedy,
                benign: known.benign,
                hook,
                ..packet
            },
        }
    }
}

/// The packet of an event.
fn frame_of(event: &[u8]) -> DroppedFrame<'_> {
    let (_, frame) = event.split_at_checked(EVENT_BYTES).unwrap_or_default();
    let (head, bytes) = frame.split_at_checked(8).unwrap_or_default();
    DroppedFrame {
        len: u32_at(head, 0),
        link_type: Some(LinkType(u16_at(head, 6))).filter(|link_type| link_type.0 != 0),
        bytes: bytes.get(..usize::from(u16_at(head, 4))).unwrap_or(bytes),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::names::put_name;

    const PLACE: u64 = 0xffff_ffff_8100_1234;

    fn block(names: bool) -> Vec<u8> {
        let mut events = vec![0; 2 * EVENT_BYTES];
        for (n, event) in events.chunks_exact_mut(EVENT_BYTES).enumerate() {
            event[..8].copy_from_slice(&(100 + n as u64).to_ne_bytes());
            event[8..16].copy_from_slice(&PLACE.to_ne_bytes());
            event[16..20].copy_from_slice(&3_u32.to_ne_bytes());
        }
        let mut block = vec![0; HEADER_BYTES];
        let (events_bytes, event) = (events.len() as u64, EVENT_BYTES as u64);
        let header = EventHeader { epoch_ns: 1000, lost: 5, missed: 1, events: events_bytes, event, flags: 0 };
        header.put(&mut block);
        block.extend(events);
        if names {
            put_name(&mut block, REASON, 3, b"NO_SOCKET");
            put_name(&mut block, FUNCTION, PLACE, b"tcp_v4_rcv");
        }
        block
    }

    #[test]
    fn names_come_once_and_stay() {
        let mut decoder = EventDecoder::default();
        let mut rows = Vec::new();
        for names in [true, false] {
            let header = decoder.decode(&block(names), |row, _| {
                rows.push((row.time_ns, row.packet.reason.to_vec(), row.packet.place.to_vec()));
                row.packet.meaning.starts_with("no socket")
            });
            assert_eq!((header.as_ref().unwrap().lost, header.unwrap().missed), (5, 1));
        }
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3], (1101, b"NO_SOCKET".to_vec(), b"tcp_v4_rcv".to_vec()));
    }

    #[test]
    fn packets_come_with_their_bytes() {
        let mut events = vec![0; FRAME_EVENT_BYTES + 4];
        events[EVENT_BYTES..].copy_from_slice(&[60, 0, 0, 0, 3, 0, 101, 0, 0x45, 1, 2, 3]);
        let mut block = vec![0; HEADER_BYTES];
        let bytes = events.len() as u64;
        EventHeader { events: bytes, event: bytes, flags: WITH_FRAMES, ..EventHeader::default() }.put(&mut block);
        block.extend(events);
        let mut frames = 0;
        let mut look = |row: &DropEvent<'_>, _| {
            frames += 1;
            let frame = DroppedFrame { len: 60, link_type: Some(LinkType(101)), bytes: &[0x45, 1, 2] };
            row.frame == Some(frame)
        };
        EventDecoder::default().decode(&block, &mut look).unwrap();
        assert_eq!(frames, 1);
        for end in 0..block.len() {
            let _ = EventDecoder::default().decode(&block[..end], |_, _| true);
        }
    }

    #[test]
    fn cut_anywhere_nothing_panics() {
        let whole = block(true);
        for end in 0..whole.len() {
            let _ = EventDecoder::default().decode(&whole[..end], |_, _| true);
        }
        let mut strange = whole.clone();
        strange[40] = 3;
        assert!(EventDecoder::default().decode(&strange, |_, _| true).is_err());
    }
}
