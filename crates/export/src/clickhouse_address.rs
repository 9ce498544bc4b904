//! The address of a ClickHouse database: `clickhouse://[USER@]HOST[:PORT]/DATABASE[?table=…]`; `clickhouses://` with
//! TLS.

use crate::url::{UrlParts, decode_percent, host_of, is_loopback, receiver_of};
use std::fmt;
use std::path::PathBuf;

/// The usual ports of its HTTP interface without and with TLS.
const PORTS: [u16; 2] = [8123, 8443];

/// Longest name of a database, a table or a user that is accepted, in bytes.
///
/// Bound: bytes of a name in a ClickHouse URL. Beyond: the target is refused. By: the user.
const NAME_MAX: usize = 200;

/// The variable of the environment with the password, as for clickhouse-client.
pub(crate) const PASSWORD: &str = "CLICKHOUSE_PASSWORD";

/// A user. Without a password file, the password may be in the environment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClickHouseLogin {
    pub(crate) user: String,
    /// A file with the password in its first line.
    pub(crate) passfile: Option<PathBuf>,
    /// True if the password may be sent without TLS.
    pub(crate) allows_clear_text: bool,
}

/// A database, and the table for the rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClickHouseAddress {
    /// The server, as `HOST:PORT`.
    pub server: String,
    /// The database.
    pub database: String,
    /// The table; by default, the name of the stream.
    pub table: Option<String>,
    /// True if the connection uses TLS.
    pub is_encrypted: bool,
    /// True if rows are compressed with gzip.
    pub(crate) is_packed: bool,
    pub(crate) login: Option<ClickHouseLogin>,
    shown: String,
}

impl ClickHouseAddress {
    /// Parses the text after `clickhouse:` or, if `is_encrypted`, after `clickhouses:`. No error contains a password.
    pub(crate) fn parse(rest: &str, is_encrypted: bool) -> Result<ClickHouseAddress, String> {
        let scheme = if is_encrypted { "clickhouses" } else { "clickhouse" };
        let form =
            || format!("a database is {scheme}://USER@HOST:PORT/DATABASE, where PORT is that of its HTTP interface");
        let UrlParts { user, receiver, path: database, query } = UrlParts::split(rest).ok_or_else(form)?;
        if user.is_some_and(|user| user.contains(':')) {
            return Err(format!("no password in the URL: use {PASSWORD} or ?passfile=FILE"));
        }
        let server = receiver_of(receiver, PORTS[usize::from(is_encrypted)]).ok_or_else(form)?;
        let login = |user| {
            Ok::<_, String>(ClickHouseLogin {
                user: name("user", user)?,
                passfile: None,
                allows_clear_text: is_encrypted || is_loopback(host_of(&server)),
            })
        };
        let login = user.map(login).transpose()?;
        let mut address = ClickHouseAddress {
            server,
            database: name("database", database)?,
            table: None,
            is_encrypted,
            is_packed: true,
            login,
            shown: format!("{scheme}:{rest}"),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            address.take(pair)?;
        }
        Ok(address)
    }

    /// Applies one parameter after the question mark.
    fn take(&mut self, pair: &str) -> Result<(), String> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let no_user = || format!("{} needs a user: clickhouse://USER@…", key.escape_default());
        let login = self.login.as_mut().ok_or_else(no_user);
        match (key, value) {
            ("table", _) => self.table = Some(name("table", value)?),
            ("compression", "gzip") => self.is_packed = true,
            ("compression", "none") => self.is_packed = false,
            ("compression", _) => return Err("compression is gzip or none".to_owned()),
            ("passfile", _) => login?.passfile = Some(decode_percent(value)?.into()),
            ("cleartext-password", "allow") => login?.allows_clear_text = true,
            ("cleartext-password", _) => return Err("cleartext-password has one value: allow".to_owned()),
            ("password", _) => return Err(format!("no password in the URL: use {PASSWORD} or ?passfile=FILE")),
            _ => {
                let key = key.escape_default();
                return Err(format!(
                    "unknown key `{key}` for ClickHouse: the keys are table, compression, passfile, cleartext-password"
                ));
            }
        }
        Ok(())
    }
}

/// Decodes a name, and checks its length and that a header can carry it.
fn name(what: &str, text: &str) -> Result<String, String> {
    let name = decode_percent(text)?;
    let is_legal = (1..=NAME_MAX).contains(&name.len()) && !name.contains(char::is_control);
    is_legal
        .then_some(name)
        .ok_or_else(|| format!("a URL of ClickHouse has a {what} of 1 to {NAME_MAX} bytes without control characters"))
}

impl fmt::Display for ClickHouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn databases_are_read() {
        let url = "//fw%40x@[2001:db8::1]:9000/net%2Fwren?table=a.b&compression=none&passfile=/etc/p%20w";
        let address = ClickHouseAddress::parse(url, true).unwrap();
        assert_eq!((&*address.server, &*address.database), ("[2001:db8::1]:9000", "net/wren"));
        assert_eq!((address.table.as_deref(), address.is_packed), (Some("a.b"), false));
        let login = address.login.clone().unwrap();
        assert_eq!((&*login.user, login.passfile.as_deref()), ("fw@x", Some("/etc/p w".as_ref())));
        assert_eq!(address.to_string(), format!("clickhouses:{url}"));
        let plain = ClickHouseAddress::parse("//db.example/d", false).unwrap();
        assert_eq!((&*plain.server, plain.is_packed, plain.login), ("db.example:8123", true, None));
        assert_eq!(ClickHouseAddress::parse("//db.example/d", true).unwrap().server, "db.example:8443");
    }

    #[test]
    fn a_password_is_sent_in_clear_text_only_to_this_host_or_if_asked() {
        let allows = |url: &str, tls| ClickHouseAddress::parse(url, tls).unwrap().login.unwrap().allows_clear_text;
        assert!(!allows("//u@db/d", false) && allows("//u@db/d", true));
        assert!(allows("//u@localhost/d", false) && allows("//u@127.0.0.2/d", false) && allows("//u@[::1]/d", false));
        assert!(allows("//u@db/d?cleartext-password=allow", false));
    }

    #[test]
    fn mistakes_are_answered_with_what_would_work() {
        for (url, says) in [
            ("a/d", "a database is clickhouse://"),
            ("//a", "a database is clickhouse://"),
            ("///d", "a database is clickhouse://"),
            ("//a:x/d", "a database is clickhouse://"),
            ("//a/", "a database of 1 to 200 bytes"),
            ("//@a/d", "a user of 1 to 200 bytes"),
            ("//u%0d%0a@a/d", "without control characters"),
            ("//a/d?table=", "a table of 1 to 200 bytes"),
            ("//a/d?passfile=/x", "needs a user"),
            ("//a/d?compression=zstd", "compression is gzip or none"),
            ("//a/d?x=1", "unknown key `x`"),
            ("//u:hunter2@a/d", "use CLICKHOUSE_PASSWORD or ?passfile"),
            ("//u@a/d?password=hunter2", "use CLICKHOUSE_PASSWORD or ?passfile"),
        ] {
            let said = ClickHouseAddress::parse(url, false).unwrap_err();
            assert!(said.contains(says) && !said.contains("hunter"), "{url}: {said}");
        }
    }
}
