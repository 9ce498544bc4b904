//! What all byte streams share.

use super::{Taken, is_later};
use crate::Batch;
use std::io::{self, Read, Write};
use std::time::Duration;

/// How long a receiver may take nothing before the caller has its turn.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// Most reads of what a receiver says at once, of 16 KiB each: more than its kernel and ours hold by default.
const READS_MAX: usize = 512;

/// Writes what goes.
pub(super) fn write_some(stream: &mut impl Write, batch: &Batch, at: usize) -> io::Result<Taken> {
    let bytes = batch.bytes().get(at..).unwrap_or_default();
    match stream.write(bytes) {
        Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
        Ok(bytes) => Ok(Taken { bytes, refused: 0 }),
        Err(error) if is_later(&error) => Ok(Taken::default()),
        Err(error) => Err(error),
    }
}

/// Reads what a receiver sends without being asked, and forgets it; an error once it has closed the connection. The
/// stream must not block.
pub(super) fn drain(stream: &mut impl Read) -> io::Result<()> {
    let mut answer = [0; 16 << 10];
    // A receiver that talks without end has others waiting: some reads are enough.
    for _ in 0..READS_MAX {
        match stream.read(&mut answer) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the receiver has closed the connection")),
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What is said of a connection that is not open.
pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "not connected")
}
