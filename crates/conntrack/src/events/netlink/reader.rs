//! The thread that takes messages from the kernel, and does nothing else.
//!
//! The kernel drops what finds its buffer full, and from then on everything until that buffer is empty
//! (NETLINK_S_CONGESTED in net/netlink/af_netlink.c). So nothing is decoded, let alone written, where messages are
//! received: they go as they are into chunks, and chunks into a bounded queue. If that is full the thread waits, the
//! kernel's buffer fills up, and the kernel counts what it drops: what is lost is lost in one place and known exactly.
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sys::{Blocks, Errno, SysError, clock, wait_any};

use crate::events::netlink::batch::{BATCH_HEADER, BatchHeader, DUPLICATE, DatagramFrame, FRAME, UNKNOWN_NETNS};
use crate::events::netlink::netns_watcher::NetnsWatcher;
use crate::events::netlink::subscribe::{EventSocket, Scope, SubscribeOptions};

/// Bytes of a chunk: some 1,000 messages.
const CHUNK: usize = 256 << 10;
/// Room that a chunk must have for one more datagram. An event has 200 to 400 bytes, 1 KiB with everything in it.
const DATAGRAM: usize = 16 << 10;
/// Chunks at most: 64 MiB, some 260,000 messages, while rows are written.
pub(crate) const CHUNKS: usize = 256;
/// Datagrams taken from one socket before the next has its turn.
const TURN: usize = 4096;
/// Between two looks whether the run shall end.
const LOOK_MS: u64 = 50;

/// A piece of memory on its way.
struct Chunk {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { bytes: vec![0; CHUNK].into(), filled: BATCH_HEADER }
    }
}

/// The thread's side.
struct ReaderThread {
    sockets: Vec<EventSocket>,
    groups: u32,
    watcher: Option<NetnsWatcher>,
    head: BatchHeader,
    chunk: Chunk,
    chunks: usize,
    chunks_max: usize,
    full: SyncSender<Result<Chunk, SysError>>,
    empty: Receiver<Chunk>,
    stop: UnixStream,
    /// Where in the chunk frames lie whose namespace is not known, with its number.
    pending_nsids: Vec<(usize, i32)>,
    /// Datagrams taken so far.
    taken: u64,
    /// Events were lost since the last chunk that says that nothing comes for now.
    lost_lately: bool,
    /// Nobody wants more.
    gone: bool,
}

/// After a loss, this long without a message means that the burst is over: then an empty chunk says so.
const QUIET_MS: i32 = 100;

/// Whether so much comes that it is better to let some of it gather.
///
/// A thread that waits is woken for each message, by whoever sends the packet; one that naps is not. 2 ms of 100,000
/// events a second are 200 events, 2 % of the buffer.
#[derive(Debug, Default)]
struct Coalescer {
    /// Passes in a row that came right after the one before.
    close: u32,
    last_ns: u64,
    busy: bool,
}

/// How long messages gather while many come.
const COALESCE_MS: i32 = 2;
/// Fewer messages after a nap end the napping.
const FEW: u64 = 32;
/// Passes as close as this, so many in a row, begin it.
const CLOSE_NS: u64 = 200_000;
const CLOSE_PASSES: u32 = 16;

impl Coalescer {
    fn passed(&mut self, messages: u64, now_ns: u64) {
        let is_close = now_ns.saturating_sub(self.last_ns) < CLOSE_NS;
        self.last_ns = now_ns;
        self.close = if is_close && messages > 0 { self.close + 1 } else { 0 };
        self.busy = if self.busy { messages >= FEW } else { self.close >= CLOSE_PASSES || messages >= FEW };
    }

    fn is_busy(&self) -> bool {
        self.busy
    }
}

impl ReaderThread {
    fn listen(mut self) {
        if let Err(error) = self.passes() {
            let _ = self.full.send(Err(error));
        }
    }

    fn passes(&mut self) -> Result<(), SysError> {
        let (mut ready, mut coalescer) = (Vec::new(), Coalescer::default());
        while !self.gone {
            if coalescer.is_busy() {
                wait_any(&[self.stop.as_fd()], COALESCE_MS, &mut ready)?;
            }
            let mut patience = self.watcher.as_ref().map_or(-1, NetnsWatcher::next_rescan_ms);
            if self.lost_lately && !(0..=QUIET_MS).contains(&patience) {
                patience = QUIET_MS;
            }
            let files: Vec<_> = std::iter::once(self.stop.as_fd())
                .chain(self.sockets.iter().map(|socket| socket.socket.as_fd()))
                .collect();
            wait_any(&files, patience, &mut ready)?;
            if ready.first() == Some(&0) {
                return self.finish();
            }
            let before = self.taken;
            for file in &ready {
                self.take(file - 1, TURN)?;
                self.update_drop_count(file - 1)?;
            }
            coalescer.passed(self.taken - before, clock::monotonic_ns());
            self.rescan_netns()?;
            self.resolve_pending_nsids();
            let is_quiet = self.lost_lately && ready.is_empty();
            if self.chunk.filled > BATCH_HEADER || is_quiet {
                self.hand_on();
            }
            self.lost_lately &= !is_quiet;
        }
        Ok(())
    }

    /// DatagramFrames of the chunk from namespaces that were unknown when they came: we have looked since.
    fn resolve_pending_nsids(&mut self) {
        for (at, nsid) in self.pending_nsids.drain(..) {
            let netns_id = self.watcher.as_mut().map_or(UNKNOWN_NETNS, |all| all.netns_of(nsid));
            DatagramFrame::put_netns_id(self.chunk.bytes.get_mut(at..).unwrap_or_default(), netns_id);
        }
    }

    /// Nothing more is heard; what waits is taken, and what was lost is known for good.
    fn finish(&mut self) -> Result<(), SysError> {
        for socket in 0..self.sockets.len() {
            if let Some(socket) = self.sockets.get(socket) {
                socket.socket.leave(self.groups)?;
            }
            // Bounded: nothing comes any more.
            self.take(socket, usize::MAX)?;
            self.update_drop_count(socket)?;
        }
        self.hand_on();
        Ok(())
    }

    /// Takes what waits at one socket, up to so many datagrams.
    fn take(&mut self, index: usize, most: usize) -> Result<(), SysError> {
        for _ in 0..most {
            if self.chunk.bytes.len() < self.chunk.filled + FRAME + DATAGRAM {
                self.update_drop_count(index)?;
                self.hand_on();
            }
            let (Some(socket), false) = (self.sockets.get_mut(index), self.gone) else { break };
            let at = self.chunk.filled;
            let Some((head, place)) = self.chunk.bytes.get_mut(at..).and_then(|rest| rest.split_at_mut_checked(FRAME))
            else {
                break;
            };
            let received = match socket.socket.receive_waiting(place) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                Err(error) if error.errno == Errno::NOBUFS => {
                    socket.enobufs_without_drops = socket.enobufs_without_drops.max(1);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let netns_id = match (socket.scope, received.nsid) {
                (Scope::Netns(inode), _) | (Scope::AllWithNsid(inode), None) => inode,
                (Scope::AllWithNsid(_), Some(nsid)) => {
                    self.watcher.as_mut().map_or(UNKNOWN_NETNS, |all| all.netns_of(nsid))
                }
            };
            if let (UNKNOWN_NETNS, Some(nsid)) = (netns_id, received.nsid) {
                self.pending_nsids.push((at, nsid));
            }
            // A namespace that has a socket of its own here is heard by that one.
            if netns_id != DUPLICATE {
                DatagramFrame::put(head, netns_id, clock::wall_ns(), received.nsid, received.bytes);
                self.chunk.filled += FRAME + received.bytes;
                self.taken += 1;
            }
        }
        Ok(())
    }

    /// Looks what one socket has lost.
    fn update_drop_count(&mut self, index: usize) -> Result<(), SysError> {
        let Some(socket) = self.sockets.get_mut(index) else { return Ok(()) };
        let drops = socket.socket.drops()?;
        let lost = drops.wrapping_sub(socket.drops);
        socket.drops = drops;
        self.head.lost += u64::from(lost);
        self.lost_lately |= lost > 0;
        socket.enobufs_without_drops = match (lost, socket.enobufs_without_drops) {
            (0, 0) => 0,
            // ENOBUFS is reported a moment before the counter changes.
            (0, 1) => 2,
            (0, _) => {
                self.head.alloc_failures += 1;
                0
            }
            _ => 0,
        };
        Ok(())
    }

    /// The chunk goes, another takes its place; waits if none is left.
    fn hand_on(&mut self) {
        self.head.sockets = self.sockets.len() as u64;
        if let Some(place) = self.chunk.bytes.get_mut(..BATCH_HEADER) {
            place.copy_from_slice(&self.head.bytes());
        }
        self.pending_nsids.clear();
        let chunk = std::mem::replace(&mut self.chunk, Chunk { bytes: Box::default(), filled: BATCH_HEADER });
        self.gone |= self.full.send(Ok(chunk)).is_err();
        let next = match self.empty.try_recv() {
            Ok(chunk) => Some(chunk),
            Err(_) if self.chunks < self.chunks_max => {
                self.chunks += 1;
                Some(Chunk::new())
            }
            Err(_) => self.empty.recv().ok(),
        };
        match next {
            Some(next) => self.chunk = Chunk { filled: BATCH_HEADER, ..next },
            None => self.gone = true,
        }
    }

    /// Namespaces come and go.
    fn rescan_netns(&mut self) -> Result<(), SysError> {
        let Some(watcher) = self.watcher.as_mut().filter(|watcher| watcher.is_due()) else { return Ok(()) };
        let gone = watcher.rescan(&mut self.sockets, self.groups);
        for index in gone.into_iter().rev() {
            // The namespace has nobody but us any more.
            self.take(index, TURN)?;
            self.update_drop_count(index)?;
            self.sockets.remove(index);
        }
        if let Some(watcher) = &self.watcher {
            (self.head.late, self.head.unreachable) = (watcher.late(), watcher.unreachable());
        }
        Ok(())
    }
}

/// Blocks as the thread hands them on.
pub(crate) struct EventReader<'h> {
    full: Receiver<Result<Chunk, SysError>>,
    empty: Sender<Chunk>,
    /// Closing it stops the thread.
    stopper: Option<UnixStream>,
    stop: &'h dyn Fn() -> bool,
    chunk: Option<Chunk>,
    thread: Option<JoinHandle<()>>,
}

impl<'h> EventReader<'h> {
    /// Opens the sockets and starts the thread: what happens from now on is heard. `stop` is asked some twenty times a
    /// second.
    pub(crate) fn open(options: SubscribeOptions<'h>, chunks_max: usize) -> Result<EventReader<'h>, SysError> {
        let SubscribeOptions { groups, buffer_bytes, netns_id, find, stop } = options;
        let mut sockets = vec![EventSocket::open(
            groups,
            buffer_bytes,
            if find.is_some() { Scope::AllWithNsid(netns_id) } else { Scope::Netns(netns_id) },
        )?];
        let watcher = find.map(|find| NetnsWatcher::open(find, netns_id, buffer_bytes, groups, &mut sockets));
        let mut head = BatchHeader {
            buffer_bytes: sockets.first().map_or(Ok(0), |socket| socket.socket.room())?.into(),
            ..BatchHeader::default()
        };
        if let Some(watcher) = &watcher {
            head.unreachable = watcher.unreachable();
        }
        let failed = |error: std::io::Error| {
            SysError::new("socketpair", "the reader of events", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let (stopper, stopped) = UnixStream::pair().map_err(failed)?;
        let ((full, filled), (empty, emptied)) = (sync_channel(chunks_max), channel());
        let chunk = Chunk::new();
        let reader = ReaderThread {
            sockets,
            groups,
            watcher,
            head,
            chunk,
            chunks: 1,
            chunks_max,
            full,
            empty: emptied,
            stop: stopped,
            pending_nsids: Vec::new(),
            taken: 0,
            lost_lately: false,
            gone: false,
        };
        let thread = Builder::new().name("netwren-events".into()).spawn(move || reader.listen()).map_err(failed)?;
        Ok(EventReader { full: filled, empty, stopper: Some(stopper), stop, chunk: None, thread: Some(thread) })
    }
}

impl Blocks for EventReader<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if let Some(chunk) = self.chunk.take() {
            // The thread may have gone: then nobody needs it.
            let _ = self.empty.send(chunk);
        }
        loop {
            if self.stopper.is_some() && (self.stop)() {
                self.stopper = None;
            }
            match self.full.recv_timeout(Duration::from_millis(LOOK_MS)) {
                Ok(chunk) => {
                    let chunk = self.chunk.insert(chunk?);
                    return Ok(chunk.bytes.get(..chunk.filled));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

impl Drop for EventReader<'_> {
    fn drop(&mut self) {
        self.stopper = None;
        // What the thread still hands on falls to nobody, and wakes it if it waits for room.
        let (_, nobody) = sync_channel(0);
        self.full = nobody;
        let (into_nowhere, _) = channel();
        self.empty = into_nowhere;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_begin_and_end() {
        let mut coalescer = Coalescer::default();
        let mut now_ns = 1_000_000_000;
        for _ in 0..CLOSE_PASSES {
            assert!(!coalescer.is_busy());
            now_ns += 20_000;
            coalescer.passed(1, now_ns);
        }
        coalescer.passed(1, now_ns + 20_000);
        assert!(coalescer.is_busy(), "a message each 20 µs");
        coalescer.passed(200, now_ns + 2_000_000);
        assert!(coalescer.is_busy());
        coalescer.passed(3, now_ns + 4_000_000);
        assert!(!coalescer.is_busy());
        for pass in 1..100 {
            coalescer.passed(1, now_ns + 4_000_000 + pass * 1_000_000);
            assert!(!coalescer.is_busy(), "a message each ms is told of at once");
        }
    }
}
