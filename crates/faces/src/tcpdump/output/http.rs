//! HTTP: `: HTTP: GET /index.html HTTP/1.1`; with `-v` all lines of the segment that are text.

use super::bytes::{Printed, u8_at};
use super::line::Line;
use super::pieces::put;

/// The methods that the tool knows (RFC 9110, 3253, 4918 and extensions), which it compares regardless of case.
#[rustfmt::skip]
const METHODS: [&str; 34] = [
    "GET", "PUT", "COPY", "HEAD", "LOCK", "MOVE", "POLL", "POST", "BCOPY", "BMOVE", "MKCOL", "TRACE", "LABEL", "MERGE",
    "DELETE", "SEARCH", "UNLOCK", "REPORT", "UPDATE", "NOTIFY", "BDELETE", "CONNECT", "OPTIONS", "CHECKIN", "PROPFIND",
    "CHECKOUT", "CCM_POST", "SUBSCRIBE", "PROPPATCH", "BPROPFIND", "BPROPPATCH", "UNCHECKOUT", "MKACTIVITY",
    "MKWORKSPACE",
];
const LONG_METHODS: [&str; 4] = ["UNSUBSCRIBE", "RPC_CONNECT", "VERSION-CONTROL", "BASELINE-CONTROL"];
/// Words of this length and more are not methods.
const TOKEN_MAX: usize = 100;

/// Appends a segment's text. The line ends in `length N` before it.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "http";
    put!(line, ": HTTP");
    if !begins_message(bytes, length) {
        return Ok(());
    }
    if line.verbose() == 0 {
        return put_text(line, ": ", bytes, 0, length).map(|_| ());
    }
    put!(line, ", length: ", length);
    let mut at = 0;
    while let Some(next) = put_text(line, "\n\t", bytes, at, length)? {
        at = next;
    }
    Ok(())
}

/// True if the bytes begin with a method, or with a word and a number of three digits.
fn begins_message(bytes: &[u8], length: usize) -> bool {
    let Some((token, next)) = token(bytes, 0, length) else { return false };
    let known = |method: &&str| token.eq_ignore_ascii_case(method.as_bytes());
    if METHODS.iter().chain(&LONG_METHODS).any(known) {
        return true;
    }
    let status = self::token(bytes, next, length).map(|(status, _)| status).unwrap_or_default();
    status.len() == 3 && status.iter().all(u8::is_ascii_digit)
}

/// Returns the word at `at`, and the offset of the next.
fn token(bytes: &[u8], mut at: usize, length: usize) -> Option<(&[u8], usize)> {
    let start = at;
    while at < length {
        match *bytes.get(at)? {
            b' ' | b'\t' | b'\n' | b'\r' => break,
            b'!'..=b'~' if at - start < TOKEN_MAX => at += 1,
            _ => return None,
        }
    }
    let token = bytes.get(start..at).filter(|token| !token.is_empty())?;
    while at < length && bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    Some((token, at))
}

/// Appends `before` and the line at `at`; returns the offset of the next line, `None` if this one is not text.
fn put_text(line: &mut Line<'_>, before: &str, bytes: &[u8], at: usize, length: usize) -> Printed<Option<usize>> {
    let mut end = at;
    while end < length {
        let next = match u8_at(bytes, end)? {
            b'\n' => Some(end + 1),
            b'\r' if end + 1 >= length => break,
            b'\r' if u8_at(bytes, end + 1)? == b'\n' => Some(end + 2),
            b'\t' | b' '..=b'~' => None,
            _ => return Ok(None),
        };
        if let Some(next) = next {
            put_line(line, before, bytes, at, end);
            return Ok(Some(next));
        }
        end += 1;
    }
    if at >= length {
        return Ok(None);
    }
    put_line(line, before, bytes, at, end);
    line.cut();
    Ok(None)
}

fn put_line(line: &mut Line<'_>, before: &str, bytes: &[u8], at: usize, end: usize) {
    put!(line, before);
    line.out.extend_from_slice(bytes.get(at..end).unwrap_or_default());
}
