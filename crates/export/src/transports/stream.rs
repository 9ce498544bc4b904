//! What all byte streams share.

use super::{Taken, is_later};
use crate::Batch;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use sys::connection::{receive_now, send_now};

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

/// Reads what a receiver sends without being asked, and forgets it; true if it has said something, an error once it has
/// closed the connection. The stream must not block.
pub(super) fn drain(stream: &mut impl Read) -> io::Result<bool> {
    let mut answer = [0; 16 << 10];
    // A receiver that talks without end has others waiting: some reads are enough.
    for reads in 0..READS_MAX {
        match stream.read(&mut answer) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the receiver has closed the connection")),
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(reads > 0),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// How long a receiver may say nothing at the end of a connection.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a receiver may go on talking after that.
const TALK: Duration = Duration::from_secs(10);

/// Ends a connection whose receiver has taken everything and may still have it to read. What it says is read until it
/// ends the connection as well: a socket that is closed with something unread, or is sent something afterwards, resets
/// the connection (RFC 1122, section 4.2.2.13), and a receiver whose own words fail may read no further. One that is
/// silent for 2 s, or talks for 10 s, is left.
pub(super) fn end(mut stream: &TcpStream) {
    let until = Instant::now() + TALK;
    let mut answer = [0; 16 << 10];
    let settings = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(SILENCE)));
    let mut next = settings.and_then(|()| stream.shutdown(Shutdown::Write)).map(|()| 1);
    while matches!(next, Ok(1..)) && Instant::now() < until {
        next = stream.read(&mut answer);
    }
}

/// A stream on which nothing waits, whatever its own settings.
pub(super) struct WithoutWait<'s, S: AsFd>(pub(super) &'s S);

impl<S: AsFd> Read for WithoutWait<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive_now(self.0.as_fd(), into).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }
}

impl<S: AsFd> Write for WithoutWait<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send_now(self.0.as_fd(), bytes).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is said of a connection that is not open.
pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "not connected")
}
