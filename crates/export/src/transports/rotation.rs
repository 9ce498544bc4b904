//! Rotation of files: when a file is moved away, and to which name.

use super::with_object;
use std::ffi::{OsStr, OsString};
use std::io;
use std::time::{Duration, Instant, SystemTime};
use sys::outfile::FilePlace;
use sys::{Errno, SysError};

/// When a file is replaced by a new one: `PATH` becomes `PATH.1`, `PATH.1` becomes `PATH.2`, and the oldest is
/// removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Rotate before the file exceeds this many bytes; a batch of messages is never split.
    pub bytes_max: Option<u64>,
    /// Rotate once the file has this age.
    pub age_max: Option<Duration>,
    /// Rotated files to keep; at least 1.
    pub keep: u32,
    /// Program that packs rotated files: called as [`super::PACKER`], it packs its stdin to its stdout. `PATH.1` then
    /// becomes `PATH.1.zst`.
    pub packer: Option<&'static str>,
}

/// The age of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileAge {
    begun: SystemTime,
    opened: Instant,
}

impl FileAge {
    /// The age of a file that was begun at `begun` and is opened now.
    pub(super) fn from_begin(begun: SystemTime) -> FileAge {
        FileAge { begun, opened: Instant::now() }
    }

    /// Returns the age, which is at least the time since the file was opened: a clock that was set back prevents no
    /// rotation.
    fn age(self) -> Duration {
        self.begun.elapsed().unwrap_or_default().max(self.opened.elapsed())
    }
}

impl Rotation {
    /// True if a file of `bytes` and `age` must be rotated before `more` bytes are added.
    pub(super) fn is_due(&self, bytes: u64, age: FileAge, more: u64) -> bool {
        let is_full = self.bytes_max.is_some_and(|most| bytes.saturating_add(more) > most);
        is_full || self.age_max.is_some_and(|most| age.age() >= most)
    }

    /// Renames the file at `place` and the earlier rotated files, packed or not, to the next number.
    pub(super) fn rotate(&self, place: &FilePlace) -> io::Result<()> {
        let (keep, folder, name) = (self.keep.max(1), place.folder(), place.name());
        // Renaming does not replace it if only one of the two files is packed.
        let oldest = numbered_name(name, keep);
        for file in [packed_name(&oldest), oldest] {
            ignore_missing(folder.remove(&file)).map_err(|error| error_at("cannot remove", &file, &error))?;
        }
        for number in (0..keep).rev() {
            let (from, to) = (numbered_name(name, number), numbered_name(name, number + 1));
            let moved = match number {
                0 => folder.rename(&from, &to),
                _ => ignore_missing(folder.rename(&from, &to))
                    .and_then(|()| ignore_missing(folder.rename(packed_name(&from), packed_name(&to)))),
            };
            moved.map_err(|error| error_at("cannot rotate", &from, &error))?;
        }
        Ok(())
    }
}

fn ignore_missing(done: Result<(), SysError>) -> Result<(), SysError> {
    match done {
        Err(error) if error.errno == Errno::NOENT => Ok(()),
        done => done,
    }
}

/// Converts the error of a system call on the file `name`.
pub(super) fn error_at(what: &str, name: &OsStr, error: &SysError) -> io::Error {
    with_object(what, &name.to_string_lossy(), &io::Error::from_raw_os_error(error.errno.0))
}

/// The name of a file after packing.
pub(super) fn packed_name(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".zst");
    name
}

/// The name of a file after `number` rotations.
pub(super) fn numbered_name(name: &OsStr, number: u32) -> OsString {
    let mut name = name.to_owned();
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn files_are_full_or_old() {
        let rotation = Rotation { bytes_max: Some(100), age_max: Some(Duration::from_secs(60)), keep: 1, packer: None };
        let wall = SystemTime::now();
        let past = |seconds| FileAge::from_begin(wall - Duration::from_secs(seconds));
        let (now, old, future) = (past(0), past(61), FileAge::from_begin(wall + Duration::from_secs(61)));
        assert!(!rotation.is_due(50, now, 50) && rotation.is_due(50, now, 51));
        assert!(rotation.is_due(0, old, 0) && !rotation.is_due(0, future, 0));
        let never = Rotation { bytes_max: None, age_max: None, keep: 1, packer: None };
        assert!(!never.is_due(u64::MAX, old, u64::MAX));
    }

    /// After the file was begun, the clock was set back by years.
    #[test]
    fn issue_12_a_clock_that_was_set_back_stops_no_rotation() {
        let rotation = Rotation { bytes_max: None, age_max: Some(Duration::from_secs(60)), keep: 1, packer: None };
        let begun = SystemTime::now() + Duration::from_secs(100_000_000);
        assert!(!rotation.is_due(1, FileAge::from_begin(begun), 1));
        let opened = Instant::now().checked_sub(Duration::from_secs(61)).unwrap();
        assert!(rotation.is_due(1, FileAge { begun, opened }, 1));
    }

    #[test]
    fn numbers_go_up_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        let rotation = Rotation { bytes_max: None, age_max: None, keep: 2, packer: None };
        for text in ["a", "b", "c", "d"] {
            fs::write(&path, text).unwrap();
            rotation.rotate(&FilePlace::find(&path).unwrap()).unwrap();
        }
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let texts: Vec<_> = left.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!((left.len(), texts), (2, vec!["d".to_owned(), "c".to_owned()]));
        assert!(
            rotation.rotate(&FilePlace::find(&path).unwrap()).unwrap_err().to_string().starts_with("cannot rotate ")
        );
    }

    #[test]
    fn issue_12_packed_ones_are_moved_and_go_as_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        let rotation = Rotation { bytes_max: None, age_max: None, keep: 2, packer: None };
        for name in ["fw.log", "fw.log.1.zst", "fw.log.2", "fw.log.2.zst"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        rotation.rotate(&FilePlace::find(&path).unwrap()).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["fw.log.1", "fw.log.2.zst"]);
        assert_eq!(fs::read_to_string(dir.path().join("fw.log.2.zst")).unwrap(), "fw.log.1.zst");
    }
}
