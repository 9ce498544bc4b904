//! Standard output as `std::io::Write`, unbuffered because sinks have their own buffer.

use crate::messages::erase_progress;
use std::io;
use sys::out::{Out, OutError};

/// The process's standard output.
pub struct Stdout(Out);

impl Stdout {
    /// Makes a writer to standard output.
    pub fn new() -> Stdout {
        Stdout(Out::stdout())
    }
}

impl Default for Stdout {
    fn default() -> Stdout {
        Stdout::new()
    }
}

impl io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        erase_progress();
        self.0.write_all(bytes).map_err(into_io)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn into_io(error: OutError) -> io::Error {
    match error {
        OutError::Closed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::other(other),
    }
}
