//! Functions that all byte streams share.

use super::{TakenPart, is_later};
use crate::Batch;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use sys::connection::{receive_without_waiting, send_without_waiting};

/// Longest time that a write waits for the receiver.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_millis(200);

/// Most reads at once from a receiver, of 16 KiB each: more than its kernel and ours hold by default.
///
/// Bound: reads in a row of unrequested data from a receiver, 16 KiB each
/// (`garbage::issue_12_a_receiver_that_talks_without_end_gets_everything_soon`). Beyond: netwren first sends what
/// waits. By: a receiver.
const READS_MAX: usize = 512;

/// Writes as much as the stream takes.
pub(super) fn write_some(stream: &mut impl Write, batch: &Batch, at: usize) -> io::Result<TakenPart> {
    let bytes = batch.bytes().get(at..).unwrap_or_default();
    match stream.write(bytes) {
        Ok(0) if !bytes.is_empty() => Err(io::ErrorKind::WriteZero.into()),
        Ok(bytes) => Ok(TakenPart { bytes, ..TakenPart::default() }),
        Err(error) if is_later(&error) => Ok(TakenPart::default()),
        Err(error) => Err(error),
    }
}

/// Reads and discards data that a receiver sends. Returns true if there was some, and an error once the receiver has
/// closed the connection. The stream must not block.
pub(super) fn drain(stream: &mut impl Read) -> io::Result<bool> {
    let mut answer = [0; 16 << 10];
    // Limit the reads: a receiver that sends without end must not block other work.
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

/// Longest silence of a receiver at the end of a connection.
///
/// Bound: of silence of a receiver at the end of a connection. Beyond: the connection is closed. By: a receiver.
const SILENCE: Duration = Duration::from_secs(2);
/// Longest time that a receiver may go on sending after that.
///
/// Bound: of unrequested data from a receiver at the end of a connection. Beyond: the connection is closed. By: a
/// receiver.
const TALK: Duration = Duration::from_secs(10);

/// Ends a connection whose receiver has taken everything but may not have read it yet. Shuts down the sending side and
/// reads until the receiver also ends the connection. A socket that is closed with unread data, or receives data
/// afterwards, resets the connection (RFC 1122, section 4.2.2.13), and a receiver whose own writes fail may stop
/// reading. Gives up on a receiver that is silent for 2 s or sends for 10 s.
pub(super) fn end(mut stream: &TcpStream) {
    let until = Instant::now() + TALK;
    let mut answer = [0; 16 << 10];
    let settings = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(SILENCE)));
    let mut next = settings.and_then(|()| stream.shutdown(Shutdown::Write)).map(|()| 1);
    while Instant::now() < until {
        next = match next {
            Ok(1..) => stream.read(&mut answer),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => stream.read(&mut answer),
            _ => return,
        };
    }
}

/// A stream whose reads and writes never wait, even if it is a blocking one.
pub(super) struct NonBlockingStream<'s, S: AsFd>(pub(super) &'s S);

impl<S: AsFd> Read for NonBlockingStream<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        receive_without_waiting(self.0.as_fd(), into).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }
}

impl<S: AsFd> Write for NonBlockingStream<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send_without_waiting(self.0.as_fd(), bytes).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of a connection that is not open.
pub(super) fn closed_error() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "not connected")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_signal_does_not_end_the_wait_for_a_receiver() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = listener.accept().unwrap().0;
        let ended = thread::spawn(move || end(&stream));
        testkit::signals::stop_and_continue();
        // A receiver whose sender has already gone gets a reset for what it writes.
        for _ in 0..10 {
            receiver.write_all(b"bye").unwrap();
        }
        assert!(!ended.is_finished());
        assert_eq!(receiver.read(&mut [0; 16]).unwrap(), 0);
        drop(receiver);
        ended.join().unwrap();
    }
}
