//! Packets of files.

use super::Capture;
use super::live::refused;
use super::program::Programs;
use super::writing::{open_output, written};
use crate::commands::follow::{self, StreamNotes};
use crate::messages::say;
use crate::outcome::Outcome;
use crate::rights::Confined;
use capture::{FileError, FilePackets, PassesInFile, ReadPackets, UnreadFile, stdin_is_ready};
use engine::{Ended, Plan, Run, RunError};
use record::rows::{CapturedPacket, CapturedPackets};
use record::{Accounting, SourceError, SourceFault};
use std::path::Path;

/// How long the first bytes of a pipe are waited for before it is asked whether the run shall end.
const IDLE_MS: i32 = 100;

/// Shows the packets of the file.
pub(super) fn shown(path: &Path, capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    follow::run(&capture.request, plan, |session, then| {
        let stop = || follow::is_over(&capture.request, session);
        while path == Path::new("-") && !stdin_is_ready(IDLE_MS) {
            if stop() {
                return Ok(Run { stats: Accounting::default(), ended: Ended::Stopped });
            }
        }
        let unreadable = |error: FileError| {
            RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: Box::new(error) })
        };
        let needed = capture.needed_rights(plan).map_err(refused)?;
        let file = UnreadFile::open(path).map_err(unreadable)?;
        let output = capture.output.as_deref().filter(|_| !capture.request.explain);
        let output = output.map(open_output).transpose()?;
        needed.drop_capabilities().map_err(refused)?;
        if capture.request.ship.is_none() {
            // Before the header is parsed. The threads that ship are not there yet, and must open their files.
            needed.confine();
        }
        let file = file.read().map_err(unreadable)?;
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let programs = capture.filter.as_ref().map(|filter| Programs::of_file(filter, link_type, file.is_swapped()));
        let programs = programs.transpose().map_err(refused)?;
        let judge = |row: &CapturedPacket<'_>, is_swapped| {
            programs.as_ref().is_none_or(|programs| programs.passes(row, is_swapped))
        };
        let passes: Option<&PassesInFile<'_>> = if programs.is_some() { Some(&judge) } else { None };
        let mut stream = FilePackets::new(ReadPackets { file, snaplen: capture.snaplen, passes, stop: &stop });
        if let Some(writer) = output {
            let (run, line) = written(writer, capture, plan, &mut stream)?;
            say(&format!("{} packets read; {line}", run.stats.seen));
            return Ok(run);
        }
        if capture.request.ship.is_none() {
            return then(&mut stream, StreamNotes::default());
        }
        then(&mut Confined::new(&mut stream, &needed), StreamNotes::default())
    })
}
