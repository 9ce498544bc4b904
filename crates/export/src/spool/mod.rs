//! The spool: messages that wait on disk and survive the end of the program.
//!
//! Every batch is appended to a segment, a file of batches, with one system call. Memory holds the newest batches, so
//! a receiver that keeps up costs no reads. Delivered segments are removed or reused: at a high rate they never reach
//! the disk. A small file records what was delivered, with the counts of the spool's whole life. While the disk
//! rejects writes, up to 64 MiB wait in memory and are written later. Each output has its own directory, which one
//! process at a time uses. Start reading at [`Spool::open`]; docs/adr/0019.

mod clock;
mod disk;
mod error;
mod frame;
mod gaps;
mod place;
mod position;
mod recover;
mod reuse;
mod rewrite;
mod room;
mod segment;
mod syncer;

pub use error::SpoolError;
pub use place::{OtherSpool, check_root as check_spool};
pub use position::fuzz_spool_position;
pub use segment::fuzz_spool_segment;

use crate::spares::SpareBatches;
use crate::{Batch, Drops, Ledger, PushOutcome, Store, WhenFull};
use clock::{ClockReadings, SpoolClock};
use disk::Disk;
use gaps::Gaps;
use position::Position;
use segment::ReadResult;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use syncer::Syncer;

/// Bytes of the newest messages that are also kept in memory.
const CACHE_BYTES: usize = 4 << 20;
/// Most bytes that wait in memory while the disk rejects writes.
///
/// Bound: bytes of messages that wait in memory while the disk is full. Beyond: messages of the class with the most are
/// dropped and counted (exit code 3). By: any sender of packets that a rule logs.
const OVERFLOW_BYTES: usize = 64 << 20;
/// How often the position is written and the files are synced.
const SAVE_EVERY_NS: u64 = 1_000_000_000;
/// Pause before the next attempt after the disk rejected a write.
const RETRY_NS: u64 = 500_000_000;
/// Bytes of memory per batch in addition to its messages and their ends.
const BATCH_OVERHEAD: usize = 128;

/// When written messages are synced to the disk: until then a power failure may lose them. The end of the program,
/// even by kill -9, loses nothing in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncWhen {
    /// When the kernel writes them, after about half a minute.
    Never,
    /// Every second, in a separate thread; not if everything is delivered.
    #[default]
    EverySecond,
    /// Before a batch counts as stored. The thread that hands messages over waits for the disk.
    Always,
}

/// The options of a spool.
#[derive(Debug, Clone, Copy)]
pub struct SpoolOptions {
    /// Most bytes on disk and waiting to be written.
    pub bytes_max: u64,
    /// Messages that wait longer are dropped.
    pub age_max: Option<Duration>,
    /// A segment of at least this many bytes is followed by a new one.
    pub segment_bytes: u64,
    /// When written messages are synced to the disk.
    pub sync: SyncWhen,
}

impl SpoolOptions {
    /// At most `bytes_max` bytes, in segments of a sixteenth of that, but of 64 KiB to 16 MiB.
    pub fn new(bytes_max: u64) -> SpoolOptions {
        let segment_bytes = (bytes_max / 16).clamp(64 << 10, 16 << 20);
        SpoolOptions { bytes_max, age_max: None, segment_bytes, sync: SyncWhen::default() }
    }
}

/// What a spool contained when it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveredCounts {
    /// Messages of earlier runs that wait.
    pub waiting: u64,
    /// Messages known to be lost, except those of a torn end that were never counted.
    pub lost: u64,
    /// Files with a torn end.
    pub torn_files: u64,
    /// Bytes of the torn ends.
    pub torn_bytes: u64,
    /// True if the last run did not end in order: messages that it delivered in its last second may be delivered
    /// again.
    pub was_killed: bool,
}

impl fmt::Display for RecoveredCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages are queued from an earlier run", self.waiting)?;
        if self.was_killed {
            write!(f, "; the last run was killed: rows from its last second may be delivered twice")?;
        }
        if self.torn_files > 0 {
            write!(f, "; the ends of {} files ({} bytes) were incomplete", self.torn_files, self.torn_bytes)?;
        }
        if self.lost > 0 {
            write!(f, "; {} messages are lost", self.lost)?;
        }
        Ok(())
    }
}

/// A batch in memory.
#[derive(Debug)]
struct CachedBatch {
    stamp: u64,
    batch: Arc<Batch>,
}

impl CachedBatch {
    fn cost(&self) -> usize {
        self.batch.bytes().len() + size_of_val(self.batch.message_ends()) + BATCH_OVERHEAD
    }
}

/// A store on disk.
#[derive(Debug)]
pub struct Spool {
    disk: Disk,
    options: SpoolOptions,
    /// The newest batches, in order, without gaps except for dropped ones.
    memory: VecDeque<CachedBatch>,
    memory_bytes: usize,
    /// Bytes in memory that are not on disk: the batches from message `written` on.
    overflow_bytes: usize,
    written: u64,
    released: u64,
    end: u64,
    /// Messages with lower numbers are being delivered.
    held: u64,
    gaps: Gaps,
    drops: Drops,
    /// The counts of earlier runs.
    ledger: Ledger,
    clock: SpoolClock,
    file: File,
    /// The position last written to `file`, and when.
    saved: Position,
    saved_at: u64,
    boot: u64,
    trouble: Option<String>,
    is_full: bool,
    retry_at: u64,
    syncer: Option<Syncer>,
    spares: SpareBatches,
}

impl Spool {
    /// Opens the spool for `target` below the directory `dir`, which is made if necessary, and recovers messages of
    /// earlier runs. Reads the newest file completely, and of others only the heads of batches and the lengths of
    /// messages.
    pub fn open(dir: &Path, target: &str, options: SpoolOptions) -> Result<(Spool, RecoveredCounts), SpoolError> {
        let opened = recover::open(dir, target, &options)?;
        let start = |error| SpoolError::io("cannot start a thread for", dir, error);
        let syncer = match options.sync {
            SyncWhen::EverySecond => Some(Syncer::start().map_err(start)?),
            _ => None,
        };
        let position = opened.position;
        let mut spool = Spool {
            disk: opened.disk,
            options,
            memory: VecDeque::new(),
            memory_bytes: 0,
            overflow_bytes: 0,
            written: position.end,
            released: position.released,
            end: position.end,
            held: position.released,
            gaps: opened.gaps,
            drops: Drops::default(),
            ledger: position.ledger,
            clock: opened.clock,
            file: opened.file,
            saved: position,
            saved_at: 0,
            boot: ClockReadings::read_times().boot,
            trouble: None,
            is_full: false,
            retry_at: 0,
            syncer,
            spares: SpareBatches::default(),
        };
        let ledger = spool.ledger;
        // Mark the position as unclean: if this run is killed, the next one notices.
        if let Err(error) = spool.save(&ledger, false) {
            spool.trouble = Some(format!("cannot write the position of the spool: {error}"));
        }
        Ok((spool, opened.recovered))
    }

    /// Returns the spools below `dir` in which messages wait for targets that are not among `used`.
    pub fn find_other_spools(dir: &Path, used: &[String]) -> Result<Vec<OtherSpool>, SpoolError> {
        place::find_other_spools(dir, used)
    }

    fn waiting_messages(&self) -> u64 {
        self.end - self.released - self.gaps.count_within(self.released, self.end)
    }

    fn expired_before(&self) -> u64 {
        let age = self.options.age_max.map_or(u64::MAX, |age| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        self.clock.now().saturating_sub(age)
    }

    /// Writes the batches that are only in memory, unless the disk has just rejected a write.
    fn write_out(&mut self, at_once: bool) {
        if self.overflow_bytes == 0 {
            return;
        }
        if self.trouble.is_some() && !at_once && sys::clock::monotonic_ns() < self.retry_at {
            return;
        }
        let mut index = self.memory.partition_point(|cached| cached.batch.first_number() < self.written);
        while let Some(cached) = self.memory.get(index) {
            if let Err(error) = self.disk.append(&cached.batch, cached.stamp) {
                self.is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                self.trouble = Some(format!("cannot write to the spool, messages are queued in memory: {error}"));
                self.retry_at = sys::clock::monotonic_ns() + RETRY_NS;
                return;
            }
            self.written = cached.batch.end();
            self.overflow_bytes -= cached.cost();
            index += 1;
        }
        let synced = if self.options.sync == SyncWhen::Always { self.disk.sync_active() } else { Ok(()) };
        self.trouble = synced.err().map(|error| format!("cannot sync the spool to the disk: {error}"));
    }

    /// Forgets the oldest batch in memory.
    fn drop_oldest_cached(&mut self) {
        if let Some(oldest) = self.memory.pop_front() {
            self.memory_bytes -= oldest.cost();
            self.spares.put(oldest.batch);
        }
    }

    /// Forgets the oldest batches in memory that are on disk.
    fn shrink_cache(&mut self) {
        while self.memory_bytes > CACHE_BYTES
            && self.memory.front().is_some_and(|oldest| oldest.batch.end() <= self.written)
        {
            self.drop_oldest_cached();
        }
    }

    /// Returns the batch in memory with message `number`, or the first one after it.
    fn find_cached(&mut self, mut number: u64, expired_before: u64) -> Option<Arc<Batch>> {
        loop {
            let at = self.memory.partition_point(|cached| cached.batch.end() <= number);
            let cached = self.memory.get(at)?;
            if cached.stamp >= expired_before {
                return Some(Arc::clone(&cached.batch));
            }
            let (from, to) = (cached.batch.first_number().max(number), cached.batch.end());
            self.drops.age += self.gaps.add(from, to);
            number = to;
        }
    }

    /// Drops segments in which every message is too old.
    fn expire(&mut self) {
        if self.options.age_max.is_none() {
            return;
        }
        let before = self.expired_before();
        while let Some(dropped) = self.drop_segment(before) {
            self.drops.age += dropped;
        }
    }

    fn has_delivered_segment(&self) -> bool {
        let Some(oldest) = self.disk.segments.front().filter(|oldest| oldest.end <= self.released) else {
            return false;
        };
        self.disk.segments.len() > 1 || oldest.len >= self.disk.segment_bytes_max()
    }

    /// Writes the position with the counts, and adds the drops that the output has not fetched yet.
    fn save(&mut self, ledger: &Ledger, is_clean: bool) -> io::Result<()> {
        let mut ledger = *ledger;
        ledger.dropped.add(&self.drops);
        let (released, end, waiting) = (self.released, self.end, self.waiting_messages());
        let old = &self.saved;
        let is_same = (old.released, old.end, old.waiting, old.is_clean) == (released, end, waiting, is_clean);
        if is_same && old.ledger == ledger && self.saved_at > 0 {
            return Ok(());
        }
        let now = (self.clock.now(), sys::clock::wall_ns(), sys::clock::boottime_ns());
        let saved = &mut self.saved;
        saved.sequence += 1;
        (saved.released, saved.end, saved.waiting) = (released, end, waiting);
        (saved.ledger, saved.is_clean, saved.boot) = (ledger, is_clean, self.boot);
        (saved.clock, saved.wall, saved.uptime) = now;
        saved.write(&self.file)
    }

    /// Passes the written files to the thread that syncs them.
    fn sync_soon(&mut self) {
        let waits = self.released < self.end;
        if let Some(syncer) = self.syncer.as_ref().filter(|syncer| waits && syncer.is_idle()) {
            syncer.sync(self.disk.take_unsynced());
        }
    }

    /// Drops messages that are only in memory at the end; returns how many.
    fn drop_overflow(&mut self) -> u64 {
        let mut lost = 0;
        let from = self.memory.partition_point(|cached| cached.batch.first_number() < self.written);
        for cached in self.memory.drain(from..) {
            self.memory_bytes -= cached.cost();
            lost += self.gaps.add(cached.batch.first_number().max(self.released), cached.batch.end());
        }
        self.overflow_bytes = 0;
        lost
    }
}

impl Store for Spool {
    fn push(&mut self, mut batch: Batch, when_full: WhenFull, held: u64) -> PushOutcome {
        self.held = held;
        batch.shrink();
        let (mut dropped, mut is_stripped) = (0, false);
        while !self.has_room(batch.bytes().len() + 2 * batch.message_ends().len() + frame::HEAD_BYTES) {
            let gone = match when_full {
                WhenFull::Block => None,
                WhenFull::DropOldest => self.make_room(false),
                WhenFull::DropNewest if is_stripped => self.make_room(true),
                WhenFull::DropNewest => {
                    is_stripped = true;
                    Some(self.strip(&mut batch))
                }
            };
            let Some(gone) = gone else { return PushOutcome::Full { batch, dropped } };
            dropped += gone;
            if batch.is_empty() {
                return PushOutcome::Kept { dropped };
            }
        }
        batch.number_from(self.end);
        self.end = batch.end();
        let cached = CachedBatch { stamp: self.clock.now(), batch: Arc::new(batch) };
        self.memory_bytes += cached.cost();
        self.overflow_bytes += cached.cost();
        self.memory.push_back(cached);
        self.write_out(false);
        self.shrink_cache();
        PushOutcome::Kept { dropped }
    }

    fn get(&mut self, number: u64) -> io::Result<Option<Arc<Batch>>> {
        let expired_before = self.expired_before();
        let mut number = number;
        loop {
            let is_in_memory = self.memory.front().is_some_and(|oldest| oldest.batch.first_number() <= number);
            let read = if is_in_memory { None } else { self.disk.read(number, expired_before)? };
            let batch = match read {
                None => self.find_cached(number, expired_before),
                Some((_, ReadResult::Batch { batch, .. })) => Some(Arc::new(batch)),
                Some((from, ReadResult::Expired { end, .. })) => {
                    self.drops.age += self.gaps.add(from, end);
                    number = end;
                    continue;
                }
                Some((from, ReadResult::Damaged { end })) => {
                    self.drops.lost += self.gaps.add(from, end);
                    number = end;
                    continue;
                }
            };
            if let Some(batch) = &batch {
                self.held = self.held.max(batch.end());
            }
            return Ok(batch);
        }
    }

    fn release(&mut self, number: u64) -> io::Result<()> {
        self.released = self.released.max(number.min(self.end));
        while let Some(oldest) = self.memory.front().filter(|oldest| oldest.batch.end() <= self.released) {
            if oldest.batch.first_number() >= self.written {
                self.overflow_bytes -= oldest.cost();
                self.written = oldest.batch.end();
            }
            self.drop_oldest_cached();
        }
        self.gaps.remove_below(self.released);
        Ok(())
    }

    /// Frees the memory of messages that are on disk. That memory is still in the processor's cache when the next
    /// batch reuses it, and a receiver rarely needs messages again.
    fn release_below(&mut self, number: u64) {
        let until = number.min(self.written);
        while self.memory.front().is_some_and(|oldest| oldest.batch.end() <= until) {
            self.drop_oldest_cached();
        }
    }

    fn take_spare(&mut self) -> Option<Batch> {
        self.spares.take()
    }

    fn free_spares(&mut self) -> bool {
        self.spares.free_all()
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn begin(&self) -> u64 {
        let on_disk = self.disk.segments.iter().find(|segment| segment.end > self.released).map(|found| found.first);
        let in_memory = self.memory.front().map(|oldest| oldest.batch.first_number());
        let first = on_disk.into_iter().chain(in_memory).min();
        first.map_or(self.end, |first| first.max(self.released))
    }

    /// Counts the file that is being delivered in proportion to its remaining messages.
    fn bytes(&self) -> u64 {
        let left = |segment: &segment::Segment| {
            let messages = (segment.end - segment.first).max(1);
            let left = segment.end.saturating_sub(self.released.max(segment.first));
            (u128::from(segment.len) * u128::from(left) / u128::from(messages)) as u64
        };
        self.disk.segments.iter().map(left).sum::<u64>() + self.overflow_bytes as u64
    }

    fn delivered_bytes_max(&self) -> u64 {
        self.options.bytes_max / 4
    }

    fn is_persistent(&self) -> bool {
        true
    }

    fn ledger(&self) -> Ledger {
        self.ledger
    }

    fn sync(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.write_out(true);
        let lost = self.drop_overflow();
        self.drops.end += lost;
        let saved = self.save(ledger, true);
        while self.disk.segments.front().is_some_and(|oldest| oldest.end <= self.released) && saved.is_ok() {
            self.disk.remove(0);
        }
        self.disk.remove_delivered();
        let files = self.disk.take_unsynced();
        self.disk.seal();
        saved?;
        if self.options.sync != SyncWhen::Never {
            files.iter().try_for_each(|file| file.sync_all())?;
            self.file.sync_data()?;
            self.disk.place.folder.sync()?;
        }
        match lost {
            0 => Ok(()),
            _ => Err(io::Error::other(self.fault_text().unwrap_or_default())),
        }
    }

    fn checkpoint(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.write_out(false);
        let now = sys::clock::monotonic_ns();
        let is_due = now >= self.saved_at + SAVE_EVERY_NS;
        let has_delivered = self.has_delivered_segment();
        // Messages that were never stored leave no trace except their count, which must survive a kill.
        let saved = &self.saved.ledger;
        let has_dropped = ledger.dropped.total() + self.drops.total() > saved.dropped.total();
        let unsent = |ledger: &Ledger| (ledger.folded, ledger.limited, ledger.held);
        if !is_due && !has_delivered && !has_dropped && unsent(ledger) == unsent(saved) {
            return Ok(());
        }
        if is_due {
            self.expire();
            self.sync_soon();
            self.saved_at = now;
        }
        // Write the position before removing files: a segment that is missing and was not delivered then counts as
        // dropped.
        self.save(ledger, false)?;
        while self.has_delivered_segment() {
            self.disk.remove_oldest();
        }
        Ok(())
    }

    fn take_drops(&mut self) -> Drops {
        std::mem::take(&mut self.drops)
    }

    fn fault_text(&self) -> Option<String> {
        self.trouble.clone().or_else(|| self.syncer.as_ref().and_then(Syncer::fault_text))
    }
}
