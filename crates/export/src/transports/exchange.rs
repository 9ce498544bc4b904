//! Messages over one connection to a database or broker: buffers for both directions, and limits for what the other end
//! sends.

use super::is_later;
use super::socket::Socket;
use super::stream::WRITE_TIMEOUT;
use bytes::BytesMut;
use std::io::{self, ErrorKind, Read, Write};
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// Longest message in bytes: no answer to our requests is longer, so the sender is another program.
///
/// Bound: bytes of a message from a database or broker (`wire::rows_without_end_are_not_kept`). Beyond: the connection
/// is closed. By: a program that answers in the server's place.
pub(super) const MESSAGE_MAX: usize = 1 << 20;
/// Longest time for one answer while a connection is opened; after it the server counts as away.
///
/// Bound: for an answer while a connection to a database or broker is opened. Beyond: it counts as away. By: a program
/// that answers in the server's place.
const ANSWER: Duration = Duration::from_secs(10);
/// Time limit for all answers together while a connection is opened.
///
/// Bound: for all answers while a connection to a database or broker is opened
/// (`wire::all_answers_of_an_opening_have_one_time`). Beyond: it counts as away. By: a program that answers in the
/// server's place.
pub(super) const OPENING: Duration = Duration::from_secs(30);
/// Size limit for those answers.
///
/// Bound: bytes of all answers while a connection to a database or broker is opened. Beyond: the connection is closed.
/// By: a program that answers in the server's place.
pub(super) const OPENING_BYTES_MAX: usize = 1 << 20;
/// How long one attempt to read an answer waits.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(50);

/// The beginning of text from a server, escaped except for quotes.
#[cfg(any(feature = "http", feature = "kafka"))]
pub(super) fn excerpt(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(300) {
        if matches!(c, '\'' | '"') { out.push(c) } else { out.extend(c.escape_debug()) }
    }
    out
}

/// How messages are separated from each other.
pub(super) trait Protocol {
    /// A message.
    type Message;
    /// The program that should be at the other end, for errors.
    const SERVER: &'static str;

    /// Takes the first message out of `input`; `None` if it is incomplete. An error means that the other end is not a
    /// [`Protocol::SERVER`].
    fn parse(input: &mut BytesMut) -> Result<Option<Self::Message>, ()>;
}

/// A connection.
pub(super) struct Exchange<P> {
    pub(super) socket: Socket,
    input: BytesMut,
    /// Bytes to write; those before `written` have been written.
    pub(super) out: BytesMut,
    written: usize,
    place: Box<[u8]>,
    /// When the connection was opened.
    pub(super) begun: Instant,
    /// Bytes received since then.
    pub(super) heard: usize,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Exchange<P> {
    pub(super) fn new(socket: Socket) -> Exchange<P> {
        let place = vec![0; 16 << 10].into_boxed_slice();
        let (begun, heard) = (Instant::now(), 0);
        let (input, out) = (BytesMut::new(), BytesMut::new());
        Exchange { socket, input, out, written: 0, place, begun, heard, protocol: PhantomData }
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
    pub(super) fn next(&mut self, wait: Duration) -> io::Result<Option<P::Message>> {
        let until = Instant::now() + wait;
        loop {
            if let Some(message) = self.parse()? {
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
                return self.parse();
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

    fn parse(&mut self) -> io::Result<Option<P::Message>> {
        let wrong = |()| io::Error::new(ErrorKind::InvalidData, format!("the program there is not a {}", P::SERVER));
        P::parse(&mut self.input).map_err(wrong)
    }

    /// Waits for the next message while the connection is opened. Fails if no message arrives in time, or if all
    /// messages together take too long or are too large.
    pub(super) fn wait(&mut self) -> io::Result<P::Message> {
        let left = OPENING.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            let text = format!("the server has not finished its answers within {} s", OPENING.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        if self.heard > OPENING_BYTES_MAX {
            let text = format!(
                "the server sends more than {} MiB while the connection is opened: it is not a {}",
                OPENING_BYTES_MAX >> 20,
                P::SERVER
            );
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let late = || io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", ANSWER.as_secs()));
        self.next(left.min(ANSWER))?.ok_or_else(late)
    }

    /// Begins the limits of [`Exchange::wait`] again, for a question on an open connection.
    #[cfg(any(feature = "http", feature = "kafka"))]
    pub(super) fn restart(&mut self) {
        (self.begun, self.heard) = (Instant::now(), 0);
    }

    /// True if the connection uses TLS.
    #[cfg(any(feature = "kafka", feature = "postgres"))]
    pub(super) fn is_encrypted(&self) -> bool {
        self.socket.is_encrypted()
    }

    #[cfg(feature = "postgres")]
    pub(super) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Writes as much as possible at once, before the connection is closed. Earlier bytes that still wait are not
    /// written.
    #[cfg(feature = "postgres")]
    pub(super) fn write_last(mut self, put: impl FnOnce(&mut BytesMut)) {
        self.out.clear();
        self.written = 0;
        put(&mut self.out);
        let _ = self.write_out();
    }
}
