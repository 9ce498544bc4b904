//! Packets with the sockets at both ends, and who holds these.
//!
//! The ends of a packet are looked up in [`PacketSockets`], which a process beside this one keeps up to date: nothing
//! is read for a packet. One whose socket is not known yet waits for the next reading, and all that follow wait behind
//! it, so that the order stays: for a bounded time, in bounded memory, and the ring is emptied meanwhile.

use crate::packet_sockets::{EndAnswer, PacketEnds, PacketSockets, has_socket};
use record::rows::{CapturedPacket, CapturedPackets, PacketSocket};
use record::{Accounting, Demand, Each, Next, Offer, SourceError, Stream, StreamState};
use std::collections::VecDeque;

/// The longest time that a packet waits for a reading.
const WAIT_NS: u64 = 500_000_000;
/// Bytes of packets that wait, their frames and what is kept beside them. Beyond these the oldest go on.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Bytes that are kept of each packet beside its frame.
const EACH_BYTES: usize = 200;
/// While packets come, what was read is not older than this: ports may have gone over to other processes.
const FRESH_NS: u64 = 1_000_000_000;

/// Why a packet has no owner at an end: the socket is looked up after the packet, and may be closed by then.
const UNKNOWN: &str = "have no owner at an end that is here: the socket had gone when it was looked for, or nobody \
                       listens there";
/// Why an owner is missing that could have been known.
const HURRIED: &str = "packets could not wait until their sockets were looked for: too many came, or looking takes \
                       longer than half a second here";

/// A source of news that keeps [`PacketSockets`] up to date.
pub trait SocketNews {
    /// Hands on what has come; waits for nothing. `is_awaited`: a packet waits for it.
    fn take(&mut self, into: &mut PacketSockets, is_awaited: bool);

    /// Asks for another reading, unless one was asked for that has not come yet.
    fn ask(&mut self);

    /// False once nothing will come any more.
    fn is_alive(&self) -> bool;

    /// Nanoseconds of a clock that does not jump.
    fn now_ns(&self) -> u64;

    /// Waits some milliseconds for what comes.
    fn wait(&mut self);

    /// Reports what could not be read. Called once, at the end.
    fn close(&mut self) -> Accounting;
}

/// Reads the headers of a packet into its row, and makes the words that are needed.
pub type Complete = for<'r> fn(CapturedPacket<'r>, u64, &'r mut Vec<u8>) -> CapturedPacket<'r>;

/// Packets of another stream with the sockets at their ends.
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
    /// Packets to or from this host.
    here: u64,
    /// Those with an end here that has no owner.
    unknown: u64,
    /// Those that went on without an answer.
    hurried: u64,
    /// Packets that waited when no more were wanted.
    unwanted: u64,
}

impl<'s, N: SocketNews> OwnedPackets<'s, N> {
    /// Packets of `packets` with what `news` tells; `complete` is what the rows of `packets` went through.
    pub fn new(
        packets: &'s mut dyn Stream<CapturedPackets>,
        complete: Complete,
        news: N,
        sockets: PacketSockets,
    ) -> OwnedPackets<'s, N> {
        let (waiting, counts) = Default::default();
        OwnedPackets { packets, complete, news, sockets, waiting, info: Vec::new(), newest_ns: 0, counts }
    }

    /// Hands out what waits, as far as it is answered; all of it if `is_end`.
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

    /// Waits for the last reading, and hands out all that waits.
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

    /// Takes the packets that are there.
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
        // What nobody wanted any more was never handed out.
        stats.seen = stats.seen.saturating_sub(self.counts.unwanted + self.waiting.clear());
        stats.add(&self.news.close());
        let OwnerCounts { here, unknown, hurried, .. } = self.counts;
        if unknown > 0 {
            stats.add_reason(0, format!("{unknown} of {here} packets to or from here {UNKNOWN}"));
        }
        if hurried > 0 {
            stats.incomplete = true;
            stats.add_reason(hurried, HURRIED);
        }
        stats
    }
}

/// Packets that wait, in order.
#[derive(Default)]
struct WaitingPackets {
    packets: VecDeque<WaitingPacket>,
    bytes: usize,
    /// Memory of those that have gone on.
    spare: Vec<Vec<u8>>,
}

/// A packet as its row had it before its headers were read.
struct WaitingPacket {
    /// Without what it borrows.
    row: CapturedPacket<'static>,
    /// Its frame, then the name of its interface.
    bytes: Vec<u8>,
    frame_bytes: usize,
    since_ns: u64,
}

impl WaitingPacket {
    fn row(&self) -> CapturedPacket<'_> {
        let (frame, iface) = self.bytes.split_at_checked(self.frame_bytes).unwrap_or_default();
        CapturedPacket { frame, iface, ..self.row }
    }
}

impl WaitingPackets {
    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes > WAITING_BYTES_MAX
    }

    fn first(&self) -> Option<&WaitingPacket> {
        self.packets.front()
    }

    fn push(&mut self, row: &CapturedPacket<'_>, since_ns: u64) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(row.frame);
        bytes.extend_from_slice(row.iface);
        self.bytes += bytes.len() + EACH_BYTES;
        let kept = CapturedPacket {
            time_ns: row.time_ns,
            netns_id: row.netns_id,
            ifindex: row.ifindex,
            link_type: row.link_type,
            packet_type: row.packet_type,
            checksum_not_ready: row.checksum_not_ready,
            is_super_packet: row.is_super_packet,
            len: row.len,
            ..CapturedPacket::default()
        };
        self.packets.push_back(WaitingPacket { row: kept, bytes, frame_bytes: row.frame.len(), since_ns });
    }

    fn remove_first(&mut self) {
        if let Some(first) = self.packets.pop_front() {
            self.bytes = self.bytes.saturating_sub(first.bytes.len() + EACH_BYTES);
            self.spare.push(first.bytes);
        }
        if self.packets.is_empty() {
            self.spare.truncate(SPARE_MAX);
        }
    }

    /// Drops all; how many there were.
    fn clear(&mut self) -> u64 {
        let count = self.packets.len() as u64;
        self.packets.clear();
        self.bytes = 0;
        count
    }
}

/// Buffers that are kept while nothing waits, 2 KiB each as a rule.
const SPARE_MAX: usize = 1024;

#[cfg(test)]
mod tests;
