//! A series of files: the next file is opened before the current one is closed, and the oldest files are removed.
//!
//! Names are resolved in a directory that stays open, and links are not followed, so that changing the directory's
//! path during the run cannot redirect a file.

use super::file_commands::{CommandsReport, FileCommands};
use runtime::messages::print_message;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use sys::folder::Folder;
use sys::outfile::{self, Contents, OutfileOptions};
use sys::{Errno, SysError};

/// Number of names to try for one file, in case earlier files have them.
///
/// Bound: names that netwren tries for the next file of a capture. Beyond: the previous file continues; reported (exit
/// code 3). By: anyone who may write to the directory.
const NAMES_MAX: usize = 100;

/// The name of the next file.
pub enum NextName<'n> {
    /// The first of these names that is not in use.
    New(&'n mut dyn FnMut() -> OsString),
    /// This name; an existing file, possibly from this series, is emptied.
    Again(OsString),
}

/// A new file.
pub struct NewFile {
    /// The open file.
    pub file: File,
    /// Its path in the user's notation.
    pub path: PathBuf,
}

/// Counts of the files.
#[derive(Debug, Default)]
pub struct SeriesReport {
    /// Number of files started.
    pub files: u64,
    /// Number of failed attempts to start a file.
    pub not_begun: u64,
    /// Number of old files that could not be removed.
    pub not_removed: u64,
    /// Counts of the commands.
    pub commands: CommandsReport,
}

/// A series of files.
pub struct FileSeries {
    folder: Folder,
    /// The directory as the user wrote it; empty for the current directory.
    place: PathBuf,
    /// Number of files to keep, including the current one; `None` for all.
    keep: Option<usize>,
    /// Names of the existing files, the oldest first; empty if all are kept.
    kept: VecDeque<OsString>,
    commands: Option<FileCommands>,
    report: SeriesReport,
}

impl FileSeries {
    /// Opens the directory `place` for the series; empty for the current directory.
    pub fn open(place: &Path, keep: Option<usize>) -> io::Result<FileSeries> {
        Ok(FileSeries {
            folder: outfile::folder(place)?,
            place: place.to_owned(),
            keep,
            kept: VecDeque::new(),
            commands: None,
            report: SeriesReport::default(),
        })
    }

    /// Runs these commands on each complete file.
    pub fn run_with(&mut self, commands: FileCommands) {
        self.commands = Some(commands);
    }

    /// Starts the next file, and removes the oldest one if there are too many. If the disk is full, removes the oldest
    /// one first, but never the current one: it continues if no file can be started.
    pub fn begin(&mut self, mut next: NextName<'_>) -> io::Result<NewFile> {
        let name = match self.make(&mut next) {
            Err(error) if is_full(&error) && self.is_above_limit(1) && self.kept.len() > 1 => {
                self.remove_oldest();
                self.make(&mut next)
            }
            made => made,
        };
        let (name, file) = name.inspect_err(|_| self.report.not_begun += 1)?;
        self.report.files += 1;
        let path = self.place.join(&name);
        if self.keep.is_some() {
            // A reused name is now the newest.
            self.kept.retain(|kept| *kept != name);
            self.kept.push_back(name);
            while self.is_above_limit(0) {
                self.remove_oldest();
            }
        }
        Ok(NewFile { file, path })
    }

    fn make(&mut self, next: &mut NextName<'_>) -> io::Result<(OsString, File)> {
        let names = match next {
            NextName::New(names) => names,
            NextName::Again(name) => {
                let file = self.folder.open_output(name, OutfileOptions::stream(Contents::Emptied))?;
                return Ok((name.clone(), file));
            }
        };
        let mut there = None;
        for _ in 0..NAMES_MAX {
            let name = names();
            match self.folder.open_output(&name, OutfileOptions::regular(Contents::New)) {
                Ok(file) => return Ok((name, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => there = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(there.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn is_above_limit(&self, more: usize) -> bool {
        self.keep.is_some_and(|keep| self.kept.len() + more > keep)
    }

    fn remove_oldest(&mut self) {
        let Some(name) = self.kept.pop_front() else { return };
        match self.folder.remove(&name) {
            // A command has moved it.
            Ok(()) | Err(SysError { errno: Errno::NOENT, .. }) => {}
            Err(error) => {
                self.report.not_removed += 1;
                if self.report.not_removed == 1 {
                    let path = self.place.join(&name);
                    print_message(&format!(
                        "{} cannot be removed: {}",
                        path.display(),
                        sys::io_error_text(&of_call(error))
                    ));
                }
            }
        }
    }

    /// Runs the commands on a complete, closed file.
    pub fn run_commands(&mut self, path: &Path) {
        if let Some(commands) = &mut self.commands {
            commands.run_with(path);
        }
    }

    /// Waits for the commands for a limited time.
    pub fn finish(self) -> SeriesReport {
        let commands = self.commands.map(FileCommands::finish).unwrap_or_default();
        SeriesReport { commands, ..self.report }
    }
}

fn of_call(error: SysError) -> io::Error {
    io::Error::from_raw_os_error(error.errno.0)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn series(dir: &Path, keep: Option<usize>) -> FileSeries {
        FileSeries::open(dir, keep).unwrap()
    }

    fn begin(files: &mut FileSeries, names: &[&'static str]) -> io::Result<PathBuf> {
        let mut names = names.iter();
        let mut next = || names.next().copied().unwrap_or("a").into();
        files.begin(NextName::New(&mut next)).map(|begun| begun.path)
    }

    fn listed(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = series(dir.path(), Some(2));
        for name in ["a", "b", "c"] {
            begin(&mut files, &[name]).unwrap();
        }
        assert_eq!(listed(dir.path()), ["b", "c"]);
        // A command has removed it, which is not an error.
        fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(begin(&mut files, &["d"]).unwrap(), dir.path().join("d"));
        assert_eq!(listed(dir.path()), ["c", "d"]);
        let report = files.finish();
        assert_eq!((report.files, report.not_begun, report.not_removed), (4, 0, 0));
        let mut all = series(dir.path(), None);
        ["x", "y", "z"].iter().for_each(|name| _ = begin(&mut all, &[name]).unwrap());
        assert_eq!(listed(dir.path()), ["c", "d", "x", "y", "z"]);
    }

    #[test]
    fn what_lies_there_is_neither_written_into_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "as it was").unwrap();
        std::os::unix::fs::symlink(at("a"), at("b")).unwrap();
        let mut files = series(dir.path(), None);
        assert_eq!(begin(&mut files, &["a", "b", "c"]).unwrap(), at("c"));
        assert!(begin(&mut files, &["a", "b", "c"]).is_err(), "all names are taken");
        assert_eq!(files.finish().not_begun, 1);
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "as it was");
    }

    #[test]
    fn names_that_come_again_empty_our_own_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "before").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let mut files = series(dir.path(), Some(2));
        let mut again = |name: &str| files.begin(NextName::Again(name.into())).map(drop);
        again("a").unwrap();
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "");
        again("b").unwrap();
        fs::write(at("a"), "before").unwrap();
        again("a").unwrap();
        assert_eq!((fs::read_to_string(at("a")).unwrap().as_str(), listed(dir.path()).len()), ("", 3));
        assert!(again("link").is_err());
    }
}
