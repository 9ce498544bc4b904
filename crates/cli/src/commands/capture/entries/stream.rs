//! Packets with their entries.
//!
//! A packet of a known connection is passed on at once. A packet whose connection must be queried is copied and waits,
//! as do all packets after it, until its batch is over; then the kernel is queried for all of them together.

use super::WORDS;
use ::owners::WaitingPackets;
use capture::complete;
use lookups::packet_entries::{EntryLookups, SeenPacket};
use record::rows::{CapturedPacket, CapturedPackets};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};
use sys::clock;

/// The message about packets that cannot have an entry.
const NO_TUPLE: &str = "packets that no connection is found by: later fragments, GRE, ICMP that is about the link, \
                        what was cut within its ports";

/// The packets of another stream with their conntrack entries.
pub(in crate::commands::capture) struct EntryPackets<'s> {
    packets: &'s mut dyn Stream<CapturedPackets>,
    found: FoundEntries,
    waiting: WaitingPackets,
    info: Vec<u8>,
    /// Number of packets that were waiting when no more were wanted.
    unwanted: u64,
}

/// The lookups, and the number of packets that cannot have an entry.
struct FoundEntries {
    lookups: EntryLookups<'static>,
    without_tuple: u64,
}

impl FoundEntries {
    /// Passes on a packet with its entry.
    fn hand_out(
        &mut self,
        row: &CapturedPacket<'_>,
        seen: Option<&SeenPacket>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Next {
        self.without_tuple += u64::from(row.packet.is_some() && seen.is_none());
        match seen.and_then(|seen| self.lookups.find(seen)) {
            Some(entry) => each(&CapturedPacket { entry: Some(&entry), ..*row }),
            None => each(row),
        }
    }
}

fn seen(row: &CapturedPacket<'_>) -> Option<SeenPacket> {
    SeenPacket::of(row.netns_id, row.packet.as_ref()?, row.time_ns, row.ifindex)
}

impl<'s> EntryPackets<'s> {
    /// Adds the entries that `lookups` finds to the packets of `packets`.
    pub(in crate::commands::capture) fn new(
        packets: &'s mut dyn Stream<CapturedPackets>,
        lookups: EntryLookups<'static>,
    ) -> EntryPackets<'s> {
        let found = FoundEntries { lookups, without_tuple: 0 };
        EntryPackets { packets, found, waiting: WaitingPackets::default(), info: Vec::new(), unwanted: 0 }
    }
}

/// Queries the entries of the waiting packets, and passes them on.
fn release(
    found: &mut FoundEntries,
    waiting: &mut WaitingPackets,
    info: &mut Vec<u8>,
    need: u64,
    each: &mut Each<'_, CapturedPackets>,
) -> Next {
    if waiting.is_empty() {
        return Next::More;
    }
    found.lookups.ask();
    while let Some(first) = waiting.first() {
        let row = complete(first.row(), need, info);
        let next = found.hand_out(&row, seen(&row).as_ref(), each);
        waiting.remove_first();
        if next == Next::Stop {
            return Next::Stop;
        }
    }
    Next::More
}

impl Stream<CapturedPackets> for EntryPackets<'_> {
    fn offer(&self, demand: &Demand<CapturedPackets>) -> Offer {
        self.packets.offer(demand)
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        let EntryPackets { packets, found, waiting, info, unwanted } = self;
        let (now_ns, need) = (clock::wall_ns(), demand.need);
        let mut next = Next::More;
        let state = packets.next(demand, &mut |row| {
            let seen = seen(row);
            let sharer = (row.netns_id, row.ifindex);
            let is_known = seen.as_ref().is_none_or(|seen| found.lookups.note(seen, now_ns, &sharer));
            if is_known && waiting.is_empty() {
                next = found.hand_out(row, seen.as_ref(), each);
                return next;
            }
            waiting.push(row, now_ns);
            if waiting.is_full() {
                next = release(found, waiting, info, need, each);
            }
            next
        });
        if next == Next::More {
            next = release(found, waiting, info, need, each);
        }
        if next == Next::Stop {
            *unwanted += waiting.clear();
        }
        state
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.packets.close();
        // Packets no longer wanted were never passed on.
        stats.seen = stats.seen.saturating_sub(self.unwanted);
        self.found.lookups.tell(&WORDS, &mut stats);
        if self.found.without_tuple > 0 {
            stats.add_reason(self.found.without_tuple, NO_TUPLE);
        }
        stats
    }
}
