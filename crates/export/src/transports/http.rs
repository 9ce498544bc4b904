//! HTTP/1.1 requests, and their answers (RFC 9112), over one connection: one request at a time.
//!
//! An answer has a length or comes in chunks; an answer that ends with the connection counts as without a body.
//! Redirects are not followed.

use super::exchange::{Exchange, MESSAGE_MAX, Protocol};
use super::socket::Socket;
use super::tcp;
use crate::TlsFiles;
use bytes::{Buf, BytesMut};
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// Longest head of an answer.
///
/// Bound: bytes of the head of an HTTP answer. Beyond: the connection is closed. By: a program that answers in the
/// server's place.
const HEAD_MAX: usize = 16 << 10;
/// Longest line before a chunk.
const CHUNK_LINE_MAX: usize = 256;
/// An idle connection is not used after this time: the shortest default of servers is 3 s (`keep_alive_timeout` of
/// ClickHouse), and then they close it.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// How each answer begins.
const PREFIX: &[u8] = b"HTTP/1.";

/// HTTP, as a [`Protocol`].
pub(super) enum Http {}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HttpAnswer {
    /// The status code.
    pub(super) status: u16,
    /// The lines of its head after the first one.
    head: Vec<u8>,
    /// Its body, decoded from chunks.
    pub(super) body: Vec<u8>,
    /// True if the server closes the connection after it.
    pub(super) is_last: bool,
}

impl HttpAnswer {
    /// The value of a header, without blanks around it; the name's case does not matter.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        lines.filter_map(|line| line.split_once(':')).map(|(key, value)| (key, value.trim()))
    }

    /// The length in the head; `Err` if it is malformed, or if there are two different ones.
    fn length(&self) -> Result<Option<usize>, ()> {
        let mut length = None;
        for (_, value) in self.headers().filter(|(key, _)| key.eq_ignore_ascii_case("content-length")) {
            let number = parse_size(value.as_bytes(), 10)?;
            if length.replace(number).is_some_and(|before| before != number) {
                return Err(());
            }
        }
        Ok(length)
    }
}

impl Protocol for Http {
    type Message = HttpAnswer;
    const SERVER: &'static str = "HTTP server";

    fn parse(input: &mut BytesMut) -> Result<Option<HttpAnswer>, ()> {
        loop {
            let shared = input.len().min(PREFIX.len());
            if input.get(..shared) != PREFIX.get(..shared) {
                return Err(());
            }
            let Some(end) = input.windows(4).take(HEAD_MAX).position(|four| four == b"\r\n\r\n") else {
                return if input.len() > HEAD_MAX { Err(()) } else { Ok(None) };
            };
            let mut answer = parse_head(input.get(..end).unwrap_or_default())?;
            let rest = input.get(end + 4..).unwrap_or_default();
            let encoding = answer.header("transfer-encoding").map(str::to_ascii_lowercase);
            let used = match (answer.status, encoding.as_deref()) {
                (100..200, _) => Some(0),
                (204 | 304, _) => Some(0),
                (_, Some("chunked")) => parse_chunks(rest, &mut answer.body)?,
                (_, Some(_)) => return Err(()),
                _ => match answer.length()? {
                    Some(length) => rest.get(..length).map(|body| {
                        answer.body.extend_from_slice(body);
                        length
                    }),
                    None => {
                        answer.is_last = true;
                        Some(0)
                    }
                },
            };
            let Some(used) = used else { return Ok(None) };
            input.advance(end + 4 + used);
            // 100 Continue and the like precede the answer.
            if answer.status >= 200 {
                return Ok(Some(answer));
            }
        }
    }
}

/// Parses the status and the headers.
fn parse_head(head: &[u8]) -> Result<HttpAnswer, ()> {
    let end = head.windows(2).position(|two| two == b"\r\n").unwrap_or(head.len());
    let (line, rest) = head.split_at_checked(end).ok_or(())?;
    let line = line.strip_prefix(PREFIX).ok_or(())?;
    let [minor, b' ', status @ ..] = line else { return Err(()) };
    let status = status.get(..3).ok_or(())?;
    let status = parse_size(status, 10)?;
    let mut answer = HttpAnswer { head: rest.to_vec(), ..HttpAnswer::default() };
    answer.status = u16::try_from(status).ok().filter(|status| *status >= 100).ok_or(())?;
    let connection = answer.header("connection").map(str::to_ascii_lowercase);
    answer.is_last = *minor == b'0' || connection.is_some_and(|words| words.contains("close"));
    Ok(answer)
}

/// Appends the chunks to `body`. Returns how many bytes they and their end take; `None` if they are incomplete.
fn parse_chunks(mut rest: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>, ()> {
    let all = rest.len();
    loop {
        let Some(line) = take_line(&mut rest)? else { return Ok(None) };
        let digits = line.split(|byte| matches!(byte, b';' | b' ')).next().unwrap_or_default();
        let size = parse_size(digits, 16)?;
        if body.len() + size > MESSAGE_MAX {
            return Err(());
        }
        if size == 0 {
            break;
        }
        let Some((chunk, after)) = rest.split_at_checked(size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        rest = after;
        match rest {
            [b'\r', b'\n', after @ ..] => rest = after,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(()),
        }
    }
    // Headers may follow the last chunk.
    loop {
        match take_line(&mut rest)? {
            None => return Ok(None),
            Some([]) => return Ok(Some(all - rest.len())),
            Some(_) => {}
        }
    }
}

/// Takes a line, without its end; `None` if it is incomplete.
fn take_line<'r>(rest: &mut &'r [u8]) -> Result<Option<&'r [u8]>, ()> {
    let Some(end) = rest.windows(2).take(CHUNK_LINE_MAX).position(|two| two == b"\r\n") else {
        return if rest.len() > CHUNK_LINE_MAX { Err(()) } else { Ok(None) };
    };
    let line = rest.get(..end).unwrap_or_default();
    *rest = rest.get(end + 2..).unwrap_or_default();
    Ok(Some(line))
}

/// Parses digits only: no sign, no blank. A message of more bytes than allowed is an error.
fn parse_size(digits: &[u8], radix: u32) -> Result<usize, ()> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.chars().all(|c| c.is_digit(radix)));
    let size = text.and_then(|text| usize::from_str_radix(text, radix).ok());
    size.filter(|size| *size <= MESSAGE_MAX).ok_or(())
}

/// A server, and the connection to it while there is one. It is opened again whenever one is needed.
pub(super) struct HttpClient {
    /// `HOST:PORT`.
    pub(super) server: String,
    is_encrypted: bool,
    tls: TlsFiles,
    open: Option<OpenConnection>,
}

struct OpenConnection {
    wire: Exchange<Http>,
    used: Instant,
}

impl HttpClient {
    pub(super) fn new(server: String, is_encrypted: bool, tls: TlsFiles) -> HttpClient {
        HttpClient { server, is_encrypted, tls, open: None }
    }

    /// Connects, so that a server that is away shows at once.
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.open = Some(OpenConnection { wire: Exchange::new(self.connect()?), used: Instant::now() });
        Ok(())
    }

    /// Writes a POST request, on a new connection if there is no usable one. Header values must not contain control
    /// characters.
    pub(super) fn post(&mut self, target: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        // A server may have closed an idle connection at any time.
        let open = self.open.take_if(|open| open.used.elapsed() < KEEP_ALIVE);
        let usable = open.map(|open| open.wire).and_then(|mut wire| {
            let is_usable = wire.next(Duration::ZERO).is_ok_and(|answer| answer.is_none());
            is_usable.then_some(wire)
        });
        let mut wire = match usable {
            Some(wire) => wire,
            None => Exchange::new(self.connect()?),
        };
        put_post(&mut wire.out, &self.server, target, headers, body);
        self.open = Some(OpenConnection { wire, used: Instant::now() });
        Ok(())
    }

    /// Waits for the answer while a transport is opened.
    pub(super) fn wait(&mut self) -> io::Result<HttpAnswer> {
        let open = self.open.as_mut().ok_or(ErrorKind::NotConnected)?;
        open.wire.restart();
        let answer = open.wire.wait()?;
        self.keep_or_close(&answer);
        Ok(answer)
    }

    /// Returns the answer, if it arrives within `wait`.
    pub(super) fn answer(&mut self, wait: Duration) -> io::Result<Option<HttpAnswer>> {
        let open = self.open.as_mut().ok_or(ErrorKind::NotConnected)?;
        let answer = open.wire.next(wait)?;
        if let Some(answer) = &answer {
            self.keep_or_close(answer);
        }
        Ok(answer)
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    fn keep_or_close(&mut self, answer: &HttpAnswer) {
        match &mut self.open {
            Some(open) if !answer.is_last => open.used = Instant::now(),
            _ => self.open = None,
        }
    }

    fn connect(&self) -> io::Result<Socket> {
        let stream = tcp::connect(&self.server)?;
        if self.is_encrypted { self.encrypt(stream) } else { Ok(Socket::Tcp(stream)) }
    }

    #[cfg(feature = "tls")]
    fn encrypt(&self, stream: std::net::TcpStream) -> io::Result<Socket> {
        let (server, host) = (&self.server, crate::url::host_of(&self.server));
        let socket = super::encrypted::socket(stream, host, server, true, &self.tls)?;
        Ok(Socket::Tls(Box::new(socket)))
    }

    #[cfg(not(feature = "tls"))]
    fn encrypt(&self, _: std::net::TcpStream) -> io::Result<Socket> {
        let _ = &self.tls;
        Err(super::without_tls())
    }
}

/// Appends a POST request.
fn put_post(out: &mut BytesMut, server: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("POST {target} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: netwren\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body);
}

/// Appends a parameter to the query of a URL.
pub(super) fn put_parameter(target: &mut String, name: &str, value: &str) {
    target.push(if target.contains('?') { '&' } else { '?' });
    let _ = write!(target, "{name}=");
    for byte in value.bytes() {
        let _ = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => write!(target, "{}", byte as char),
            _ => write!(target, "%{byte:02X}"),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Option<(HttpAnswer, usize)>, ()> {
        let mut input = BytesMut::from(bytes);
        Ok(Http::parse(&mut input)?.map(|answer| (answer, input.len())))
    }

    #[test]
    fn answers_are_read() {
        let text =
            b"HTTP/1.1 404 Not Found\r\nX-ClickHouse-Exception-Code:  60 \r\ncontent-length: 5\r\n\r\nhello more";
        let (answer, left) = parse(text).unwrap().unwrap();
        assert_eq!((answer.status, &answer.body[..], answer.is_last, left), (404, &b"hello"[..], false, 5));
        assert_eq!(answer.header("x-clickhouse-exception-code"), Some("60"));
        let text =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: Close\r\n\
                     \r\n4;x=y\r\nab\r\n\r\n1\r\nc\r\n0\r\nTrailer: x\r\n\r\nmore";
        let (answer, left) = parse(text).unwrap().unwrap();
        assert_eq!((answer.status, &answer.body[..], answer.is_last, left), (200, &b"ab\r\nc"[..], true, 4));
        for text in [&b"HTTP/1.0 500 x\r\n\r\n"[..], b"HTTP/1.1 502\r\nServer: x\r\n\r\n"] {
            let (answer, _) = parse(text).unwrap().unwrap();
            assert!(answer.is_last && answer.body.is_empty());
        }
    }

    #[test]
    fn what_is_not_http_is_refused_at_once() {
        for text in [
            &b"SSH-2.0-x"[..],
            b"\x16\x03\x01",
            b"HTTP/2 200\r\n\r\n",
            b"HTTP/1.1 x00 OK\r\n\r\n",
            b"HTTP/1.1 99\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        ] {
            assert_eq!(parse(text), Err(()), "{}", text.escape_ascii());
        }
        let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &[b'a'; HEAD_MAX]].concat();
        assert_eq!(parse(&endless), Err(()));
    }

    #[test]
    fn a_request_has_one_length_and_no_second_line() {
        let mut out = BytesMut::new();
        let mut target = "/".to_owned();
        put_parameter(&mut target, "database", "a b\r\n");
        put_parameter(&mut target, "query", "INSERT é");
        put_post(&mut out, "h:1", &target, &[("X-ClickHouse-User", "u")], b"body");
        let text = "POST /?database=a%20b%0D%0A&query=INSERT%20%C3%A9 HTTP/1.1\r\nHost: h:1\r\nUser-Agent: netwren\r\n\
                    X-ClickHouse-User: u\r\nContent-Length: 4\r\n\r\nbody";
        assert_eq!(std::str::from_utf8(&out).unwrap(), text);
    }

    proptest! {
        /// An answer is the same in one piece and in two.
        #[test]
        fn a_part_is_not_an_answer(body in prop::collection::vec(any::<u8>(), 0..200), cut: usize, size in 1usize..50) {
            let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in body.chunks(size) {
                text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            let cut = cut % text.len();
            prop_assert_eq!(parse(&text[..cut]), Ok(None));
            prop_assert_eq!(parse(&text).unwrap().unwrap().0.body, body);
        }
    }
}
