//! The answers of a server to inserts: stored, or an error with a number (`ErrorCodes.cpp` in ClickHouse).

use crate::transports::exchange::excerpt;
use crate::transports::http::HttpAnswer;
use std::io::{self, ErrorKind};

/// The header with the number of an error.
const CODE_HEADER: &str = "X-ClickHouse-Exception-Code";

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerFault {
    status: u16,
    /// The number of the error; 0 if a program between has answered, for example a proxy.
    code: u32,
    text: String,
}

impl ServerFault {
    /// True if the server will never take all rows of the request together.
    pub(super) fn is_of_a_row(&self) -> bool {
        // TOO_LARGE_STRING_SIZE, VIOLATED_CONSTRAINT, UNKNOWN_ELEMENT_OF_ENUM; a proxy's Content Too Large.
        matches!((self.code, self.status), (131 | 469 | 691, _) | (0, 413))
    }

    /// True if the user may not do it.
    fn is_denied(&self) -> bool {
        // REQUIRED_PASSWORD, AUTHENTICATION_FAILED, WRONG_PASSWORD, UNKNOWN_USER, ACCESS_DENIED, READONLY.
        matches!(self.code, 194 | 516 | 193 | 192 | 497 | 164) || matches!(self.status, 401 | 403)
    }

    /// The error of an attempt at something.
    pub(super) fn error(&self, what: &str, object: &str) -> io::Error {
        let kind = if self.is_denied() { ErrorKind::PermissionDenied } else { ErrorKind::Other };
        io::Error::new(kind, format!("{what} {object}: {}", self.words()))
    }

    /// The fault and its remedy.
    pub(super) fn words(&self) -> String {
        let advice = match self.code {
            // UNKNOWN_IDENTIFIER in system.columns, UNKNOWN_FORMAT, UNKNOWN_SETTING.
            47 | 73 | 115 => " (netwren needs ClickHouse 22.2 or later)",
            192..=194 | 516 => " (the user is in the URL, the password in CLICKHOUSE_PASSWORD or ?passfile=FILE)",
            252 => " (the server cannot merge as fast as rows arrive)",
            _ => "",
        };
        match (self.code, self.status) {
            (0, status @ 300..400) => format!("status {status}: netwren does not follow redirects"),
            (0, status) if self.text.is_empty() => format!("status {status}"),
            (0, status) => format!("status {status}: {}", self.text),
            (code, _) => format!("{} (error {code}){advice}", self.text),
        }
    }
}

/// Evaluates an answer.
pub(super) fn evaluate(answer: &HttpAnswer) -> Result<(), ServerFault> {
    let body = String::from_utf8_lossy(&answer.body);
    let number = |text: &str| text.trim().parse().ok().filter(|code| *code != 0);
    let in_body = || body.strip_prefix("Code: ").and_then(|rest| number(rest.split(['.', ',']).next()?));
    let code = answer.header(CODE_HEADER).and_then(number).or_else(in_body);
    if answer.status == 200 && code.is_none() {
        return Ok(());
    }
    // Code: 60. DB::Exception: Table d.t does not exist. (UNKNOWN_TABLE) (version 26.9.2.1)
    let text = body.lines().next().unwrap_or_default();
    let text = text.rsplit_once("DB::Exception: ").map_or(text, |(_, text)| text);
    let text = text.split(" (version ").next().unwrap_or_default().trim_end_matches(['.', ' ']);
    Err(ServerFault { status: answer.status, code: code.unwrap_or(0), text: excerpt(text) })
}
