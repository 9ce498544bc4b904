//! `capture --read`, and the groups of `capture stats --by`: shows packets of files.

use super::Capture;
use super::live::refused;
use super::program::Programs;
use crate::commands::follow::{self, StreamNotes};
use capture::{FileError, FilePackets, NextFile, PassesInFile, ReadPackets, UnreadFiles};
use engine::{EndReason, Plan, Run, RunError};
use lookups::long_work;
use packet_files::{UnopenedOutput, say_left_out};
use record::rows::{CapturedPacket, CapturedPackets};
use record::{Accounting, Lookups, SourceError, SourceFault};
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use runtime::rights::ConfiningStream;
use std::path::PathBuf;

/// Wait for the first bytes of a pipe before checking again whether the run must end, in ms.
const IDLE_MS: i32 = 100;

/// Shows the packets of all files in turn.
pub(super) fn shown(paths: &[PathBuf], capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    follow::run(&capture.request, plan, |session, then| {
        let stop = || follow::is_over(&capture.request, session);
        let needed = capture.needed_rights(plan).map_err(refused)?;
        let mut files = UnreadFiles::open(paths.iter().map(PathBuf::as_path)).map_err(unreadable)?;
        while !files.is_ready(IDLE_MS) {
            if stop() {
                return Ok(Run { stats: Accounting::default(), ended: EndReason::Stopped });
            }
        }
        let output = if capture.request.explain { None } else { capture.prepare_output(session.run())? };
        needed.drop_capabilities(session.resolver(), Some(session.run())).map_err(refused)?;
        let output = output.map(UnopenedOutput::open).transpose()?;
        if capture.request.ship.is_none() {
            // This happens before the header is parsed. The shipping threads are started later and must open their
            // files.
            needed.confine();
        }
        let file = loop {
            match files.read_next(IDLE_MS) {
                NextFile::Opened(file) => break file,
                NextFile::Waiting if !stop() => {}
                NextFile::Waiting => return Ok(Run { stats: Accounting::default(), ended: EndReason::Stopped }),
                NextFile::None => return Err(unreadable(files.into_faults())),
            }
        };
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let (output, loses) = output.map(|writer| writer.with_header_of(file.ifaces(), capture.snaplen)).unzip();
        let programs = capture.filter.as_ref().map(|filter| Programs::of_file(filter, link_type, file.is_swapped()));
        let programs = programs.transpose().map_err(refused)?;
        let judge = |row: &CapturedPacket<'_>, is_swapped| {
            programs.as_ref().is_none_or(|programs| programs.passes(row, is_swapped))
        };
        let passes: Option<&PassesInFile<'_>> = if programs.is_some() { Some(&judge) } else { None };
        let snaplen = capture.snaplen;
        let mut stream = FilePackets::new(ReadPackets { file, others: files, snaplen, passes, stop: &stop });
        let run = match output {
            Some(mut writer) => {
                let progress = long_work::progress(session, "copying packets", None, String::new);
                let mut run = writer.write_rows(plan, &mut stream, Lookups::empty())?;
                drop(progress);
                let line = writer.finish(&mut run);
                print_message(&format!("{} packets read; {line}", run.stats.seen));
                say_left_out(stream.left_out());
                loses.flatten().iter().for_each(|lost: &&str| print_message(lost));
                run
            }
            None if capture.request.ship.is_none() => then(&mut stream, StreamNotes::default())?,
            None => then(&mut ConfiningStream::new(&mut stream, &needed), StreamNotes::default())?,
        };
        programs.iter().for_each(Programs::say_behind_tags);
        Ok(run)
    })
}

/// The error for files none of which can be read; reports all but the first.
fn unreadable(faults: Vec<FileError>) -> RunError {
    let mut faults = faults.into_iter();
    let first = faults.next();
    faults.for_each(|fault| print_message(&fault.to_string()));
    let cause = first.map_or_else(|| "no files to read".into(), Into::into);
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause })
}
