//! One connection to a server: messages that wait to be written, and those that have come.

use super::faults::{self, ServerError};
use super::socket::Socket;
use crate::transports::is_later;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, Header, Message};
use postgres_protocol::message::frontend;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A longer message makes no sense as an answer to what is asked here: what sends one is no such server.
const MESSAGE_MAX: usize = 1 << 20;
/// A server that has not answered by then, while a connection is opened, is as good as away.
const ANSWER: Duration = Duration::from_secs(10);
/// How long one look for an answer waits.
const LOOK: Duration = Duration::from_millis(50);

/// The rows of a query, as text.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// A connection.
pub(super) struct Wire {
    socket: Socket,
    input: BytesMut,
    /// Bytes to be written, those before `written` are.
    pub(super) out: BytesMut,
    written: usize,
    place: Box<[u8]>,
}

impl Wire {
    pub(super) fn new(socket: Socket) -> Wire {
        let place = vec![0; 16 << 10].into_boxed_slice();
        Wire { socket, input: BytesMut::new(), out: BytesMut::new(), written: 0, place }
    }

    /// Writes what goes without waiting long; true once nothing waits.
    pub(super) fn write_out(&mut self) -> io::Result<bool> {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
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

    /// The next message, if one comes while `wait` lasts. What waits to be written goes out meanwhile.
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        let until = Instant::now() + wait;
        loop {
            if let Some(message) = self.parsed()? {
                return Ok(Some(message));
            }
            let written = self.write_out();
            let left = until.saturating_duration_since(Instant::now());
            // A server that ends a connection says why before: that is read although nothing can be written.
            let look = if matches!(written, Ok(true)) { left.max(Duration::from_millis(1)) } else { LOOK };
            match self.read(look) {
                Ok(0) => {
                    return Err(io::Error::new(ErrorKind::ConnectionReset, "the server has closed the connection"));
                }
                Ok(_) => continue,
                Err(error) if is_later(&error) => _ = written?,
                Err(error) => return Err(error),
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    fn read(&mut self, wait: Duration) -> io::Result<usize> {
        self.socket.set_read_timeout(wait)?;
        let bytes = self.socket.read(&mut self.place)?;
        self.input.extend_from_slice(self.place.get(..bytes).unwrap_or_default());
        Ok(bytes)
    }

    fn parsed(&mut self) -> io::Result<Option<Message>> {
        let no_server = || io::Error::new(ErrorKind::InvalidData, "what answers there is no PostgreSQL server");
        match Header::parse(&self.input).map_err(|_| no_server())? {
            Some(header) if !usize::try_from(header.len()).is_ok_and(|bytes| bytes <= MESSAGE_MAX) => Err(no_server()),
            Some(_) => Message::parse(&mut self.input).map_err(|_| no_server()),
            None => Ok(None),
        }
    }

    /// The next message; an error if none comes in time.
    pub(super) fn wait(&mut self) -> io::Result<Message> {
        let late = || io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", ANSWER.as_secs()));
        self.next(ANSWER)?.ok_or_else(late)
    }

    /// Reads one byte that is no message: the answer to the question for TLS.
    pub(super) fn wait_for_byte(&mut self) -> io::Result<u8> {
        let until = Instant::now() + ANSWER;
        while Instant::now() < until {
            self.write_out()?;
            let mut byte = [0];
            self.socket.set_read_timeout(LOOK)?;
            match self.socket.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => return Ok(byte[0]),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(ErrorKind::ConnectionAborted, "the server does not answer"))
    }

    /// [`Socket::is_private`].
    pub(super) fn is_private(&self) -> bool {
        self.socket.is_private()
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
                Message::DataRow(row) => rows.push(cells(&row)?),
                Message::ErrorResponse(body) => fault = fault.or(Some(faults::read(&body))),
                Message::ReadyForQuery(_) => return Ok(fault.map_or(Ok(rows), Err)),
                _ => {}
            }
        }
    }

    /// Looks whether the server has ended the connection.
    pub(super) fn look(&mut self) -> io::Result<()> {
        while let Some(message) = self.next(Duration::ZERO)? {
            if let Message::ErrorResponse(body) = message {
                return Err(faults::read(&body).to_io());
            }
        }
        Ok(())
    }

    /// Says good-bye, so that the server writes no warning.
    pub(super) fn end(mut self) {
        self.out.clear();
        self.written = 0;
        frontend::terminate(&mut self.out);
        let _ = self.write_out();
    }
}

/// The cells of a row.
pub(super) fn cells(row: &DataRowBody) -> io::Result<Vec<Option<String>>> {
    let cell = |range: Option<std::ops::Range<usize>>| {
        let bytes = row.buffer().get(range?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    row.ranges().map(|range| Ok(cell(range))).collect()
}
