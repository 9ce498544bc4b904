//! Captured packets with the sockets at both ends and their owners.
//!
//! The ends of a packet are looked up in [`PacketSockets`], which a separate process keeps up to date: no packet
//! causes a reading. A packet whose socket is unknown waits for the next reading, and all packets after it wait as
//! well, so that the order is kept. Waiting is bounded in time and memory, and the ring is emptied in the meantime.

use crate::packet_sockets::{EndAnswer, PacketEnds, PacketSockets, has_socket};
use crate::waiting::WaitingPackets;
use record::rows::{CapturedPacket, CapturedPackets, PacketSocket};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};

/// Maximum time that a packet waits for a reading.
///
/// Bound: that a packet waits for a reading of sockets. Beyond: the packet continues with the owners that are known;
/// counted (exit code 3). By: any sender of packets of unknown connections.
const WAIT_NS: u64 = 500_000_000;
/// Maximum age of a reading while packets arrive: ports may have passed to other processes.
const FRESH_NS: u64 = 1_000_000_000;

/// The reason why a packet has no owner at an end: the socket is looked up after the packet, and may be closed by
/// then.
const UNKNOWN: &str = "have no owner at an end that is here: the socket had gone when it was looked for, or nobody \
                       listens there";
/// The reason why an owner is missing that could have been found.
const HURRIED: &str = "packets could not wait until their sockets were looked for: too many came, or looking takes \
                       longer than half a second here";

/// A source of updates that keeps [`PacketSockets`] current.
pub trait SocketNews {
    /// Passes on all updates that have arrived; does not wait. `is_awaited` is true if a packet is waiting for them.
    fn take(&mut self, into: &mut PacketSockets, is_awaited: bool);

    /// Requests another reading, unless a requested one has not arrived yet.
    fn ask(&mut self);

    /// False once no more updates will arrive.
    fn is_alive(&self) -> bool;

    /// Nanoseconds of a clock that does not jump.
    fn now_ns(&self) -> u64;

    /// Waits some milliseconds for updates.
    fn wait(&mut self);

    /// Reports reading errors. Called once, at the end.
    fn close(&mut self) -> Accounting;
}

/// Decodes the headers of a packet into its row, and renders the texts that are needed.
pub type Complete = for<'r> fn(CapturedPacket<'r>, u64, &'r mut Vec<u8>) -> CapturedPacket<'r>;

/// The packets of another stream, with the sockets at their ends.
pub struct OwnedPackets<'s, N: SocketNews> {
    packets: &'s mut dyn Stream<CapturedPackets>,
    complete: Complete,
    news: N,
    sockets: PacketSockets,
    waiting: WaitingPackets,
    info: Vec<u8>,
    /// Time of the newest packet that may have a socket.
    newest_ns: u64,
    counts: OwnerCounts,
}

#[derive(Debug, Default)]
struct OwnerCounts {
    /// Number of packets to or from this host.
    here: u64,
    /// Number of packets with a local end that has no owner.
    unknown: u64,
    /// Number of packets that were handed out without an answer.
    hurried: u64,
    /// Number of packets that were still waiting when the consumer wanted no more.
    unwanted: u64,
}

impl<'s, N: SocketNews> OwnedPackets<'s, N> {
    /// Adds sockets, which `news` reports, to the packets of `packets`; `complete` was also applied to the rows of
    /// `packets`.
    pub fn new(
        packets: &'s mut dyn Stream<CapturedPackets>,
        complete: Complete,
        news: N,
        sockets: PacketSockets,
    ) -> OwnedPackets<'s, N> {
        let (waiting, counts) = Default::default();
        OwnedPackets { packets, complete, news, sockets, waiting, info: Vec::new(), newest_ns: 0, counts }
    }

    /// Hands out waiting packets as long as they have answers; all of them if `is_end`.
    fn release(&mut self, need: u64, is_end: bool, each: &mut Each<'_, CapturedPackets>) -> Next {
        let now_ns = if self.waiting.is_empty() { 0 } else { self.news.now_ns() };
        while let Some(waiting) = self.waiting.first() {
            let row = (self.complete)(waiting.row(), need, &mut self.info);
            let ends = self.sockets.ends(&row);
            let is_over = is_end || now_ns.saturating_sub(waiting.since_ns) > WAIT_NS || !self.news.is_alive();
            if !is_over && is_waiting(&ends) {
                self.news.ask();
                return Next::More;
            }
            let next = self.counts.hand_out(&row, ends, &self.sockets, each);
            self.waiting.remove_first();
            if next == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    /// Waits for the last reading, and hands out all waiting packets.
    fn finish(&mut self, need: u64, each: &mut Each<'_, CapturedPackets>) -> Next {
        let begin_ns = self.news.now_ns();
        while !self.waiting.is_empty() && self.news.now_ns().saturating_sub(begin_ns) < WAIT_NS {
            self.news.wait();
            self.news.take(&mut self.sockets, true);
            if self.release(need, false, each) == Next::Stop {
                return Next::Stop;
            }
        }
        self.release(need, true, each)
    }

    /// Takes the available packets.
    fn take(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        let OwnedPackets { packets, complete, news, sockets, waiting, info, newest_ns, counts } = self;
        let now_ns = news.now_ns();
        packets.next(demand, &mut |row| {
            if row.packet.as_ref().is_some_and(has_socket) {
                *newest_ns = row.time_ns.max(*newest_ns);
            }
            if waiting.is_empty() {
                let ends = sockets.ends(row);
                if !is_waiting(&ends) || !news.is_alive() {
                    return counts.hand_out(row, ends, sockets, each);
                }
            }
            news.ask();
            waiting.push(row, now_ns);
            while waiting.is_full() {
                let Some(first) = waiting.first() else { break };
                let first = complete(first.row(), demand.need, info);
                let next = counts.hand_out(&first, sockets.ends(&first), sockets, each);
                waiting.remove_first();
                if next == Next::Stop {
                    return Next::Stop;
                }
            }
            Next::More
        })
    }
}

impl OwnerCounts {
    fn hand_out(
        &mut self,
        row: &CapturedPacket<'_>,
        ends: PacketEnds<'_>,
        sockets: &PacketSockets,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Next {
        let ends = if is_waiting(&ends) {
            self.hurried += 1;
            sockets.ends_now(row)
        } else {
            ends
        };
        let known = |end: EndAnswer<'_>| matches!(end, EndAnswer::Found(socket) if !socket.owners.is_empty());
        let is_here = |end: &EndAnswer<'_>| *end != EndAnswer::NotHere;
        self.here += u64::from(ends.iter().any(is_here));
        self.unknown += u64::from(ends.iter().any(|end| is_here(end) && !known(*end)));
        let [src_socket, dst_socket] = ends.map(socket_of);
        each(&CapturedPacket { src_socket, dst_socket, ..*row })
    }
}

fn is_waiting(ends: &PacketEnds<'_>) -> bool {
    ends.contains(&EndAnswer::NotYet)
}

fn socket_of(end: EndAnswer<'_>) -> Option<&PacketSocket> {
    if let EndAnswer::Found(socket) = end { Some(socket) } else { None }
}

impl<N: SocketNews> Stream<CapturedPackets> for OwnedPackets<'_, N> {
    fn offer(&self, demand: &Demand<CapturedPackets>) -> Offer {
        self.packets.offer(demand)
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        self.news.take(&mut self.sockets, !self.waiting.is_empty());
        if self.newest_ns > self.sockets.taken_ns().saturating_add(FRESH_NS) {
            self.news.ask();
        }
        let mut is_stopped = self.release(demand.need, false, each) == Next::Stop;
        let mut state = Ok(StreamState::Open);
        if !is_stopped {
            state = self.take(demand, &mut |row| {
                let next = each(row);
                is_stopped |= next == Next::Stop;
                next
            });
        }
        if !is_stopped && !matches!(state, Ok(StreamState::Open)) {
            is_stopped = self.finish(demand.need, each) == Next::Stop;
        }
        if is_stopped {
            self.counts.unwanted += self.waiting.clear();
        }
        state
    }

    fn close(&mut self) -> Accounting {
        let mut stats = self.packets.close();
        // Packets that the consumer no longer wanted were not handed out.
        stats.seen = stats.seen.saturating_sub(self.counts.unwanted + self.waiting.clear());
        stats.add(&self.news.close());
        let OwnerCounts { here, unknown, hurried, .. } = self.counts;
        if unknown > 0 {
            stats.add_reason(0, format!("{unknown} of {here} packets to or from here {UNKNOWN}"));
        }
        if hurried > 0 {
            stats.incomplete(hurried, HURRIED);
        }
        stats
    }
}

#[cfg(test)]
mod tests;
