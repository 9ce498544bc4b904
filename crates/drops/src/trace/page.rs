//! Decodes a page of the kernel's trace buffer (`trace_pipe_raw`; kernel/trace/ring_buffer.c) of 64-bit kernels.

use super::format::TraceFormat;
use crate::block::{u16_at, u32_at, u64_at};

/// Size of the header: time stamp of the page, and the number of event bytes.
const HEAD: usize = 16;
/// The bits of the second word that hold the number of bytes; the bits above are flags.
const COMMIT: u64 = (1 << 20) - 1;
/// Types of records that are not events; smaller values are lengths of events in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The lower bits of a record's header are its length, the others the time since the previous record.
const LENGTH_BITS: u32 = 5;
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time in a record.
const STAMP: u64 = (1 << 59) - 1;

/// A drop from the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TracedDrop {
    /// Time on CLOCK_MONOTONIC, in ns.
    pub(crate) ns: u64,
    /// The address in the function that dropped the packet.
    pub(crate) place: u64,
    pub(crate) reason: u32,
    pub(crate) ethertype: u16,
}

/// Calls back with each drop of a page. Survives any bytes without panicking.
pub(crate) fn read(page: &[u8], format: &TraceFormat, each: &mut dyn FnMut(&TracedDrop)) {
    let bytes = usize::try_from(u64_at(page, 8) & COMMIT).unwrap_or(0);
    let Some(mut rest) = page.get(HEAD..).map(|events| events.get(..bytes).unwrap_or(events)) else { return };
    let mut ns = u64_at(page, 0);
    while rest.len() >= 4 {
        let head = u32_at(rest, 0);
        let (length, delta) = (head & ((1 << LENGTH_BITS) - 1), u64::from(head >> LENGTH_BITS));
        let word = u32_at(rest, 4);
        let long = (u64::from(word) << DELTA_BITS) | delta;
        let (data, size) = match length {
            PADDING if delta == 0 => return,
            PADDING => (8, usize::try_from(word).unwrap_or(usize::MAX).saturating_add(4)),
            TIME_EXTEND | TIME_STAMP => (8, 8),
            0 => (8, usize::try_from(word).unwrap_or(usize::MAX).saturating_add(4)),
            words => (4, usize::try_from(words).unwrap_or(0).saturating_mul(4).saturating_add(4)),
        };
        match length {
            TIME_EXTEND => ns = ns.wrapping_add(long),
            TIME_STAMP => ns = (ns & !STAMP) | (long & STAMP),
            _ => ns = ns.wrapping_add(delta),
        }
        // A record is at least as long as its header, and ends with the page.
        let Some((record, next)) = rest.split_at_checked(size.max(8).next_multiple_of(4)) else { return };
        if length < PADDING {
            if let Some(drop) = drop_of(record.get(data..).unwrap_or_default(), format, ns) {
                each(&drop);
            }
        }
        rest = next;
    }
}

fn drop_of(event: &[u8], format: &TraceFormat, ns: u64) -> Option<TracedDrop> {
    (u16_at(event, 0) == format.id).then(|| TracedDrop {
        ns,
        place: u64_at(event, format.location),
        reason: format.reason.map_or(0, |at| u32_at(event, at)),
        ethertype: u16_at(event, format.protocol),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn format() -> TraceFormat {
        TraceFormat { id: 7, location: 8, protocol: 16, reason: Some(20), reasons: Vec::new() }
    }

    fn event(place: u64, reason: u32) -> Vec<u8> {
        let mut event = vec![7, 0, 0, 0, 0, 0, 0, 0];
        event.extend(place.to_ne_bytes());
        event.extend([0, 8, 0, 0]);
        event.extend(reason.to_ne_bytes());
        event
    }

    fn page(records: &[&[u8]]) -> Vec<u8> {
        let events = records.concat();
        let mut page = 1000_u64.to_ne_bytes().to_vec();
        // The flag for lost events.
        page.extend((events.len() as u64 | 1 << 31).to_ne_bytes());
        page.extend(events);
        page.resize(4096, 0);
        page
    }

    fn head(length: u32, delta: u32) -> [u8; 4] {
        (length | delta << LENGTH_BITS).to_ne_bytes()
    }

    #[test]
    fn events_of_every_length() {
        let short = [&head(6, 5)[..], &event(0xabc, 3)].concat();
        let long = [&head(0, 7)[..], &28_u32.to_ne_bytes(), &event(0xdef, 4)].concat();
        let extend = [head(TIME_EXTEND, 1), 2_u32.to_ne_bytes()].concat();
        let other = [&head(2, 0)[..], &[9, 0, 0, 0, 0, 0, 0, 0]].concat();
        let gone = [&head(PADDING, 1)[..], &8_u32.to_ne_bytes(), &[0; 4]].concat();
        let mut found = Vec::new();
        read(&page(&[&short, &extend, &other, &gone, &long]), &format(), &mut |drop| found.push(*drop));
        let first = TracedDrop { ns: 1005, place: 0xabc, reason: 3, ethertype: 0x0800 };
        let ns = 1005 + (2 << DELTA_BITS) + 1 + 1 + 7;
        assert_eq!(found, [first, TracedDrop { ns, place: 0xdef, reason: 4, ..first }]);
    }

    #[test]
    fn any_end_is_survived() {
        let whole = page(&[&[&head(6, 5)[..], &event(1, 3)].concat()]);
        for end in 0..whole.len() {
            read(&whole[..end], &format(), &mut |_| {});
        }
        let mut found = 0;
        read(&page(&[&head(0, 1), &u32::MAX.to_ne_bytes()]), &format(), &mut |_| found += 1);
        assert_eq!(found, 0);
    }
}
