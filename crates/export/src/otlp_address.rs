//! The address of a receiver of OpenTelemetry logs: `otlp+http://HOST[:PORT][/PATH]`; `otlp+https://` with TLS.

use crate::url::receiver_of;
use std::fmt;

/// The port of receivers, with and without TLS.
const PORT: u16 = 4318;
/// The path of logs.
const PATH: &str = "/v1/logs";
/// Longest path that is accepted.
///
/// Bound: bytes of the path in an OTLP URL. Beyond: the target is refused. By: the user.
const PATH_MAX: usize = 1000;

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OtlpAddress {
    /// The server, as `HOST:PORT`.
    pub server: String,
    /// The path of its receiver of logs.
    pub path: String,
    /// True if the connection uses TLS.
    pub is_encrypted: bool,
    shown: String,
}

impl OtlpAddress {
    /// Parses the text after `scheme:`.
    pub(crate) fn parse(scheme: &str, rest: &str) -> Result<OtlpAddress, String> {
        let form = || {
            format!(
                "a receiver of OpenTelemetry logs is {scheme}://HOST:PORT, or {scheme}://HOST:PORT/PATH if its path is \
                 not {PATH}"
            )
        };
        let url = rest.strip_prefix("//").ok_or_else(form)?;
        let (server, path) = url.split_once('/').unwrap_or((url, ""));
        let is_legal = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
        if server.contains('@') || !is_legal(server) || !is_legal(path) || path.len() > PATH_MAX {
            return Err(form());
        }
        Ok(OtlpAddress {
            server: receiver_of(server, PORT).ok_or_else(form)?,
            path: if path.is_empty() { PATH.to_owned() } else { format!("/{path}") },
            is_encrypted: scheme != "otlp+http",
            shown: format!("{scheme}:{rest}"),
        })
    }
}

impl fmt::Display for OtlpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn receivers_are_read() {
        for (scheme, rest, server, path, is_encrypted) in [
            ("otlp+http", "//a", "a:4318", "/v1/logs", false),
            ("otlp+https", "//[2001:db8::1]:443/otlp/v1/logs", "[2001:db8::1]:443", "/otlp/v1/logs", true),
            ("otlps+http", "//a/", "a:4318", "/v1/logs", true),
        ] {
            let address = OtlpAddress::parse(scheme, rest).unwrap();
            assert_eq!((&*address.server, &*address.path, address.is_encrypted), (server, path, is_encrypted));
            assert_eq!(address.to_string(), format!("{scheme}:{rest}"));
        }
        for rest in ["a:4318", "//", "//a:x", "///v1/logs", "//u:hunter2@a", "//a/x y", "//a/\r\nX: y", "//a b"] {
            let said = OtlpAddress::parse("otlp+http", rest).unwrap_err();
            assert!(said.contains("is otlp+http://HOST:PORT") && !said.contains("hunter"), "{rest}: {said}");
        }
    }
}
