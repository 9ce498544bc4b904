//! Receives records, on the thread that [`netlink::datagrams`] chooses.
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use netlink::datagrams::{BatchHeader, Chunk, ChunkSizes, DirectReader, ReceiveSockets};
use sys::{SysError, clock, wait_any};

use super::bound::BoundGroups;
use super::groups::{DATAGRAM_BYTES_MAX, DeliveryOptions, GroupSocket};
use super::other_netns::{OtherNetnsSockets, ScannerMessages};
use super::scanner::{OtherGroups, Scan, Scanner};
use crate::events::succession::Succession;

/// At most 64 MiB: some 350,000 records wait while rows are written.
const CHUNKS: ChunkSizes = ChunkSizes { bytes: 1 << 20, datagram_bytes_max: DATAGRAM_BYTES_MAX, chunks_max: 64 };
/// Bytes that one thread receives at once and decodes itself: one large datagram, which fits into the CPU cache.
const OWN_BYTES: usize = DATAGRAM_BYTES_MAX + (128 << 10);
/// Maximum number of datagrams received from one group before the next group's turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Maximum number of datagrams received at the end from a group that stays bound, where more keep arriving.
const DATAGRAMS_AT_END: usize = 4096;

/// Minimum time between two wake-ups that find data. Datagrams that arrive faster are received several at a time,
/// because a wake-up costs as much as some hundred records.
const WAKE_UPS_APART: Duration = Duration::from_millis(20);
/// Maximum share of the latency that may be spent on this.
const PART_OF_LATENCY: f64 = 0.4;
/// Bytes of receive buffer needed per millisecond of pause: a million records per second fill half of it.
const BUFFER_BYTES_PER_MS: u64 = (8 << 20) / 10;
/// Minimum pause: shorter ones cost more than they save.
const BUFFER_MS_MIN: u64 = 10;

/// Keeps wake-ups apart.
struct WakeUps {
    apart: Duration,
    /// The last wake-up that found data.
    last: Option<Instant>,
    /// True if the previous wake-up was shortly before it. Only then a pause saves a wake-up; otherwise it costs one.
    are_many: bool,
    /// True after a pause, until it is known whether data arrived during it.
    is_open: bool,
}

impl WakeUps {
    fn new(latency: Duration, buffer_bytes: u64) -> WakeUps {
        let buffered_ms = Some(buffer_bytes / BUFFER_BYTES_PER_MS).filter(|ms| *ms >= BUFFER_MS_MIN).unwrap_or(0);
        let apart = WAKE_UPS_APART.min(latency.mul_f64(PART_OF_LATENCY)).min(Duration::from_millis(buffered_ms));
        WakeUps { apart, last: None, are_many: false, is_open: false }
    }

    /// How long to sleep before waiting for data.
    fn pause(&self) -> Option<Duration> {
        if !self.are_many {
            return None;
        }
        self.apart.checked_sub(self.last?.elapsed()).filter(|pause| !pause.is_zero())
    }

    /// Records that data is received after a pause without waiting for it.
    fn end_pause(&mut self) {
        self.note_wake_up(true);
        self.is_open = true;
    }

    /// Records whether data was received; only the first call after a pause has an effect.
    fn note_received(&mut self, is_something: bool) {
        if std::mem::take(&mut self.is_open) && !is_something {
            self.note_wake_up(false);
        }
    }

    /// Records whether a wake-up found data.
    fn note_wake_up(&mut self, is_something: bool) {
        let now = Instant::now();
        self.are_many = is_something && self.last.is_some_and(|last| now.duration_since(last) < 2 * self.apart);
        self.last = is_something.then_some(now);
    }
}

/// The sockets of all groups.
pub(crate) struct GroupSockets {
    sockets: Vec<Arc<GroupSocket>>,
    /// Datagrams that arrived while the groups were bound, each with its namespace.
    early: VecDeque<(u64, Vec<u8>)>,
    /// Sockets of other namespaces, which come and go.
    elsewhere: Option<Arc<OtherNetnsSockets>>,
    /// Sockets of removed namespaces, unbound, to be emptied and closed.
    leaving: Vec<Arc<GroupSocket>>,
    /// Number of datagrams that the kernel dropped at sockets closed since then.
    dropped_before: u64,
    /// Indexes of the `sockets` that have data.
    ready: Vec<usize>,
    /// The namespace in which the run started.
    netns_id: u64,
    /// The counts for the next batch.
    header: BatchHeader,
    wake_ups: WakeUps,
    /// True to keep groups bound at the end.
    keep_bound: Arc<AtomicBool>,
    /// See [`Succession::turns`].
    turns: Option<Arc<AtomicU64>>,
    /// At the end: index of the socket that is being emptied, and after unbinding it the number of datagrams still to
    /// receive.
    ending: (usize, Option<usize>),
}

impl GroupSockets {
    /// Finds the sockets that have data, waiting at most `ms` milliseconds.
    fn find_ready(&mut self, ms: i32) -> Result<(), SysError> {
        let files: Vec<_> = self.sockets.iter().map(|socket| socket.netlink.as_fd()).collect();
        wait_any(&files, ms, &mut self.ready)
    }

    /// Adds the data received while the groups were bound, as far as there is room.
    fn receive_early(&mut self, chunk: &mut Chunk) {
        while let Some((netns_id, datagram)) = self.early.front().filter(|_| !chunk.is_full()) {
            if let Some(place) = chunk.messages_of_next_frame().get_mut(..datagram.len()) {
                place.copy_from_slice(datagram);
                chunk.push_frame(*netns_id, clock::wall_ns(), None, datagram.len());
            }
            self.early.pop_front();
        }
    }

    /// Takes over sockets of new namespaces, and releases the sockets of removed ones.
    fn take_arrivals(&mut self) {
        let arrivals = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.take_arrivals());
        let Some(ScannerMessages { bound, early, gone }) = arrivals else { return };
        self.sockets.extend(bound);
        self.early.extend(early);
        // `ready` contains indexes into the previous list of sockets.
        self.ready.clear();
        let is_gone = |socket: &Arc<GroupSocket>| socket.netns_id != self.netns_id && gone.contains(&socket.netns_id);
        let (leaving, staying) = std::mem::take(&mut self.sockets).into_iter().partition(is_gone);
        self.sockets = staying;
        for socket in &leaving {
            // The kernel sends the records that it has collected. If that fails, only the data already waiting is left.
            let _ = Arc::<GroupSocket>::as_ref(socket).unbind();
        }
        self.leaving.extend(leaving);
    }

    /// Receives the remaining data of removed namespaces, and closes their sockets; false if there is no room for all
    /// of it.
    fn close_leaving(&mut self, chunk: &mut Chunk) -> Result<bool, SysError> {
        while let Some(socket) = self.leaving.last() {
            if !receive_from(socket, chunk, &mut { usize::MAX })? || chunk.is_full() {
                return Ok(false);
            }
            self.dropped_before += u64::from(socket.drops()?);
            chunk.push_frame(socket.netns_id, clock::wall_ns(), Some(socket.group.into()), 0);
            self.elsewhere.iter().for_each(|elsewhere| elsewhere.remove_socket(socket));
            self.leaving.pop();
        }
        Ok(true)
    }
}

/// Receives waiting data of one socket, at most `datagrams_max` datagrams; true if the socket is empty afterwards.
fn receive_from(socket: &GroupSocket, chunk: &mut Chunk, datagrams_max: &mut usize) -> Result<bool, SysError> {
    if chunk.is_full() {
        return Ok(false);
    }
    // A frame without messages: the frames after it arrived after this time.
    let begin = chunk.next_frame();
    chunk.push_frame(socket.netns_id, socket.empty_ns.load(Relaxed), None, 0);
    let first = chunk.next_frame();
    let mut is_all = false;
    while *datagrams_max > 0 && !chunk.is_full() {
        let Some(received) = socket.receive(chunk.messages_of_next_frame())? else {
            socket.empty_ns.store(clock::wall_ns(), Relaxed);
            is_all = true;
            break;
        };
        *datagrams_max -= 1;
        chunk.push_frame(socket.netns_id, clock::wall_ns(), None, received.bytes);
    }
    if chunk.next_frame() == first {
        chunk.truncate(begin);
    }
    Ok(is_all)
}

impl ReceiveSockets for GroupSockets {
    fn wait(&mut self, ms: i32) -> Result<bool, SysError> {
        if let Some(turns) = &self.turns {
            turns.fetch_add(1, Relaxed);
        }
        if let Some(pause) = self.wake_ups.pause() {
            std::thread::sleep(pause);
            // The next receive shows whether data has arrived.
            self.ready.clear();
            self.wake_ups.end_pause();
            return Ok(true);
        }
        self.find_ready(ms)?;
        self.wake_ups.note_wake_up(!self.ready.is_empty());
        Ok(!self.ready.is_empty())
    }

    fn receive(&mut self, chunk: &mut Chunk) -> Result<bool, SysError> {
        if let Some(turns) = &self.turns {
            turns.fetch_add(1, Relaxed);
        }
        self.take_arrivals();
        self.receive_early(chunk);
        if !self.close_leaving(chunk)? {
            return Ok(false);
        }
        if self.ready.is_empty() {
            match self.sockets.len() {
                // Receiving from a single socket also shows whether it has data.
                1 => self.ready.push(0),
                _ => self.find_ready(0)?,
            }
        }
        if self.ready.is_empty() {
            self.wake_ups.note_received(false);
            return Ok(self.early.is_empty());
        }
        let is_only = self.sockets.len() == 1;
        let before = chunk.next_frame();
        while let Some(socket) = self.ready.first().and_then(|index| self.sockets.get(*index)) {
            let is_all = receive_from(socket, chunk, &mut { DATAGRAMS_PER_TURN })?;
            self.wake_ups.note_received(chunk.next_frame() > before);
            if chunk.is_full() && !is_all {
                return Ok(false);
            }
            self.ready.remove(0);
            if is_only {
                return Ok(is_all);
            }
        }
        // Other sockets may have data by now.
        Ok(false)
    }

    /// Unbinds the groups, then receives the records that the kernel had collected, so that no counted record is lost.
    fn end(&mut self, chunk: &mut Chunk) -> Result<bool, SysError> {
        self.elsewhere.iter().for_each(|elsewhere| elsewhere.end());
        self.take_arrivals();
        self.receive_early(chunk);
        if !self.close_leaving(chunk)? {
            return Ok(false);
        }
        while let Some(socket) = self.sockets.get(self.ending.0) {
            let left = match &mut self.ending.1 {
                Some(left) => left,
                none => {
                    // Groups of other namespaces are not left to a successor.
                    let keep_bound = self.keep_bound.load(Relaxed) && socket.netns_id == self.netns_id;
                    if !keep_bound {
                        socket.unbind()?;
                    }
                    // An unbound socket gets no further datagrams, so all of them are received. The data of other
                    // sockets belongs to a successor.
                    none.insert(if keep_bound { DATAGRAMS_AT_END } else { usize::MAX })
                }
            };
            if !receive_from(socket, chunk, left)? && *left > 0 {
                return Ok(false);
            }
            self.ending = (self.ending.0 + 1, None);
        }
        Ok(self.early.is_empty())
    }

    fn header(&mut self) -> Result<BatchHeader, SysError> {
        let mut dropped = self.dropped_before;
        for socket in self.sockets.iter().chain(&self.leaving) {
            dropped += u64::from(socket.drops()?);
        }
        (self.header.lost, self.header.sockets) = (dropped, self.sockets.len() as u64);
        if let Some(elsewhere) = &self.elsewhere {
            let unread = elsewhere.unbound_groups().0 + elsewhere.largest_shortage().left_out;
            (self.header.late, self.header.unreachable) = (elsewhere.late_count(), unread);
        }
        Ok(self.header)
    }
}

/// The reader of the groups, and what its owner needs of them.
pub(crate) type OpenedReader<'h> = (DirectReader<'h, GroupSockets>, BoundGroups);

/// Takes groups over or binds them, and receives records from then on. `others` finds other namespaces, now and later.
pub(crate) fn open_reader<'h>(
    groups: &[u16],
    delivery: DeliveryOptions,
    netns_id: u64,
    others: Option<OtherGroups>,
    stop: &'h dyn Fn() -> bool,
    succession: &mut Succession<'_>,
) -> Result<OpenedReader<'h>, (u16, SysError)> {
    let (inherited, mut early) = (std::mem::take(&mut succession.inherited), Vec::new());
    let mut bound = BoundGroups::open(groups, delivery, netns_id, inherited, &mut early)?;
    let buffer_bytes = bound.sockets.first().map_or(Ok(0), |socket| socket.netlink.room());
    let buffer_bytes = buffer_bytes.map_err(|error| (0, error))?.into();
    let early = early.into_iter().map(|datagram| (netns_id, datagram)).collect();
    let scanned = others.map(|others| {
        let elsewhere = Arc::<OtherNetnsSockets>::default();
        let mut scan = Scan::new(others, groups, delivery, Arc::clone(&elsewhere));
        scan.search();
        Ok((elsewhere, Scanner::start(scan)?))
    });
    bound.elsewhere = scanned.transpose().map_err(|error: SysError| (0, error))?;
    let mut receiver = GroupSockets {
        sockets: bound.sockets.clone(),
        early,
        elsewhere: bound.elsewhere.as_ref().map(|(elsewhere, _)| Arc::clone(elsewhere)),
        leaving: Vec::new(),
        dropped_before: 0,
        ready: Vec::new(),
        netns_id,
        header: BatchHeader { buffer_bytes, ..BatchHeader::default() },
        wake_ups: WakeUps::new(delivery.latency, buffer_bytes),
        keep_bound: Arc::clone(&succession.keep_bound),
        turns: succession.turns.clone(),
        ending: (0, None),
    };
    receiver.take_arrivals();
    let reader = DirectReader::start("netwren-log", CHUNKS, OWN_BYTES, stop, receiver);
    Ok((reader.map_err(|error| (0, error))?, bound))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn wake_ups_keep_apart_where_they_are_many_and_records_can_wait() {
        let ms = Duration::from_millis;
        for (latency, buffer, apart) in
            [(50, 32 << 20, 20), (1000, 32 << 20, 20), (10, 32 << 20, 4), (50, 8 << 20, 10), (50, 7 << 20, 0)]
        {
            let mut wake_ups = WakeUps::new(ms(latency), buffer);
            assert_eq!((wake_ups.apart, wake_ups.pause()), (ms(apart), None));
            wake_ups.note_wake_up(true);
            assert_eq!(wake_ups.pause(), None, "the first");
            // As if the next wake-up followed at once, even on a loaded machine.
            let soon = Instant::now() + ms(60_000);
            wake_ups.last = Some(soon);
            wake_ups.note_wake_up(true);
            assert_eq!(wake_ups.are_many, apart > 0);
            wake_ups.last = Some(soon);
            assert_eq!(wake_ups.pause(), Some(ms(apart)).filter(|_| apart > 0));
            wake_ups.last = Instant::now().checked_sub(ms(100));
            wake_ups.note_wake_up(true);
            assert_eq!(wake_ups.pause(), None, "the last one is long ago");
            wake_ups.note_wake_up(false);
            assert_eq!((wake_ups.pause(), wake_ups.last), (None, None));
            // Only the first receive after a pause shows whether the pause was worth it.
            for (received, is_kept) in [([true, false], true), ([false, true], false)] {
                wake_ups.end_pause();
                received.iter().for_each(|is_something| wake_ups.note_received(*is_something));
                assert_eq!(wake_ups.last.is_some(), is_kept);
            }
        }
    }
}
