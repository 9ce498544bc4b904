//! When a file has had enough, and where it goes.

use super::named;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// When a file is moved away for a new one: `PATH` becomes `PATH.1`, that becomes `PATH.2`, and the oldest goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Before it would have more bytes than this; a batch of messages is not torn apart.
    pub bytes_max: Option<u64>,
    /// Once it is so old.
    pub age_max: Option<Duration>,
    /// How many are kept beside the one that is written; at least 1.
    pub keep: u32,
}

impl Rotation {
    /// True if a file of `bytes`, begun at `begun`, is to be moved away before `more` bytes come to it.
    pub(super) fn is_due(&self, bytes: u64, begun: SystemTime, more: u64) -> bool {
        let is_full = self.bytes_max.is_some_and(|most| bytes.saturating_add(more) > most);
        // A clock that was set back makes no file older.
        is_full || self.age_max.is_some_and(|most| begun.elapsed().is_ok_and(|age| age >= most))
    }

    /// Moves `path` and those before it one number on.
    pub(super) fn rotate(&self, path: &Path) -> io::Result<()> {
        for number in (0..self.keep.max(1)).rev() {
            let (from, to) = (numbered(path, number), numbered(path, number + 1));
            match fs::rename(&from, &to) {
                Err(error) if error.kind() == ErrorKind::NotFound && number > 0 => {}
                Err(error) => return Err(named("cannot rotate", &from.to_string_lossy(), &error)),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_full_or_old() {
        let rotation = Rotation { bytes_max: Some(100), age_max: Some(Duration::from_secs(60)), keep: 1 };
        let now = SystemTime::now();
        let (old, future) = (now - Duration::from_secs(61), now + Duration::from_secs(61));
        assert!(!rotation.is_due(50, now, 50) && rotation.is_due(50, now, 51));
        assert!(rotation.is_due(0, old, 0) && !rotation.is_due(0, future, 0));
        let never = Rotation { bytes_max: None, age_max: None, keep: 1 };
        assert!(!never.is_due(u64::MAX, old, u64::MAX));
    }

    #[test]
    fn numbers_go_up_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fw.log");
        let rotation = Rotation { bytes_max: None, age_max: None, keep: 2 };
        for text in ["a", "b", "c", "d"] {
            fs::write(&path, text).unwrap();
            rotation.rotate(&path).unwrap();
        }
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let texts: Vec<_> = left.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!((left.len(), texts), (2, vec!["d".to_owned(), "c".to_owned()]));
        assert!(rotation.rotate(&path).unwrap_err().to_string().starts_with("cannot rotate "));
    }
}
