//! Reads the blocks in which the BPF program reports new entries.
//!
//! A block is a header of numbers, followed by events. [`crate::events::bpf::ring`] makes the blocks; a recording
//! stores them.
use netlink::DecodeError;
use netlink::prefix::u64_at;
use record::rows::Conntrack;
use record::{Accounting, Next, StreamState};
use sys::{Blocks, SysError};

use crate::events::bpf::new_entry::{EVENT, NewEntry};

/// Header of a block, in machine byte order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RingHeader {
    /// Offset from the kernel's monotonic clock to the time since 1970, in ns.
    pub(crate) epoch_ns: u64,
    /// Events lost so far because the ring was full.
    pub(crate) lost: u64,
    /// Size of the ring in bytes.
    pub(crate) ring: u64,
}

/// Size of a header in bytes.
pub(crate) const RING_HEADER: usize = 3 * 8;

impl RingHeader {
    /// The header as bytes.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(crate) fn bytes(&self) -> [u8; RING_HEADER] {
        let mut bytes = [0; RING_HEADER];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.epoch_ns, self.lost, self.ring]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    fn parse(block: &[u8]) -> Option<RingHeader> {
        Some(RingHeader { epoch_ns: u64_at(block, 0)?, lost: u64_at(block, 8)?, ring: u64_at(block, 16)? })
    }
}

/// The events of one run.
pub(crate) struct BpfEvents<'h> {
    blocks: Box<dyn Blocks + 'h>,
    netns_id: u64,
    head: RingHeader,
    told: u64,
    failed: u64,
    first_error: Option<DecodeError>,
}

impl<'h> BpfEvents<'h> {
    pub(crate) fn new(blocks: Box<dyn Blocks + 'h>, netns_id: u64) -> BpfEvents<'h> {
        BpfEvents { blocks, netns_id, head: RingHeader::default(), told: 0, failed: 0, first_error: None }
    }

    /// Waits for events and hands out each with its time in ns since 1970.
    pub(crate) fn next(&mut self, each: &mut dyn FnMut(u64, &Conntrack<'_>) -> Next) -> Result<StreamState, SysError> {
        let Some(block) = self.blocks.next()? else { return Ok(StreamState::Ended) };
        let fault = |error| (1, Some(error));
        let (mut failed, mut first_error) = (0, None);
        match RingHeader::parse(block) {
            Some(head) => self.head = head,
            None => {
                (failed, first_error) =
                    fault(DecodeError::Short { what: "block of new entries", claims: RING_HEADER, has: block.len() });
            }
        }
        let mut events = block.get(RING_HEADER..).unwrap_or_default();
        while !events.is_empty() {
            let row = NewEntry::split_first(events).map_err(<[u8]>::len);
            let (event, rest) = match row {
                Ok(first) => first,
                Err(has) => {
                    failed += 1;
                    first_error.get_or_insert(DecodeError::Short { what: "new entry", claims: EVENT, has });
                    break;
                }
            };
            events = rest;
            match event.row(self.netns_id) {
                Ok(row) => {
                    self.told += 1;
                    if each(event.happened_ns().wrapping_add(self.head.epoch_ns), &row) == Next::Stop {
                        break;
                    }
                }
                Err(error) => {
                    failed += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        self.failed += failed;
        self.first_error = self.first_error.or(first_error);
        Ok(StreamState::Open)
    }

    /// Number of events so far, including malformed ones.
    pub(crate) fn received_events(&self) -> u64 {
        self.told + self.failed
    }

    /// Number of events lost so far because the ring was full.
    pub(crate) fn lost_events(&self) -> u64 {
        self.head.lost
    }

    /// The final accounting of all events.
    pub(crate) fn close(&mut self) -> Accounting {
        let (failed, lost) = (self.failed, self.head.lost);
        let mut stats = Accounting { seen: self.told + failed, failed, lost, ..Accounting::default() };
        stats.add_backend("bpf");
        if let Some(error) = self.first_error {
            stats.add_reason(failed, format!("malformed events, the first: {error}"));
        }
        if lost > 0 {
            let ring = self.head.ring;
            stats.add_reason(lost, format!("events lost: the ring ({ring} bytes) was full (raise with --buffer)"));
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct Given(Vec<Vec<u8>>, Vec<u8>);

    impl Blocks for Given {
        fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
            if self.0.is_empty() {
                return Ok(None);
            }
            self.1 = self.0.remove(0);
            Ok(Some(&self.1))
        }
    }

    #[test]
    fn garbled_blocks_cost_their_rows_only() {
        let mut good = vec![0; EVENT];
        good[26] = 2;
        let head = RingHeader { epoch_ns: 1000, lost: 3, ring: 1 << 24 }.bytes().to_vec();
        let cut = [&head[..], &good, &good[..20]].concat();
        let strange = [&head[..], &[0; EVENT], &good].concat();
        let mut events = BpfEvents::new(Box::new(Given(vec![vec![1, 2], cut, strange], Vec::new())), 5);
        let mut times = Vec::new();
        let mut one = |ns, row: &Conntrack<'_>| {
            times.push((ns, row.netns_id));
            Next::More
        };
        while events.next(&mut one).unwrap() == StreamState::Open {}
        assert_eq!(times, [(1000, 5), (1000, 5)]);
        let stats = events.close();
        assert_eq!((stats.seen, stats.failed, stats.lost), (5, 3, 3));
        assert!(stats.why.iter().any(|why| why.text.contains("ring")), "{stats:?}");
    }
}
