//! The position of a spool: how far messages were delivered, and the counts, in a small file.
//!
//! Two slots are overwritten in turn: a torn one leaves the other intact, and both still fit on a full disk. Renaming
//! a new file would need free space and a change of the directory each second.

use super::frame::put;
use super::segment::ReadAt;
use crate::{Drops, Ledger};
use crc32fast::Hasher;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The file's name.
pub(super) const NAME: &str = "position";
/// Bytes of a slot.
const SLOT: usize = 2048;
/// Offsets of the slots; the second is in another page.
const SLOTS: [u64; 2] = [0, 4096];
const MAGIC: [u8; 8] = *b"nwsppos\n";
const VERSION: u16 = 1;
/// Most bytes of the target's text that are stored.
const TARGET: usize = 1024;
/// Magic 8, sum 4, version 2, bytes of the target 2, then numbers of 8 bytes, then the target.
const NUMBERS_AT: usize = 16;
const NUMBERS: usize = 18;
const TARGET_AT: usize = NUMBERS_AT + 8 * NUMBERS;
/// After the target, with its own checksum, because older versions ignore these bytes: records held 8, sum 4.
const HELD_COUNTS_BYTES: usize = 12;
/// Most bytes of the transport's note. It follows, with its own checksum: length 2, the note, sum 4.
const NOTE_BYTES_MAX: usize = 256;

/// The state of a spool that is stored in addition to its messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// Increases with each write.
    pub(super) sequence: u64,
    /// Messages with lower numbers were delivered.
    pub(super) released: u64,
    /// Number of the next message.
    pub(super) end: u64,
    /// Messages in between that were not dropped.
    pub(super) waiting: u64,
    /// The counts.
    pub(super) ledger: Ledger,
    /// The spool's clock, in nanoseconds.
    pub(super) clock: u64,
    /// The time since 1970, in nanoseconds.
    pub(super) wall: u64,
    /// The time since the machine booted, in nanoseconds.
    pub(super) uptime: u64,
    /// A hash of the kernel's boot id at that time.
    pub(super) boot: u64,
    /// True if a run ended in order with this position.
    pub(super) is_clean: bool,
    /// The receiver of the messages.
    pub(super) target: String,
    /// The transport's note, with which it sends the same messages together again; empty if it has none.
    pub(super) note: Vec<u8>,
}

/// The file of the position.
#[derive(Debug)]
pub(super) struct PositionFile {
    pub(super) file: File,
    /// The position last written to it, and when.
    pub(super) saved: Position,
    pub(super) saved_at: u64,
    boot: u64,
    /// True if the position has a note that was not written yet.
    has_new_note: bool,
}

impl PositionFile {
    /// `boot` is a hash of the kernel's boot id.
    pub(super) fn new(file: File, saved: Position, boot: u64) -> PositionFile {
        PositionFile { file, saved, saved_at: 0, boot, has_new_note: false }
    }

    /// Sets the note to write with the position.
    pub(super) fn set_note(&mut self, mut note: Vec<u8>) {
        note.truncate(NOTE_BYTES_MAX);
        self.has_new_note |= note != self.saved.note;
        self.saved.note = note;
    }

    /// Writes the position if it has changed.
    pub(super) fn save(
        &mut self,
        [released, end, waiting]: [u64; 3],
        ledger: Ledger,
        is_clean: bool,
        clock: u64,
    ) -> io::Result<()> {
        let saved = &mut self.saved;
        let is_same = (saved.released, saved.end, saved.waiting, saved.is_clean) == (released, end, waiting, is_clean);
        if is_same && saved.ledger == ledger && self.saved_at > 0 && !self.has_new_note {
            return Ok(());
        }
        saved.sequence += 1;
        (saved.released, saved.end, saved.waiting) = (released, end, waiting);
        (saved.ledger, saved.is_clean, saved.boot) = (ledger, is_clean, self.boot);
        (saved.clock, saved.wall, saved.uptime) = (clock, sys::clock::wall_ns(), sys::clock::boottime_ns());
        saved.write(&self.file)?;
        self.has_new_note = false;
        Ok(())
    }
}

impl Position {
    fn numbers(&self) -> [u64; NUMBERS] {
        let counts = self.ledger;
        let dropped = counts.dropped;
        [
            self.sequence,
            self.released,
            self.end,
            self.waiting,
            counts.seen,
            counts.delivered,
            counts.folded,
            counts.limited,
            dropped.full,
            dropped.age,
            dropped.lost,
            dropped.end,
            dropped.refused,
            counts.resent,
            self.clock,
            self.wall,
            self.uptime,
            self.boot << 1 | u64::from(self.is_clean),
        ]
    }

    fn encode(&self) -> Vec<u8> {
        let cut = (0..=TARGET.min(self.target.len())).rev().find(|at| self.target.is_char_boundary(*at)).unwrap_or(0);
        let target = self.target.as_bytes().get(..cut).unwrap_or_default();
        let mut bytes = vec![0; TARGET_AT];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 12, &VERSION.to_le_bytes());
        put(&mut bytes, 14, &(target.len() as u16).to_le_bytes());
        for (index, number) in self.numbers().into_iter().enumerate() {
            put(&mut bytes, NUMBERS_AT + 8 * index, &number.to_le_bytes());
        }
        bytes.extend_from_slice(target);
        let sum = crc32fast::hash(bytes.get(12..).unwrap_or_default());
        put(&mut bytes, 8, &sum.to_le_bytes());
        let held = self.ledger.held.to_le_bytes();
        bytes.extend_from_slice(&held);
        bytes.extend_from_slice(&chained_sum(sum, &held).to_le_bytes());
        let note = self.note.get(..NOTE_BYTES_MAX).unwrap_or(&self.note);
        bytes.extend_from_slice(&(note.len() as u16).to_le_bytes());
        bytes.extend_from_slice(note);
        bytes.extend_from_slice(&chained_sum(sum, note).to_le_bytes());
        bytes
    }

    /// Parses a slot. The error is the version number of a slot that another version has written.
    fn parse(slot: &[u8]) -> Result<Option<Position>, u16> {
        if !slot.starts_with(&MAGIC) {
            return Ok(None);
        }
        let two = |at: usize| slot.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u16::from_le_bytes);
        let (version, target) = (two(12), usize::from(two(14)));
        if version != VERSION {
            return if version == 0 { Ok(None) } else { Err(version) };
        }
        let sum = slot.get(8..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u32::from_le_bytes);
        let Some(body) = slot.get(12..TARGET_AT + target).filter(|body| crc32fast::hash(body) == sum) else {
            return Ok(None);
        };
        let number = |index: usize| {
            let place = body.get(NUMBERS_AT - 12 + 8 * index..);
            place.and_then(|rest| rest.first_chunk().copied()).map_or(0, u64::from_le_bytes)
        };
        let dropped = Drops { full: number(8), age: number(9), lost: number(10), end: number(11), refused: number(12) };
        let later = slot.get(TARGET_AT + target..).unwrap_or_default();
        let held = later.first_chunk::<HELD_COUNTS_BYTES>().and_then(|held| {
            let (count, sum) = (held.first_chunk()?, held.last_chunk()?);
            let is_whole = chained_sum(crc32fast::hash(body), count) == u32::from_le_bytes(*sum);
            is_whole.then_some(u64::from_le_bytes(*count))
        });
        let note = later.get(HELD_COUNTS_BYTES..).and_then(|rest| {
            let (length, rest) = rest.split_first_chunk()?;
            let (note, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            let is_whole = chained_sum(crc32fast::hash(body), note) == u32::from_le_bytes(*rest.first_chunk()?);
            (is_whole && note.len() <= NOTE_BYTES_MAX).then(|| note.to_vec())
        });
        let ledger = Ledger {
            seen: number(4),
            delivered: number(5),
            folded: number(6),
            limited: number(7),
            dropped,
            resent: number(13),
            held: held.unwrap_or(0),
        };
        let target = String::from_utf8_lossy(body.get(TARGET_AT - 12..).unwrap_or_default()).into_owned();
        Ok(Some(Position {
            sequence: number(0),
            released: number(1),
            end: number(2),
            waiting: number(3),
            ledger,
            clock: number(14),
            wall: number(15),
            uptime: number(16),
            boot: number(17) >> 1,
            is_clean: number(17) & 1 == 1,
            target,
            note: note.unwrap_or_default(),
        }))
    }

    /// Reads the newer of the intact slots. The inner error is the version number of a slot that another version has
    /// written.
    pub(super) fn read(file: &(impl ReadAt + ?Sized)) -> io::Result<Result<Option<Position>, u16>> {
        let mut newest: Option<Position> = None;
        for at in SLOTS {
            let mut slot = [0; SLOT];
            let filled = file.read_at(&mut slot, at)?;
            match Position::parse(slot.get(..filled).unwrap_or_default()) {
                Err(version) => return Ok(Err(version)),
                Ok(Some(found)) if newest.as_ref().is_none_or(|newest| newest.sequence < found.sequence) => {
                    newest = Some(found);
                }
                Ok(_) => {}
            }
        }
        Ok(Ok(newest))
    }

    /// Writes the position into the slot whose turn it is, with one system call.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let at = SLOTS.get((self.sequence % 2) as usize).copied().unwrap_or(0);
        file.write_all_at(&self.encode(), at)
    }
}

/// Checksum of what follows the slot. It includes `sum`, the slot's checksum, so bytes left by an earlier write do not
/// match.
fn chained_sum(sum: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(sum);
    hasher.update(bytes);
    hasher.finalize()
}

/// Reserves disk space for both slots.
pub(super) fn reserve(file: &File) -> io::Result<()> {
    SLOTS.iter().try_for_each(|at| file.write_all_at(&[0; SLOT], *at))
}

/// Reads bytes as a position file; for the fuzzer.
pub fn fuzz_spool_position(data: &[u8]) {
    if let Ok(Ok(Some(position))) = Position::read(data) {
        assert_eq!(Position::parse(&position.encode()), Ok(Some(position)), "what is written is read");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn position(sequence: u64) -> Position {
        let dropped = Drops { full: 1, age: 2, lost: 3, end: 4, refused: 5 };
        let ledger = Ledger { seen: 6, delivered: 7, folded: 8, limited: 9, dropped, resent: 10, held: 17 };
        let (released, end, waiting) = (11, 12, 1);
        Position {
            sequence,
            released,
            end,
            waiting,
            ledger,
            clock: 13,
            wall: 14,
            uptime: 15,
            boot: 16,
            is_clean: true,
            target: "json:/ä".repeat(200),
            note: vec![7; 300],
        }
    }

    #[test]
    fn a_torn_slot_leaves_the_other() {
        let file = tempfile::tempfile().unwrap();
        reserve(&file).unwrap();
        assert_eq!(Position::read(&file).unwrap(), Ok(None));
        position(1).write(&file).unwrap();
        position(2).write(&file).unwrap();
        let found = Position::read(&file).unwrap().unwrap().unwrap();
        assert_eq!((found.sequence, found.ledger, found.boot, found.is_clean), (2, position(2).ledger, 16, true));
        assert_eq!(found.note, [7; NOTE_BYTES_MAX]);
        let mut older = position(3).encode();
        older.truncate(older.len() - HELD_COUNTS_BYTES - NOTE_BYTES_MAX - 6);
        let older = Position::parse(&older).unwrap().unwrap();
        assert_eq!((older.sequence, older.ledger.held, older.note), (3, 0, Vec::new()), "of an earlier version");
        assert!(found.target.len() <= TARGET && position(2).target.starts_with(&found.target));
        file.write_all_at(b"torn", 20).unwrap();
        assert_eq!(Position::read(&file).unwrap().unwrap().unwrap().sequence, 1);
        file.write_all_at(&9u16.to_le_bytes(), 12).unwrap();
        assert_eq!(Position::read(&file).unwrap(), Err(9));
    }
}
