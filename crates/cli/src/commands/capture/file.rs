//! Packets of files.

use super::Capture;
use crate::commands::follow::{self, StreamNotes};
use crate::outcome::Outcome;
use capture::{FilePackets, PacketFile, ReadPackets, stdin_is_ready};
use engine::{Ended, Plan, Run, RunError};
use record::rows::CapturedPackets;
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
        let mut stream = FilePackets::new(ReadPackets { file, snaplen: capture.snaplen, stop: &stop });
        then(&mut stream, StreamNotes { caveat: None, cost: Vec::new(), reread: None })
    })
}
