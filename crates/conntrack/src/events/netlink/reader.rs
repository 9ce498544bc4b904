//! The dedicated thread that receives events from the kernel ([`netlink::datagrams`] explains why).
//!
//! When the receive buffer is full, the kernel drops the message, and from then on every message until the buffer is
//! empty (NETLINK_S_CONGESTED in net/netlink/af_netlink.c).
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use netlink::datagrams::{BatchHeader, Chunk, ChunkSender, ChunkSizes, DUPLICATE, DatagramReader, UNKNOWN_NETNS};
use sys::{SysError, clock, wait_any};

use crate::events::netlink::coalesce::{COALESCE_MS, Coalescer};
use crate::events::netlink::netns_watcher::NetnsWatcher;
use crate::events::netlink::subscribe::{EventSocket, Scope, SubscribeOptions};

/// Maximum number of datagrams received from one socket before the next socket's turn.
const DATAGRAMS_PER_TURN: usize = 4096;
/// After a loss, a pause of this length without messages ends the burst, and an empty batch reports the pause.
const PAUSE_MS: i32 = 100;
/// 64 MiB at most: some 260,000 messages wait while rows are written. A chunk holds some 1,000 of them; an event has
/// 200 to 400 bytes, 1 KiB with every attribute.
pub(crate) const CHUNKS: ChunkSizes = ChunkSizes { bytes: 256 << 10, datagram_bytes_max: 16 << 10, chunks_max: 256 };

/// The thread's state.
struct ReaderThread {
    sockets: Vec<EventSocket>,
    groups: u32,
    /// Finds further namespaces if all are subscribed to.
    watcher: Option<NetnsWatcher>,
    /// The counts for the next batch.
    header: BatchHeader,
    /// The batch that is being filled.
    chunk: Chunk,
    output: ChunkSender,
    /// Becomes readable when the run is to end.
    stop: UnixStream,
    /// Frames of `chunk` whose namespace is unknown so far: offset and nsid.
    pending_nsids: Vec<(usize, i32)>,
    /// Number of datagrams received so far.
    received: u64,
    /// True if messages were lost since the last reported pause.
    reports_next_pause: bool,
    /// True once the other thread receives no more chunks.
    is_disconnected: bool,
}

impl ReaderThread {
    fn run(mut self) {
        if let Err(error) = self.receive_until_stopped() {
            self.output.fail(error);
        }
    }

    fn receive_until_stopped(&mut self) -> Result<(), SysError> {
        let (mut ready, mut coalescer) = (Vec::new(), Coalescer::default());
        while !self.is_disconnected {
            if coalescer.is_on() {
                wait_any(&[self.stop.as_fd()], COALESCE_MS, &mut ready)?;
            }
            let sockets = self.sockets.iter().map(|socket| socket.netlink.as_fd());
            let files: Vec<_> = std::iter::once(self.stop.as_fd()).chain(sockets).collect();
            wait_any(&files, self.timeout_ms(), &mut ready)?;
            if ready.first() == Some(&0) {
                return self.finish();
            }
            let received_before = self.received;
            for file in &ready {
                self.receive(file - 1, DATAGRAMS_PER_TURN)?;
                self.update_drop_count(file - 1)?;
            }
            coalescer.add_pass(self.received - received_before, clock::monotonic_ns());
            self.rescan_netns()?;
            self.resolve_pending_nsids();
            let is_pause = self.reports_next_pause && ready.is_empty();
            if !self.chunk.is_empty() || is_pause {
                self.send_chunk();
            }
            self.reports_next_pause &= !is_pause;
        }
        Ok(())
    }

    /// Time to wait for messages in milliseconds; -1 without a limit.
    fn timeout_ms(&self) -> i32 {
        let rescan_ms = self.watcher.as_ref().map_or(-1, NetnsWatcher::next_rescan_ms);
        let is_soon = (0..=PAUSE_MS).contains(&rescan_ms);
        if self.reports_next_pause && !is_soon { PAUSE_MS } else { rescan_ms }
    }

    /// Leaves the groups, then receives the remaining messages, so that the counts of the last batch are final.
    fn finish(&mut self) -> Result<(), SysError> {
        for index in 0..self.sockets.len() {
            if let Some(socket) = self.sockets.get(index) {
                socket.netlink.leave_groups(self.groups)?;
            }
            // This loop ends: the socket gets no further messages.
            self.receive(index, usize::MAX)?;
            self.update_drop_count(index)?;
        }
        self.send_chunk();
        Ok(())
    }

    /// Receives the waiting messages of one socket, at most `datagrams_max` datagrams.
    fn receive(&mut self, index: usize, datagrams_max: usize) -> Result<(), SysError> {
        for _ in 0..datagrams_max {
            if self.chunk.is_full() {
                self.update_drop_count(index)?;
                self.send_chunk();
            }
            let (Some(socket), false) = (self.sockets.get_mut(index), self.is_disconnected) else { break };
            let Some(received) = socket.receive(self.chunk.messages_of_next_frame())? else { break };
            let netns_id = match (socket.scope, received.nsid) {
                (Scope::Netns(inode), _) | (Scope::AllWithNsid(inode), None) => inode,
                (Scope::AllWithNsid(_), Some(nsid)) => self.netns_of(nsid),
            };
            if let (UNKNOWN_NETNS, Some(nsid)) = (netns_id, received.nsid) {
                self.pending_nsids.push((self.chunk.next_frame(), nsid));
            }
            if netns_id != DUPLICATE {
                self.chunk.push_frame(netns_id, clock::wall_ns(), received.nsid, received.bytes);
                self.received += 1;
            }
        }
        Ok(())
    }

    fn netns_of(&mut self, nsid: i32) -> u64 {
        self.watcher.as_mut().map_or(UNKNOWN_NETNS, |watcher| watcher.netns_of(nsid))
    }

    /// Adds the messages that one socket missed since the last call to the counts.
    fn update_drop_count(&mut self, index: usize) -> Result<(), SysError> {
        let Some(socket) = self.sockets.get_mut(index) else { return Ok(()) };
        let missed = socket.update_drop_count()?;
        self.header.lost += u64::from(missed.dropped);
        self.header.alloc_failures += u64::from(missed.alloc_failed);
        self.reports_next_pause |= missed.dropped > 0;
        Ok(())
    }

    /// Sends the batch and starts the next; waits while every chunk is in use.
    fn send_chunk(&mut self) {
        self.header.sockets = self.sockets.len() as u64;
        self.pending_nsids.clear();
        self.is_disconnected |= !self.output.send(&mut self.chunk, &self.header);
    }

    /// Fills in the namespaces of frames in the batch that were unknown when their messages arrived, as far as the last
    /// scan has found them.
    fn resolve_pending_nsids(&mut self) {
        for (at, nsid) in std::mem::take(&mut self.pending_nsids) {
            let netns_id = self.netns_of(nsid);
            self.chunk.set_netns_id(at, netns_id);
        }
    }

    /// If a scan is due, subscribes to new namespaces and closes the sockets of removed ones.
    fn rescan_netns(&mut self) -> Result<(), SysError> {
        let Some(watcher) = self.watcher.as_mut().filter(|watcher| watcher.is_due()) else { return Ok(()) };
        let gone = watcher.rescan(&mut self.sockets, self.groups);
        (self.header.late, self.header.unreachable) = (watcher.late_count(), watcher.unreachable_count());
        for index in gone.into_iter().rev() {
            // Only this socket keeps the namespace alive: its last messages are already waiting.
            self.receive(index, DATAGRAMS_PER_TURN)?;
            self.update_drop_count(index)?;
            self.sockets.remove(index);
        }
        Ok(())
    }
}

/// Opens the sockets and starts the thread, which receives all events from then on.
pub(crate) fn open_reader(options: SubscribeOptions<'_>, sizes: ChunkSizes) -> Result<DatagramReader<'_>, SysError> {
    let SubscribeOptions { groups, buffer_bytes, netns_id, find, stop } = options;
    let scope = if find.is_some() { Scope::AllWithNsid(netns_id) } else { Scope::Netns(netns_id) };
    let first = EventSocket::open(groups, buffer_bytes, scope)?;
    let mut header = BatchHeader { buffer_bytes: first.netlink.room()?.into(), ..BatchHeader::default() };
    let mut sockets = vec![first];
    let watcher = find.map(|find| NetnsWatcher::open(find, netns_id, buffer_bytes, groups, &mut sockets));
    header.unreachable = watcher.as_ref().map_or(0, NetnsWatcher::unreachable_count);
    DatagramReader::start("netwren-events", sizes, stop, move |output, chunk, stop| {
        let reader = ReaderThread {
            sockets,
            groups,
            watcher,
            header,
            chunk,
            output,
            stop,
            pending_nsids: Vec::new(),
            received: 0,
            reports_next_pause: false,
            is_disconnected: false,
        };
        reader.run();
    })
}
