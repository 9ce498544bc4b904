//! Files with the kernel's messages about TCP sockets: `-D FILE` writes one, `TCPDIAG_FILE` names one to read.
//!
//! The layout is netlink's own: messages one after the other, each padded to four bytes, with an NLMSG_DONE after each
//! address family. Readers stop at the first NLMSG_DONE, as ss does: from a file with both families they show IPv4.

use super::flags::Flags;
use super::stop::Stop;
use super::tables::{Db, Family};
use crate::ss::output::show;
use crate::strerror::strerror;
use lookups::session::Session;
use netlink::{AnswerMessage, Messages};
use record::rows::{Sockets, need};
use record::{Accounting, Demand, Each, Next, Proto, RowStats, Scan, SinkError, Source, full_scan};
use runtime::messages::print_message;
use sinks::Out;
use sockets::InetDecoder;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::infile;
use sys::outfile::{self, Contents, OutfileOptions};

/// Message types, and the flag of a multipart message, from include/uapi/linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_MULTI: u16 = 2;
/// The sequence number of ss's requests, which the answers repeat.
const SEQ: u32 = 123_456;
/// Bytes of a message header.
const HEAD: usize = 16;
const ANSWERED_ERROR: &str = "TCPDIAG answered with an error";
/// A million sockets with all attributes that the kernel reports take about 400 MB.
///
/// Bound: bytes of the file in TCPDIAG_FILE. Beyond: the file is refused. By: the author of the file.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Writes the messages about the sockets that `flags` select to the file `name`; a name that begins with `-` means
/// stdout. Returns the exit code.
pub(super) fn write(session: &Session, flags: &Flags, name: &[u8]) -> Result<u8, Stop> {
    if !flags.selection.has(Db::Tcp) {
        return Err(Stop::fail("ss: tcpdiag dump requested and no tcp in filter.".to_owned(), 0));
    }
    let to: Box<dyn Write> = match name.first() {
        Some(b'-') => Box::new(runtime::stdout::Stdout::new()),
        _ => Box::new(
            open_output(OsStr::from_bytes(name))
                .map_err(|error| Stop::fail(format!("fopen dump file: {}", strerror(&error)), 255))?,
        ),
    };
    let mut out = Out::new(to);
    for six in families(flags) {
        match write_family(session, flags, six, &mut out) {
            Ok(()) => {}
            Err(SinkError::Closed) => return Ok(0),
            Err(error) => return Err(Stop::fail(format!("ss: {error}"), 1)),
        }
    }
    Ok(0)
}

fn open_output(name: &OsStr) -> io::Result<File> {
    outfile::open_waiting(Path::new(name), OutfileOptions::stream(Contents::Emptied)).and_then(|file| {
        outfile::set_waiting(&file, true)?;
        Ok(file)
    })
}

/// Returns false for IPv4, then true for IPv6; only the preferred family if one was named.
fn families(flags: &Flags) -> impl Iterator<Item = bool> {
    let only = flags.selection.preferred;
    [false, true].into_iter().filter(move |six| match only {
        Some(Family::Inet) => !six,
        Some(Family::Inet6) => *six,
        _ => true,
    })
}

fn write_family(session: &Session, flags: &Flags, six: bool, out: &mut Out<Box<dyn Write>>) -> Result<(), SinkError> {
    let mut outcome = Ok(());
    let options = &flags.options;
    let wanted = [
        (show::MEMORY, need::SKMEM),
        (show::INFO, need::TCP_INFO | need::CONG | need::CONG_INFO),
        (show::TOS, need::TOS),
    ];
    let needs = wanted.iter().filter(|(shown, _)| options.has(*shown)).fold(0, |needs, (_, bits)| needs | bits);
    let (host, netns) = (session.host(), session.netns_id());
    let end = sockets::dump_tcp(host, netns, six, flags.selection.states, needs, |part| {
        put_message(out.buf(), part);
        outcome = out.line_done();
        if outcome.is_ok() && !session.interrupted() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome?;
    match end {
        Ok(_) => {
            put_message(out.buf(), &AnswerMessage { kind: NLMSG_DONE, flags: NLM_F_MULTI, payload: &[0; 4], block: 0 })
        }
        Err(error) => print_message(&error.to_string()),
    }
    out.flush()
}

fn put_message(out: &mut Vec<u8>, part: &AnswerMessage<'_>) {
    let length = HEAD + part.payload.len();
    out.extend_from_slice(&(length as u32).to_ne_bytes());
    out.extend_from_slice(&part.kind.to_ne_bytes());
    out.extend_from_slice(&part.flags.to_ne_bytes());
    out.extend_from_slice(&SEQ.to_ne_bytes());
    // The port id of the requesting socket, which no reader needs.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(part.payload);
    out.resize(out.len() + (4 - length % 4) % 4, 0);
}

/// The sockets of a file's first dump. An error in the file ends the reading; the rows before it are shown.
pub(super) struct FileSource {
    bytes: Vec<u8>,
    netns_id: u64,
}

impl FileSource {
    /// Reads the file. The error is a complete sentence.
    pub(super) fn open(file: &OsStr, netns_id: u64) -> Result<FileSource, String> {
        Ok(FileSource { bytes: read(file)?, netns_id })
    }

    fn rows(&self, each: &mut Each<'_, Sockets>) -> Accounting {
        let mut stats = RowStats::default();
        let wrong = self.rows_until_wrong(&mut stats, each);
        if wrong != Some(ANSWERED_ERROR) {
            stats.add_backend("file");
        }
        wrong.into_iter().for_each(|why| stats.incomplete(1, why));
        stats.close()
    }

    /// Reads the rows; returns a description of the error if the dump does not end properly.
    fn rows_until_wrong(&self, stats: &mut RowStats, each: &mut Each<'_, Sockets>) -> Option<&'static str> {
        let mut decoder = InetDecoder::new(Proto::Tcp, self.netns_id);
        for message in Messages::new(&self.bytes) {
            let Ok(message) = message else { break };
            match message.kind {
                NLMSG_DONE => return None,
                NLMSG_ERROR => return Some(ANSWERED_ERROR),
                _ => stats.add_arrived(1),
            }
            match decoder.decode(message.payload) {
                Err(error) => stats.add_failed(error),
                Ok(row) if each(&row) == Next::Stop => return None,
                Ok(_) => {}
            }
        }
        Some("Unexpected EOF reading $TCPDIAG_FILE")
    }
}

impl Source<Sockets> for FileSource {
    fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        full_scan::<Sockets, _>("file", "the messages of $TCPDIAG_FILE", |each| Ok(self.rows(each)))
    }
}

fn read(file: &OsStr) -> Result<Vec<u8>, String> {
    infile::read(Path::new(file), FILE_BYTES_MAX).map_err(|error| format!("fopen($TCPDIAG_FILE): {}", strerror(&error)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_message_is_padded_and_read_back() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, &AnswerMessage { kind: 20, flags: 2, payload: b"abcde", block: 9 });
        put_message(&mut bytes, &AnswerMessage { kind: NLMSG_DONE, flags: NLM_F_MULTI, payload: &[0; 4], block: 0 });
        assert_eq!(bytes.len(), 24 + 20);
        let messages: Vec<_> = Messages::new(&bytes).map(Result::unwrap).collect();
        assert_eq!((messages[0].kind, messages[0].seq, messages[0].payload), (20, SEQ, &b"abcde"[..]));
        assert!(messages[1].is_end());
    }
}
