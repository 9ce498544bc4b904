//! Creates the file of `-w`, or the first file of a series.

use super::file_commands::FileCommands;
use super::packing::Packing;
use super::rotation::{Rotation, RotationRequest};
use super::writer::{PacketWriter, not_created};
use engine::RunError;
use runtime::run_state::RunState;
use std::io;
use std::path::{Path, PathBuf};

/// The output of `-w` before privileges are dropped. A single file exists already; for a series, the processes that
/// compress files and run commands on them have been started.
pub enum UnopenedOutput {
    /// A single file.
    One(Box<PacketWriter>),
    /// A series of files, none of which exists yet.
    Several(Box<UnopenedSeries>),
}

/// A series of files, none of which exists yet.
pub struct UnopenedSeries {
    path: PathBuf,
    request: RotationRequest,
    packing: Option<Packing>,
    commands: Option<FileCommands>,
}

impl UnopenedOutput {
    /// Prepares the output to `path`. Commands on files run as `user`.
    pub fn prepare(
        path: &Path,
        rotation: Option<&RotationRequest>,
        user: Option<&str>,
        run: &RunState,
    ) -> Result<UnopenedOutput, RunError> {
        let failed = |error: io::Error| not_created(path, &error);
        let Some(request) = rotation else {
            return PacketWriter::create(path).map_err(failed).map(|writer| UnopenedOutput::One(Box::new(writer)));
        };
        let (commands, first, user) = (request.clone(), path.to_owned(), user.map(str::to_owned));
        let started = run.at_origin(move || commands.start_commands(&first, user.as_deref()));
        let commands = started.unwrap_or_else(|error| Err(io::Error::from_raw_os_error(error.errno.0)));
        let (commands, packing) = (commands.map_err(failed)?, Packing::from_path(path).map_err(failed)?);
        let series = UnopenedSeries { path: path.to_owned(), request: request.clone(), packing, commands };
        Ok(UnopenedOutput::Several(Box::new(series)))
    }

    /// Opens the writer, after privileges were dropped: if the first file of a series can be created, so can the rest.
    pub fn open(self) -> Result<PacketWriter, RunError> {
        match self {
            UnopenedOutput::One(writer) => Ok(*writer),
            UnopenedOutput::Several(series) => {
                let UnopenedSeries { path, request, packing, commands } = *series;
                let rotation = Rotation::open(&path, &request, commands);
                let begun = rotation.and_then(|rotation| PacketWriter::begin(&path, rotation, packing));
                begun.map_err(|error| not_created(&path, &error))
            }
        }
    }
}
