//! Sends rows in HTTP requests whose bounds do not change until the receiver has answered.

use super::frozen_request::FrozenRequest;
use super::http::HttpAnswer;
use super::stream::{WRITE_TIMEOUT, closed_error};
use super::tokened_request::TokenedRequest;
use super::{Gathering, OTHER_COLUMNS, TakenPart, Transport, with_object};
use crate::Batch;
use flate2::{Compression, write::GzEncoder};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A receiver of requests.
pub(super) trait HttpReceiver: Send {
    /// Most rows in a request, and most bytes of them as they wait.
    const REQUEST_MAX: (usize, usize);
    /// A receiver that does not answer for this long counts as away.
    const SILENCE: Duration;
    /// Least time between two requests.
    const INTERVAL: Duration;

    /// Its name, for errors.
    fn name(&self) -> String;

    /// Connects, and finds out what the receiver takes.
    fn open(&mut self) -> io::Result<()>;

    /// Writes a request with these rows, unless none of the messages is one. `token` is the output's.
    fn write(&mut self, request: &FrozenRequest, batch: &Batch, token: &str) -> io::Result<WrittenRows>;

    /// Returns the answer, if it arrives within `wait`.
    fn answer(&mut self, wait: Duration) -> io::Result<Option<HttpAnswer>>;

    /// Evaluates an answer.
    fn evaluate(&mut self, answer: &HttpAnswer) -> RequestOutcome;

    /// True if it recognises a request that arrives twice.
    fn knows_tokens(&self) -> bool {
        false
    }

    /// Closes the connection.
    fn close(&mut self);
}

/// The rows of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenRows {
    pub(super) rows: u64,
    /// Messages left out: they waited on disk while the columns were changed, or the receiver has no place for a value.
    pub(super) refused: u64,
    /// A value without a place.
    pub(super) misfit: Option<String>,
}

/// The consequence of an answer.
#[derive(Debug)]
pub(super) enum RequestOutcome {
    /// The receiver took the rows, except this many.
    Taken { rejected: u64, words: String },
    /// It never takes these rows.
    Refused(String),
    /// It never takes all of these rows together.
    Split(String),
    /// It took none of them, and may take them later.
    Later(io::Error),
    /// It may have stored them or a part of them.
    Unknown(io::Error),
}

/// A request without an answer.
struct AskedRequest {
    since: Instant,
    written: WrittenRows,
}

/// The transport to a receiver.
pub(super) struct HttpSender<R> {
    receiver: R,
    request: TokenedRequest,
    asked: Option<AskedRequest>,
    /// Most rows in the next request: fewer after a refusal, until the refused row is found.
    rows: usize,
    complaint: Option<String>,
}

impl<R: HttpReceiver> HttpSender<R> {
    pub(super) fn new(receiver: R) -> HttpSender<R> {
        let request = TokenedRequest::default();
        HttpSender { receiver, request, asked: None, rows: R::REQUEST_MAX.0, complaint: None }
    }

    /// Writes the request. Returns the taken messages at once if there is nothing to send.
    fn begin(&mut self, batch: &Batch) -> io::Result<Option<TakenPart>> {
        let request = self.request.current.ok_or_else(closed_error)?;
        let mut written = self.receiver.write(&request, batch, &self.request.token())?;
        self.complaint = written.misfit.take().or(self.complaint.take());
        if written.rows == 0 {
            self.request.forget();
            return Ok(Some(TakenPart { bytes: request.bytes(batch), refused: written.refused, repeated: 0 }));
        }
        self.asked = Some(AskedRequest { since: Instant::now(), written });
        Ok(None)
    }

    /// Waits a short time for the answer, and acts on it.
    fn finish(&mut self, batch: &Batch) -> io::Result<TakenPart> {
        let Some(answer) = self.receiver.answer(WRITE_TIMEOUT)? else {
            if self.asked.as_ref().is_some_and(|asked| asked.since.elapsed() < R::SILENCE) {
                return Ok(TakenPart::default());
            }
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", R::SILENCE.as_secs())));
        };
        let (Some(asked), Some(request)) = (self.asked.take(), self.request.current) else {
            return Err(closed_error());
        };
        let WrittenRows { rows, refused, .. } = asked.written;
        let taken = TakenPart { bytes: request.bytes(batch), refused, repeated: 0 };
        match self.receiver.evaluate(&answer) {
            RequestOutcome::Taken { rejected, words } => {
                if rejected > 0 {
                    self.complaint = Some(format!("{} rejected {rejected} rows: {words}", self.receiver.name()));
                }
                let repeated = if self.request.is_twice(self.receiver.knows_tokens()) { rows } else { 0 };
                self.rows = self.rows.saturating_mul(2).min(R::REQUEST_MAX.0);
                Ok(TakenPart { refused: refused + rejected.min(rows), repeated, ..taken })
            }
            // One of the rows may be bad: try fewer at once, so that the others are still delivered.
            RequestOutcome::Split(_) if request.len() > 1 => {
                self.rows = (request.len() as usize / 2).max(1);
                self.request.divide();
                Ok(TakenPart::default())
            }
            RequestOutcome::Refused(words) | RequestOutcome::Split(words) => {
                self.complaint = Some(format!("{} rejected {rows} rows: {words}", self.receiver.name()));
                self.request.forget();
                self.rows = self.rows.saturating_mul(2).min(R::REQUEST_MAX.0);
                Ok(TakenPart { refused: refused + rows, ..taken })
            }
            RequestOutcome::Later(error) => Err(error),
            RequestOutcome::Unknown(error) => {
                self.request.set_doubtful();
                Err(error)
            }
        }
    }
}

impl<R: HttpReceiver> Transport for HttpSender<R> {
    fn open(&mut self) -> io::Result<()> {
        self.close();
        self.request.open()?;
        self.receiver.open()
    }

    fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        self.request.resume(note)
    }

    fn prepare(&mut self, batch: &Batch, at: usize) -> io::Result<Option<Vec<u8>>> {
        self.request.prepare((batch, at), (self.rows, R::REQUEST_MAX.1), &self.receiver.name())
    }

    fn gathering(&self) -> Option<Gathering> {
        Some(Gathering { every: R::INTERVAL, together: self.request.current.map_or(0, |request| request.end) })
    }

    fn send(&mut self, batch: &Batch, _: usize) -> io::Result<TakenPart> {
        let begun = if self.asked.is_none() { self.begin(batch) } else { Ok(None) };
        let sent = match begun {
            Ok(Some(taken)) => return Ok(taken),
            Ok(None) => self.finish(batch),
            Err(error) => Err(error),
        };
        sent.map_err(|error| match error.kind() {
            // Errors of the receiver already have its name.
            ErrorKind::Other | ErrorKind::PermissionDenied => error,
            _ => with_object("cannot send to", &self.receiver.name(), &error),
        })
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        self.complaint.take().or_else(|| Some(OTHER_COLUMNS.to_owned()))
    }

    fn close(&mut self) {
        if self.asked.take().is_some() {
            self.request.set_doubtful();
        }
        self.receiver.close();
    }
}

/// Packs a body with gzip, as fast as possible.
pub(super) fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(body)?;
    packer.finish()
}
