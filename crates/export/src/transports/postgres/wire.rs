//! The messages of PostgreSQL over a connection.

use super::faults::{self, ServerError};
use crate::transports::exchange::{Exchange, MESSAGE_MAX, Protocol};
use crate::transports::is_later;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, Header, Message};
use postgres_protocol::message::frontend;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

/// Time limit for reading messages that arrive between requests.
const IDLE_READ_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest time for the answer to the request for TLS.
const TLS_ANSWER: Duration = Duration::from_secs(10);
/// How long one attempt to read it waits.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(50);

/// The protocol of PostgreSQL.
pub(super) enum Postgres {}

impl Protocol for Postgres {
    type Message = Message;
    const SERVER: &'static str = "PostgreSQL server";

    fn parse(input: &mut BytesMut) -> Result<Option<Message>, ()> {
        match Header::parse(input).map_err(drop)? {
            Some(header) if !usize::try_from(header.len()).is_ok_and(|bytes| bytes <= MESSAGE_MAX) => Err(()),
            Some(_) => Message::parse(input).map_err(drop),
            None => Ok(None),
        }
    }
}

/// A connection.
pub(super) type Wire = Exchange<Postgres>;

/// The rows of a query, as text.
pub(super) type Rows = Vec<Vec<Option<String>>>;

impl Wire {
    /// Reads one byte that is not a message: the answer to the request for TLS.
    pub(super) fn wait_for_byte(&mut self) -> io::Result<u8> {
        let until = Instant::now() + TLS_ANSWER;
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
    pub(super) fn end(self) {
        self.write_last(frontend::terminate);
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
    use crate::transports::exchange::{OPENING, OPENING_BYTES_MAX};
    use crate::transports::socket::Socket;
    use std::io::Write;
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
