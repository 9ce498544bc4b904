//! Files that follow one another: the next one is opened before the one before is closed, the oldest are removed.
//!
//! Names are looked up in a directory that stays open, and no link is followed: who may change the directory's path
//! meanwhile leads no file elsewhere.

use super::file_commands::{CommandsReport, FileCommands};
use super::output_file::{empty, words_of};
use crate::messages::say;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use sys::folder::Folder;
use sys::{Errno, SysError};

/// Names that are tried for one file, where others have put files there before.
const NAMES_MAX: usize = 100;

/// The names of files, one after the other, below one directory.
pub(crate) trait FileNames {
    /// The next.
    fn next(&mut self) -> OsString;

    /// True if a name may be that of a file of ours, which is emptied.
    fn may_be_there(&self) -> bool {
        false
    }
}

/// A file that was begun.
pub(crate) struct BegunFile {
    pub(crate) file: File,
    /// Its path as the user would write it.
    pub(crate) path: PathBuf,
}

/// What became of the files.
#[derive(Debug, Default)]
pub(crate) struct SeriesReport {
    /// Files that were begun.
    pub(crate) files: u64,
    /// Attempts to begin one that failed.
    pub(crate) not_begun: u64,
    /// Old ones that could not be removed.
    pub(crate) not_removed: u64,
    /// Of the commands.
    pub(crate) commands: CommandsReport,
}

/// Files that follow one another.
pub(crate) struct FileSeries {
    folder: Folder,
    /// The directory as the user wrote it; empty for the current one.
    place: PathBuf,
    names: Box<dyn FileNames>,
    /// How many are kept, the one that is written included; `None`: all.
    keep: Option<usize>,
    /// Those that are there, the oldest first; empty where all are kept.
    kept: VecDeque<OsString>,
    commands: Option<FileCommands>,
    report: SeriesReport,
}

impl FileSeries {
    /// Files in the directory `place`; empty stands for the current one.
    pub(crate) fn open(place: &Path, names: Box<dyn FileNames>, keep: Option<usize>) -> io::Result<FileSeries> {
        let folder = Folder::open_named(if place.as_os_str().is_empty() { Path::new(".") } else { place });
        Ok(FileSeries {
            folder: folder.map_err(of_call)?,
            place: place.to_owned(),
            names,
            keep,
            kept: VecDeque::new(),
            commands: None,
            report: SeriesReport::default(),
        })
    }

    /// Each file that is complete is given to these.
    pub(crate) fn run_with(&mut self, commands: FileCommands) {
        self.commands = Some(commands);
    }

    /// Begins the next file, and removes the oldest if there are too many. Where the disk has no room for another file,
    /// the oldest goes first.
    pub(crate) fn begin(&mut self) -> io::Result<BegunFile> {
        let name = match self.make() {
            Err(error) if is_full(&error) && self.is_one_too_many(1) => {
                self.remove_oldest();
                self.make()
            }
            made => made,
        };
        let (name, file) = name.inspect_err(|_| self.report.not_begun += 1)?;
        self.report.files += 1;
        let path = self.place.join(&name);
        if self.keep.is_some() {
            // A name that comes again is the newest of all now.
            self.kept.retain(|kept| *kept != name);
            self.kept.push_back(name);
            while self.is_one_too_many(0) {
                self.remove_oldest();
            }
        }
        Ok(BegunFile { file, path })
    }

    fn make(&mut self) -> io::Result<(OsString, File)> {
        let mut there = None;
        for _ in 0..NAMES_MAX {
            let name = self.names.next();
            if self.names.may_be_there() {
                let file = self.folder.output(&name).map_err(of_call).and_then(empty)?;
                return Ok((name, file));
            }
            match self.folder.create_output(&name) {
                Ok(file) => return Ok((name, file)),
                Err(error) if error.errno == Errno::EXIST => there = Some(error),
                Err(error) => return Err(of_call(error)),
            }
        }
        Err(there.map_or_else(|| io::ErrorKind::NotFound.into(), of_call))
    }

    fn is_one_too_many(&self, more: usize) -> bool {
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
                    say(&format!("{} cannot be removed: {}", path.display(), words_of(&of_call(error))));
                }
            }
        }
    }

    /// The file is complete and closed.
    pub(crate) fn completed(&mut self, path: &Path) {
        if let Some(commands) = &mut self.commands {
            commands.run_with(path);
        }
    }

    /// Waits for the commands for a while.
    pub(crate) fn finish(self) -> SeriesReport {
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

    struct Names(Vec<&'static str>, bool);

    impl FileNames for Names {
        fn next(&mut self) -> OsString {
            if self.0.len() > 1 { self.0.remove(0).into() } else { self.0[0].into() }
        }

        fn may_be_there(&self) -> bool {
            self.1
        }
    }

    fn series(dir: &Path, names: &[&'static str], may_be_there: bool, keep: Option<usize>) -> FileSeries {
        FileSeries::open(dir, Box::new(Names(names.to_vec(), may_be_there)), keep).unwrap()
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
        let mut files = series(dir.path(), &["a", "b", "c", "d"], false, Some(2));
        for _ in 0..3 {
            files.begin().unwrap();
        }
        assert_eq!(listed(dir.path()), ["b", "c"]);
        // A command has taken it away: that is no fault.
        fs::remove_file(dir.path().join("b")).unwrap();
        assert_eq!(files.begin().unwrap().path, dir.path().join("d"));
        assert_eq!(listed(dir.path()), ["c", "d"]);
        let report = files.finish();
        assert_eq!((report.files, report.not_begun, report.not_removed), (4, 0, 0));
        let mut all = series(dir.path(), &["x", "y", "z"], false, None);
        (0..3).for_each(|_| _ = all.begin().unwrap());
        assert_eq!(listed(dir.path()), ["c", "d", "x", "y", "z"]);
    }

    #[test]
    fn what_lies_there_is_neither_written_into_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "as it was").unwrap();
        std::os::unix::fs::symlink(at("a"), at("b")).unwrap();
        let mut files = series(dir.path(), &["a", "b", "c"], false, None);
        assert_eq!(files.begin().unwrap().path, at("c"));
        assert!(files.begin().is_err(), "all names are taken");
        assert_eq!(files.finish().not_begun, 1);
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "as it was");
    }

    #[test]
    fn names_that_come_again_empty_our_own_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "before").unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let mut files = series(dir.path(), &["a", "b", "a", "link"], true, Some(2));
        files.begin().unwrap();
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "");
        files.begin().unwrap();
        fs::write(at("a"), "before").unwrap();
        files.begin().unwrap();
        assert_eq!((fs::read_to_string(at("a")).unwrap().as_str(), listed(dir.path()).len()), ("", 3));
        assert!(files.begin().is_err());
    }
}
