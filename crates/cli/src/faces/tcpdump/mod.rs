//! The face of tcpdump 4.99: its lines for the packets of interfaces and files. docs/tcpdump.md lists what is
//! different.

mod cooked;
mod filter;
mod interfaces;
mod live;
mod names;
mod switches;

use super::Call;
use crate::shipping::zone;
use crate::stdout::Stdout;
use crate::{exit::Exit, output};
use capture::{FilePacket, PacketFile, SNAPLEN_MAX};
use filter::PacketFilter;
use names::{NameWait, NamesEnd};
use pcapfilter::{Origin, Packet};
use record::SinkError;
use record::rows::LinkType;
use sinks::Out;
use sinks::face::tcpdump::{CapturedBytes, Tcpdump, TcpdumpOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use switches::{TcpdumpCall, TcpdumpRun};

const VERSION: &str = concat!("tcpdump version 4.99.3 (netwren ", env!("CARGO_PKG_VERSION"), ")\n");

const HELP: &str = "\
Usage: tcpdump [-AefKlnNOpqStUvxX#] [ -i interface | -r file ] [ -c count ] [ --count ]
		[ -F file ] [ -B size ] [ -s snaplen ] [ -Q in|out|inout ] [ -j tstamptype ]
		[ -Z user ] [ --immediate-mode ] [ --nano ] [ --micro ]
		[ --time-stamp-precision precision ] [ --version ] [ expression ]
       tcpdump -D
       tcpdump [ -i interface ] -L | -J

This is netwren in the place of tcpdump 4.99: the packets of an interface, or of a pcap or pcapng file (also .gz and
.zst), in tcpdump's lines. Files are written by
netwren capture -w FILE.
";

/// tcpdump's exit code for everything that goes wrong.
const FAILED: u8 = 1;

/// Runs the face; returns the exit code.
pub(crate) fn run(call: &Call) -> u8 {
    let words = call.args.iter().map(|word| word.as_bytes().to_vec()).collect();
    let done = match switches::parse(words, TcpdumpOptions::new(zone)) {
        Ok(TcpdumpCall::Help) => return printed(HELP),
        Ok(TcpdumpCall::Version) => return printed(VERSION),
        Ok(TcpdumpCall::Interfaces) => interfaces::list().map(|text| _ = printed(&text)),
        Ok(TcpdumpCall::LinkTypes(iface)) => interfaces::link_types(iface.as_deref()).map(|text| say(text.trim_end())),
        Ok(TcpdumpCall::StampTypes(iface)) => {
            interfaces::stamp_types(iface.as_deref()).map(|text| say(text.trim_end()))
        }
        Ok(TcpdumpCall::Run(run)) => {
            let run = TcpdumpRun { bug_compatible: call.bug_compatible, ..run };
            match &run.file {
                Some(file) => read(&run, file),
                None => live::capture(&run),
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

/// A line on stderr, as tcpdump writes it. A closed stderr is nobody's loss.
fn say(line: &str) {
    let _ = sys::out::Out::stderr().write_all(format!("{line}\n").as_bytes());
}

fn printed(text: &str) -> u8 {
    if output::print(text) == Exit::Ok { 0 } else { FAILED }
}

/// Prints the packets of the file; the error is tcpdump's message.
fn read(run: &TcpdumpRun, path: &Path) -> Result<(), String> {
    let mut file = PacketFile::open(path).map_err(|error| error.to_string())?;
    let first = file.ifaces().first().map_or((1, 0), |iface| (iface.link_type, iface.snaplen));
    if !Tcpdump::knows(link_type(first.0)) {
        return Err(format!("packet printing is not supported for link type {}: use -w", first.0));
    }
    say_begin(path, first);
    let filter = {
        let origin = Origin::File { is_swapped: file.is_swapped() };
        PacketFilter::new(&run.filter, first.0, origin, SNAPLEN_MAX, 0)?
    };
    let mut out = Out::new(Stdout::new()).each_line(run.each_line);
    let ended = print_all(run, &mut file, &filter, &mut out);
    // What was printed before an error is shown before it is told.
    match out.flush().and(ended) {
        Ok(None) | Err(SinkError::Closed) => Ok(()),
        Ok(Some(message)) => Err(message),
        Err(error) => Err(error.to_string()),
    }
}

fn say_begin(file: &Path, (link_type, snaplen): (u32, u32)) {
    let shown = sys::escaped(file.as_os_str().as_bytes());
    let name = filter::link_words(link_type);
    if link_type == u32::from(LinkType::SLL2.0) {
        say("Warning: interface names might be incorrect");
    }
    say(&format!("reading from file {shown}, link-type {name}, snapshot length {}", filter::shown_snaplen(snaplen)));
}

/// Prints until the file or the count ends; returns the message of what ended it else.
fn print_all(
    run: &TcpdumpRun,
    file: &mut PacketFile,
    filter: &PacketFilter,
    out: &mut Out<Stdout>,
) -> Result<Option<String>, SinkError> {
    let mut printer = Tcpdump::new(run.options);
    let mut names_end = None;
    if run.named && !run.count_only {
        let (names, end) = names::start(NameWait::UntilAnswered, None);
        (printer, names_end) = (printer.named(names), Some(end));
    }
    let mut packets = 0;
    let ended = loop {
        let packet = match file.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break None,
            Err(error) if error.is_interrupted() => continue,
            Err(error) => break Some(format!("pcap_loop: {error}")),
        };
        if !filter.takes(&Packet { bytes: packet.bytes, length: packet.len, metadata: None }) {
            continue;
        }
        packets += 1;
        if !run.count_only {
            put(&mut printer, &packet, out)?;
        }
        if run.count == Some(packets) {
            break None;
        }
    };
    if run.count_only && ended.is_none() {
        put_count(packets, out.buf());
    }
    names_end.iter().for_each(NamesEnd::say);
    Ok(ended)
}

/// `--count`: how many there were.
fn put_count(packets: u64, out: &mut Vec<u8>) {
    record::text::put_u64(out, packets);
    out.extend_from_slice(if packets == 1 { b" packet\n" } else { b" packets\n" });
}

fn put(printer: &mut Tcpdump, packet: &FilePacket<'_>, out: &mut Out<Stdout>) -> Result<(), SinkError> {
    let bytes = CapturedBytes {
        link_type: link_type(packet.link_type),
        bytes: packet.bytes,
        len: packet.len,
        time_ns: packet.time_ns,
    };
    printer.print(&bytes, &|_| None, out.buf());
    out.line_done()
}

fn link_type(number: u32) -> LinkType {
    u16::try_from(number).map_or(LinkType::UNKNOWN, LinkType)
}
