//! The transport to receivers of OpenTelemetry logs: OTLP over HTTP, as Protocol Buffers.
//!
//! A row is delivered once the receiver has answered that it took it. OTLP has no way to recognise a request that
//! arrives twice: rows whose answer was lost are sent again, counted, and have the same `log.record.uid`. Start reading
//! at [`Otlp`]; docs/adr/0048.

mod records;

use super::exchange::{Protocol, excerpt};
use super::frozen_request::FrozenRequest;
use super::http::{Http, HttpAnswer, HttpClient};
use super::http_sender::{HttpReceiver, HttpSender, RequestOutcome, WrittenRows, gzip};
use super::protobuf::{FieldValue, fields};
use crate::typed_row::TableShape;
use crate::url::decode_percent;
use crate::{Batch, OtlpAddress, TlsFiles};
use records::RecordWriter;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// Most bytes of rows in a request. As records they are about twice as long, and receivers take 4 MiB at least.
const BYTES_MAX: usize = 1 << 20;
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
    /// Until when the receiver wants no request.
    pause: Option<Instant>,
    /// The records of a request; the field keeps the memory.
    body: Vec<u8>,
}

impl Otlp {
    /// The transport for rows of the table that `header` describes, to `address`.
    pub(super) fn sender(address: OtlpAddress, header: &[u8], tls: TlsFiles) -> HttpSender<Otlp> {
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
        HttpSender::new(Otlp {
            http: HttpClient::new(address.server.clone(), address.is_encrypted, tls),
            address,
            headers: Vec::new(),
            writer: RecordWriter::new(&TableShape::of_header(header), &attributes),
            pause: None,
            body: Vec::new(),
        })
    }
}

impl HttpReceiver for Otlp {
    const REQUEST_MAX: (usize, usize) = (ROWS_MAX, BYTES_MAX);
    const SILENCE: Duration = SILENCE;
    const INTERVAL: Duration = INTERVAL;

    fn name(&self) -> String {
        self.address.server.clone()
    }

    fn open(&mut self) -> io::Result<()> {
        let left = self.pause.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        if !left.is_zero() {
            let text = format!("{} wants no requests for {} s", self.address.server, left.as_secs() + 1);
            return Err(io::Error::new(ErrorKind::WouldBlock, text));
        }
        self.headers = read_headers(&std::env::var(HEADERS).unwrap_or_default())?;
        self.http.open()
    }

    fn write(&mut self, request: &FrozenRequest, batch: &Batch, token: &str) -> io::Result<WrittenRows> {
        self.body.clear();
        let (messages, now_ns) = (request.messages(batch), sys::clock::wall_ns());
        let written = self.writer.put_request(messages, (token, request.first), now_ns, &mut self.body);
        if written.rows > 0 {
            let mut headers = vec![("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")];
            headers.extend(self.headers.iter().map(|(name, value)| (&**name, &**value)));
            self.http.post(&self.address.path, &headers, &gzip(&self.body)?)?;
        }
        Ok(written)
    }

    fn answer(&mut self, wait: Duration) -> io::Result<Option<HttpAnswer>> {
        self.http.answer(wait)
    }

    fn evaluate(&mut self, answer: &HttpAnswer) -> RequestOutcome {
        let named = |error| io::Error::other(format!("cannot send to {}: {error}", self.address.server));
        let outcome = match evaluate(answer) {
            RequestOutcome::Later(error) => RequestOutcome::Later(named(error)),
            RequestOutcome::Unknown(error) => RequestOutcome::Unknown(named(error)),
            outcome => return outcome,
        };
        let seconds = answer.header("retry-after").and_then(|text| text.parse().ok());
        self.pause = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds).min(PAUSE_MAX));
        outcome
    }

    fn close(&mut self) {
        self.http.close();
    }
}

/// Evaluates an answer as OTLP demands, except that rows are kept if the path or the login is wrong,
/// because that may be mended.
fn evaluate(answer: &HttpAnswer) -> RequestOutcome {
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
        200..300 if is_text => RequestOutcome::Taken { rejected: 0, words: String::new() },
        200..300 => {
            // ExportLogsServiceResponse{1 partial_success{1 rejected_log_records, 2 error_message}}
            let partial = field(&answer.body, 1);
            let rejected = fields(&partial).find_map(|(field, value)| match (field, value) {
                (1, FieldValue::Number(count)) => Some(count),
                _ => None,
            });
            RequestOutcome::Taken { rejected: rejected.unwrap_or(0), words: words(&partial, 2) }
        }
        300..400 => RequestOutcome::Later(io::Error::other(status("netwren does not follow redirects".to_owned()))),
        413 => RequestOutcome::Split(status(said())),
        400 if said().contains("too large") => RequestOutcome::Split(status(said())),
        400 | 422 => RequestOutcome::Refused(status(said())),
        // The program or the gateway failed while it worked on the request.
        500 | 502 | 504 => RequestOutcome::Unknown(io::Error::other(status(said()))),
        _ => RequestOutcome::Later(io::Error::other(status(said()))),
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

/// Reads bytes as answers of a receiver; for the fuzzer.
pub fn fuzz_otlp_answers(data: &[u8]) {
    let mut input = bytes::BytesMut::from(data);
    while let Ok(Some(answer)) = Http::parse(&mut input) {
        let _ = evaluate(&answer);
    }
    assert!(fields(data).count() <= data.len());
    let _ = read_headers(&String::from_utf8_lossy(data));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The outcome of an answer in words.
    fn outcome(head: &str, body: &[u8]) -> String {
        let mut text =
            bytes::BytesMut::from(format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes());
        text.extend_from_slice(body);
        match evaluate(&Http::parse(&mut text).unwrap().unwrap()) {
            RequestOutcome::Taken { rejected, words } => format!("taken but {rejected} {words}"),
            RequestOutcome::Refused(words) => format!("refused: {words}"),
            RequestOutcome::Split(words) => format!("split: {words}"),
            RequestOutcome::Later(error) => format!("later: {error}"),
            RequestOutcome::Unknown(error) => format!("unknown: {error}"),
        }
    }

    #[test]
    fn answers_say_what_becomes_of_the_rows() {
        const TEXT: &str = "Content-Type: text/plain";
        for (head, body, expected) in [
            ("200 OK".to_owned(), &b""[..], "taken but 0 "),
            // The answer of a collector that took everything.
            ("200 OK".to_owned(), b"\x0a\x00", "taken but 0 "),
            ("200 OK".to_owned(), b"\x0a\x08\x08\x03\x12\x04late", "taken but 3 late"),
            (format!("200 OK\r\n{TEXT}"), b"ok", "taken but 0 "),
            ("503 x\r\nRetry-After: 7".to_owned(), b"\x08\x0e\x12\x04full", "later: status 503: full"),
            (format!("404 x\r\n{TEXT}"), b"no such\npage", "later: status 404: no such"),
            ("401 x".to_owned(), b"", "later: status 401"),
            ("504 x".to_owned(), b"", "unknown: status 504"),
            ("302 x".to_owned(), b"", "later: status 302: netwren does not follow redirects"),
            (format!("400 x\r\n{TEXT}"), b"request body too large", "split: status 400: request body too large"),
            ("413 x".to_owned(), b"", "split: status 413"),
            ("400 x".to_owned(), b"\x12\x03bad", "refused: status 400: bad"),
        ] {
            assert_eq!(outcome(&head, body), expected, "{head}");
        }
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
