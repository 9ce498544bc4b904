//! The thread that receives records, and does nothing else ([`netlink::datagrams`] says why).
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use netlink::datagrams::{BatchHeader, Chunk, ChunkSender, ChunkSizes, DatagramReader};
use sys::{SysError, clock, wait_any};

use super::groups::{DATAGRAM_BYTES_MAX, Delivery, GroupSocket};
use super::other_netns::{OtherNetns, OtherSockets};
use crate::events::succession::Succession;

/// 64 MiB at most: some 350,000 records wait while rows are written.
const CHUNKS: ChunkSizes = ChunkSizes { bytes: 1 << 20, datagram_bytes_max: DATAGRAM_BYTES_MAX, chunks_max: 64 };
/// Most datagrams received from one group before the next one has its turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// Most datagrams received at the end from a group that stays bound: more come all the time.
const DATAGRAMS_AT_END: usize = 4096;
/// Longest turn of the thread where turns are counted.
const TURN_MS: i32 = 250;

/// The thread's state.
struct ReaderThread {
    sockets: Vec<Arc<GroupSocket>>,
    /// The namespace that the run stands in.
    netns_id: u64,
    /// The counts that go into the next batch.
    header: BatchHeader,
    /// The batch that is being filled.
    chunk: Chunk,
    output: ChunkSender,
    /// Readable once the run shall end.
    stop: UnixStream,
    /// True at the end: groups stay bound.
    keep_bound: Arc<AtomicBool>,
    /// Hangups so far.
    hangups: u64,
    /// See [`Succession::turns`].
    turns: Option<Arc<AtomicU64>>,
    /// True once the other thread receives no more chunks.
    is_disconnected: bool,
}

impl ReaderThread {
    fn run(mut self, early: &[(u64, Vec<u8>)]) {
        if let Err(error) = self.receive_until_stopped(early) {
            self.output.fail(error);
        }
    }

    fn receive_until_stopped(&mut self, early: &[(u64, Vec<u8>)]) -> Result<(), SysError> {
        for (netns_id, datagram) in early {
            self.add(*netns_id, datagram);
        }
        let mut ready = Vec::new();
        while !self.is_disconnected {
            let sockets = self.sockets.iter().map(|socket| socket.netlink.as_fd());
            let files: Vec<_> = std::iter::once(self.stop.as_fd()).chain(sockets).collect();
            wait_any(&files, self.turn_ms(), &mut ready)?;
            if ready.first() == Some(&0) {
                return self.finish();
            }
            for file in &ready {
                self.receive(file - 1, DATAGRAMS_PER_TURN)?;
            }
            // A hangup is heard where rows are made, which waits for batches: one without records will do.
            let hangups = sys::signal::hangups();
            if !self.chunk.is_empty() || hangups != self.hangups {
                self.hangups = hangups;
                self.send_chunk()?;
            }
        }
        Ok(())
    }

    /// Counts a turn, if somebody looks; how long it may last at most.
    fn turn_ms(&self) -> i32 {
        let Some(turns) = &self.turns else { return -1 };
        turns.fetch_add(1, Relaxed);
        TURN_MS
    }

    /// Gives the groups back, then receives what the kernel had gathered: no record that was counted is left behind.
    fn finish(&mut self) -> Result<(), SysError> {
        let is_succeeded = self.keep_bound.load(Relaxed);
        for index in 0..self.sockets.len() {
            // Groups of other namespaces are left to nobody.
            let is_own = self.sockets.get(index).is_some_and(|socket| socket.netns_id == self.netns_id);
            let keep_bound = is_succeeded && is_own;
            if let Some(socket) = self.sockets.get(index).filter(|_| !keep_bound) {
                socket.unbind()?;
            }
            // Of a socket that is unbound everything: it gets no further datagram. What another holds is a successor's.
            self.receive(index, if keep_bound { DATAGRAMS_AT_END } else { usize::MAX })?;
        }
        self.send_chunk()
    }

    /// Receives what waits at one socket, at most `datagrams_max` datagrams.
    fn receive(&mut self, index: usize, datagrams_max: usize) -> Result<(), SysError> {
        if self.chunk.is_full() {
            self.send_chunk()?;
        }
        if let Some(socket) = self.sockets.get(index) {
            // A frame without messages: those that follow have come after this time.
            self.chunk.push_frame(socket.netns_id, socket.empty_ns.load(Relaxed), None, 0);
        }
        for _ in 0..datagrams_max {
            if self.chunk.is_full() {
                self.send_chunk()?;
            }
            let (Some(socket), false) = (self.sockets.get(index), self.is_disconnected) else { break };
            let Some(received) = socket.receive(self.chunk.messages_of_next_frame())? else {
                socket.empty_ns.store(clock::wall_ns(), Relaxed);
                break;
            };
            self.chunk.push_frame(socket.netns_id, clock::wall_ns(), None, received.bytes);
        }
        Ok(())
    }

    /// Adds a datagram that was received while the groups were bound.
    fn add(&mut self, netns_id: u64, datagram: &[u8]) {
        if self.chunk.is_full() && self.send_chunk().is_err() {
            return;
        }
        if let Some(place) = self.chunk.messages_of_next_frame().get_mut(..datagram.len()) {
            place.copy_from_slice(datagram);
            self.chunk.push_frame(netns_id, clock::wall_ns(), None, datagram.len());
        }
    }

    /// Sends the batch and begins another one; waits while every chunk is in use.
    fn send_chunk(&mut self) -> Result<(), SysError> {
        let mut dropped = 0;
        for socket in &self.sockets {
            dropped += u64::from(socket.drops()?);
        }
        self.header.lost = dropped;
        self.is_disconnected |= !self.output.send(&mut self.chunk, &self.header);
        Ok(())
    }
}

/// A thread that receives, and its sockets.
pub(crate) struct OpenedReader<'h> {
    pub(crate) reader: DatagramReader<'h>,
    pub(crate) sockets: Vec<Arc<GroupSocket>>,
    /// Groups that were taken over, each with the number of its next record.
    pub(crate) taken_over: Vec<(u16, Option<u32>)>,
    /// Why sockets were not taken over.
    pub(crate) refused: Vec<(u16, String)>,
    /// Groups of other namespaces that are not read, and why.
    pub(crate) unread: (u64, Option<String>),
}

/// Takes groups over or binds them, and starts the thread: records from now on are received.
pub(crate) fn open_reader<'h>(
    groups: &[u16],
    delivery: Delivery,
    netns_id: u64,
    others: &[OtherNetns],
    stop: &'h dyn Fn() -> bool,
    succession: &mut Succession<'_>,
) -> Result<OpenedReader<'h>, (u16, SysError)> {
    let (mut early, mut sockets) = (Vec::new(), Vec::new());
    let (mut taken_over, mut refused) = (Vec::new(), Vec::new());
    for inherited in std::mem::take(&mut succession.inherited) {
        let (group, next) = (inherited.group, inherited.next);
        let is_there = sockets.iter().any(|socket: &Arc<GroupSocket>| socket.group == group);
        if !groups.contains(&group) || is_there {
            refused.push((group, "no longer asked for".to_owned()));
            continue;
        }
        match GroupSocket::adopt(inherited, netns_id, delivery, &mut early) {
            Ok(socket) => {
                taken_over.push((group, next));
                sockets.push(Arc::new(socket));
            }
            Err(why) => refused.push((group, why)),
        }
    }
    for group in groups.iter().filter(|group| !taken_over.iter().any(|(taken, _)| taken == *group)) {
        let bound = GroupSocket::bind(*group, netns_id, delivery, &mut early).map_err(|error| (*group, error))?;
        sockets.push(Arc::new(bound));
    }
    let buffer_bytes = sockets.first().map_or(Ok(0), |socket| socket.netlink.room());
    let buffer_bytes = buffer_bytes.map_err(|error| (0, error))?.into();
    let elsewhere = OtherSockets::bind(others, groups, delivery);
    let mut early: Vec<(u64, Vec<u8>)> = early.into_iter().map(|datagram| (netns_id, datagram)).collect();
    early.extend(elsewhere.early);
    let of_thread: Vec<_> = sockets.iter().cloned().chain(elsewhere.sockets).collect();
    let header = BatchHeader { buffer_bytes, sockets: of_thread.len() as u64, ..BatchHeader::default() };
    let (keep_bound, turns) = (Arc::clone(&succession.keep_bound), succession.turns.clone());
    let reader = DatagramReader::start("netwren-log", CHUNKS, stop, move |output, chunk, stop| {
        let (is_disconnected, hangups) = (false, sys::signal::hangups());
        let sockets = of_thread;
        ReaderThread { sockets, netns_id, header, chunk, output, stop, keep_bound, hangups, turns, is_disconnected }
            .run(&early);
    });
    let unread = (elsewhere.unread, elsewhere.why);
    Ok(OpenedReader { reader: reader.map_err(|error| (0, error))?, sockets, taken_over, refused, unread })
}
