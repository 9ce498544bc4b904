//! Making the file of `-w`, or the first of several.

use super::Capture;
use super::rotation::{Rotation, RotationRequest};
use super::writing::{PacketWriter, not_made};
use crate::packet_files::FileCommands;
use engine::RunError;
use std::io;
use std::path::PathBuf;

/// The output of `-w` before rights are given up: one file is made, of several what runs commands is started.
pub(super) enum Opened {
    One(Box<PacketWriter>),
    Several(PathBuf, RotationRequest, Option<FileCommands>),
}

impl Opened {
    /// The output that `-w` asks for; `None` without it.
    pub(super) fn of(capture: &Capture) -> Result<Option<Opened>, RunError> {
        let Some(path) = &capture.output else { return Ok(None) };
        let failed = |error: io::Error| not_made(path, &error);
        let Some(request) = &capture.rotation else {
            return PacketWriter::create(path).map_err(failed).map(|writer| Some(Opened::One(Box::new(writer))));
        };
        let commands = request.start_commands(path, capture.user.as_deref()).map_err(failed)?;
        Ok(Some(Opened::Several(path.clone(), request.clone(), commands)))
    }

    /// The writer, after rights are given up: who makes the first file can make those that follow.
    pub(super) fn writer(self) -> Result<PacketWriter, RunError> {
        match self {
            Opened::One(writer) => Ok(*writer),
            Opened::Several(path, request, commands) => Rotation::open(&path, &request, commands)
                .and_then(|rotation| PacketWriter::begin(&path, rotation))
                .map_err(|error| not_made(&path, &error)),
        }
    }
}
