//! The sockets at both ends of captured packets, and their owners.
//!
//! The ends of a packet are looked up in [`PacketSockets`], which a separate process keeps up to date: no packet
//! causes a reading. A packet whose socket is unknown waits for the next reading, and all packets after it wait as
//! well, so that the order is kept. Waiting is bounded in time and memory, and the ring is emptied in the meantime.

use crate::attribution::Attribution;
use crate::packet_sockets::{PacketEnds, PacketSockets, has_socket};
use crate::waiting::WaitingPackets;
use record::rows::{CapturedPacket, CapturedPackets, PacketSocket};
use record::{Accounting, Annotate, Each, Next};

/// Maximum time that a packet waits for a reading.
///
/// Bound: that a packet waits for a reading of sockets. Beyond: the packet continues with the owners that are known;
/// counted (exit code 3). By: any sender of packets of unknown connections.
const WAIT_NS: u64 = 500_000_000;
/// Maximum age of a reading while packets arrive: ports may have passed to other processes.
const FRESH_NS: u64 = 1_000_000_000;

/// The reason why a packet has no owner at an end: the socket is looked up after the packet, and may be closed by
/// then.
const UNKNOWN: &str = "have no owner at a local endpoint: the socket was closed before it was looked up, or no process \
                       listens there";

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

/// The sockets at the ends of packets, and their owners.
pub struct PacketOwners<N: SocketNews> {
    complete: Complete,
    news: N,
    sockets: PacketSockets,
    waiting: WaitingPackets,
    info: Vec<u8>,
    /// Time of the newest packet that may have a socket.
    newest_ns: u64,
    /// The demand's bits, and the time at the beginning of the batch.
    need: u64,
    now_ns: u64,
    counts: PacketCounts,
}

#[derive(Debug, Default)]
struct PacketCounts {
    /// Number of packets to or from this host.
    here: u64,
    /// Number of packets with a local end that has no owner.
    unknown: u64,
    /// Number of packets that were handed out without an answer.
    hurried: u64,
    /// Number of packets that were still waiting when the consumer wanted no more.
    unwanted: u64,
}

impl<N: SocketNews> PacketOwners<N> {
    /// Adds the sockets that `news` reports; `complete` was also applied to the rows that arrive.
    pub fn new(complete: Complete, news: N, sockets: PacketSockets) -> PacketOwners<N> {
        let (waiting, info, counts) = Default::default();
        PacketOwners { complete, news, sockets, waiting, info, newest_ns: 0, need: 0, now_ns: 0, counts }
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
}

impl PacketCounts {
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
        let known =
            |end: Attribution<&PacketSocket>| matches!(end, Attribution::Found(socket) if !socket.owners.is_empty());
        let is_here = |end: &Attribution<&PacketSocket>| *end != Attribution::NotHere;
        self.here += u64::from(ends.iter().any(is_here));
        self.unknown += u64::from(ends.iter().any(|end| is_here(end) && !known(*end)));
        let [src_socket, dst_socket] = ends.map(socket_of);
        each(&CapturedPacket { src_socket, dst_socket, ..*row })
    }
}

fn is_waiting(ends: &PacketEnds<'_>) -> bool {
    ends.contains(&Attribution::NotYet)
}

fn socket_of(end: Attribution<&PacketSocket>) -> Option<&PacketSocket> {
    if let Attribution::Found(socket) = end { Some(socket) } else { None }
}

impl<N: SocketNews> Annotate<CapturedPackets> for PacketOwners<N> {
    fn begin(&mut self, need: u64, each: &mut Each<'_, CapturedPackets>) -> Next {
        self.news.take(&mut self.sockets, !self.waiting.is_empty());
        if self.newest_ns > self.sockets.taken_ns().saturating_add(FRESH_NS) {
            self.news.ask();
        }
        let next = self.release(need, false, each);
        (self.need, self.now_ns) = (need, self.news.now_ns());
        next
    }

    fn row(&mut self, row: &CapturedPacket<'_>, each: &mut Each<'_, CapturedPackets>) -> Next {
        if row.packet.as_ref().is_some_and(has_socket) {
            self.newest_ns = row.time_ns.max(self.newest_ns);
        }
        if self.waiting.is_empty() {
            let ends = self.sockets.ends(row);
            if !is_waiting(&ends) || !self.news.is_alive() {
                return self.counts.hand_out(row, ends, &self.sockets, each);
            }
        }
        self.news.ask();
        self.waiting.push(row, self.now_ns);
        while self.waiting.is_full() {
            let Some(first) = self.waiting.first() else { break };
            let first = (self.complete)(first.row(), self.need, &mut self.info);
            let next = self.counts.hand_out(&first, self.sockets.ends(&first), &self.sockets, each);
            self.waiting.remove_first();
            if next == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    fn end(&mut self, need: u64, is_last: bool, each: &mut Each<'_, CapturedPackets>) -> Next {
        if is_last { self.finish(need, each) } else { Next::More }
    }

    fn stop(&mut self) {
        self.counts.unwanted += self.waiting.clear();
    }

    fn close(&mut self, stats: &mut Accounting) {
        // Packets that the consumer no longer wanted were not handed out.
        stats.seen = stats.seen.saturating_sub(self.counts.unwanted + self.waiting.clear());
        stats.add(&self.news.close());
        let PacketCounts { here, unknown, hurried, .. } = self.counts;
        if unknown > 0 {
            stats.add_reason(0, format!("{unknown} of {here} packets to or from this host {UNKNOWN}"));
        }
        if hurried > 0 {
            let text = format!(
                "packets could not wait for the lookup of their sockets: too many arrived, or the lookup takes longer \
                 than {} ms",
                WAIT_NS / 1_000_000
            );
            stats.incomplete(hurried, text);
        }
    }
}

#[cfg(test)]
mod tests;
