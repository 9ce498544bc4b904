//! Creates the file of `-w`, or the first file of a series.

use super::Capture;
use super::rotation::{Rotation, RotationRequest};
use super::writing::{PacketWriter, not_made};
use engine::RunError;
use runtime::packet_files::{FileCommands, Packing};
use runtime::run_state::RunState;
use std::io;
use std::path::PathBuf;

/// The output of `-w` before rights are given up: one file is made, of several the processes that pack them and that
/// run commands with them are started.
pub(super) enum Opened {
    One(Box<PacketWriter>),
    Several(Box<SeveralFiles>),
}

/// Files that follow one another, none of which is made yet.
pub(super) struct SeveralFiles {
    path: PathBuf,
    request: RotationRequest,
    packing: Option<Packing>,
    commands: Option<FileCommands>,
}

impl Opened {
    /// Opens the output of `-w`; `None` without it.
    pub(super) fn of(capture: &Capture, run: &RunState) -> Result<Option<Opened>, RunError> {
        let Some(path) = &capture.output else { return Ok(None) };
        let failed = |error: io::Error| not_made(path, &error);
        let Some(request) = &capture.rotation else {
            return PacketWriter::create(path).map_err(failed).map(|writer| Some(Opened::One(Box::new(writer))));
        };
        let (commands, first, user) = (request.clone(), path.clone(), capture.user.clone());
        let started = run.at_origin(move || commands.start_commands(&first, user.as_deref()));
        let commands = started.unwrap_or_else(|error| Err(io::Error::from_raw_os_error(error.errno.0)));
        let (commands, packing) = (commands.map_err(failed)?, Packing::of(path).map_err(failed)?);
        let files = SeveralFiles { path: path.clone(), request: request.clone(), packing, commands };
        Ok(Some(Opened::Several(Box::new(files))))
    }

    /// The writer, opened after privileges were dropped: if the first file of a series can be created, so can the
    /// rest.
    pub(super) fn writer(self) -> Result<PacketWriter, RunError> {
        match self {
            Opened::One(writer) => Ok(*writer),
            Opened::Several(files) => {
                let SeveralFiles { path, request, packing, commands } = *files;
                let rotation = Rotation::open(&path, &request, commands);
                let begun = rotation.and_then(|rotation| PacketWriter::begin(&path, rotation, packing));
                begun.map_err(|error| not_made(&path, &error))
            }
        }
    }
}
