//! A connection to a server: buffers for outgoing and received messages.

use super::faults::{self, ServerError};
use super::socket::Socket;
use crate::transports::is_later;
use crate::transports::stream::WRITE_TIMEOUT;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, Header, Message};
use postgres_protocol::message::frontend;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Longest message in bytes: no answer to our requests is longer, so the sender is not a PostgreSQL server.
///
/// Bound: bytes of a message from a database server (`wire::rows_without_end_are_not_kept`). Beyond: the connection is
/// closed. By: a program that answers in the server's place.
const MESSAGE_MAX: usize = 1 << 20;
/// Longest time for one answer while a connection is opened; after it the server counts as away.
///
/// Bound: for an answer while a connection to a database is opened. Beyond: the database counts as away. By: a program
/// that answers in the server's place.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit for all answers together while a connection is opened.
///
/// Bound: for all answers while a connection to a database is opened (`wire::all_answers_of_an_opening_have_one_time`).
/// Beyond: the database counts as away. By: a program that answers in the server's place.
const OPENING: Duration = Duration::from_secs(30);
/// Size limit for those answers.
///
/// Bound: bytes of all answers while a connection to a database is opened. Beyond: the connection is closed. By: a
/// program that answers in the server's place.
const OPENING_BYTES_MAX: usize = 1 << 20;
/// Time limit for reading messages that arrive between requests.
const IDLE_READ_TIMEOUT: Duration = Duration::from_millis(200);
/// How long one attempt to read an answer waits.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(50);

/// The rows of a query, as text.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// A connection.
pub(super) struct Wire {
    socket: Socket,
    input: BytesMut,
    /// Bytes to write; those before `written` have been written.
    pub(super) out: BytesMut,
    written: usize,
    place: Box<[u8]>,
    /// When the connection was opened.
    begun: Instant,
    /// Bytes received since then.
    heard: usize,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> Wire {
        let place = vec![0; 16 << 10].into_boxed_slice();
        let (begun, heard) = (Instant::now(), 0);
        Wire { socket, input: BytesMut::new(), out: BytesMut::new(), written: 0, place, begun, heard }
    }

    /// Writes what the socket takes without a long wait; true once nothing is left to write. If the server takes only a
    /// few bytes at a time, returns after 0.2 s.
    pub(super) fn write_out(&mut self) -> io::Result<bool> {
        let until = Instant::now() + WRITE_TIMEOUT;
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            if Instant::now() >= until {
                return Ok(false);
            }
            match self.socket.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if is_later(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        match self.socket.flush() {
            Ok(()) => Ok(true),
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the next message, if one arrives within `wait`, and writes waiting bytes in the meantime.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        let until = Instant::now() + wait;
        loop {
            if let Some(message) = self.parse_message()? {
                return Ok(Some(message));
            }
            let written = self.write_out();
            let left = until.saturating_duration_since(Instant::now());
            // A server that ends a connection sends the reason first: read it even if nothing can be written.
            let look = if matches!(written, Ok(true)) { left.max(Duration::from_millis(1)) } else { ATTEMPT_TIMEOUT };
            match self.read(look) {
                Ok(0) => {
                    return Err(io::Error::new(ErrorKind::ConnectionReset, "the server has closed the connection"));
                }
                Ok(_) => {}
                Err(error) if is_later(&error) => _ = written?,
                Err(error) => return Err(error),
            }
            // A server that sends single bytes does not prolong the wait.
            if left.is_zero() {
                return self.parse_message();
            }
        }
    }

    fn read(&mut self, wait: Duration) -> io::Result<usize> {
        self.socket.set_read_timeout(wait)?;
        let bytes = self.socket.read(&mut self.place)?;
        self.heard = self.heard.saturating_add(bytes);
        self.input.extend_from_slice(self.place.get(..bytes).unwrap_or_default());
        Ok(bytes)
    }

    fn parse_message(&mut self) -> io::Result<Option<Message>> {
        let no_server = || io::Error::new(ErrorKind::InvalidData, "the program there is not a PostgreSQL server");
        match Header::parse(&self.input).map_err(|_| no_server())? {
            Some(header) if !usize::try_from(header.len()).is_ok_and(|bytes| bytes <= MESSAGE_MAX) => Err(no_server()),
            Some(_) => Message::parse(&mut self.input).map_err(|_| no_server()),
            None => Ok(None),
        }
    }

    /// Waits for the next message while the connection is opened. Fails if no message arrives in time, or if all
    /// messages together take too long or are too large.
    pub(super) fn wait(&mut self) -> io::Result<Message> {
        let left = OPENING.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            let text = format!("the server has not finished its answers within {} s", OPENING.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        if self.heard > OPENING_BYTES_MAX {
            let text = format!(
                "the server sends more than {} MiB while the connection is opened: it is not a PostgreSQL server",
                OPENING_BYTES_MAX >> 20
            );
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let late = || io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", ANSWER.as_secs()));
        self.next(left.min(ANSWER))?.ok_or_else(late)
    }

    /// Reads one byte that is not a message: the answer to the request for TLS.
    pub(super) fn wait_for_byte(&mut self) -> io::Result<u8> {
        let until = Instant::now() + ANSWER;
        while Instant::now() < until {
            self.write_out()?;
            let mut byte = [0];
            self.socket.set_read_timeout(ATTEMPT_TIMEOUT)?;
            match self.socket.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => return Ok(byte[0]),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::ConnectionAborted, "the server does not answer"))
    }

    /// True if the connection uses TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.socket.is_encrypted()
    }

    pub(super) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Runs statements and returns the rows of all of them. The outer error is the connection's, the inner one the
    /// server's.
    pub(super) fn query(&mut self, sql: &str) -> io::Result<Result<Rows, ServerError>> {
        frontend::query(sql, &mut self.out)?;
        let (mut rows, mut fault) = (Rows::new(), None);
        loop {
            match self.wait()? {
                Message::DataRow(row) => rows.push(row_cells(&row)?),
                Message::ErrorResponse(body) => fault = fault.or(Some(faults::read(&body))),
                Message::ReadyForQuery(_) => return Ok(fault.map_or(Ok(rows), Err)),
                _ => {}
            }
        }
    }

    /// Checks whether the server has closed the connection. Discards other messages; if they do not end, leaves the
    /// rest to the next call.
    pub(super) fn check_open(&mut self) -> io::Result<()> {
        let until = Instant::now() + IDLE_READ_TIMEOUT;
        while let Some(message) = self.next(Duration::ZERO)? {
            if let Message::ErrorResponse(body) = message {
                return Err(faults::read(&body).to_io());
            }
            if Instant::now() >= until {
                break;
            }
        }
        Ok(())
    }

    /// Terminates the session in order, so that the server logs no warning.
    pub(super) fn end(mut self) {
        self.out.clear();
        self.written = 0;
        frontend::terminate(&mut self.out);
        let _ = self.write_out();
    }
}

/// Returns the cells of a row.
pub(super) fn row_cells(row: &DataRowBody) -> io::Result<Vec<Option<String>>> {
    let cell = |range: Option<std::ops::Range<usize>>| {
        let bytes = row.buffer().get(range?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    row.ranges().map(|range| Ok(cell(range))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A connection to a server that writes `words` over and over, with a pause after each write.
    fn talking(words: &'static [u8], pause: Duration) -> Wire {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            if words.len() == 1 {
                // The header of a long message; the repeated byte is its body.
                theirs.write_all(b"N\0\0\xff\xff").unwrap();
            }
            while theirs.write_all(words).is_ok() {
                std::thread::sleep(pause);
            }
        });
        Wire::new(Socket::unix(ours).unwrap())
    }

    /// A 24-byte notice without useful content.
    const NOTICE: &[u8] = b"N\0\0\0\x17MNOTICE-NOTICE-NO\0\0";
    /// A data row with one cell.
    const ROW: &[u8] = b"D\0\0\0\x0e\0\x01\0\0\0\x04cell";

    #[test]
    fn a_byte_now_and_then_is_no_answer() {
        let mut wire = talking(&NOTICE[..1], Duration::from_millis(1));
        let begun = Instant::now();
        assert!(wire.next(Duration::from_millis(100)).unwrap().is_none());
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn all_answers_of_an_opening_have_one_time() {
        let mut wire = talking(NOTICE, Duration::from_millis(1));
        assert!(matches!(wire.wait().unwrap(), Message::NoticeResponse(_)));
        wire.begun -= OPENING;
        assert!(wire.wait().err().unwrap().to_string().contains("has not finished its answers within 30 s"));
    }

    #[test]
    fn rows_without_end_are_not_kept() {
        for words in [ROW, NOTICE] {
            let mut wire = talking(words, Duration::ZERO);
            let error = wire.query("SELECT 1").unwrap_err().to_string();
            assert!(error.contains("sends more than 1 MiB"), "{error}");
            assert!(wire.heard <= OPENING_BYTES_MAX + (16 << 10), "{}", wire.heard);
        }
    }

    #[test]
    fn a_server_that_never_stops_does_not_keep_a_look() {
        let mut wire = talking(NOTICE, Duration::ZERO);
        let begun = Instant::now();
        wire.check_open().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
