//! The switches of tcpdump 4.99.

use super::rare::{self, RareSwitch as R, RareSwitches, is_nano, leading_number};
use super::save_switches::{SaveSwitch as S, SaveSwitches};
use crate::getopt::{self, Getopt, Spec, spec};
use crate::tcpdump::output::{Dump, Stamp, TcpdumpOptions};
use capture::SNAPLEN_MAX;
use lookups::filter_names::FilterNames;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The meaning of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TcpdumpSwitch {
    /// A switch that changes lines, by its letter.
    Line(u8),
    Count,
    CountOnly,
    File,
    FilterFile,
    EachLine,
    Nano,
    Micro,
    /// Either always in effect, or for protocols that are not decoded.
    Ignored,
    Numbers,
    ShortNames,
    OwnNetworkOnly,
    /// A switch from `rare.rs`.
    Rare(R),
    /// A switch from `save_switches.rs`.
    Save(S),
    Unbuffered,
    Interface,
    NotPromiscuous,
    Direction,
    Snaplen,
    Buffer,
    User,
    Immediate,
    StampType,
    Precision,
    ListInterfaces,
    ListLinkTypes,
    ListStampTypes,
    Help,
    Version,
}

use TcpdumpSwitch as T;

#[rustfmt::skip]
const SWITCHES: &[Spec<T>] = &[
    spec(b'n', "", false, T::Numbers), spec(b'N', "", false, T::ShortNames), spec(b'f', "", false, T::OwnNetworkOnly),
    spec(b'e', "", false, T::Line(b'e')), spec(b't', "", false, T::Line(b't')), spec(b'q', "", false, T::Line(b'q')),
    spec(b'v', "", false, T::Line(b'v')), spec(b'x', "", false, T::Line(b'x')), spec(b'X', "", false, T::Line(b'X')),
    spec(b'A', "", false, T::Line(b'A')), spec(b'S', "absolute-tcp-sequence-numbers", false, T::Line(b'S')),
    spec(b'K', "dont-verify-checksums", false, T::Line(b'K')), spec(b'#', "number", false, T::Line(b'#')),
    spec(b'c', "", true, T::Count), spec(0, "count", false, T::CountOnly), spec(b'r', "", true, T::File),
    spec(b'F', "", true, T::FilterFile), spec(b'l', "", false, T::EachLine),
    spec(b'U', "packet-buffered", false, T::Unbuffered), spec(b'w', "", true, T::Save(S::Path)),
    spec(b'C', "", true, T::Save(S::Size)), spec(b'W', "", true, T::Save(S::Files)),
    spec(b'G', "", true, T::Save(S::Seconds)), spec(b'z', "", true, T::Save(S::Command)),
    spec(0, "nano", false, T::Nano), spec(0, "micro", false, T::Micro), spec(b'O', "no-optimize", false, T::Ignored),
    spec(b'a', "", false, T::Ignored), spec(b'b', "", false, T::Ignored), spec(b'H', "", false, T::Ignored),
    spec(b'u', "", false, T::Ignored), spec(b'd', "", false, T::Rare(R::Program)),
    spec(b'y', "linktype", true, T::Rare(R::LinkType)), spec(b'V', "", true, T::Rare(R::FileList)),
    spec(b'T', "", true, T::Rare(R::PacketType)), spec(b'I', "monitor-mode", false, T::Rare(R::Monitor)),
    spec(b'm', "", true, T::Rare(R::SmiModule)), spec(b'E', "", true, T::Rare(R::EspSecret)),
    spec(b'M', "", true, T::Rare(R::Md5Secret)), spec(b'p', "no-promiscuous-mode", false, T::NotPromiscuous),
    spec(b's', "snapshot-length", true, T::Snaplen), spec(b'B', "buffer-size", true, T::Buffer),
    spec(b'Z', "relinquish-privileges", true, T::User), spec(0, "immediate-mode", false, T::Immediate),
    spec(0, "print", false, T::Save(S::Print)), spec(b'i', "interface", true, T::Interface),
    spec(b'Q', "direction", true, T::Direction), spec(b'j', "time-stamp-type", true, T::StampType),
    spec(b'J', "list-time-stamp-types", false, T::ListStampTypes), spec(0, "time-stamp-precision", true, T::Precision),
    spec(b'D', "list-interfaces", false, T::ListInterfaces),
    spec(b'L', "list-data-link-types", false, T::ListLinkTypes), spec(b'h', "help", false, T::Help),
    spec(0, "version", false, T::Version),
];

/// The task that the command line selects.
pub(super) enum TcpdumpCall {
    Help,
    Version,
    /// An unknown switch or a missing value, with the message.
    Misused(String),
    /// `-D`
    Interfaces,
    /// `-L` for an interface.
    LinkTypes(Option<String>),
    /// `-J` for an interface.
    StampTypes(Option<String>),
    Run(Box<TcpdumpRun>),
}

/// A run that reads files, or captures on an interface.
pub(super) struct TcpdumpRun {
    pub(super) rare: RareSwitches,
    pub(super) save: SaveSwitches,
    /// `-r`
    pub(super) file: Option<PathBuf>,
    /// Switches for a capture on an interface.
    pub(super) live: LiveSwitches,
    /// The format of lines.
    pub(super) options: TcpdumpOptions,
    /// True without `-n`: names instead of numbers.
    pub(super) named: bool,
    /// `--bug-compatible`
    pub(super) bug_compatible: bool,
    /// `-f`: hosts of other networks are shown as numbers.
    pub(super) own_network_only: bool,
    /// `-c`: number of packets after which the run ends.
    pub(super) count: Option<u64>,
    /// `--count`: print only the number of packets.
    pub(super) count_only: bool,
    /// `-l`
    pub(super) each_line: bool,
    /// The filter expression, or the file of `-F`.
    pub(super) filter: FilterText,
    /// Addresses of host names in the filter; each name is resolved once.
    pub(super) filter_names: FilterNames,
}

/// The switches of a capture.
pub(super) struct LiveSwitches {
    /// `-i`: a name, or a number in the list of `-D`.
    pub(super) iface: Option<String>,
    /// `-s`
    pub(super) snaplen: u32,
    /// `-B`, in bytes.
    pub(super) buffer_bytes: Option<usize>,
    /// False with `-p`.
    pub(super) promiscuous: bool,
    /// `-Q in`, `-Q out`: true for packets that this host sends.
    pub(super) outgoing: Option<bool>,
    /// `--immediate-mode`
    pub(super) is_immediate: bool,
    /// `-j`
    pub(super) stamp_type: Option<String>,
    /// `-Z`
    pub(super) user: Option<String>,
}

impl TcpdumpRun {
    /// True if packets are printed as lines.
    pub(super) fn is_printing(&self) -> bool {
        self.save.is_printing(self.count_only)
    }

    /// True if the run writes to standard output.
    pub(super) fn uses_stdout(&self) -> bool {
        self.save.path.as_deref().is_none_or(|path| path == std::path::Path::new("-")) || self.is_printing()
    }

    /// True if packets come from files.
    pub(super) fn reads_files(&self) -> bool {
        self.file.is_some() || self.rare.file_list.is_some()
    }

    /// The file of `-r`, or the files listed one per line in the file of `-V`.
    pub(super) fn files(&self) -> Result<std::vec::IntoIter<PathBuf>, String> {
        let Some(list) = &self.rare.file_list else {
            return Ok(self.file.iter().cloned().collect::<Vec<_>>().into_iter());
        };
        let files = rare::listed_files(list)?;
        if files.is_empty() {
            return Err(format!("Nothing in {}", sys::escape_bytes(list.as_os_str().as_encoded_bytes())));
        }
        Ok(files.into_iter())
    }
}

/// The source of the filter's text.
pub(super) enum FilterText {
    Words(String),
    File(PathBuf),
}

/// Names of time stamp types (pcap-tstamp(7)).
const STAMP_TYPES: [&str; 6] =
    ["host", "host_lowprec", "host_hiprec", "host_hiprec_unsynced", "adapter", "adapter_unsynced"];
/// `-B` is in KiB; the largest ring is 1 GiB.
const BUFFER_KIB_MAX: usize = 1 << 20;

/// Parses the command line; the error is the message.
pub(super) fn parse(words: Vec<Vec<u8>>, plain: TcpdumpOptions) -> Result<TcpdumpCall, String> {
    let path = |bytes: Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(bytes));
    let (mut options, mut stamps) = (plain, 0_usize);
    let (mut file, mut filter_file, mut count) = (None, None, None);
    let (mut count_only, mut each_line, mut list) = (false, false, None);
    let (mut named, mut own_network_only) = (true, false);
    let mut live = LiveSwitches::default();
    let mut getopt = Getopt::new(SWITCHES, words);
    let mut rare = RareSwitches::default();
    let mut save = SaveSwitches::default();
    loop {
        let (what, value) = match getopt.next() {
            Ok(Some(next)) => next,
            Ok(None) => break,
            Err(message) => return Ok(TcpdumpCall::Misused(message)),
        };
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
            T::Precision => options.nanoseconds = is_nano(&value)?,
            T::Numbers => named = false,
            T::ShortNames => options.short_names = true,
            T::OwnNetworkOnly => own_network_only = true,
            T::Ignored => {}
            T::ListInterfaces | T::ListLinkTypes | T::ListStampTypes => list = Some(what),
            T::Rare(what) => rare.set(what, value)?,
            T::Save(what) => save.set(what, value)?,
            T::Unbuffered => (each_line, save.is_unbuffered) = (true, true),
            T::Help => return Ok(TcpdumpCall::Help),
            T::Version => return Ok(TcpdumpCall::Version),
            other => live.set(other, &value)?,
        }
    }
    match list {
        Some(T::ListInterfaces) => return Ok(TcpdumpCall::Interfaces),
        Some(T::ListLinkTypes) => return Ok(TcpdumpCall::LinkTypes(live.iface)),
        Some(_) => return Ok(TcpdumpCall::StampTypes(live.iface)),
        None => {}
    }
    options.stamp = stamp(stamps)?;
    options.packet_type = rare.packet_type;
    rare.check(own_network_only, file.is_some())?;
    let words: Vec<String> = getopt.into_rest().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let filter = filter_file.map_or_else(|| FilterText::Words(words.join(" ")), FilterText::File);
    Ok(TcpdumpCall::Run(Box::new(TcpdumpRun {
        rare,
        save,
        file,
        live,
        options,
        named,
        own_network_only,
        bug_compatible: false,
        count,
        count_only,
        each_line,
        filter,
        filter_names: FilterNames::default(),
    })))
}

impl Default for LiveSwitches {
    fn default() -> LiveSwitches {
        LiveSwitches {
            iface: None,
            snaplen: SNAPLEN_MAX,
            buffer_bytes: None,
            promiscuous: true,
            outgoing: None,
            is_immediate: false,
            stamp_type: None,
            user: None,
        }
    }
}

impl LiveSwitches {
    /// Applies a switch of a capture; the error is the message.
    fn set(&mut self, what: TcpdumpSwitch, value: &[u8]) -> Result<(), String> {
        let text = || String::from_utf8_lossy(value).into_owned();
        let shown = || sys::escape_bytes(value);
        match what {
            T::Interface => self.iface = Some(text()),
            T::NotPromiscuous => self.promiscuous = false,
            T::Direction => {
                self.outgoing = match value.to_ascii_lowercase().as_slice() {
                    b"in" => Some(false),
                    b"out" => Some(true),
                    b"inout" => None,
                    _ => return Err(format!("unknown capture direction `{}'", shown())),
                };
            }
            T::Snaplen => {
                let number = rare::number(value).filter(|number| *number <= SNAPLEN_MAX);
                let number =
                    number.ok_or_else(|| format!("invalid snaplen {} (must be >= 0 and <= {SNAPLEN_MAX})", shown()))?;
                self.snaplen = if number == 0 { SNAPLEN_MAX } else { number };
            }
            T::Buffer => {
                let kib = leading_number(value).and_then(|kib| usize::try_from(kib).ok());
                let kib = kib.filter(|kib| (1..=BUFFER_KIB_MAX).contains(kib));
                self.buffer_bytes = Some(kib.ok_or_else(|| format!("invalid packet buffer size {}", shown()))? << 10);
            }
            T::Immediate => self.is_immediate = true,
            T::StampType => {
                if !STAMP_TYPES.iter().any(|name| name.as_bytes() == value) {
                    return Err(format!("invalid time stamp type {}", shown()));
                }
                self.stamp_type = Some(text());
            }
            T::User => self.user = Some(text()),
            _ => {}
        }
        Ok(())
    }
}

fn stamp(times: usize) -> Result<Stamp, String> {
    Ok(match times {
        0 => Stamp::TimeOfDay,
        1 => Stamp::None,
        2 => Stamp::Epoch,
        3 => Stamp::SincePrevious,
        4 => Stamp::Date,
        5 => Stamp::SinceFirst,
        _ => return Err("only -t, -tt, -ttt, -tttt and -ttttt are supported".to_owned()),
    })
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
            // A repeated switch starts the dump at the link-layer header.
            options.dump_link_header |= options.dump == dump;
            options.dump = dump;
        }
    }
}

fn packets(value: &[u8]) -> Result<u64, String> {
    let shown = sys::escape_bytes(value);
    leading_number(value).filter(|number| *number > 0).ok_or_else(|| format!("invalid packet count {shown}"))
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    getopt::written(SWITCHES)
}
