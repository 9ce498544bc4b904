//! The address of a PostgreSQL database: `postgres://USER[:PASSWORD]@HOST:PORT/DATABASE[?table=…&sslmode=…]`.

use crate::url::{UrlParts, decode_percent, host_and_port, is_loopback};
use std::fmt;
use std::path::PathBuf;

const PORT: u16 = 5432;

/// The server truncates names to this many bytes (NAMEDATALEN).
///
/// Bound: bytes of a name in a database. Beyond: the name is cut, as by the server. By: the user.
const NAME_MAX: usize = 63;

/// Whether the connection is encrypted, with libpq's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SslMode {
    /// Never.
    Disable,
    /// TLS if the server supports it, without checking its certificate. The default for the local host.
    Prefer,
    /// Always, without checking the server's certificate.
    Require,
    /// Always, with a certificate for this host from a trusted authority. The default for other hosts.
    VerifyFull,
}

/// Ways for the server to ask for the password (`require_auth`, with libpq's names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AuthMethod {
    /// The server also proves that it knows the password, and never receives it.
    Scram,
    /// A hash that can be cracked, and used by a man in the middle.
    Md5,
    /// Clear text.
    Password,
}

const AUTH_METHODS: [(&str, AuthMethod); 3] =
    [("scram-sha-256", AuthMethod::Scram), ("md5", AuthMethod::Md5), ("password", AuthMethod::Password)];

const SSL_MODES: [(&str, SslMode); 4] = [
    ("disable", SslMode::Disable),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-full", SslMode::VerifyFull),
];

/// Environment variables that replace parameters missing from the URL, as in libpq.
const ENVIRONMENT: [(&str, &str); 2] = [("PGSSLMODE", "sslmode"), ("PGREQUIREAUTH", "require_auth")];

/// The host or the directory where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PostgresHost {
    /// A host, and a port.
    Tcp(String, u16),
    /// The directory of its socket, and the port in the socket's name.
    Unix(PathBuf, u16),
}

impl PostgresHost {
    /// True for the local host: a socket in a directory, or a loopback address.
    fn is_local(&self) -> bool {
        match self {
            PostgresHost::Unix(..) => true,
            PostgresHost::Tcp(host, _) => is_loopback(host),
        }
    }
}

/// A database, the role to log in as, and the table for the rows.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PostgresAddress {
    /// The role.
    pub user: String,
    /// Its password, if the URL has it.
    pub(crate) password: Option<String>,
    /// The server.
    pub host: PostgresHost,
    /// The database.
    pub database: String,
    /// The table's schema, unless it is the first of the search path.
    pub schema: Option<String>,
    /// The table; by default, the name of the stream.
    pub table: Option<String>,
    /// The TLS mode.
    pub sslmode: SslMode,
    /// The login methods that the URL allows; if empty, the methods that do not reveal the password to a stranger.
    auth: Vec<AuthMethod>,
    /// File with the password, in the form of ~/.pgpass.
    pub(crate) passfile: Option<PathBuf>,
    /// The URL without the password.
    shown: String,
}

impl PostgresAddress {
    /// Parses the text after `postgres:`. The error never contains the password.
    pub(crate) fn parse(rest: &str) -> Result<PostgresAddress, String> {
        let form = || "a database is postgres://USER@HOST:PORT/DATABASE, or postgres://USER@/DATABASE?host=/DIRECTORY";
        let UrlParts { user, receiver, path: database, query } = UrlParts::split(rest).ok_or_else(form)?;
        let who = user.ok_or_else(form)?;
        let (user, password) = who.split_once(':').map_or((who, None), |(user, word)| (user, Some(word)));
        let (host, port) = host_and_port(receiver, PORT).ok_or_else(form)?;
        let mut address = PostgresAddress {
            user: name("user", user)?,
            password: password.map(decode_percent).transpose()?,
            host: PostgresHost::Tcp(decode_percent(host)?, port),
            database: name("database", database)?,
            schema: None,
            table: None,
            sslmode: SslMode::VerifyFull,
            auth: Vec::new(),
            passfile: None,
            shown: format!("postgres://{user}@{receiver}/{database}{}", shown_query(query)),
        };
        let mut sslmode = None;
        for (variable, key) in ENVIRONMENT {
            if let Some(value) = std::env::var(variable).ok().filter(|value| !value.is_empty()) {
                let taken = address.take(&format!("{key}={value}"), port, &mut sslmode);
                taken.map_err(|wrong| format!("{variable}: {wrong}"))?;
            }
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            address.take(pair, port, &mut sslmode)?;
        }
        address.sslmode =
            sslmode.unwrap_or(if address.host.is_local() { SslMode::Prefer } else { SslMode::VerifyFull });
        match &address.host {
            PostgresHost::Tcp(host, _) if host.is_empty() => Err(form().to_owned()),
            _ => Ok(address),
        }
    }

    /// Applies one parameter after the question mark.
    fn take(&mut self, pair: &str, port: u16, sslmode: &mut Option<SslMode>) -> Result<(), String> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "table" => match decode_percent(value)?.split_once('.') {
                Some((schema, table)) => {
                    (self.schema, self.table) = (Some(name("table", schema)?), Some(name("table", table)?));
                }
                None => self.table = Some(name("table", value)?),
            },
            "schema" => self.schema = Some(name("schema", value)?),
            "host" => match decode_percent(value)? {
                path if path.starts_with('/') => self.host = PostgresHost::Unix(path.into(), port),
                host => self.host = PostgresHost::Tcp(host, port),
            },
            "passfile" => self.passfile = Some(decode_percent(value)?.into()),
            "sslmode" => {
                let mode = SSL_MODES.iter().find(|(word, _)| *word == value);
                let words = "sslmode is disable, prefer, require or verify-full";
                *sslmode = Some(mode.map(|(_, mode)| *mode).ok_or(words)?);
            }
            "require_auth" => {
                let method = |word: &str| AUTH_METHODS.iter().find(|(known, _)| *known == word).map(|(_, is)| *is);
                let methods: Option<Vec<AuthMethod>> = value.split(',').map(method).collect();
                self.auth = methods.ok_or("require_auth is scram-sha-256, md5 or password, separated by commas")?;
            }
            "password" => {
                return Err("no password after the `?`: use PGPASSWORD, passfile=FILE or USER:PASSWORD@".into());
            }
            _ => {
                let key = key.escape_default();
                return Err(format!(
                    "unknown key `{key}` for a database: the keys are host, table, schema, sslmode, \
                    require_auth, passfile"
                ));
            }
        }
        Ok(())
    }

    /// True if the URL contains the password, so that every reader of the URL learns it.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// True if the server may use this method to ask for the password. Without `require_auth`, netwren sends a hash or
    /// the password itself only if `is_trusted`, that is, only if a stranger cannot answer.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn allows(&self, method: AuthMethod, is_trusted: bool) -> bool {
        if self.auth.is_empty() { method == AuthMethod::Scram || is_trusted } else { self.auth.contains(&method) }
    }

    /// True if `word`, for example of a command line, contains this address with its password.
    pub fn is_contained_in(&self, word: &str) -> bool {
        let Some((_, rest)) = word.split_once("://") else { return false };
        self.password.is_some() && PostgresAddress::parse(&format!("//{rest}")).is_ok_and(|other| other == *self)
    }
}

/// The parameters for display: all except passwords.
fn shown_query(query: &str) -> String {
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("password")).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Decodes a name and checks its length.
fn name(what: &str, text: &str) -> Result<String, String> {
    let name = decode_percent(text)?;
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(format!("a database's URL has a {what} of 1 to {NAME_MAX} bytes"));
    }
    Ok(name)
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresAddress").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls_are_read() {
        let all = "//fw%40x:p%3Aw@db.example:5433/logs?table=net.log&sslmode=verify-full&passfile=/etc/pass";
        let address = PostgresAddress::parse(all).unwrap();
        assert_eq!((&*address.user, &*address.database), ("fw@x", "logs"));
        assert_eq!(address.password.as_deref(), Some("p:w"));
        assert_eq!(address.host, PostgresHost::Tcp("db.example".to_owned(), 5433));
        assert_eq!((address.schema.as_deref(), address.table.as_deref()), (Some("net"), Some("log")));
        assert_eq!((address.sslmode, address.passfile.clone()), (SslMode::VerifyFull, Some("/etc/pass".into())));
        let host = |url: &str| PostgresAddress::parse(url).unwrap().host;
        let mode = |url: &str| PostgresAddress::parse(url).unwrap().sslmode;
        for here in ["//a@localhost/d", "//a@127.0.0.2/d", "//a@[::1]/d", "//a@/d?host=/run"] {
            assert_eq!(mode(here), SslMode::Prefer, "{here}");
        }
        for elsewhere in ["//a@db/d", "//a@192.0.2.1/d", "//a@localhost.example/d", "//a@localhost/d?host=db"] {
            assert_eq!(mode(elsewhere), SslMode::VerifyFull, "{elsewhere}");
        }
        let allows = |url: &str, method, is_trusted| PostgresAddress::parse(url).unwrap().allows(method, is_trusted);
        for method in [AuthMethod::Md5, AuthMethod::Password] {
            assert!(!allows("//a@db/d", method, false) && allows("//a@db/d", method, true));
            assert!(allows("//a@db/d?require_auth=md5,password", method, false));
            assert!(!allows("//a@db/d?require_auth=scram-sha-256", method, true));
        }
        assert!(allows("//a@db/d", AuthMethod::Scram, false));
        assert!(!allows("//a@db/d?require_auth=md5", AuthMethod::Scram, true));
        assert!(PostgresAddress::parse("//a@db/d?require_auth=none").unwrap_err().contains("require_auth is scram"));
        assert_eq!(host("//a@[2001:db8::1]/d"), PostgresHost::Tcp("2001:db8::1".to_owned(), 5432));
        assert_eq!(host("//a@/d?host=/run/postgresql"), PostgresHost::Unix("/run/postgresql".into(), 5432));
        assert_eq!(host("//a@:5440/d?host=%2Frun"), PostgresHost::Unix("/run".into(), 5440));
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in ["//a:hunter2@h/d", "//a:hunter2@h/d?table=x", "//a:hunter%32@h:1/d"] {
            let address = PostgresAddress::parse(url).unwrap();
            assert!(!format!("{address} {address:?}").contains("hunter"), "{address}");
            assert!(address.has_password() && address.is_contained_in(&format!("--to=postgresql:{url}")));
        }
        for url in [
            "//a:hunter2@h",
            "a:hunter2@h/d",
            "//a:hunter2@h:x/d",
            "//a:%hunter2@h/d",
            "//a@h/d?password=hunter2",
            "//a:hunter2@h/d?sslmode=x",
            "//a:hunter2@h/d?x=y",
            "//:hunter2@h/d",
            "//a:hunter2@/d",
        ] {
            let said = PostgresAddress::parse(url).unwrap_err();
            assert!(!said.contains("hunter"), "{url}: {said}");
        }
    }
}
