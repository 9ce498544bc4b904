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

use sys::{Blocks, Errno, NetlinkSocket, SysError, clock, wait_any};

use super::block::{DOUBLED, FRAME, Frame, HEAD, Head, STRANGE};
use super::everywhere::{Everywhere, Home};
use super::homes::FindNamespaces;
use crate::uapi::NETLINK_NETFILTER;

/// Bytes of a chunk: some 1,000 messages.
const CHUNK: usize = 256 << 10;
/// Room that a chunk must have for one more datagram. An event has 200 to 400 bytes, 1 KiB with everything in it.
const DATAGRAM: usize = 16 << 10;
/// Chunks at most: 64 MiB, some 260,000 messages, while rows are written.
pub(super) const CHUNKS: usize = 256;
/// Datagrams taken from one socket before the next has its turn.
const TURN: usize = 4096;
/// Between two looks whether the run shall end.
const LOOK_MS: u64 = 50;

/// What is listened to.
pub(super) struct Wish {
    /// Multicast groups as a mask.
    pub(super) groups: u32,
    /// Receive buffer in bytes.
    pub(super) room: i32,
    /// Inode of the calling thread's namespace.
    pub(super) netns_id: u64,
    /// How the others are found, if all are listened to.
    pub(super) find: Option<FindNamespaces>,
    /// Chunks at most, usually [`CHUNKS`].
    pub(super) chunks: usize,
}

/// A piece of memory on its way.
struct Chunk {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { bytes: vec![0; CHUNK].into(), filled: HEAD }
    }
}

/// One socket that listens.
pub(super) struct Ear {
    pub(super) socket: NetlinkSocket,
    pub(super) home: Home,
    /// The kernel's count when it was last looked at.
    drops: u32,
    /// Since how many looks the kernel's alarm (ENOBUFS) has nothing to show for it.
    alarmed: u32,
}

impl Ear {
    /// A socket in the calling thread's namespace that hears these groups.
    pub(super) fn open(groups: u32, room: i32, home: Home) -> Result<Ear, SysError> {
        let socket = NetlinkSocket::open(NETLINK_NETFILTER)?;
        socket.make_room(room);
        socket.join(groups)?;
        let drops = socket.drops()?;
        Ok(Ear { socket, home, drops, alarmed: 0 })
    }
}

/// The thread's side.
struct Reader {
    ears: Vec<Ear>,
    groups: u32,
    everywhere: Option<Everywhere>,
    head: Head,
    chunk: Chunk,
    chunks: usize,
    chunks_max: usize,
    full: SyncSender<Result<Chunk, SysError>>,
    empty: Receiver<Chunk>,
    stop: UnixStream,
    /// Where in the chunk frames lie whose namespace is not known, with its number.
    strange: Vec<(usize, i32)>,
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
struct Pace {
    /// Passes in a row that came right after the one before.
    close: u32,
    last_ns: u64,
    busy: bool,
}

/// How long messages gather while many come.
const NAP_MS: i32 = 2;
/// Fewer messages after a nap end the napping.
const FEW: u64 = 32;
/// Passes as close as this, so many in a row, begin it.
const CLOSE_NS: u64 = 200_000;
const CLOSE_PASSES: u32 = 16;

impl Pace {
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

impl Reader {
    fn listen(mut self) {
        if let Err(error) = self.passes() {
            let _ = self.full.send(Err(error));
        }
    }

    fn passes(&mut self) -> Result<(), SysError> {
        let (mut ready, mut pace) = (Vec::new(), Pace::default());
        while !self.gone {
            if pace.is_busy() {
                wait_any(&[self.stop.as_fd()], NAP_MS, &mut ready)?;
            }
            let mut patience = self.everywhere.as_ref().map_or(-1, Everywhere::patience_ms);
            if self.lost_lately && !(0..=QUIET_MS).contains(&patience) {
                patience = QUIET_MS;
            }
            let files: Vec<_> =
                std::iter::once(self.stop.as_fd()).chain(self.ears.iter().map(|ear| ear.socket.as_fd())).collect();
            wait_any(&files, patience, &mut ready)?;
            if ready.first() == Some(&0) {
                return self.finish();
            }
            let before = self.taken;
            for file in &ready {
                self.take(file - 1, TURN)?;
                self.reckon(file - 1)?;
            }
            pace.passed(self.taken - before, clock::monotonic_ns());
            self.look_around()?;
            self.name_strangers();
            let is_quiet = self.lost_lately && ready.is_empty();
            if self.chunk.filled > HEAD || is_quiet {
                self.hand_on();
            }
            self.lost_lately &= !is_quiet;
        }
        Ok(())
    }

    /// Frames of the chunk from namespaces that were unknown when they came: we have looked since.
    fn name_strangers(&mut self) {
        for (at, nsid) in self.strange.drain(..) {
            let home = self.everywhere.as_mut().map_or(STRANGE, |all| all.home_of(nsid));
            Frame::put_home(self.chunk.bytes.get_mut(at..).unwrap_or_default(), home);
        }
    }

    /// Nothing more is heard; what waits is taken, and what was lost is known for good.
    fn finish(&mut self) -> Result<(), SysError> {
        for ear in 0..self.ears.len() {
            if let Some(ear) = self.ears.get(ear) {
                ear.socket.leave(self.groups)?;
            }
            // Bounded: nothing comes any more.
            self.take(ear, usize::MAX)?;
            self.reckon(ear)?;
        }
        self.hand_on();
        Ok(())
    }

    /// Takes what waits at one socket, up to so many datagrams.
    fn take(&mut self, index: usize, most: usize) -> Result<(), SysError> {
        for _ in 0..most {
            if self.chunk.bytes.len() < self.chunk.filled + FRAME + DATAGRAM {
                self.reckon(index)?;
                self.hand_on();
            }
            let (Some(ear), false) = (self.ears.get_mut(index), self.gone) else { break };
            let at = self.chunk.filled;
            let Some((head, place)) = self.chunk.bytes.get_mut(at..).and_then(|rest| rest.split_at_mut_checked(FRAME))
            else {
                break;
            };
            let received = match ear.socket.receive_waiting(place) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                Err(error) if error.errno == Errno::NOBUFS => {
                    ear.alarmed = ear.alarmed.max(1);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let netns_id = match (ear.home, received.nsid) {
                (Home::One(inode), _) | (Home::Many(inode), None) => inode,
                (Home::Many(_), Some(nsid)) => self.everywhere.as_mut().map_or(STRANGE, |all| all.home_of(nsid)),
            };
            if let (STRANGE, Some(nsid)) = (netns_id, received.nsid) {
                self.strange.push((at, nsid));
            }
            // A namespace that has a socket of its own here is heard by that one.
            if netns_id != DOUBLED {
                Frame::put(head, netns_id, wall_ns(), received.nsid, received.bytes);
                self.chunk.filled += FRAME + received.bytes;
                self.taken += 1;
            }
        }
        Ok(())
    }

    /// Looks what one socket has lost.
    fn reckon(&mut self, index: usize) -> Result<(), SysError> {
        let Some(ear) = self.ears.get_mut(index) else { return Ok(()) };
        let drops = ear.socket.drops()?;
        let lost = drops.wrapping_sub(ear.drops);
        ear.drops = drops;
        self.head.lost += u64::from(lost);
        self.lost_lately |= lost > 0;
        ear.alarmed = match (lost, ear.alarmed) {
            (0, 0) => 0,
            // The alarm comes a moment before the count.
            (0, 1) => 2,
            (0, _) => {
                self.head.unmade += 1;
                0
            }
            _ => 0,
        };
        Ok(())
    }

    /// The chunk goes, another takes its place; waits if none is left.
    fn hand_on(&mut self) {
        self.head.sockets = self.ears.len() as u64;
        if let Some(place) = self.chunk.bytes.get_mut(..HEAD) {
            place.copy_from_slice(&self.head.bytes());
        }
        self.strange.clear();
        let chunk = std::mem::replace(&mut self.chunk, Chunk { bytes: Box::default(), filled: HEAD });
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
            Some(next) => self.chunk = Chunk { filled: HEAD, ..next },
            None => self.gone = true,
        }
    }

    /// Namespaces come and go.
    fn look_around(&mut self) -> Result<(), SysError> {
        let Some(everywhere) = self.everywhere.as_mut().filter(|everywhere| everywhere.is_due()) else { return Ok(()) };
        let gone = everywhere.look(&mut self.ears, self.groups);
        for index in gone.into_iter().rev() {
            // The namespace has nobody but us any more.
            self.take(index, TURN)?;
            self.reckon(index)?;
            self.ears.remove(index);
        }
        if let Some(everywhere) = &self.everywhere {
            (self.head.late, self.head.closed) = (everywhere.late(), everywhere.closed());
        }
        Ok(())
    }
}

/// Nanoseconds since 1970.
pub(super) fn wall_ns() -> u64 {
    let wall = clock::wall();
    wall.seconds.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(wall.nanos.into())
}

/// Blocks as the thread hands them on.
pub(super) struct Listening<'h> {
    full: Receiver<Result<Chunk, SysError>>,
    empty: Sender<Chunk>,
    /// Closing it stops the thread.
    stopper: Option<UnixStream>,
    stop: &'h dyn Fn() -> bool,
    chunk: Option<Chunk>,
    thread: Option<JoinHandle<()>>,
}

impl<'h> Listening<'h> {
    /// Opens the sockets and starts the thread: what happens from now on is heard. `stop` is asked some twenty times a
    /// second.
    pub(super) fn open(wish: Wish, stop: &'h dyn Fn() -> bool) -> Result<Listening<'h>, SysError> {
        let Wish { groups, room, netns_id, find, chunks: chunks_max } = wish;
        let mut ears =
            vec![Ear::open(groups, room, if find.is_some() { Home::Many(netns_id) } else { Home::One(netns_id) })?];
        let everywhere = find.map(|find| Everywhere::open(find, netns_id, room, groups, &mut ears));
        let mut head = Head { room: ears.first().map_or(Ok(0), |ear| ear.socket.room())?.into(), ..Head::default() };
        if let Some(everywhere) = &everywhere {
            head.closed = everywhere.closed();
        }
        let failed = |error: std::io::Error| {
            SysError::new("socketpair", "the reader of events", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let (stopper, stopped) = UnixStream::pair().map_err(failed)?;
        let ((full, filled), (empty, emptied)) = (sync_channel(chunks_max), channel());
        let chunk = Chunk::new();
        let reader = Reader {
            ears,
            groups,
            everywhere,
            head,
            chunk,
            chunks: 1,
            chunks_max,
            full,
            empty: emptied,
            stop: stopped,
            strange: Vec::new(),
            taken: 0,
            lost_lately: false,
            gone: false,
        };
        let thread = Builder::new().name("netwren-events".into()).spawn(move || reader.listen()).map_err(failed)?;
        Ok(Listening { full: filled, empty, stopper: Some(stopper), stop, chunk: None, thread: Some(thread) })
    }
}

impl Blocks for Listening<'_> {
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

impl Drop for Listening<'_> {
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
        let mut pace = Pace::default();
        let mut now_ns = 1_000_000_000;
        for _ in 0..CLOSE_PASSES {
            assert!(!pace.is_busy());
            now_ns += 20_000;
            pace.passed(1, now_ns);
        }
        pace.passed(1, now_ns + 20_000);
        assert!(pace.is_busy(), "a message each 20 µs");
        pace.passed(200, now_ns + 2_000_000);
        assert!(pace.is_busy());
        pace.passed(3, now_ns + 4_000_000);
        assert!(!pace.is_busy());
        for pass in 1..100 {
            pace.passed(1, now_ns + 4_000_000 + pass * 1_000_000);
            assert!(!pace.is_busy(), "a message each ms is told of at once");
        }
    }
}
