//! The tcpdump 4.99 face: prints its lines for the packets of interfaces and files. docs/tcpdump.md lists the
//! differences.

mod filter;
mod interfaces;
mod live;
mod names;
pub mod output;
mod program;
mod rare;
mod save_switches;
mod saving;
mod switches;

use super::Call;
use super::text::{self, warn};
use crate::strerror::strerror;
use crate::tcpdump::output::{CapturedBytes, Tcpdump, TcpdumpOptions};
use capture::{FileError, FileFault, FilePacket, PacketFile, SNAPLEN_MAX};
use filter::PacketFilter;
use names::{NameWait, NamesEnd};
use packet_files::is_input;
use pcapfilter::{Packet, PacketOrigin};
use record::SinkError;
use record::rows::{CapturedPacket, LinkType, UnusualTime};
use runtime::local_time::local_time;
use runtime::stdout::Stdout;
use saving::{SaveResult, SavedKind, Saver, saved_link_type};
use sinks::Out;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use switches::{TcpdumpCall, TcpdumpRun};
use sys::caps::{Cap, CapSet};

const VERSION: &str = concat!("tcpdump version 4.99.3 (netwren ", env!("CARGO_PKG_VERSION"), ")\n");

const HELP: &str = "\
Usage: tcpdump [-AbdDefhHIJKlLnNOpqStuUvxX#] [ -B size ] [ -c count ] [--count]
		[ -C file_size ] [ -F file ] [ -G seconds ] [ -i interface ] [ --immediate-mode ] [ -j tstamptype ]
		[ --number ] [ --print ] [ -Q in|out|inout ] [ -r file ] [ -s snaplen ]
		[ -T type ] [ --version ] [ -V file ] [ -y datalinktype ]
		[ --time-stamp-precision precision ] [ --micro ] [ --nano ]
		[ -w file ] [ -W filecount ] [ -z postrotate-command ]
		[ -Z user ] [ expression ]

This is netwren, in place of tcpdump 4.99: the packets of an interface, or of a pcap or pcapng file (also .gz and
.zst), in tcpdump's lines, or written into files (-w): pcap, or pcapng if the name ends in .pcapng.
";

/// tcpdump's exit code for all errors.
const FAILED: u8 = 1;

/// The switches of tcpdump, for completion.
pub(crate) fn switches() -> Vec<String> {
    switches::written()
}

/// True if the arguments are switches of tcpdump and an expression that compiles for Ethernet.
pub(crate) fn accepts(call: &Call) -> bool {
    match switches::parse(call.words(), TcpdumpOptions::new(local_time)) {
        Ok(TcpdumpCall::Run(run)) => {
            let origin = PacketOrigin::Live { vlan_beside: true };
            PacketFilter::new(&run, u32::from(LinkType::ETHERNET.0), origin, SNAPLEN_MAX, 0).is_ok()
        }
        Ok(TcpdumpCall::Misused(_)) | Err(_) => false,
        Ok(_) => true,
    }
}

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &Call) -> u8 {
    let done = match switches::parse(call.words(), TcpdumpOptions::new(local_time)) {
        Ok(TcpdumpCall::Help) => return text::print(HELP, FAILED),
        Ok(TcpdumpCall::Version) => return text::print(VERSION, FAILED),
        Ok(TcpdumpCall::Misused(message)) => {
            say(&format!("tcpdump: {message}\n{VERSION}{}", HELP.trim_end()));
            return FAILED;
        }
        Ok(TcpdumpCall::Interfaces) => interfaces::list().map(|text| _ = text::print(&text, FAILED)),
        Ok(TcpdumpCall::LinkTypes(iface)) => interfaces::link_types(iface.as_deref()).map(|text| say(text.trim_end())),
        Ok(TcpdumpCall::StampTypes(iface)) => {
            interfaces::stamp_types(iface.as_deref()).map(|text| say(text.trim_end()))
        }
        Ok(TcpdumpCall::Run(run)) => {
            let run = TcpdumpRun { bug_compatible: call.bug_compatible, ..*run };
            match () {
                () if run.rare.program_form > 0 => program::print(&run).map(|text| _ = text::print(&text, FAILED)),
                () if run.reads_files() => read(&run),
                () => live::capture(&run),
            }
        }
        Err(message) => Err(message),
    };
    match done {
        Ok(()) => 0,
        Err(message) => {
            say(&format!("tcpdump: {message}"));
            FAILED
        }
    }
}

/// Writes a line to stderr like tcpdump. Ignores a closed stderr.
fn say(line: &str) {
    warn(&format!("{line}\n"));
}

/// A file of a run.
struct FileOfRun<'p> {
    path: &'p Path,
    file: PacketFile,
    link_type: u32,
    snaplen: u32,
}

impl FileOfRun<'_> {
    /// Opens the file and reads its header.
    fn open(path: &Path) -> Result<FileOfRun<'_>, String> {
        let file = PacketFile::open(path).map_err(|error| open_error(path, &error))?;
        let (link_type, snaplen) = file.ifaces().first().map_or((1, 0), |iface| (iface.link_type, iface.snaplen));
        Ok(FileOfRun { path, file, link_type, snaplen })
    }

    /// Rejects a file whose link type is not decoded.
    fn check(&self) -> Result<(), String> {
        if !Tcpdump::knows(link_type(self.link_type)) {
            return Err(format!("packet printing is not supported for link type {}: use -w", self.link_type));
        }
        Ok(())
    }

    fn say_begin(&self, is_first: bool) {
        let shown = sys::escape_bytes(self.path.as_os_str().as_bytes());
        let name = filter::link_words(self.link_type);
        let snaplen = filter::shown_snaplen(self.snaplen);
        say(&format!("reading from file {shown}, link-type {name}, snapshot length {snaplen}"));
        if is_first && self.link_type == u32::from(LinkType::SLL2.0) {
            say("Warning: interface names might be incorrect");
        }
    }
}

/// The message for a file that cannot be opened: the system's text for errors of the system, as in tcpdump.
fn open_error(path: &Path, error: &FileError) -> String {
    match &error.fault {
        FileFault::Io(io) if io.raw_os_error().is_some() && io.kind() != std::io::ErrorKind::IsADirectory => {
            format!("{}: {}", sys::escape_bytes(path.as_os_str().as_bytes()), strerror(io))
        }
        _ => error.to_string(),
    }
}

/// Prints the packets of all files in turn; the error is tcpdump's message. After a file that ends with an error, the
/// next one is still printed.
fn read(run: &TcpdumpRun) -> Result<(), String> {
    let mut saver = None;
    let ended = read_files(run, &mut saver);
    // Packets read before an error are in the file.
    ended.and(saver.map_or(Ok(()), Saver::finish))
}

fn read_files(run: &TcpdumpRun, saver: &mut Option<Saver>) -> Result<(), String> {
    let mut out = Out::new(Stdout::new()).each_line(run.each_line);
    let (mut printer, names_end) = printer(run);
    // This host's interfaces are unrelated to those in the file; they are shown only in `bug_compatible` mode.
    let ifaces = if run.bug_compatible { interfaces::names() } else { HashMap::new() };
    let (mut packets, mut ended) = (0, Ok(()));
    let mut first_link = 0;
    for (nth, path) in run.files()?.enumerate() {
        if let Err(message) = std::mem::replace(&mut ended, Ok(())) {
            say(&format!("tcpdump: {message}"));
        }
        if run.save.path.as_ref().is_some_and(|output| is_input([path.as_path()], output)) {
            let shown = sys::escape_bytes(path.as_os_str().as_bytes());
            return Err(format!("{shown}: -w would overwrite the input file"));
        }
        let mut file = FileOfRun::open(&path)?;
        // The first file is announced before it is checked, the others after it.
        if nth == 0 {
            file.say_begin(true);
        }
        let origin = PacketOrigin::File { is_swapped: file.file.is_swapped() };
        let filter = PacketFilter::new(run, file.link_type, origin, SNAPLEN_MAX, 0)?;
        if run.is_printing() {
            file.check()?;
        }
        match saver {
            None if nth == 0 => *saver = save(run, &file)?,
            Some(_) if file.link_type != first_link => {
                return Err(format!(
                    "{}: new dlt does not match original",
                    sys::escape_bytes(path.as_os_str().as_bytes())
                ));
            }
            _ => {}
        }
        first_link = file.link_type;
        if nth > 0 {
            file.say_begin(false);
        } else {
            confine(run, names_end.as_ref())?;
        }
        let mut outputs = Outputs { printer: &mut printer, ifaces: &ifaces, saver: saver.as_mut(), out: &mut out };
        let printed = print_all(run, &mut file.file, &filter, &mut outputs);
        // Lines printed before an error appear before its message.
        ended = match out.flush().and(printed) {
            Ok((more, message)) => {
                packets += more;
                message.map_or(Ok(()), Err)
            }
            Err(SinkError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
    }
    if run.count_only {
        put_count(packets, out.buf());
        let _ = out.flush();
    }
    names_end.iter().for_each(NamesEnd::say);
    ended
}

/// Drops the privileges that parsing packets of files does not need. The file is already open and its header was read;
/// files named by a list (`-V`) are opened later.
fn confine(run: &TcpdumpRun, names: Option<&NamesEnd>) -> Result<(), String> {
    // The first use of the time zone reads its file.
    let _ = local_time(0);
    let mut needed = live::needed_rights(run, None);
    if run.rare.file_list.is_some() {
        needed.reads_files = true;
        needed.caps = CapSet(needed.caps.0 | CapSet::from_caps(&[Cap::DacReadSearch]).0);
    }
    needed.drop_capabilities(names.and_then(NamesEnd::resolver), None)?;
    needed.confine();
    Ok(())
}

/// Creates the file of `-w`, with the format of the input file.
fn save(run: &TcpdumpRun, file: &FileOfRun<'_>) -> Result<Option<Saver>, String> {
    let commands = Saver::commands(&run.save, None)?;
    let kind = SavedKind {
        link_type: saved_link_type(link_type(file.link_type)),
        snaplen: filter::shown_snaplen(file.snaplen),
        nanoseconds: run.options.nanoseconds,
    };
    Saver::open(&run.save, kind, commands)
}

/// Outputs for the packets of files.
struct Outputs<'o> {
    printer: &'o mut Tcpdump,
    ifaces: &'o HashMap<u32, String>,
    saver: Option<&'o mut Saver>,
    out: &'o mut Out<Stdout>,
}

/// Makes the printer of lines; it shows names unless `-n` was given.
fn printer(run: &TcpdumpRun) -> (Tcpdump, Option<NamesEnd>) {
    let printer = Tcpdump::new(run.options);
    if !run.named || !run.is_printing() {
        return (printer, None);
    }
    let (names, end) = names::start(NameWait::UntilAnswered, None);
    (printer.named(names), Some(end))
}

/// Prints until the file ends or the count is reached. Returns the number of packets, and the message of an error that
/// ended it.
fn print_all(
    run: &TcpdumpRun,
    file: &mut PacketFile,
    filter: &PacketFilter,
    outputs: &mut Outputs<'_>,
) -> Result<(u64, Option<String>), SinkError> {
    let mut packets = 0;
    let ended = loop {
        let packet = match file.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break None,
            Err(error) if error.is_interrupted() => break None,
            Err(error) => break Some(format!("pcap_loop: {error}")),
        };
        if !filter.takes(&Packet { bytes: packet.bytes, length: packet.len, metadata: None }) {
            continue;
        }
        packets += 1;
        if let Some(saver) = outputs.saver.as_deref_mut() {
            match saver.save(&saved_row(&packet)) {
                Ok(SaveResult::Yes) => {}
                Ok(SaveResult::Closed) => break None,
                Ok(SaveResult::LimitReached) => {
                    say("pcap_stats: Statistics aren't available from savefiles");
                    break None;
                }
                Err(message) => break Some(message),
            }
        }
        if run.is_printing() {
            put(outputs.printer, outputs.ifaces, &packet, outputs.out)?;
        }
        if run.count == Some(packets) {
            break None;
        }
    };
    Ok((packets, ended))
}

/// `--count`: prints the number of packets.
fn put_count(packets: u64, out: &mut Vec<u8>) {
    record::text::put_u64(out, packets);
    out.extend_from_slice(if packets == 1 { b" packet\n" } else { b" packets\n" });
}

/// Converts the packet for the output file.
fn saved_row<'p>(packet: &FilePacket<'p>) -> CapturedPacket<'p> {
    CapturedPacket {
        time_ns: packet.time_ns,
        unusual_time: packet.unusual_time,
        ifindex: packet.number,
        iface: packet.iface_name,
        link_type: saved_link_type(link_type(packet.link_type)),
        packet_type: packet.packet_type,
        len: packet.len,
        frame: packet.bytes,
        ..CapturedPacket::default()
    }
}

fn put(
    printer: &mut Tcpdump,
    ifaces: &HashMap<u32, String>,
    packet: &FilePacket<'_>,
    out: &mut Out<Stdout>,
) -> Result<(), SinkError> {
    let bytes = CapturedBytes {
        link_type: link_type(packet.link_type),
        bytes: packet.bytes,
        len: packet.len,
        time_ns: packet.time_ns,
        far: packet.unusual_time.and_then(UnusualTime::to_far_time),
    };
    printer.print(&bytes, &|number| ifaces.get(&number).map(String::as_str), out.buf());
    out.line_done()
}

fn link_type(number: u32) -> LinkType {
    u16::try_from(number).map_or(LinkType::UNKNOWN, LinkType)
}
