//! Creates the file of `-w`, or the first file of a series.

use super::Capture;
use super::rotation::{Rotation, RotationRequest};
use super::writing::{PacketWriter, not_made};
use crate::packet_files::FileCommands;
use crate::service::RunState;
use engine::RunError;
use std::io;
use std::path::PathBuf;

/// The output of `-w` before privileges are dropped: a single file is created, and for a series the command runner is
/// started.
pub(super) enum Opened {
    One(Box<PacketWriter>),
    Several(PathBuf, RotationRequest, Option<FileCommands>),
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
        let commands = commands.map_err(failed)?;
        Ok(Some(Opened::Several(path.clone(), request.clone(), commands)))
    }

    /// The writer, opened after privileges were dropped: if the first file of a series can be created, so can the
    /// rest.
    pub(super) fn writer(self) -> Result<PacketWriter, RunError> {
        match self {
            Opened::One(writer) => Ok(*writer),
            Opened::Several(path, request, commands) => Rotation::open(&path, &request, commands)
                .and_then(|rotation| PacketWriter::begin(&path, rotation))
                .map_err(|error| not_made(&path, &error)),
        }
    }
}
