//! A ring that a separate thread reads: it copies packets out of the ring into batches, which the stream takes.
//!
//! Packets of one ring stay in order. Packets of several rings are merged by their time stamps, so the stream must know
//! that a ring without a packet will not deliver an older one: [`ReaderThread::quiet_ns`] is the time up to which no
//! more packets can arrive.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use sys::packet_ring::{Frame, FrameStatus, PacketRing, PacketSocket, PacketType, RingStatistics, sleep_precisely};
use sys::{SysError, clock, wait_any};

use super::successor::Successor;
use crate::pace::{Pacing, Wait};

/// Limits of a batch: number of packets and of bytes.
const BATCH_PACKETS: u64 = 512;
const BATCH_BYTES: usize = 256 << 10;
/// Number of batches that wait for the stream, usually 16 MiB of packets. Beyond that the ring fills, and the kernel
/// counts the drops.
///
/// Bound: batches of packets that a thread has read and no other thread has taken. Beyond: the thread waits; its ring
/// loses packets, counted to the packet (exit code 3; `capture_threads::root_losses_of_all_rings_are_counted`). By: any
/// sender of packets that arrive faster than they are shown.
const BATCHES: usize = 64;
/// Maximum wait without a packet.
const IDLE_MS: i32 = 100;
/// Interval between two reads of the counters.
const COUNT_NS: u64 = 100_000_000;
/// The byte that makes the thread end.
const END: u8 = 1;
/// The byte that makes the thread continue with another ring.
const NEXT_RING: u8 = 2;
/// Maximum time at the end to receive packets that the kernel has counted.
const END_NS: u64 = 400_000_000;

/// A packet in a batch.
#[derive(Debug, Clone, Copy)]
struct Copied {
    time_ns: u64,
    start: usize,
    bytes: usize,
    len: u32,
    ifindex: u32,
    hardware: u16,
    packet_type: PacketType,
    status: FrameStatus,
}

/// A batch of copied packets.
#[derive(Debug, Default)]
struct Batch {
    packets: Vec<Copied>,
    bytes: Vec<u8>,
}

impl Batch {
    fn push(&mut self, frame: &Frame<'_>) {
        let Frame { bytes, len, time_ns, ifindex, hardware, packet_type, status } = *frame;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.packets.push(Copied { time_ns, start, bytes: bytes.len(), len, ifindex, hardware, packet_type, status });
    }

    fn frame(&self, at: usize) -> Option<Frame<'_>> {
        let Copied { time_ns, start, bytes, len, ifindex, hardware, packet_type, status } = *self.packets.get(at)?;
        let bytes = self.bytes.get(start..start + bytes)?;
        Some(Frame { bytes, len, time_ns, ifindex, hardware, packet_type, status })
    }
}

/// Progress of the thread, read by the stream.
#[derive(Debug, Default)]
struct ReaderProgress {
    /// Packets that arrived before this time, in ns since 1970, are in batches that were handed over.
    empty_ns: AtomicU64,
    /// True while the thread waits for the ring and holds no packets.
    is_waiting: AtomicBool,
    /// Number of completed waits.
    waits: AtomicU64,
    packets: AtomicU64,
    drops: AtomicU64,
}

/// The stream's side of the thread.
#[derive(Debug)]
pub(super) struct ReaderThread {
    batches: Receiver<Batch>,
    /// Returns empty batches to the thread for reuse.
    spare: SyncSender<Batch>,
    current: Batch,
    at: usize,
    /// Rings that the thread must read instead of its own.
    rings: Sender<PacketRing>,
    /// Wakes the stream; a byte in the other direction is a command to the thread.
    stream: UnixStream,
    /// The ring's socket.
    ring: PacketSocket,
    shared: Arc<ReaderProgress>,
    /// Maximum delay between a packet's time stamp and its arrival in the ring, in ns.
    late_ns: u64,
    quiet_ns: u64,
    ring_bytes: usize,
    is_over: bool,
}

impl ReaderThread {
    /// Starts a thread that reads the ring. `late_ns`: maximum delay between a packet's time stamp and its arrival in
    /// the ring.
    pub(super) fn start(ring: PacketRing, pace: Pacing, late_ns: u64) -> Result<ReaderThread, std::io::Error> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        let (sender, batches) = sync_channel(BATCHES);
        let (spare, spares) = sync_channel(BATCHES);
        let (rings, successors) = channel();
        let shared = Arc::new(ReaderProgress::default());
        let (socket, ring_bytes) = (ring.socket()?, ring.bytes());
        let reader = RingReader {
            ring,
            successors,
            before: RingStatistics::default(),
            pace,
            stream: other,
            sender,
            spares,
            shared: Arc::clone(&shared),
            handed: 0,
        };
        std::thread::Builder::new().name("netwren-ring".into()).spawn(move || reader.run())?;
        Ok(ReaderThread {
            batches,
            spare,
            current: Batch::default(),
            at: 0,
            rings,
            stream,
            ring: socket,
            shared,
            late_ns,
            quiet_ns: 0,
            ring_bytes,
            is_over: false,
        })
    }

    /// The time stamp of the next packet; `None` if no packet waits.
    pub(super) fn next_ns(&mut self) -> Option<u64> {
        if self.at >= self.current.packets.len() {
            self.receive();
        }
        self.current.packets.get(self.at).map(|packet| packet.time_ns)
    }

    /// Takes the next batch, if one waits.
    fn receive(&mut self) {
        match self.batches.try_recv() {
            Ok(batch) => {
                let mut read = std::mem::replace(&mut self.current, batch);
                read.packets.clear();
                read.bytes.clear();
                // If the channel is full, the memory is freed.
                let _ = self.spare.try_send(read);
                self.at = 0;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => self.is_over = true,
        }
    }

    /// Hands out packets of one batch, at most `most`, until `take` returns false; returns their number.
    pub(super) fn take_many(&mut self, most: u64, mut take: impl FnMut(&Frame<'_>) -> bool) -> u64 {
        let mut taken = 0;
        while taken < most && self.next_ns().is_some() {
            let Some(frame) = self.current.frame(self.at) else { break };
            self.at += 1;
            taken += 1;
            if !take(&frame) {
                break;
            }
        }
        taken
    }

    /// No packet with an older time stamp than this can arrive: all earlier packets were taken. Call it while no packet
    /// waits.
    pub(super) fn quiet_ns(&mut self) -> u64 {
        // Read before looking for a batch, so packets in that batch arrived later.
        let told_ns = self.shared.empty_ns.load(Ordering::Acquire);
        let waits = self.shared.waits.load(Ordering::Acquire);
        let mut empty_ns = told_ns;
        if self.shared.is_waiting.load(Ordering::Acquire) {
            let (now_ns, mut ready) = (clock::wall_ns(), Vec::new());
            let is_empty = wait_any(&[self.ring.as_fd()], 0, &mut ready).is_ok() && ready.is_empty();
            let was_waiting = self.shared.is_waiting.load(Ordering::Acquire);
            if is_empty && was_waiting && self.shared.waits.load(Ordering::Acquire) == waits {
                empty_ns = empty_ns.max(now_ns);
            }
        }
        if self.next_ns().is_none() {
            let end_ns = if self.is_over { u64::MAX } else { empty_ns.saturating_sub(self.late_ns) };
            self.quiet_ns = self.quiet_ns.max(end_ns);
        }
        self.quiet_ns
    }

    /// Ends the thread: it stops receiving and hands over the packets in the ring.
    pub(super) fn end(&self) {
        // If the socket is full, the thread already has a byte to read.
        let _ = (&self.stream).write(&[END]);
    }

    /// Binds the ring to another interface, or makes the thread read `successor`, if there still is one, after it has
    /// handed over the packets in its ring. The error is a sentence.
    pub(super) fn bind(
        &mut self,
        ifindex: u32,
        promiscuous: bool,
        successor: &mut Option<Successor>,
    ) -> Result<(), String> {
        let next = successor.as_mut().map(|successor| successor.ring(ifindex)).transpose();
        match next.map_err(|error| error.to_string())?.flatten() {
            None => self.ring.bind(ifindex).map_err(|error| error.to_string())?,
            Some(ring) => {
                *successor = None;
                self.ring = ring.socket().map_err(|error| error.to_string())?;
                self.ring_bytes = ring.bytes();
                // The flag was set for the previous ring.
                self.shared.is_waiting.store(false, Ordering::Release);
                // A thread that has ended reads no ring.
                let _ = self.rings.send(ring);
                let _ = (&self.stream).write(&[NEXT_RING]);
            }
        }
        if promiscuous {
            let _ = self.ring.see_all(ifindex);
        }
        Ok(())
    }

    /// Call it after a wait on [`AsFd::as_fd`] has ended.
    pub(super) fn woken(&mut self) {
        loop {
            match (&self.stream).read(&mut [0; 64]) {
                Ok(64) => {}
                Ok(0) => {
                    // The thread has ended; without a pause, that would wake the stream over and over again.
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
                _ => return,
            }
        }
    }

    /// The counters, up to some tenths of a second old until the thread has ended.
    pub(super) fn statistics(&self) -> RingStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Acquire);
        RingStatistics { packets: of(&self.shared.packets), drops: of(&self.shared.drops), freezes: 0 }
    }

    /// True once the thread has ended and all its packets were taken.
    pub(super) fn is_over(&mut self) -> bool {
        self.next_ns().is_none() && self.is_over
    }

    /// Size of the ring in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ring_bytes
    }
}

impl AsFd for ReaderThread {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// One turn of the thread over its ring.
struct Turn {
    /// Number of packets handed over.
    packets: u64,
    /// True if the ring was empty at the end.
    is_empty: bool,
}

impl Turn {
    /// Takes batches until one is empty, at most [`BATCHES`]: a ring that fills as fast as it is read must not keep the
    /// thread from counting and from ending. Returns `None` as soon as `take_batch` does.
    fn over(mut take_batch: impl FnMut() -> Option<u64>) -> Option<Turn> {
        let mut packets = 0;
        for _ in 0..BATCHES {
            match take_batch()? {
                0 => return Some(Turn { packets, is_empty: true }),
                taken => packets += taken,
            }
        }
        Some(Turn { packets, is_empty: false })
    }
}

/// The thread's side.
struct RingReader {
    ring: PacketRing,
    successors: Receiver<PacketRing>,
    /// Counters of the previous rings.
    before: RingStatistics,
    pace: Pacing,
    stream: UnixStream,
    sender: SyncSender<Batch>,
    spares: Receiver<Batch>,
    shared: Arc<ReaderProgress>,
    /// Number of packets of this ring that were handed over.
    handed: u64,
}

impl RingReader {
    fn run(mut self) {
        sleep_precisely();
        let (mut counted_ns, mut handed) = (0, 0);
        while let Ok(is_ending) = self.wait(handed) {
            let before_ns = clock::wall_ns();
            let Some(turn) = self.take_all() else { break };
            handed = turn.packets;
            if turn.is_empty {
                self.shared.empty_ns.store(before_ns, Ordering::Release);
            }
            let now_ns = clock::monotonic_ns();
            if now_ns.saturating_sub(counted_ns) > COUNT_NS {
                counted_ns = now_ns;
                self.count();
            }
            if is_ending {
                self.end();
                break;
            }
            while let Ok(next) = self.successors.try_recv() {
                self.end();
                self.before = self.count();
                (self.ring, self.handed) = (next, 0);
            }
        }
        // Dropping the sender ends the stream of batches; the byte then wakes the stream.
        drop(self.sender);
        let _ = self.stream.write(&[1]);
    }

    /// Waits for packets, or for a short time. True if the thread must end.
    fn wait(&mut self, handed: u64) -> Result<bool, SysError> {
        if let Wait::Sleep(time) = self.pace.next(clock::monotonic_ns(), handed) {
            std::thread::sleep(time);
            return Ok(self.is_told_to_end());
        }
        if self.ring.next_ns().is_some() {
            return Ok(self.is_told_to_end());
        }
        self.shared.is_waiting.store(true, Ordering::Release);
        let waited = wait_any(&[self.ring.as_fd(), self.stream.as_fd()], IDLE_MS, &mut Vec::new());
        self.shared.waits.fetch_add(1, Ordering::AcqRel);
        self.shared.is_waiting.store(false, Ordering::Release);
        waited?;
        if self.ring.next_ns().is_none() {
            // Its interface went down or was removed; the pending error would end every wait at once.
            self.ring.take_error();
            self.ring.keep_early();
        }
        Ok(self.is_told_to_end())
    }

    /// True after the command to end, or if the other side is closed.
    fn is_told_to_end(&mut self) -> bool {
        let mut told = [END];
        match self.stream.read(&mut told) {
            // A command byte, or the end of the socket.
            Ok(0..) => told != [NEXT_RING],
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Hands over the packets in the ring. Returns `None` once the stream takes no more.
    fn take_all(&mut self) -> Option<Turn> {
        Turn::over(|| self.take_batch())
    }

    /// Hands over one batch and returns the number of its packets, or `None` once the stream takes no more.
    fn take_batch(&mut self) -> Option<u64> {
        let mut batch = self.spares.try_recv().unwrap_or_default();
        let taken = self.ring.take_many(BATCH_PACKETS, |frame| {
            batch.push(frame);
            batch.bytes.len() < BATCH_BYTES
        });
        self.ring.give_back();
        if taken > 0 {
            self.handed += taken;
            self.sender.send(batch).ok()?;
            // This fails only if the stream has not read for a while, and then such bytes already wait.
            let _ = self.stream.write(&[1]);
        }
        Some(taken)
    }

    /// The counters of this ring and the previous ones.
    fn count(&mut self) -> RingStatistics {
        let (own, before) = (self.ring.statistics().unwrap_or_default(), self.before);
        let all = RingStatistics {
            packets: before.packets + own.packets,
            drops: before.drops + own.drops,
            freezes: before.freezes + own.freezes,
        };
        self.shared.packets.store(all.packets, Ordering::Release);
        self.shared.drops.store(all.drops, Ordering::Release);
        all
    }

    /// Stops receiving, and hands over the packets that the kernel has counted.
    fn end(&mut self) {
        if self.ring.reject_all().is_err() {
            return;
        }
        let mut begin_ns = clock::monotonic_ns();
        loop {
            match self.take_all() {
                None => return,
                Some(Turn { packets: 0, .. }) => {}
                Some(_) => begin_ns = clock::monotonic_ns(),
            }
            let (all, before) = (self.count(), self.before);
            let is_all = self.handed >= (all.packets - before.packets).saturating_sub(all.drops - before.drops);
            if is_all || clock::monotonic_ns().saturating_sub(begin_ns) > END_NS {
                return;
            }
            // Some packets are still being copied, or in a block that is not full.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Without the limit the thread would neither count nor end.
    #[test]
    fn a_turn_over_a_ring_that_never_becomes_empty_ends() {
        let mut batches = 0;
        let turn = Turn::over(|| {
            batches += 1;
            assert!(batches < 100_000, "it takes for ever");
            Some(BATCH_PACKETS)
        });
        let Turn { packets, is_empty } = turn.unwrap();
        assert_eq!((packets, batches), (BATCH_PACKETS * batches, BATCHES as u64));
        assert!(!is_empty, "what is left must not be taken for nothing: order depends on it");
    }

    #[test]
    fn a_turn_ends_with_the_ring_and_with_the_stream() {
        let turn = |takes: &[Option<u64>]| {
            let mut takes = takes.iter().copied();
            Turn::over(|| takes.next().unwrap()).map(|turn| (turn.packets, turn.is_empty))
        };
        assert_eq!(turn(&[Some(512), Some(7), Some(0)]), Some((519, true)));
        assert_eq!(turn(&[Some(0)]), Some((0, true)));
        assert_eq!(turn(&[Some(512), None]), None);
    }
}
