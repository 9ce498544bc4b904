//! Adds entries to packets.
//!
//! A packet of a known connection is passed on at once. A packet whose connection must be queried is copied and waits,
//! as do all packets after it, until its batch is over; then the kernel is queried for all of them together.

use super::{EntryLookups, SeenPacket, UnknownWords};
use capture::complete;
use owners::WaitingPackets;
use record::rows::{CapturedPacket, CapturedPackets};
use record::{Accounting, Annotate, Each, Next};
use sys::clock;

/// Messages about packets without their entry.
pub(super) const WORDS: UnknownWords = UnknownWords {
    unknown: "connections of packets cannot be looked up",
    missing: "packets without a conntrack entry: not confirmed (the first packet was dropped by a rule), invalid, \
              untracked or removed; or not found: in another zone than 0, or captured between two address \
              translations",
    several: "packets that match two connections: neither is shown",
    reused: "packets without their connection: another connection uses its ports by now",
    without: "packets without their connection",
};

/// The message about packets that cannot have an entry.
const NO_TUPLE: &str = "packets that cannot be assigned to a connection: later fragments, GRE, ICMP messages about the \
                        link, packets cut before the ports";

/// The conntrack entries of packets.
pub struct PacketEntries {
    found: FoundEntries,
    waiting: WaitingPackets,
    info: Vec<u8>,
    /// The demand's bits, and the time at the beginning of the batch.
    need: u64,
    now_ns: u64,
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

impl PacketEntries {
    /// Adds the entries that `lookups` finds.
    pub fn new(lookups: EntryLookups<'static>) -> PacketEntries {
        let (found, (waiting, info)) = (FoundEntries { lookups, without_tuple: 0 }, Default::default());
        PacketEntries { found, waiting, info, need: 0, now_ns: 0, unwanted: 0 }
    }

    /// Queries the entries of the waiting packets, and passes them on.
    fn release(&mut self, each: &mut Each<'_, CapturedPackets>) -> Next {
        if self.waiting.is_empty() {
            return Next::More;
        }
        self.found.lookups.ask();
        while let Some(first) = self.waiting.first() {
            let row = complete(first.row(), self.need, &mut self.info);
            let next = self.found.hand_out(&row, seen(&row).as_ref(), each);
            self.waiting.remove_first();
            if next == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }
}

impl Annotate<CapturedPackets> for PacketEntries {
    fn begin(&mut self, need: u64, _: &mut Each<'_, CapturedPackets>) -> Next {
        (self.need, self.now_ns) = (need, clock::wall_ns());
        Next::More
    }

    fn row(&mut self, row: &CapturedPacket<'_>, each: &mut Each<'_, CapturedPackets>) -> Next {
        let seen = seen(row);
        let sharer = (row.netns_id, row.ifindex);
        let is_known = seen.as_ref().is_none_or(|seen| self.found.lookups.note(seen, self.now_ns, &sharer));
        if is_known && self.waiting.is_empty() {
            return self.found.hand_out(row, seen.as_ref(), each);
        }
        self.waiting.push(row, self.now_ns);
        if self.waiting.is_full() { self.release(each) } else { Next::More }
    }

    fn end(&mut self, _: u64, _: bool, each: &mut Each<'_, CapturedPackets>) -> Next {
        self.release(each)
    }

    fn stop(&mut self) {
        self.unwanted += self.waiting.clear();
    }

    fn close(&mut self, stats: &mut Accounting) {
        // Packets no longer wanted were never passed on.
        stats.seen = stats.seen.saturating_sub(self.unwanted);
        self.found.lookups.tell(&WORDS, stats);
        if self.found.without_tuple > 0 {
            stats.add_reason(self.found.without_tuple, NO_TUPLE);
        }
    }
}
