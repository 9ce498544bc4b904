//! The switches of tcpdump 4.99.

use crate::faces::getopt::{Getopt, Spec};
use sinks::face::tcpdump::{Dump, Stamp, TcpdumpOptions};
use std::path::PathBuf;

/// What a switch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TcpdumpSwitch {
    /// One of those that change lines, by its letter.
    Line(u8),
    Count,
    CountOnly,
    File,
    FilterFile,
    EachLine,
    Nano,
    Micro,
    /// Means nothing where a file is read.
    Ignored,
    /// Means a capture, or a file to write.
    Elsewhere,
    Help,
    Version,
}

use TcpdumpSwitch as T;

const fn spec(letter: u8, long: &'static str, value: bool, what: T) -> Spec<T> {
    Spec { letter, long, value, what }
}

const SWITCHES: &[Spec<T>] = &[
    spec(b'n', "", false, T::Ignored),
    spec(b'N', "", false, T::Ignored),
    spec(b'e', "", false, T::Line(b'e')),
    spec(b't', "", false, T::Line(b't')),
    spec(b'q', "", false, T::Line(b'q')),
    spec(b'v', "", false, T::Line(b'v')),
    spec(b'x', "", false, T::Line(b'x')),
    spec(b'X', "", false, T::Line(b'X')),
    spec(b'A', "", false, T::Line(b'A')),
    spec(b'S', "absolute-tcp-sequence-numbers", false, T::Line(b'S')),
    spec(b'K', "dont-verify-checksums", false, T::Line(b'K')),
    spec(b'#', "number", false, T::Line(b'#')),
    spec(b'c', "", true, T::Count),
    spec(0, "count", false, T::CountOnly),
    spec(b'r', "", true, T::File),
    spec(b'F', "", true, T::FilterFile),
    spec(b'l', "", false, T::EachLine),
    spec(b'U', "packet-buffered", false, T::EachLine),
    spec(0, "nano", false, T::Nano),
    spec(0, "micro", false, T::Micro),
    spec(b'O', "no-optimize", false, T::Ignored),
    spec(b'p', "no-promiscuous-mode", false, T::Ignored),
    spec(b's', "snapshot-length", true, T::Ignored),
    spec(b'B', "buffer-size", true, T::Ignored),
    spec(b'Z', "relinquish-privileges", true, T::Ignored),
    spec(0, "immediate-mode", false, T::Ignored),
    spec(0, "print", false, T::Ignored),
    spec(b'i', "interface", true, T::Elsewhere),
    spec(b'w', "", true, T::Elsewhere),
    spec(b'D', "list-interfaces", false, T::Elsewhere),
    spec(b'L', "list-data-link-types", false, T::Elsewhere),
    spec(b'h', "help", false, T::Help),
    spec(0, "version", false, T::Version),
];

/// What was asked for.
pub(super) enum TcpdumpCall {
    Help,
    Version,
    Run(TcpdumpRun),
}

/// A run over a file.
pub(super) struct TcpdumpRun {
    /// `-r`
    pub(super) file: PathBuf,
    /// How lines look.
    pub(super) options: TcpdumpOptions,
    /// `-c`: packets after which it ends.
    pub(super) count: Option<u64>,
    /// `--count`: only how many there are.
    pub(super) count_only: bool,
    /// `-l`
    pub(super) each_line: bool,
    /// The words of the filter, or what `-F` names.
    pub(super) filter: FilterText,
}

/// Where the filter's text is.
pub(super) enum FilterText {
    Words(String),
    File(PathBuf),
}

const ELSEWHERE: &str = "this face reads files (-r FILE); packets of interfaces, and files of packets to write, are \
                         `netwren capture`: -i IFACE, --to pcapng:FILE";

/// Reads the words; the error is the message.
pub(super) fn parse(words: Vec<Vec<u8>>, plain: TcpdumpOptions) -> Result<TcpdumpCall, String> {
    let path = |bytes: Vec<u8>| PathBuf::from(std::ffi::OsString::from(String::from_utf8_lossy(&bytes).into_owned()));
    let (mut options, mut stamps) = (plain, 0_usize);
    let (mut file, mut filter_file, mut count) = (None, None, None);
    let (mut count_only, mut each_line) = (false, false);
    let mut getopt = Getopt::new(SWITCHES, words);
    while let Some((what, value)) = getopt.next()? {
        match what {
            T::Line(b't') => stamps += 1,
            T::Line(letter) => set(&mut options, letter),
            T::Count => count = Some(packets(&value)?),
            T::CountOnly => count_only = true,
            T::File => file = Some(path(value)),
            T::FilterFile => filter_file = Some(path(value)),
            T::EachLine => each_line = true,
            T::Nano => options.nanoseconds = true,
            T::Micro => options.nanoseconds = false,
            T::Ignored => {}
            T::Elsewhere => return Err(ELSEWHERE.to_owned()),
            T::Help => return Ok(TcpdumpCall::Help),
            T::Version => return Ok(TcpdumpCall::Version),
        }
    }
    options.stamp = stamp(stamps);
    let file = file.ok_or_else(|| ELSEWHERE.to_owned())?;
    let words: Vec<String> = getopt.into_rest().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let filter = filter_file.map_or_else(|| FilterText::Words(words.join(" ")), FilterText::File);
    Ok(TcpdumpCall::Run(TcpdumpRun { file, options, count, count_only, each_line, filter }))
}

/// One time more than five is as five.
fn stamp(times: usize) -> Stamp {
    match times {
        0 => Stamp::TimeOfDay,
        1 => Stamp::None,
        2 => Stamp::Epoch,
        3 => Stamp::SincePrevious,
        4 => Stamp::Date,
        _ => Stamp::SinceFirst,
    }
}

fn set(options: &mut TcpdumpOptions, letter: u8) {
    match letter {
        b'e' => options.link_header = true,
        b'q' => options.quiet = options.quiet.saturating_add(1),
        b'v' => options.verbose = options.verbose.saturating_add(1),
        b'S' => options.absolute_sequence = true,
        b'K' => options.no_checksums = true,
        b'#' => options.numbers = true,
        _ => {
            let dump = match letter {
                b'x' => Dump::Hex,
                b'X' => Dump::HexAndText,
                _ => Dump::Text,
            };
            // Twice the same: from the link-layer header on.
            options.dump_link_header |= options.dump == dump;
            options.dump = dump;
        }
    }
}

fn packets(value: &[u8]) -> Result<u64, String> {
    let shown = sys::escaped(value);
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| format!("invalid packet count {shown}"))
}
