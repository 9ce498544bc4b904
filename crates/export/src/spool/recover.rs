//! Opening a spool: finds, counts and repairs what an earlier run has left.

use super::clock::{ClockReadings, SpoolClock};
use super::disk::Disk;
use super::gaps::Gaps;
use super::place::SpoolDirectory;
use super::position::{self, Position};
use super::segment::{self, Header, Segment, SegmentOrigin};
use super::{RecoveredCounts, SpoolError, SpoolOptions};
use crate::Ledger;
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

/// A spool that was opened.
pub(super) struct OpenedSpool {
    pub(super) disk: Disk,
    pub(super) file: File,
    pub(super) position: Position,
    pub(super) gaps: Gaps,
    pub(super) clock: SpoolClock,
    pub(super) recovered: RecoveredCounts,
}

/// The segments that were found, and the losses in them.
#[derive(Default)]
struct FoundSegments {
    segments: VecDeque<Segment>,
    torn_files: u64,
    torn_bytes: u64,
    /// Messages in torn ends whose numbers are known, because a later segment follows.
    torn_messages: u64,
    /// Ranges of numbers within segments whose messages were dropped to make room.
    holes: Vec<(u64, u64)>,
    /// Messages with lower numbers are in the segments, or were dropped to make room.
    until: u64,
}

/// A file's name, and its segment's first number and origin; `None` for a file that is not a valid segment.
type NamedSegment = (String, Option<(u64, SegmentOrigin)>);

pub(super) fn open(dir: &Path, target: &str, options: &SpoolOptions) -> Result<OpenedSpool, SpoolError> {
    let place = SpoolDirectory::open(dir, target)?;
    let (file, old) = read_position(&place)?;
    let names = check_headers(&place)?;
    let is_clean = old.as_ref().is_some_and(|old| old.is_clean);
    let found = find(&place, &names, old.as_ref(), is_clean)?;
    let newest = found.segments.back().map_or(0, |last| last.stamp_last);
    let clock = SpoolClock::new(old.as_ref(), newest, ClockReadings::read_times());
    let (position, gaps, recovered) = compute_position(old, &found, target);
    let disk = Disk::new(place, found.segments, options);
    Ok(OpenedSpool { disk, file, position, gaps, clock, recovered })
}

fn read_position(place: &SpoolDirectory) -> Result<(File, Option<Position>), SpoolError> {
    let path = place.path.join(position::NAME);
    let (file, is_new) = place.file_or_new(position::NAME)?;
    let found = if is_new { Ok(None) } else { Position::read(&file).map_err(|e| error_at("cannot read", &path, e))? };
    let found = found.map_err(|found| SpoolError::Version { path: path.clone(), found })?;
    if found.is_none() {
        // Go on if the disk is full: messages then wait in memory, and a notice reports it.
        let _ = position::reserve(&file);
    }
    Ok((file, found))
}

fn error_at(what: &str, path: &Path, error: std::io::Error) -> SpoolError {
    SpoolError::io(what, path, error)
}

/// Checks the headers of all segments. Changes nothing, so a refused spool stays unchanged.
fn check_headers(place: &SpoolDirectory) -> Result<Vec<NamedSegment>, SpoolError> {
    let mut names = Vec::new();
    for name in place.segments()? {
        if segment::is_new_name(&name) {
            // An unfinished replacement: the files it was made from are still there.
            names.push((name, None));
            continue;
        }
        let path = place.path.join(&name);
        let header =
            segment::read_header(&place.file(&name)?).map_err(|error| error_at("cannot read", &path, error))?;
        let first = match header {
            Header::Ours { first, made } if segment::name_of(first) == name => Some((first, made)),
            // A reused file whose new name, but not its new header, reached the disk before the power failed.
            Header::Ours { first, .. } if segment::name_of(first) < name => None,
            Header::Torn => None,
            Header::Version(found) => return Err(SpoolError::Version { path, found }),
            Header::Ours { .. } | Header::Foreign => return Err(SpoolError::Foreign { path }),
        };
        names.push((name, first));
    }
    Ok(names)
}

/// Finds the intact segments. Removes segments that were delivered or merged into a replacement, and cuts off torn
/// ends.
fn find(
    place: &SpoolDirectory,
    names: &[NamedSegment],
    old: Option<&Position>,
    is_clean: bool,
) -> Result<FoundSegments, SpoolError> {
    let mut found = FoundSegments::default();
    let mut was_torn = false;
    for (index, (name, numbers)) in names.iter().enumerate() {
        let path = place.path.join(name);
        let is_over = numbers.is_none_or(|(first, _)| first < found.until);
        if segment::is_new_name(name) || (is_over && numbers.is_some()) {
            place.folder.remove(name).map_err(|error| SpoolError::sys(path, &error))?;
            continue;
        }
        let is_last = index + 1 == names.len();
        // A kill can have interrupted only a write to the newest segment. A power failure can have damaged others:
        // their messages are checked when they are read.
        let verify = is_last && !is_clean;
        let (scanned, torn) =
            scan(place, name, *numbers, verify, &mut found).map_err(|e| error_at("cannot read", &path, e))?;
        let first = numbers.map(|(first, _)| first);
        let begin = first.unwrap_or(0);
        let before = found.segments.back().map_or(begin, |before| before.end);
        if was_torn && first.is_some() {
            found.torn_messages += begin.saturating_sub(before);
        }
        if begin < before && first.is_some() {
            return Err(SpoolError::Foreign { path });
        }
        was_torn = torn;
        let waits =
            scanned.filter(|scanned| scanned.end > scanned.first && old.is_none_or(|old| scanned.end > old.released));
        match waits {
            Some(segment) => found.segments.push_back(segment),
            None => place.folder.remove(name).map_err(|error| SpoolError::sys(path.clone(), &error))?,
        }
    }
    Ok(found)
}

/// Scans a file. Returns its segment, if it has one, and whether its end was torn.
fn scan(
    place: &SpoolDirectory,
    name: &str,
    numbers: Option<(u64, SegmentOrigin)>,
    verify: bool,
    found: &mut FoundSegments,
) -> std::io::Result<(Option<Segment>, bool)> {
    let file = place.file(name).map_err(std::io::Error::other)?;
    let len = file.metadata()?.len();
    let scanned = match numbers {
        Some((first, made)) => {
            let until = made.end_number();
            found.until = found.until.max(until.unwrap_or(0));
            let holes = until.is_some().then_some(&mut found.holes);
            Some(Segment::scan(&file, first, len, verify, holes)?)
        }
        None => None,
    };
    let whole = scanned.as_ref().map_or(0, |scanned| scanned.len);
    if whole >= len {
        return Ok((scanned, false));
    }
    let is_reused = numbers.is_some_and(|(_, made)| made == SegmentOrigin::Reused);
    let is_torn = match &scanned {
        // The rest are delivered batches.
        Some(scanned) if is_reused => scanned.is_cut_short(&file)?,
        _ => true,
    };
    if is_torn {
        found.torn_files += 1;
        found.torn_bytes += len - whole;
    }
    let _ = file.set_len(whole);
    Ok((scanned, is_torn))
}

/// Computes the position to continue from, and the counts, by comparing the files with the last position.
fn compute_position(old: Option<Position>, found: &FoundSegments, target: &str) -> (Position, Gaps, RecoveredCounts) {
    let had_position = old.is_some();
    let old = old.unwrap_or_default();
    let first = found.segments.front().map_or(old.end, |segment| segment.first);
    let released = if had_position { old.released } else { first };
    let found_end = found.segments.back().map_or(released, |segment| segment.end.max(found.until));
    let old_end = if had_position { old.end } else { first };
    let end = found_end.max(old_end).max(released);
    let mut gaps = Gaps::default();
    let mut next = released;
    for segment in &found.segments {
        gaps.add(next, segment.first);
        next = segment.end.max(next);
    }
    gaps.add(next, end);
    for (from, to) in &found.holes {
        gaps.add(*from, *to);
    }
    let waiting = end - released - gaps.count_within(released, end);
    // Since the position was written, messages were added,
    let new = found_end.saturating_sub(old_end);
    let expected = old.waiting + new;
    // and others were lost, or dropped on purpose.
    let missing = expected.saturating_sub(waiting);
    let tail = old_end.saturating_sub(found_end.max(released));
    let lost = (found.torn_messages + tail).min(missing);
    // Confirmed messages that may not have been read are sent again: until then they do not count as delivered.
    let again = old.waiting.saturating_sub(old.ledger.waiting_records());
    let mut ledger = old.ledger;
    ledger.seen += new;
    ledger.dropped.lost += lost;
    ledger.dropped.full += missing - lost;
    // Dropped messages whose file is still there wait again.
    let mut back = waiting.saturating_sub(expected);
    for count in [&mut ledger.dropped.age, &mut ledger.dropped.lost, &mut ledger.dropped.full] {
        let less = back.min(*count);
        *count -= less;
        back -= less;
    }
    ledger.seen += back;
    ledger.delivered = ledger.delivered.saturating_sub(again);
    ledger.resent += again.min(old.ledger.delivered);
    // Records in memory that stood for others were lost if the program was killed.
    let held = std::mem::take(&mut ledger.held);
    let held = if old.is_clean { 0 } else { held };
    ledger.dropped.lost += held;
    let ledger = with_balance(ledger, waiting);
    let recovered = RecoveredCounts {
        waiting,
        lost: lost + held,
        torn_files: found.torn_files,
        torn_bytes: found.torn_bytes,
        was_killed: (had_position && !old.is_clean && old.sequence > 0) || (!had_position && waiting > 0),
    };
    let position = Position { released, end, waiting, ledger, is_clean: false, target: target.to_owned(), ..old };
    (position, gaps, recovered)
}

/// Computes `seen` from the other counts, because a damaged or foreign position need not add up.
fn with_balance(mut ledger: Ledger, waiting: u64) -> Ledger {
    let others = [ledger.delivered, ledger.folded, ledger.limited, ledger.dropped.total(), waiting];
    ledger.seen = others.into_iter().fold(0, u64::saturating_add);
    ledger
}
