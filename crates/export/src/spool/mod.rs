//! The spool: messages that wait on disk and survive the end of the program.
//!
//! Every batch is appended to a segment, a file of batches, with one system call. Memory holds the newest batches, so
//! a receiver that keeps up costs no reads. Delivered segments are removed or reused: at a high rate they never reach
//! the disk. A small file records what was delivered, with the counts of the spool's whole life. While the disk
//! rejects writes, up to 64 MiB wait in memory and are written later. Each output has its own directory, which one
//! process at a time uses. Start reading at [`Spool::open`]; docs/adr/0019.

mod cache;
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

use crate::{Batch, Drops, Ledger, PushOutcome, Store, WhenFull};
use cache::Cache;
use clock::{ClockReadings, SpoolClock};
use disk::Disk;
use gaps::Gaps;
use position::PositionFile;
use segment::ReadResult;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use syncer::Syncer;

/// Most bytes that wait in memory while the disk rejects writes.
///
/// Bound: bytes of messages that wait in memory while the disk is full. Beyond: messages of the class with the most are
/// dropped and counted (exit code 3). By: any sender of packets that a rule logs.
const OVERFLOW_BYTES: usize = 64 << 20;
/// How often the position is written and the files are synced.
const SAVE_EVERY_NS: u64 = 1_000_000_000;
/// Pause before the next attempt after the disk rejected a write.
const RETRY_NS: u64 = 500_000_000;

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

/// Why the disk rejected the last write.
#[derive(Debug)]
struct DiskFault {
    text: String,
    is_full: bool,
    retry_at: u64,
}

/// A store on disk.
#[derive(Debug)]
pub struct Spool {
    disk: Disk,
    options: SpoolOptions,
    cache: Cache,
    released: u64,
    end: u64,
    /// Messages with lower numbers are being delivered.
    held: u64,
    gaps: Gaps,
    drops: Drops,
    /// The counts of earlier runs.
    ledger: Ledger,
    clock: SpoolClock,
    position: PositionFile,
    fault: Option<DiskFault>,
}

impl Spool {
    /// Opens the spool for `target` below the directory `dir`, which is made if necessary, and recovers messages of
    /// earlier runs. Reads the newest file completely, and of others only the heads of batches and the lengths of
    /// messages.
    pub fn open(dir: &Path, target: &str, options: SpoolOptions) -> Result<(Spool, RecoveredCounts), SpoolError> {
        let mut opened = recover::open(dir, target, &options)?;
        if options.sync == SyncWhen::EverySecond {
            let start = |error| SpoolError::io("cannot start a thread for", dir, error);
            opened.disk.syncer = Some(Syncer::start().map_err(start)?);
        }
        let position = opened.position;
        let mut spool = Spool {
            disk: opened.disk,
            options,
            cache: Cache::new(position.end),
            released: position.released,
            end: position.end,
            held: position.released,
            gaps: opened.gaps,
            drops: Drops::default(),
            ledger: position.ledger,
            clock: opened.clock,
            position: PositionFile::new(opened.file, position, ClockReadings::read_times().boot),
            fault: None,
        };
        let ledger = spool.ledger;
        // Mark the position as unclean: if this run is killed, the next one notices.
        if let Err(error) = spool.save(&ledger, false) {
            spool.note_fault("cannot write the position of the spool", &error, 0);
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

    fn note_fault(&mut self, what: &str, error: &io::Error, retry_at: u64) {
        let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        self.fault = Some(DiskFault { text: format!("{what}: {error}"), is_full, retry_at });
    }

    fn is_full(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.is_full)
    }

    /// Writes the batches that are only in memory, unless the disk has just rejected a write.
    fn write_out(&mut self, at_once: bool) {
        let may_write = |fault: &DiskFault| at_once || sys::clock::monotonic_ns() >= fault.retry_at;
        if self.cache.overflow_bytes == 0 || !self.fault.as_ref().is_none_or(may_write) {
            return;
        }
        self.fault = None;
        if let Err(error) = self.cache.write(&mut self.disk) {
            let retry_at = sys::clock::monotonic_ns() + RETRY_NS;
            return self.note_fault("cannot write to the spool, messages are queued in memory", &error, retry_at);
        }
        if self.options.sync == SyncWhen::Always {
            if let Err(error) = self.disk.sync_active() {
                self.note_fault("cannot sync the spool to the disk", &error, 0);
            }
        }
    }

    /// Returns the batch in memory with message `number`, or the first one after it.
    fn find_cached(&mut self, mut number: u64, expired_before: u64) -> Option<Arc<Batch>> {
        loop {
            let cached = self.cache.find(number)?;
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
        let numbers = [self.released, self.end, self.waiting_messages()];
        self.position.save(numbers, ledger, is_clean, self.clock.now())
    }

    /// Drops messages that are only in memory at the end; returns how many.
    fn drop_overflow(&mut self) -> u64 {
        let unwritten = self.cache.take_unwritten();
        let range = |batch: &Batch| (batch.first_number().max(self.released), batch.end());
        let ranges = unwritten.iter().map(|cached| range(&cached.batch));
        ranges.map(|(from, to)| self.gaps.add(from, to)).sum()
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
        self.cache.push(batch, self.clock.now());
        self.write_out(false);
        self.cache.shrink();
        PushOutcome::Kept { dropped }
    }

    fn get(&mut self, number: u64) -> io::Result<Option<Arc<Batch>>> {
        let expired_before = self.expired_before();
        let mut number = number;
        loop {
            let is_in_memory = self.cache.first_number().is_some_and(|first| first <= number);
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
        self.cache.release(self.released);
        self.gaps.remove_below(self.released);
        Ok(())
    }

    /// Frees the memory of messages that are on disk: a receiver rarely needs messages again.
    fn note_sent(&mut self, number: u64) {
        self.cache.release_written(number);
    }

    fn take_spare(&mut self) -> Option<Batch> {
        self.cache.spares.take()
    }

    fn free_spares(&mut self) -> bool {
        self.cache.spares.free_all()
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn begin(&self) -> u64 {
        let on_disk = self.disk.segments.iter().find(|segment| segment.end > self.released).map(|found| found.first);
        let first = on_disk.into_iter().chain(self.cache.first_number()).min();
        first.map_or(self.end, |first| first.max(self.released))
    }

    /// Counts the file that is being delivered in proportion to its remaining messages.
    fn bytes(&self) -> u64 {
        let left = |segment: &segment::Segment| {
            let messages = (segment.end - segment.first).max(1);
            let left = segment.end.saturating_sub(self.released.max(segment.first));
            (u128::from(segment.len) * u128::from(left) / u128::from(messages)) as u64
        };
        self.disk.segments.iter().map(left).sum::<u64>() + self.cache.overflow_bytes as u64
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
            self.position.file.sync_data()?;
            self.disk.place.folder.sync()?;
        }
        match lost {
            0 => Ok(()),
            _ => Err(io::Error::other(self.fault_text().unwrap_or_default())),
        }
    }

    fn keep_note(&mut self, note: Vec<u8>, ledger: &Ledger) {
        self.position.set_note(note);
        let mut written = self.save(ledger, false);
        if self.options.sync == SyncWhen::Always {
            written = written.and_then(|()| self.position.file.sync_data());
        }
        if let Err(error) = written {
            self.note_fault("cannot write the position of the spool", &error, 0);
        }
    }

    fn note(&self) -> Option<&[u8]> {
        Some(&*self.position.saved.note).filter(|note| !note.is_empty())
    }

    fn checkpoint(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.write_out(false);
        let now = sys::clock::monotonic_ns();
        let is_due = now >= self.position.saved_at + SAVE_EVERY_NS;
        let has_delivered = self.has_delivered_segment();
        // Messages that were never stored leave no trace except their count, which must survive a kill.
        let saved = &self.position.saved.ledger;
        let has_dropped = ledger.dropped.total() + self.drops.total() > saved.dropped.total();
        let unsent = |ledger: &Ledger| (ledger.folded, ledger.limited, ledger.held);
        if !is_due && !has_delivered && !has_dropped && unsent(ledger) == unsent(saved) {
            return Ok(());
        }
        if is_due {
            self.expire();
            if self.released < self.end {
                self.disk.sync_soon();
            }
            self.position.saved_at = now;
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
        let text = self.fault.as_ref().map(|fault| fault.text.clone());
        text.or_else(|| self.disk.syncer.as_ref().and_then(Syncer::fault_text))
    }
}
