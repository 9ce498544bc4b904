//! `-w` with `--rotate-…`: writes packets to a series of files.

use super::file_commands::{CommandRequest, FileCommands};
use super::limits::{FileLimits, FileState};
use super::numbered_names::NumberedNames;
use super::place::place_of;
use super::series::{FileSeries, NewFile, NextName, SeriesReport};
use record::Accounting;
use runtime::messages::print_message;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The `--rotate-…` flags with `-w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationRequest {
    /// When a new file begins.
    pub limits: FileLimits,
    /// `--rotate-keep`
    pub keep: Option<usize>,
    /// `--rotate-command`
    pub command: Option<OsString>,
}

impl RotationRequest {
    /// Starts the process that runs commands on the files next to `path`; `None` without a command. Must be called
    /// before privileges are dropped.
    pub(super) fn start_commands(&self, path: &Path, user: Option<&str>) -> io::Result<Option<FileCommands>> {
        let Some(program) = &self.command else { return Ok(None) };
        let prefix = place_of(path).join(NumberedNames::new(path).stem());
        FileCommands::start(&CommandRequest { program, prefix: &prefix, user }).map(Some)
    }
}

/// The file series, and the state of the current file.
pub(super) struct Rotation {
    series: FileSeries,
    names: NumberedNames,
    pub(super) state: FileState,
    current: PathBuf,
    has_said: bool,
}

impl Rotation {
    /// A series of files next to `path`; creates no file yet.
    pub(super) fn open(path: &Path, request: &RotationRequest, commands: Option<FileCommands>) -> io::Result<Rotation> {
        let mut series = FileSeries::open(place_of(path), request.keep)?;
        if let Some(commands) = commands {
            series.run_with(commands);
        }
        let state = FileState::new(request.limits, sys::clock::boottime_ns());
        let names = NumberedNames::new(path);
        Ok(Rotation { series, names, state, current: PathBuf::new(), has_said: false })
    }

    /// Starts the first file.
    pub(super) fn begin(&mut self) -> io::Result<NewFile> {
        let begun = self.make()?;
        self.current.clone_from(&begun.path);
        Ok(begun)
    }

    fn make(&mut self) -> io::Result<NewFile> {
        let mut names = self.names.clone();
        let begun = self.series.begin(NextName::New(&mut || names.next_name()))?;
        // If no file was created, its number is used again.
        self.names = names;
        Ok(begun)
    }

    /// Opens the next file. If that fails, the current file continues, which is reported once.
    pub(super) fn begin_next(&mut self) -> Option<NewFile> {
        match self.make() {
            Ok(begun) => Some(begun),
            Err(error) => {
                self.state.postpone(sys::clock::boottime_ns());
                if !std::mem::replace(&mut self.has_said, true) {
                    let current = self.current.display();
                    print_message(&format!(
                        "cannot start a new file after {current}, writing continues there: {}",
                        sys::io_error_text(&error)
                    ));
                }
                None
            }
        }
    }

    /// Switches to the file at `path`; the previous file is complete.
    pub(super) fn moved_to(&mut self, path: PathBuf) {
        let before = std::mem::replace(&mut self.current, path);
        self.series.run_commands(&before);
        self.state.begin(sys::clock::boottime_ns());
    }

    /// True if the file is old enough to start a new file.
    pub(super) fn is_due(&mut self) -> bool {
        self.state.is_old(sys::clock::boottime_ns())
    }

    /// Ends the series whose last file, `last`, is closed, and waits for the commands for a limited time. Returns the
    /// common name of the files.
    pub(super) fn finish(mut self, last: String, stats: &mut Accounting) -> String {
        self.series.run_commands(&self.current);
        let report = self.series.finish();
        let files = report.files;
        add_failures(&report, stats);
        if files == 1 { last } else { format!("{files} files, the last {last}") }
    }
}

/// Adds requested operations that failed.
fn add_failures(report: &SeriesReport, stats: &mut Accounting) {
    let SeriesReport { not_begun, not_removed, commands, .. } = report;
    for (count, text) in [
        (*not_begun, "a new file could not be started: the previous file became longer"),
        (*not_removed, "an old file could not be removed"),
        (commands.failed, "the command of --rotate-command failed"),
        (commands.not_run, "the command of --rotate-command was not run: too many were waiting"),
        (commands.unfinished, "the command of --rotate-command has not ended yet"),
    ] {
        if count > 0 {
            stats.incomplete(count, text);
        }
    }
}
