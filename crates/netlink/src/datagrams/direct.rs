//! Receives datagrams in the thread that makes rows of them; a second thread takes over while that thread is too slow.
//!
//! When one thread receives, makes rows and writes them, the data stays in its processor's cache and no other thread
//! is woken: a record costs a third less than with a [`super::DatagramReader`]. But the thread that makes rows may be
//! delayed by a receiver, a disk or a lookup. So a timer expires after it has been busy for some time, and a second
//! thread then receives in its place until it waits for more datagrams again. Setting the timer wakes no thread: a
//! thread that polls 20 times a second costs a tenth of the cost of 6,000 records per second.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sys::{Alarm, Blocks, Errno, SysError, clock};

use super::batch::{BATCH_HEADER, BatchHeader};
use super::chunks::{Chunk, ChunkReceiver, ChunkSender, ChunkSizes, chunk_queue};
use super::reader::{IDLE_CHECKS, STOP_CHECK_MS};

/// The second thread receives once the first has been busy for this long. Until then the kernel buffers the datagrams.
const BUSY_MAX: Duration = Duration::from_millis(50);
/// How long the first thread waits for datagrams before it checks whether the run must end and hands out a block
/// without frames. A signal ends the wait. A shorter wait would cost a wake-up between any two datagrams of a steady
/// stream.
const WAIT_MS: u64 = IDLE_CHECKS as u64 * STOP_CHECK_MS;
/// Memory used by a burst is released once there was nothing to do for this long.
const IDLE_BEFORE_RELEASE: Duration = Duration::from_millis(20);
/// Minimum size of a batch in bytes after which releasing its memory is worthwhile.
const WORN_BYTES: usize = 64 << 10;
/// How long the second thread waits for datagrams before it checks whether the first wants to receive again.
const TURN_MS: i32 = 20;

/// Sockets that both threads use.
pub trait ReceiveSockets: Send {
    /// Waits at most `ms` milliseconds until something can be received; false if nothing can.
    fn wait(&mut self, ms: i32) -> Result<bool, SysError>;

    /// Receives waiting datagrams until the chunk is full; true if none are left.
    fn receive(&mut self, chunk: &mut Chunk) -> Result<bool, SysError>;

    /// Ends the subscription: datagrams that arrive from now on are not received. True once none are left to receive.
    fn end(&mut self, chunk: &mut Chunk) -> Result<bool, SysError>;

    /// The counts for the next batch.
    fn header(&mut self) -> Result<BatchHeader, SysError>;
}

/// State shared by both threads.
struct SharedState<R> {
    /// Locked by the thread that receives.
    sockets: Mutex<R>,
    /// Since when the first thread has been busy without a pause, on the monotonic clock in ns; 0 while it waits.
    busy_since: AtomicU64,
    /// True if the first thread wants to receive again.
    is_wanted: AtomicBool,
    is_over: AtomicBool,
    /// True if the second thread has memory that it no longer needs.
    has_spares: AtomicBool,
    /// Expires when the first thread has been busy for too long; the second thread waits for it.
    alarm: Alarm,
}

impl<R> SharedState<R> {
    /// Records that the first thread is busy.
    fn begin_work(&self) {
        if self.busy_since.load(Relaxed) == 0 {
            self.busy_since.store(clock::monotonic_ns().max(1), SeqCst);
            self.alarm.set(BUSY_MAX);
        }
    }

    /// Records that the first thread is idle.
    fn end_work(&self) {
        if self.busy_since.load(Relaxed) != 0 {
            self.busy_since.store(0, SeqCst);
            self.alarm.set(if self.has_spares.load(Relaxed) { IDLE_BEFORE_RELEASE } else { Duration::ZERO });
        }
    }

    /// Ends the second thread.
    fn end(&self) {
        self.is_over.store(true, SeqCst);
        self.alarm.set(Duration::from_nanos(1));
    }

    fn is_late(&self) -> bool {
        let since = self.busy_since.load(Relaxed);
        since != 0 && clock::monotonic_ns().saturating_sub(since) > BUSY_MAX.as_nanos() as u64
    }
}

/// Batches of datagrams as blocks.
pub struct DirectReader<'h, R: ReceiveSockets + 'static> {
    shared: Arc<SharedState<R>>,
    /// Datagrams received by the second thread.
    relieved: ChunkReceiver,
    /// Datagrams received by this thread.
    own: Chunk,
    /// True if it received much since the last time that nothing arrived during the longest wait.
    is_worn: bool,
    /// The second thread's batch that the caller is reading.
    chunk: Option<Chunk>,
    /// The header of the last batch.
    idle: Vec<u8>,
    stop: &'h dyn Fn() -> bool,
    is_ending: bool,
    is_ended: bool,
    /// True if no datagrams were left when this thread last received: it then waits before it receives again.
    was_emptied: bool,
    /// Number of hangups so far: a new one is a reason to hand out a block.
    hangups: u64,
    thread: Option<JoinHandle<()>>,
}

/// The result of one step of the caller's thread.
enum StepResult {
    /// Datagrams in `own`.
    Own,
    /// A chunk from the second thread.
    Relieved(Chunk),
    Nothing,
    Ended,
}

impl<'h, R: ReceiveSockets + 'static> DirectReader<'h, R> {
    /// Receives from `sockets`, in this thread into one chunk of `own_bytes`, in the second thread, called `name`,
    /// into chunks of `sizes`. `stop` is called about five times a second and after signals; it returns true once the
    /// run must end.
    pub fn start(
        name: &str,
        sizes: ChunkSizes,
        own_bytes: usize,
        stop: &'h dyn Fn() -> bool,
        sockets: R,
    ) -> Result<DirectReader<'h, R>, SysError> {
        let shared = Arc::new(SharedState {
            sockets: Mutex::new(sockets),
            busy_since: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            has_spares: AtomicBool::new(false),
            alarm: Alarm::new()?,
        });
        let (output, relieved) = chunk_queue(sizes);
        let relief = ReliefThread { shared: Arc::clone(&shared), output, chunk: Chunk::without_memory() };
        let thread = Builder::new().name(name.into()).spawn(move || relief.run());
        let thread = thread.map_err(|error| {
            SysError::new("clone", "the reader of events", Errno(error.raw_os_error().unwrap_or(0)))
        })?;
        Ok(DirectReader {
            shared,
            relieved,
            own: Chunk::new(ChunkSizes { bytes: own_bytes, ..sizes }),
            is_worn: false,
            chunk: None,
            idle: Vec::new(),
            stop,
            is_ending: false,
            is_ended: false,
            was_emptied: false,
            hangups: 0,
            thread: Some(thread),
        })
    }

    fn receive_step(&mut self) -> Result<StepResult, SysError> {
        let shared = Arc::clone(&self.shared);
        let mut sockets = match shared.sockets.try_lock() {
            Ok(sockets) => sockets,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.relieved_step(),
        };
        // Datagrams that the other thread received are older than those waiting now.
        if let Ok(chunk) = self.relieved.filled.try_recv() {
            self.was_emptied = false;
            return Ok(StepResult::Relieved(chunk?));
        }
        shared.is_wanted.store(false, Relaxed);
        self.own.clear();
        if self.is_ending {
            // Datagrams that arrive from now on may be meant for a successor process: the other thread must not
            // receive them.
            shared.is_over.store(true, SeqCst);
            self.is_ended = sockets.end(&mut self.own)?;
        } else {
            self.receive(&shared, &mut sockets)?;
        }
        if self.own.is_empty() {
            return Ok(if self.is_ended { StepResult::Ended } else { StepResult::Nothing });
        }
        self.is_worn |= self.own.next_frame() >= WORN_BYTES;
        self.own.set_header(&sockets.header()?);
        drop(sockets);
        shared.begin_work();
        Ok(StepResult::Own)
    }

    /// Receives into `own`, after a wait if no datagrams are waiting.
    fn receive(&mut self, shared: &SharedState<R>, sockets: &mut R) -> Result<(), SysError> {
        if !self.was_emptied {
            self.was_emptied = sockets.receive(&mut self.own)?;
        }
        if self.was_emptied && self.own.is_empty() {
            shared.end_work();
            if !sockets.wait(WAIT_MS as i32)? {
                if std::mem::take(&mut self.is_worn) {
                    self.own.release();
                }
                // New sockets are adopted at the next receive; the caller may learn about them before that.
                self.was_emptied = false;
                return Ok(());
            }
            self.was_emptied = sockets.receive(&mut self.own)?;
        }
        Ok(())
    }

    /// One step while the second thread receives.
    fn relieved_step(&mut self) -> Result<StepResult, SysError> {
        self.was_emptied = false;
        match self.relieved.filled.try_recv() {
            Ok(chunk) => return Ok(StepResult::Relieved(chunk?)),
            Err(_) => self.shared.is_wanted.store(true, Relaxed),
        }
        match self.relieved.filled.recv_timeout(Duration::from_millis(STOP_CHECK_MS)) {
            Ok(chunk) => Ok(StepResult::Relieved(chunk?)),
            // The second thread may also have ended: then it does not hold the lock either.
            Err(_) => Ok(StepResult::Nothing),
        }
    }
}

impl<R: ReceiveSockets + 'static> Blocks for DirectReader<'_, R> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if let Some(chunk) = self.chunk.take() {
            self.relieved.return_chunk(chunk);
        }
        while !self.is_ended {
            self.is_ending = self.is_ending || (self.stop)();
            match self.receive_step()? {
                StepResult::Own => {
                    let batch = self.own.batch();
                    self.idle.clear();
                    self.idle.extend_from_slice(batch.get(..BATCH_HEADER).unwrap_or_default());
                    return Ok(Some(batch));
                }
                StepResult::Relieved(chunk) => return Ok(Some(self.chunk.insert(chunk).batch())),
                StepResult::Nothing => {}
                StepResult::Ended => return Ok(None),
            }
            // The row-making code handles hangups, and it waits for batches: an empty one is enough.
            let hangups = sys::signal::hangup_count();
            if !self.idle.is_empty() || hangups != self.hangups {
                self.hangups = hangups;
                self.idle.resize(BATCH_HEADER, 0);
                return Ok(Some(&self.idle));
            }
        }
        Ok(None)
    }
}

impl<R: ReceiveSockets + 'static> Drop for DirectReader<'_, R> {
    fn drop(&mut self) {
        self.shared.end();
        self.relieved.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The second thread.
struct ReliefThread<R> {
    shared: Arc<SharedState<R>>,
    output: ChunkSender,
    /// The batch being filled.
    chunk: Chunk,
}

impl<R: ReceiveSockets> ReliefThread<R> {
    fn run(mut self) {
        loop {
            self.shared.alarm.wait();
            if self.shared.is_over.load(SeqCst) {
                return;
            }
            if self.shared.is_late() {
                if let Err(error) = self.receive_in_relief() {
                    return self.output.fail(error);
                }
            } else if self.shared.busy_since.load(SeqCst) == 0 && self.shared.has_spares.swap(false, Relaxed) {
                self.chunk = Chunk::without_memory();
                self.output.free_spares();
                sys::memory::trim();
            }
            // A first thread that is busy without a pause does not set it again. At the end the setting stays
            // unchanged.
            if self.shared.busy_since.load(SeqCst) != 0 && !self.shared.is_over.load(SeqCst) {
                self.shared.alarm.set(BUSY_MAX);
            }
        }
    }

    /// Receives until the first thread wants to receive again.
    fn receive_in_relief(&mut self) -> Result<(), SysError> {
        let shared = Arc::clone(&self.shared);
        let mut sockets = shared.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if !shared.is_late() || shared.is_over.load(SeqCst) {
            return Ok(());
        }
        shared.is_wanted.store(false, Relaxed);
        shared.has_spares.store(true, Relaxed);
        self.output.fill_in(&mut self.chunk);
        loop {
            let is_all = sockets.receive(&mut self.chunk)?;
            let is_last = shared.is_wanted.load(Relaxed) || shared.is_over.load(SeqCst);
            // The last batch is sent even if it is empty, because the first thread waits for it.
            if (is_last || !self.chunk.is_empty()) && !self.output.send(&mut self.chunk, &sockets.header()?) {
                return Ok(());
            }
            if is_last {
                return Ok(());
            }
            if is_all {
                sockets.wait(TURN_MS)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::datagrams::{DatagramFrames, FRAME};
    use std::sync::atomic::AtomicU32;
    use std::thread::{ThreadId, current, park_timeout};
    use std::time::Instant;

    const SIZES: ChunkSizes =
        ChunkSizes { bytes: BATCH_HEADER + 4 * (FRAME + 8), datagram_bytes_max: 8, chunks_max: 64 };

    /// Numbers as datagrams, with the thread that received each.
    struct Numbered {
        next: u32,
        /// Numbers below this can be received.
        end: Arc<AtomicU32>,
        received_by: Arc<Mutex<Vec<ThreadId>>>,
    }

    impl ReceiveSockets for Numbered {
        fn wait(&mut self, ms: i32) -> Result<bool, SysError> {
            if self.next == self.end.load(Relaxed) {
                park_timeout(Duration::from_millis(ms.min(5) as u64));
            }
            Ok(self.next < self.end.load(Relaxed))
        }

        fn receive(&mut self, chunk: &mut Chunk) -> Result<bool, SysError> {
            while self.next < self.end.load(Relaxed) {
                if chunk.is_full() {
                    return Ok(false);
                }
                chunk.messages_of_next_frame()[..4].copy_from_slice(&self.next.to_ne_bytes());
                chunk.push_frame(1, 2, None, 4);
                self.received_by.lock().unwrap().push(current().id());
                self.next += 1;
            }
            Ok(true)
        }

        fn end(&mut self, chunk: &mut Chunk) -> Result<bool, SysError> {
            self.receive(chunk)
        }

        fn header(&mut self) -> Result<BatchHeader, SysError> {
            Ok(BatchHeader::default())
        }
    }

    fn numbers(block: &[u8]) -> Vec<u32> {
        DatagramFrames::new(block).map(|frame| u32::from_ne_bytes(frame.unwrap().bytes.try_into().unwrap())).collect()
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(30), "it does not come to pass");
            park_timeout(Duration::from_millis(2));
        }
    }

    /// The second thread receives while the first is delayed, and the first again afterwards; each datagram arrives
    /// once, in order.
    #[test]
    fn who_is_held_up_is_relieved() {
        let (end, received_by) = (Arc::new(AtomicU32::new(3)), Arc::new(Mutex::new(Vec::new())));
        let sockets = Numbered { next: 0, end: Arc::clone(&end), received_by: Arc::clone(&received_by) };
        let is_over = AtomicBool::new(false);
        let stop = || is_over.load(Relaxed);
        let mut reader = DirectReader::start("test-relief", SIZES, SIZES.bytes, &stop, sockets).unwrap();
        let mut seen = numbers(reader.next().unwrap().unwrap());
        assert_eq!(seen, [0, 1, 2]);
        for round in 1..=3 {
            // This thread is delayed here until the other thread has received everything.
            end.store(round * 1000 - 100, Relaxed);
            let all = || received_by.lock().unwrap().len() as u32 == round * 1000 - 100;
            wait_until(|| all() || received_by.lock().unwrap().len() >= 256 + seen.len());
            while seen.len() < round as usize * 1000 - 100 {
                seen.extend(numbers(reader.next().unwrap().unwrap()));
            }
            let own = || *received_by.lock().unwrap().last().unwrap() == current().id();
            // After the first thread has waited for more, it receives for itself.
            let mut more = seen.len() as u32;
            while !own() {
                more += 1;
                assert!(more < round * 1000, "the first thread does not receive again");
                end.store(more, Relaxed);
                while (seen.len() as u32) < more {
                    seen.extend(numbers(reader.next().unwrap().unwrap()));
                }
            }
        }
        end.fetch_add(10, Relaxed);
        is_over.store(true, Relaxed);
        while let Some(block) = reader.next().unwrap() {
            seen.extend(numbers(block));
        }
        let total = end.load(Relaxed);
        assert_eq!(seen, (0..total).collect::<Vec<_>>());
        let others = received_by.lock().unwrap().iter().filter(|id| **id != current().id()).count();
        assert!(others > 0, "nobody relieved the first thread");
    }

    /// Dropping a reader while the second thread waits for space ends that thread.
    #[test]
    fn a_relief_ends_with_its_reader() {
        let (end, received_by) = (Arc::new(AtomicU32::new(1_000_000)), Arc::new(Mutex::new(Vec::new())));
        let sockets = Numbered { next: 0, end, received_by: Arc::clone(&received_by) };
        let mut reader = DirectReader::start("test-relief", SIZES, SIZES.bytes, &|| false, sockets).unwrap();
        assert!(reader.next().unwrap().is_some());
        wait_until(|| received_by.lock().unwrap().len() >= 4 * SIZES.chunks_max);
        drop(reader);
    }
}
