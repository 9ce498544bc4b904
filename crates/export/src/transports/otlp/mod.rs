//! The transport to receivers of OpenTelemetry logs: OTLP over HTTP, as Protocol Buffers.
//!
//! A row is delivered once the receiver has answered that it took it. OTLP has no way to recognise a request that
//! arrives twice: rows whose answer was lost are sent again, counted, and have the same `log.record.uid`. Start reading
//! at [`Otlp`]; docs/adr/0048.

mod records;

use super::exchange::excerpt;
use super::http::{HttpAnswer, HttpClient};
use super::marked_request::MarkedRequest;
use super::protobuf::{FieldValue, fields};
use super::stream::{WRITE_TIMEOUT, closed_error};
use super::{Gathering, TakenPart, Transport, with_object};
use crate::typed_row::TableShape;
use crate::url::decode_percent;
use crate::{Batch, OtlpAddress, TlsFiles};
use flate2::{Compression, write::GzEncoder};
use records::RecordWriter;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most bytes of rows in a request. As records they are about twice as long, and receivers take 4 MiB at least.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Most rows in a request.
const ROWS_MAX: usize = 1 << 13;
/// A receiver that does not answer for this long counts as away.
///
/// Bound: for the answer of a receiver of OpenTelemetry logs. Beyond: the connection is reopened; rows wait. By: a
/// receiver.
const SILENCE: Duration = Duration::from_secs(30);
/// Least time between two requests.
const INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait that a receiver may ask for.
///
/// Bound: for the pause that a receiver of OpenTelemetry logs asks for (`Retry-After`). Beyond: this long. By: a
/// receiver.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The variable of the environment with further headers, for example of a login (OpenTelemetry's own).
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Sends rows as log records.
pub(super) struct Otlp {
    address: OtlpAddress,
    http: HttpClient,
    headers: Vec<(String, String)>,
    writer: RecordWriter,
    request: MarkedRequest,
    asked: Option<AskedExport>,
    /// Most rows in the next request: fewer after one that was too large.
    rows: usize,
    /// Until when the receiver wants no request.
    pause: Option<Instant>,
    complaint: Option<String>,
    body: Vec<u8>,
}

/// A request without an answer.
struct AskedExport {
    since: Instant,
    rows: u64,
    refused: u64,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
enum ExportOutcome {
    /// The receiver took the rows, except this many.
    Taken { rejected: u64, words: String },
    /// It never takes these rows.
    Refused(String),
    /// The request is too large.
    Split(String),
    /// It may take them later, after this pause if there is one.
    Later(String, Option<Duration>),
}

impl Otlp {
    /// Sends rows of the table that `header` describes to `address`.
    pub(super) fn new(address: OtlpAddress, header: &[u8], tls: TlsFiles) -> Otlp {
        let host = String::from_utf8_lossy(&sys::fs::host_name()).into_owned();
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let machine = machine.trim();
        let mut attributes = vec![
            ("host.name", &*host),
            ("os.type", "linux"),
            ("service.name", "netwren"),
            ("service.version", env!("CARGO_PKG_VERSION")),
        ];
        if machine.len() == 32 && machine.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            attributes.push(("host.id", machine));
        }
        Otlp {
            http: HttpClient::new(address.server.clone(), address.is_encrypted, tls),
            address,
            headers: Vec::new(),
            writer: RecordWriter::new(&TableShape::of_header(header), &attributes),
            request: MarkedRequest::default(),
            asked: None,
            rows: ROWS_MAX,
            pause: None,
            complaint: None,
            body: Vec::new(),
        }
    }

    /// Writes the request. Returns the taken messages at once if there is nothing to send.
    fn begin(&mut self, batch: &Batch) -> io::Result<Option<TakenPart>> {
        let request = self.request.current.ok_or_else(closed_error)?;
        self.body.clear();
        let (mark, now_ns) = (self.request.mark(), sys::clock::wall_ns());
        let messages = request.messages(batch);
        let (rows, refused) = self.writer.put_request(messages, (&mark, request.first), now_ns, &mut self.body);
        if rows == 0 {
            self.request.forget();
            return Ok(Some(TakenPart { bytes: request.bytes(batch), refused, repeated: 0 }));
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&self.body)?;
        let packed = packer.finish()?;
        let mut headers = vec![("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")];
        headers.extend(self.headers.iter().map(|(name, value)| (&**name, &**value)));
        self.http.post(&self.address.path, &headers, &packed)?;
        self.asked = Some(AskedExport { since: Instant::now(), rows, refused });
        Ok(None)
    }

    /// Waits a short time for the answer, and evaluates it.
    fn finish(&mut self, batch: &Batch) -> io::Result<TakenPart> {
        let Some(answer) = self.http.answer(WRITE_TIMEOUT)? else {
            if self.asked.as_ref().is_some_and(|asked| asked.since.elapsed() < SILENCE) {
                return Ok(TakenPart::default());
            }
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", SILENCE.as_secs())));
        };
        let (Some(asked), Some(request)) = (self.asked.take(), self.request.current) else {
            return Err(closed_error());
        };
        let bytes = request.bytes(batch);
        let server = &self.address.server;
        let all = |refused| TakenPart { bytes, refused: asked.refused + refused, repeated: 0 };
        match evaluate(&answer) {
            ExportOutcome::Taken { rejected, words } => {
                if rejected > 0 {
                    self.complaint = Some(format!("{server} rejected {rejected} records: {words}"));
                }
                let repeated = if self.request.is_twice(false) { asked.rows } else { 0 };
                self.rows = self.rows.saturating_mul(2).min(ROWS_MAX);
                Ok(TakenPart { repeated, ..all(rejected.min(asked.rows)) })
            }
            ExportOutcome::Split(_) if request.len() > 1 => {
                self.rows = (request.len() as usize / 2).max(1);
                self.request.forget();
                Ok(TakenPart::default())
            }
            ExportOutcome::Refused(words) | ExportOutcome::Split(words) => {
                self.complaint = Some(format!("{server} refused {} records: {words}", asked.rows));
                self.request.forget();
                Ok(all(asked.rows))
            }
            ExportOutcome::Later(words, pause) => {
                self.pause = pause.map(|pause| Instant::now() + pause.min(PAUSE_MAX));
                Err(io::Error::other(format!("cannot send to {server}: {words}")))
            }
        }
    }
}

/// Evaluates an answer as OTLP demands, except that rows are kept if the path or the login is wrong,
/// because that may be mended.
fn evaluate(answer: &HttpAnswer) -> ExportOutcome {
    let is_text = answer.header("content-type").is_some_and(|kind| !kind.contains("protobuf"));
    let field = |message: &[u8], number: u64| match fields(message).find(|(field, _)| *field == number) {
        Some((_, FieldValue::Bytes(bytes))) => bytes.to_vec(),
        _ => Vec::new(),
    };
    let words = |message: &[u8], number| excerpt(&String::from_utf8_lossy(&field(message, number)));
    // google.rpc.Status{1 code, 2 message}, or text of a proxy.
    let said = || match is_text {
        true => excerpt(String::from_utf8_lossy(&answer.body).lines().next().unwrap_or_default()),
        false => words(&answer.body, 2),
    };
    let status = |said: String| match said.is_empty() {
        true => format!("status {}", answer.status),
        false => format!("status {}: {said}", answer.status),
    };
    match answer.status {
        200..300 if is_text => ExportOutcome::Taken { rejected: 0, words: String::new() },
        200..300 => {
            // ExportLogsServiceResponse{1 partial_success{1 rejected_log_records, 2 error_message}}
            let partial = field(&answer.body, 1);
            let rejected = fields(&partial).find_map(|(field, value)| match (field, value) {
                (1, FieldValue::Number(count)) => Some(count),
                _ => None,
            });
            ExportOutcome::Taken { rejected: rejected.unwrap_or(0), words: words(&partial, 2) }
        }
        300..400 => ExportOutcome::Later(format!("status {}: netwren does not follow redirects", answer.status), None),
        413 => ExportOutcome::Split(status(said())),
        400 if said().contains("too large") => ExportOutcome::Split(status(said())),
        400 | 422 => ExportOutcome::Refused(status(said())),
        _ => {
            let seconds = answer.header("retry-after").and_then(|text| text.parse().ok());
            ExportOutcome::Later(status(said()), seconds.map(Duration::from_secs))
        }
    }
}

/// The headers of the environment: `name=value,name=value`, percent-encoded.
fn read_headers(text: &str) -> io::Result<Vec<(String, String)>> {
    let wrong =
        || io::Error::new(ErrorKind::InvalidInput, format!("{HEADERS} has name=value pairs, separated by commas"));
    let is_name =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), decode_percent(value.trim()).ok()?);
        (is_name(name) && !value.contains(char::is_control)).then(|| (name.to_owned(), value))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(|part| pair(part).ok_or_else(wrong)).collect()
}

impl Transport for Otlp {
    fn open(&mut self) -> io::Result<()> {
        self.close();
        if let Some(left) = self.pause.map(|until| until.saturating_duration_since(Instant::now())) {
            if !left.is_zero() {
                let text = format!("{} wants no requests for {} s", self.address.server, left.as_secs() + 1);
                return Err(io::Error::new(ErrorKind::WouldBlock, text));
            }
        }
        self.request.open()?;
        self.headers = read_headers(&std::env::var(HEADERS).unwrap_or_default())?;
        self.http.open()
    }

    fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        self.request.resume(note)
    }

    fn prepare(&mut self, batch: &Batch, at: usize) -> io::Result<Option<Vec<u8>>> {
        self.request.prepare((batch, at), (self.rows, REQUEST_BYTES_MAX), &self.address.server)
    }

    fn gathering(&self) -> Option<Gathering> {
        Some(Gathering { every: INTERVAL, together: self.request.current.map_or(0, |request| request.end) })
    }

    fn send(&mut self, batch: &Batch, _: usize) -> io::Result<TakenPart> {
        let begun = if self.asked.is_none() { self.begin(batch) } else { Ok(None) };
        let sent = match begun {
            Ok(Some(taken)) => return Ok(taken),
            Ok(None) => self.finish(batch),
            Err(error) => Err(error),
        };
        sent.map_err(|error| match error.kind() {
            ErrorKind::Other => error,
            _ => with_object("cannot send to", &self.address.server, &error),
        })
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        self.complaint.take()
    }

    fn close(&mut self) {
        if self.asked.take().is_some() {
            self.request.set_doubtful();
        }
        self.http.close();
    }
}

/// Reads bytes as answers of a receiver; for the fuzzer.
pub fn fuzz_otlp_answers(data: &[u8]) {
    use super::exchange::Protocol;
    let mut input = bytes::BytesMut::from(data);
    while let Ok(Some(answer)) = super::http::Http::parse(&mut input) {
        let _ = evaluate(&answer);
    }
    assert!(fields(data).count() <= data.len());
    let _ = read_headers(&String::from_utf8_lossy(data));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::exchange::Protocol;
    use super::super::http::Http;
    use super::*;

    fn outcome(head: &str, body: &[u8]) -> ExportOutcome {
        let mut text =
            bytes::BytesMut::from(format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
        text.extend_from_slice(body);
        evaluate(&Http::parse(&mut text).unwrap().unwrap())
    }

    #[test]
    fn answers_say_what_becomes_of_the_rows() {
        let taken = |rejected, words: &str| ExportOutcome::Taken { rejected, words: words.to_owned() };
        let text = "Content-Type: text/plain";
        assert_eq!(outcome("200 OK", b""), taken(0, ""));
        assert_eq!(outcome("200 OK", b"\x0a\x00"), taken(0, ""), "the collector's answer");
        assert_eq!(outcome("200 OK", b"\x0a\x08\x08\x03\x12\x04late"), taken(3, "late"));
        assert_eq!(outcome(&format!("200 OK\r\n{text}"), b"ok"), taken(0, ""));
        let later = |words: &str, seconds: Option<u64>| {
            ExportOutcome::Later(words.to_owned(), seconds.map(Duration::from_secs))
        };
        assert_eq!(outcome("503 x\r\nRetry-After: 7", b"\x08\x0e\x12\x04full"), later("status 503: full", Some(7)));
        assert_eq!(outcome(&format!("404 x\r\n{text}"), b"no such\npage"), later("status 404: no such", None));
        assert_eq!(outcome("401 x", b""), later("status 401", None));
        assert_eq!(outcome("302 x", b""), later("status 302: netwren does not follow redirects", None));
        let large = "request body too large";
        assert_eq!(
            outcome(&format!("400 x\r\n{text}"), large.as_bytes()),
            ExportOutcome::Split(format!("status 400: {large}"))
        );
        assert_eq!(outcome("413 x", b""), ExportOutcome::Split("status 413".to_owned()));
        assert_eq!(outcome("400 x", b"\x12\x03bad"), ExportOutcome::Refused("status 400: bad".to_owned()));
    }

    #[test]
    fn headers_come_from_the_environment() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = read_headers("Authorization=Basic%20abc, X-Scope-OrgID=t1,").unwrap();
        assert_eq!(read, [pair("Authorization", "Basic abc"), pair("X-Scope-OrgID", "t1")]);
        for text in ["secret", "a b=c", "a=%0d%0aX: y", "=x"] {
            let said = read_headers(text).unwrap_err().to_string();
            assert!(said.contains("name=value pairs") && !said.contains("secret"), "{said}");
        }
    }
}
