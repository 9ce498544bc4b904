//! `-w` with `--rotate-…`: writes packets to a series of files.

use crate::command::ParsedWords;
use crate::flags::rotation::{ROTATE_FLAGS, ROTATE_SIZES, rotate_age, rotate_keep};
use record::Accounting;
use runtime::messages::say;
use runtime::packet_files::{
    BegunFile, CommandRequest, FileCommands, FileLimits, FileSeries, FileState, NextName, NumberedNames, OutputFile,
    SeriesReport, place_of, words_of,
};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum value of `--rotate-packets`.
const PACKETS_MAX: u64 = 1 << 40;

/// The `--rotate-…` flags with `-w`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RotationRequest {
    limits: FileLimits,
    /// `--rotate-keep`
    keep: Option<usize>,
    /// `--rotate-command`
    command: Option<OsString>,
}

impl RotationRequest {
    /// Parses the rotation from a command line; None without a rotation flag.
    pub(super) fn of(words: &ParsedWords<'_>) -> Result<Option<RotationRequest>, String> {
        let Some(path) = words.file("write") else {
            let alone = ["rotate-packets", "rotate-command"].into_iter().find(|flag| words.is_given(flag));
            return alone.map_or(Ok(None), |flag| Err(format!("--{flag} needs --write FILE")));
        };
        let flags = ROTATE_FLAGS.into_iter().chain(["rotate-packets", "rotate-command"]);
        let Some(given) = { flags }.find(|flag| words.is_given(flag)) else { return Ok(None) };
        if path == Path::new("-") || path.file_name().is_none() {
            return Err(format!("--{given} needs a file name"));
        }
        if words.has("rotate-zstd") {
            return Err("--rotate-zstd needs --to; with --write, a FILE that ends in .zst is compressed".to_owned());
        }
        let given_value = |flag| words.value(flag).filter(|_| words.is_given(flag));
        let packets = |text: &str| {
            let number = text.parse().ok().filter(|number| (1..=PACKETS_MAX).contains(number));
            number.ok_or_else(|| format!("--rotate-packets takes a number of packets (at least 1), not `{text}`"))
        };
        let limits = FileLimits {
            bytes_max: words.bytes("rotate-size", ROTATE_SIZES)?,
            age_max: given_value("rotate-age").map(|text| rotate_age(text, 1)).transpose()?,
            packets_max: given_value("rotate-packets").map(packets).transpose()?,
        };
        if limits == FileLimits::default() {
            let needed = "--rotate-size, --rotate-age or --rotate-packets";
            return Err(format!("--{given} needs {needed}, which start new files"));
        }
        let keep = given_value("rotate-keep").map(rotate_keep).transpose()?;
        let command = given_value("rotate-command").map(OsString::from);
        Ok(Some(RotationRequest { limits, keep: keep.map(|keep| keep as usize), command }))
    }
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
    pub(super) fn begin(&mut self) -> io::Result<BegunFile> {
        let begun = self.make()?;
        self.current.clone_from(&begun.path);
        Ok(begun)
    }

    fn make(&mut self) -> io::Result<BegunFile> {
        let mut names = self.names.clone();
        let begun = self.series.begin(NextName::New(&mut || names.next_name()))?;
        // If no file was created, its number is used again.
        self.names = names;
        Ok(begun)
    }

    /// Opens the next file. If that fails, the current file continues, which is reported once.
    pub(super) fn begin_next(&mut self) -> Option<BegunFile> {
        match self.make() {
            Ok(begun) => Some(begun),
            Err(error) => {
                self.state.postpone(sys::clock::boottime_ns());
                if !std::mem::replace(&mut self.has_said, true) {
                    let current = self.current.display();
                    say(&format!(
                        "cannot start a new file after {current}, writing continues there: {}",
                        words_of(&error)
                    ));
                }
                None
            }
        }
    }

    /// Switches to the file at `path`; the previous file is complete.
    pub(super) fn moved_to(&mut self, path: PathBuf) {
        let before = std::mem::replace(&mut self.current, path);
        self.series.completed(&before);
        self.state.begin(sys::clock::boottime_ns());
    }

    /// True if the file is old enough to start a new file.
    pub(super) fn is_due(&mut self) -> bool {
        self.state.is_old(sys::clock::boottime_ns())
    }

    /// Closes the last file, and waits for the commands for a limited time; returns the common name of the files.
    pub(super) fn finish(mut self, last: OutputFile, stats: &mut Accounting) -> String {
        let name = last.name.clone();
        drop(last);
        self.series.completed(&self.current);
        let report = self.series.finish();
        let files = report.files;
        tell(&report, stats);
        if files == 1 { name } else { format!("{files} files, the last {name}") }
    }
}

/// Reports requested operations that failed.
fn tell(report: &SeriesReport, stats: &mut Accounting) {
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
