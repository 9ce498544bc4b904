//! Statements and inserts as requests to the server's HTTP interface.

use crate::clickhouse_address::PASSWORD;
use crate::transports::http::{HttpAnswer, HttpClient, put_parameter};
use crate::transports::secret_file;
use crate::{ClickHouseAddress, TlsFiles};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// The server.
pub(super) struct HttpInterface {
    pub(super) address: ClickHouseAddress,
    http: HttpClient,
    /// The password, read when the transport was opened.
    password: Option<String>,
}

impl HttpInterface {
    pub(super) fn new(address: ClickHouseAddress, tls: TlsFiles) -> HttpInterface {
        let http = HttpClient::new(address.server.clone(), address.is_encrypted, tls);
        HttpInterface { address, http, password: None }
    }

    /// Asks for the answer to a statement without data.
    pub(super) fn ask(&mut self, statement: &str) -> io::Result<HttpAnswer> {
        let target = self.target(&[]);
        self.post(&target, false, statement.as_bytes())?;
        self.http.wait()
    }

    /// Writes an insert with rows as they are in the body, or packed with gzip ([`ClickHouseAddress::is_packed`]).
    pub(super) fn insert(&mut self, statement: &str, token: &str, rows: &[u8]) -> io::Result<()> {
        let target = self.target(&[
            ("query", statement),
            ("insert_deduplication_token", token),
            // Also in the tables that views fill.
            ("deduplicate_blocks_in_dependent_materialized_views", "1"),
            // The answer comes once the rows are stored, and errors have a status of their own.
            ("async_insert", "0"),
            ("wait_end_of_query", "1"),
        ]);
        self.post(&target, self.address.is_packed, rows)
    }

    /// Returns the answer to an insert, if it arrives within `wait`.
    pub(super) fn answer(&mut self, wait: Duration) -> io::Result<Option<HttpAnswer>> {
        self.http.answer(wait)
    }

    pub(super) fn close(&mut self) {
        self.http.close();
        self.password = None;
    }

    fn target(&self, parameters: &[(&str, &str)]) -> String {
        let mut target = "/".to_owned();
        put_parameter(&mut target, "database", &self.address.database);
        parameters.iter().for_each(|(name, value)| put_parameter(&mut target, name, value));
        target
    }

    fn post(&mut self, target: &str, is_packed: bool, body: &[u8]) -> io::Result<()> {
        let password = match self.password.take() {
            Some(password) => password,
            None => self.read_password()?,
        };
        let mut headers = Vec::new();
        if let Some(login) = &self.address.login {
            // In headers, because servers and proxies write URLs into their logs.
            headers.extend([("X-ClickHouse-User", &*login.user), ("X-ClickHouse-Key", &*password)]);
        }
        if is_packed {
            headers.push(("Content-Encoding", "gzip"));
        }
        let written = self.http.post(target, &headers, body);
        self.password = Some(password);
        written
    }

    /// The password: from a file, or from the environment; empty without one.
    fn read_password(&self) -> io::Result<String> {
        let Some(login) = &self.address.login else { return Ok(String::new()) };
        let password = secret_file::password(login.passfile.as_deref(), PASSWORD)?;
        let fault = |kind, text: &str| Err(io::Error::new(kind, text));
        match () {
            () if password.contains(char::is_control) => {
                fault(ErrorKind::InvalidInput, "the password has a control character, which HTTP cannot carry")
            }
            () if !password.is_empty() && !login.allows_clear_text => fault(
                ErrorKind::PermissionDenied,
                "the password would be sent in clear text: use clickhouses://, or ?cleartext-password=allow",
            ),
            () => Ok(password),
        }
    }
}
