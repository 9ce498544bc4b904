//! Packets of files.

use super::Capture;
use super::live::unfit;
use super::program::Programs;
use super::writing::written;
use crate::commands::follow::{self, StreamNotes};
use crate::messages::say;
use crate::outcome::Outcome;
use capture::{FilePackets, PacketFile, PassesInFile, ReadPackets, stdin_is_ready};
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
        let file = PacketFile::open(path).map_err(|error| {
            RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: Box::new(error) })
        })?;
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let programs = capture.filter.as_ref().map(|filter| Programs::of_file(filter, link_type, file.is_swapped()));
        let programs = programs.transpose().map_err(unfit)?;
        let judge = |row: &CapturedPacket<'_>, is_swapped| {
            programs.as_ref().is_none_or(|programs| programs.passes(row, is_swapped))
        };
        let passes: Option<&PassesInFile<'_>> = if programs.is_some() { Some(&judge) } else { None };
        let mut stream = FilePackets::new(ReadPackets { file, snaplen: capture.snaplen, passes, stop: &stop });
        if let Some(path) = capture.output.as_ref().filter(|_| !capture.request.explain) {
            let (run, line) = written(path, capture, plan, &mut stream)?;
            say(&format!("{} packets read; {line}", run.stats.seen));
            return Ok(run);
        }
        then(&mut stream, StreamNotes { caveat: None, cost: Vec::new(), reread: None })
    })
}
