//! `-w`: writes packets to files with tcpdump's formats and names.

use super::save_switches::SaveSwitches;
use super::say;
use packet_files::formats::{CapturedPcap, CapturedPcapNg, IfaceStatistics};
use packet_files::{
    CommandRequest, FileCommands, FileEnd, FileSeries, NewFile, NextName, OutputFile, PacketFormat, folder_of,
};
use record::rows::{CapturedPacket, LinkType};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use sys::clock;

const SECOND_NS: u64 = 1_000_000_000;

/// The result of saving a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveResult {
    Yes,
    /// The number of files that `-W` allows with `-G` is reached.
    LimitReached,
    /// The reader closed the output.
    Closed,
}

/// The header fields of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedKind {
    pub(super) link_type: LinkType,
    pub(super) snaplen: u32,
    /// `--nano`
    pub(super) nanoseconds: bool,
}

impl SavedKind {
    /// The format by the file's extension.
    fn format(self, path: &Path) -> PacketFormat {
        if path.extension().is_some_and(|ending| ending == "pcapng") {
            return PacketFormat::Pcapng(CapturedPcapNg::new());
        }
        let pcap = CapturedPcap::new().cut_to(self.snaplen);
        PacketFormat::Pcap(if self.nanoseconds { pcap } else { pcap.in_microseconds() })
    }
}

/// File names for `-w` with `-C`, `-W` and `-G`.
#[derive(Debug)]
pub(super) struct SaveNames {
    /// The fixed part of the directory, as the user wrote it.
    pub(super) place: PathBuf,
    /// The name below it; with `-G` a format for strftime(3).
    below: OsString,
    by_time: bool,
    /// Number of digits of the file number with `-C`.
    digits: Option<usize>,
}

impl SaveNames {
    pub(super) fn new(path: &Path, switches: &SaveSwitches) -> SaveNames {
        let by_time = switches.seconds > 0;
        let is_fixed = |part: &Component<'_>| !by_time || !part.as_os_str().as_bytes().contains(&b'%');
        let parents = path.parent().into_iter().flat_map(Path::components);
        let place: PathBuf = parents.take_while(is_fixed).collect();
        let below = path.strip_prefix(&place).unwrap_or(path).as_os_str().to_owned();
        let digits = switches.bytes_max.map(|_| switches.files_max.map_or(0, digits));
        SaveNames { place, below, by_time, digits }
    }

    /// The common prefix of all paths.
    fn prefix(&self) -> PathBuf {
        let fixed = self.below.as_bytes().split(|byte| *byte == b'%' && self.by_time).next().unwrap_or_default();
        self.place.join(OsStr::from_bytes(fixed))
    }

    /// The name of the file with this number that starts at `time_s`.
    fn name(&self, number: u64, time_s: i64) -> OsString {
        let mut name = match (self.by_time, CString::new(self.below.as_bytes())) {
            (true, Ok(format)) => clock::format_local(&format, time_s).map_or_else(OsString::new, OsString::from_vec),
            _ => self.below.clone(),
        };
        if let Some(digits) = self.digits.filter(|digits| number > 0 || *digits > 0) {
            name.push(format!("{number:0digits$}"));
        }
        name
    }
}

/// The number of digits of the largest index among `files` files.
fn digits(files: u64) -> usize {
    (files.saturating_sub(1).checked_ilog10().map_or(0, |log| log + 1)) as usize
}

/// A sequence of files.
struct Series {
    files: FileSeries,
    names: SaveNames,
    bytes_max: Option<u64>,
    files_max: Option<u64>,
    seconds: u64,
    /// The number of the current file, with `-C`.
    number: u64,
    /// When the current `-G` period started: by the wall clock, and by a clock that is never set.
    begun_s: i64,
    begun_ns: u64,
    /// Number of files that ended by time.
    ended: u64,
}

impl Series {
    fn begin(&mut self) -> Result<NewFile, String> {
        let name = self.names.name(self.number, self.begun_s);
        let path = self.names.place.join(&name);
        self.files.begin(NextName::Again(name)).map_err(|error| not_opened(&path, &error))
    }

    fn is_over(&self) -> bool {
        let age_s = u64::try_from(clock::wall().seconds.saturating_sub(self.begun_s)).unwrap_or(0);
        // If the wall clock was set back, the file ends a second later than it would in tcpdump without the change.
        let is_late = clock::boottime_ns().saturating_sub(self.begun_ns) > (self.seconds + 1).saturating_mul(SECOND_NS);
        self.seconds > 0 && (age_s >= self.seconds || is_late)
    }
}

/// The files of a run.
pub(super) struct Saver {
    file: OutputFile,
    link_type: LinkType,
    format: PacketFormat,
    path: PathBuf,
    /// `None` for a single file.
    series: Option<Series>,
    /// When `-G` and `-W` end a run that writes to standard output, by a clock that is never set, and the number of
    /// files.
    end: Option<(u64, u64)>,
    is_unbuffered: bool,
    flushes: u64,
}

impl Saver {
    /// Starts the command runner for `-z`; must be called before privileges are dropped.
    pub(super) fn commands(switches: &SaveSwitches, user: Option<&str>) -> Result<Option<FileCommands>, String> {
        let (Some(path), Some(program)) = (switches.several(), &switches.command) else { return Ok(None) };
        let prefix = SaveNames::new(path, switches).prefix();
        let started = FileCommands::start(&CommandRequest { program, prefix: &prefix, user });
        started.map(Some).map_err(|error| format!("compress_savefile: fork failed: {}", sys::io_error_text(&error)))
    }

    /// Creates the first file; `None` without `-w`.
    pub(super) fn open(
        switches: &SaveSwitches,
        kind: SavedKind,
        commands: Option<FileCommands>,
    ) -> Result<Option<Saver>, String> {
        let Some(path) = &switches.path else { return Ok(None) };
        let series = switches.several().map(|path| Saver::series(path, switches, commands)).transpose()?;
        let (file, path, series) = match series {
            None => (OutputFile::create(path).map_err(|error| not_opened(path, &error))?, path.clone(), None),
            Some(mut series) => {
                let NewFile { file, path } = series.begin()?;
                let file = OutputFile::new(file, path.display().to_string());
                (file.map_err(|error| not_opened(&path, &error))?, path, Some(series))
            }
        };
        let mut saver = Saver {
            file: file.with_messages(|text| say(&format!("tcpdump: {text}"))),
            link_type: kind.link_type,
            format: kind.format(switches.path.as_deref().unwrap_or(&path)),
            path,
            end: end_of_stdout(switches).filter(|_| series.is_none()),
            series,
            is_unbuffered: switches.is_unbuffered,
            flushes: sys::signal::flush_count(),
        };
        saver.begin_file();
        Ok(Some(saver))
    }

    fn series(path: &Path, switches: &SaveSwitches, commands: Option<FileCommands>) -> Result<Series, String> {
        let names = SaveNames::new(path, switches);
        let mut files = FileSeries::open(&names.place, None).map_err(|error| not_opened(path, &error))?;
        if let Some(commands) = commands {
            files.run_with(commands);
        }
        Ok(Series {
            files,
            names,
            bytes_max: switches.bytes_max,
            files_max: switches.files_max,
            seconds: switches.seconds,
            number: 0,
            begun_s: switches.begun_s,
            begun_ns: clock::boottime_ns(),
            ended: 0,
        })
    }

    /// Writes a packet, to a new file if one is due.
    pub(super) fn save(&mut self, row: &CapturedPacket<'_>) -> Result<SaveResult, String> {
        if self.is_over() && self.end_by_time()? == SaveResult::LimitReached {
            return Ok(SaveResult::LimitReached);
        }
        if self.series.as_ref().and_then(|series| series.bytes_max).is_some_and(|most| self.file.bytes() > most) {
            self.rotate(|series| {
                series.number += 1;
                if series.files_max.is_some_and(|most| series.number >= most) {
                    series.number = 0;
                }
            })?;
        }
        if !self.format.write(&row.to_frame(), &mut self.file.buffer) {
            self.file.refuse(1, "a pcap file has a single link type");
        } else if self.file.end_packet() {
            self.write_out();
        }
        Ok(if self.file.is_closed() { SaveResult::Closed } else { SaveResult::Yes })
    }

    /// Runs between packets: ends a file whose time is over, and flushes data that must not wait longer.
    pub(super) fn tick(&mut self) -> Result<SaveResult, String> {
        if self.is_over() && self.end_by_time()? == SaveResult::LimitReached {
            return Ok(SaveResult::LimitReached);
        }
        let flushes = sys::signal::flush_count();
        let is_asked = std::mem::replace(&mut self.flushes, flushes) != flushes;
        if is_asked || self.is_unbuffered && !self.file.buffer.is_empty() || self.file.is_due() {
            self.write_out();
        }
        Ok(if self.file.is_closed() { SaveResult::Closed } else { SaveResult::Yes })
    }

    fn is_over(&self) -> bool {
        match &self.series {
            Some(series) => series.is_over(),
            None => self.end.is_some_and(|(end_ns, _)| clock::boottime_ns() >= end_ns),
        }
    }

    fn end_by_time(&mut self) -> Result<SaveResult, String> {
        let Some(series) = &mut self.series else {
            say(&format!("Maximum file limit reached: {}", self.end.map_or(0, |(_, files)| files)));
            return Ok(SaveResult::LimitReached);
        };
        (series.begun_s, series.begun_ns) = (clock::wall().seconds, clock::boottime_ns());
        series.ended += 1;
        let limit = series.files_max.filter(|most| series.bytes_max.is_none() && series.ended >= *most);
        if let Some(most) = limit {
            self.end_file();
            if let Some(series) = &mut self.series {
                series.files.run_commands(&self.path);
            }
            say(&format!("Maximum file limit reached: {most}"));
            return Ok(SaveResult::LimitReached);
        }
        self.rotate(|series| series.number = 0)?;
        Ok(SaveResult::Yes)
    }

    /// Continues in the next file. It may have the same name as the current one, which is therefore written out first.
    fn rotate(&mut self, advance: impl Fn(&mut Series)) -> Result<(), String> {
        self.end_file();
        let Some(series) = &mut self.series else { return Ok(()) };
        advance(series);
        let NewFile { file, path } = series.begin()?;
        self.file.replace(file, path.display().to_string());
        let before = std::mem::replace(&mut self.path, path);
        series.files.run_commands(&before);
        self.begin_file();
        Ok(())
    }

    /// Begins a file. In pcap it has a header even without packets.
    fn begin_file(&mut self) {
        self.format.begin_file();
        self.format.begin(self.link_type, &mut self.file.buffer);
    }

    /// Appends the end of the file.
    fn put_end(&mut self) {
        self.format.end_file(self.link_type, &|_| IfaceStatistics::default(), &mut self.file.buffer);
    }

    fn end_file(&mut self) {
        self.put_end();
        self.write_out();
    }

    fn write_out(&mut self) {
        if self.file.write_out() {
            return;
        }
        match self.file.is_empty() {
            true => self.begin_file(),
            false => self.format.continue_file(),
        }
    }

    /// Writes the rest; the error reports what is missing.
    pub(super) fn finish(mut self) -> Result<(), String> {
        self.put_end();
        let FileEnd { not_written, missing_data, is_closed, .. } = self.file.finish();
        match not_written {
            0 => missing_data.map_or(Ok(()), Err),
            _ if is_closed => Ok(()),
            1 => Err("1 packet was not written".to_owned()),
            packets => Err(format!("{packets} packets were not written")),
        }
    }
}

/// When `-G` and `-W` end a run that writes to standard output, and the number of files that it would have written.
fn end_of_stdout(switches: &SaveSwitches) -> Option<(u64, u64)> {
    let files = switches.files_max.filter(|_| switches.seconds > 0 && switches.bytes_max.is_none())?;
    let ns = switches.seconds.saturating_mul(files).saturating_mul(SECOND_NS);
    Some((clock::boottime_ns().saturating_add(ns), files))
}

/// The link type used in files: libpcap has three numbers for raw IP.
pub(super) fn saved_link_type(link_type: LinkType) -> LinkType {
    if matches!(link_type.0, 12 | 14) { LinkType::RAW } else { link_type }
}

/// tcpdump's message for a file that cannot be opened.
fn not_opened(path: &Path, error: &io::Error) -> String {
    format!("{}: {}", sys::escape_bytes(path.as_os_str().as_bytes()), crate::strerror::strerror(error))
}

/// The directory in which later files are created.
pub(super) fn later_folder(switches: &SaveSwitches) -> Option<PathBuf> {
    let path = switches.several()?;
    let place = SaveNames::new(path, switches).place;
    Some(folder_of(&place.join("file")).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(path: &str, files_max: Option<u64>, bytes_max: Option<u64>, seconds: u64) -> SaveNames {
        let switches = SaveSwitches { files_max, bytes_max, seconds, ..SaveSwitches::default() };
        SaveNames::new(Path::new(path), &switches)
    }

    #[test]
    fn numbers_have_as_many_digits_as_the_last() {
        let with = |files_max| names("d/x", files_max, Some(1), 0);
        let all = |names: SaveNames, numbers: &[u64]| {
            let name = |number: &u64| names.name(*number, 0).into_string().unwrap();
            numbers.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(all(with(None), &[0, 1, 12]), ["x", "x1", "x12"]);
        assert_eq!(all(with(Some(1)), &[0, 0]), ["x", "x"]);
        assert_eq!(all(with(Some(2)), &[0, 1]), ["x0", "x1"]);
        assert_eq!(all(with(Some(10)), &[0, 9]), ["x0", "x9"]);
        assert_eq!(all(with(Some(11)), &[0, 10]), ["x00", "x10"]);
        assert_eq!(all(names("x", Some(20), None, 5), &[0]), ["x"], "without -C there are no numbers");
        assert_eq!(with(None).place, Path::new("d"));
    }

    #[test]
    fn formats_are_those_of_the_time() {
        let by_time = names("/d/%Y/a/%s.pcap", None, None, 5);
        assert_eq!((by_time.place.as_path(), by_time.prefix().as_path()), (Path::new("/d"), Path::new("/d/")));
        let year = clock::local_time(1_700_000_000).unwrap().year;
        assert_eq!(by_time.name(0, 1_700_000_000).to_str().unwrap(), format!("{year}/a/1700000000.pcap"));
        assert_eq!(names("x-%s", Some(3), Some(1), 5).name(2, 17).to_str().unwrap(), "x-172");
        assert_eq!(names("a/x-%s", None, None, 5).prefix(), Path::new("a/x-"));
        assert_eq!(names("a/x-%s", None, None, 0).name(0, 17), "x-%s", "without -G it is a name");
    }
}
