//! Errors that the server reports, with hints on how to fix them.

use crate::PostgresAddress;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorResponseBody;
use std::io::{self, ErrorKind};

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerError {
    /// SQLSTATE: five characters (PostgreSQL's appendix A).
    pub(super) state: String,
    /// The server's message, escaped.
    text: String,
    has_constraint: bool,
}

/// Reads the fields of an error.
pub(super) fn read(body: &ErrorResponseBody) -> ServerError {
    let mut error =
        ServerError { state: String::new(), text: "an error without a message".into(), has_constraint: false };
    let mut fields = body.fields();
    while let Ok(Some(field)) = fields.next() {
        let text = String::from_utf8_lossy(field.value_bytes());
        match field.type_() {
            b'C' => error.state = text.into_owned(),
            b'M' => error.text = sys::escape_bytes(text.as_bytes()).into(),
            b'n' => error.has_constraint = true,
            _ => {}
        }
    }
    error
}

impl ServerError {
    /// True if the server refuses the row itself and will refuse it again. A missing partition is a violation without
    /// a constraint; it can still be created.
    pub(super) fn is_of_the_row(&self) -> bool {
        let is_partition = self.state == "23514" && !self.has_constraint;
        (self.state.starts_with("22") || self.state.starts_with("23")) && !is_partition
    }

    pub(super) fn to_io(&self) -> io::Error {
        let kind = match &*self.state {
            "53100" => ErrorKind::StorageFull,
            "28P01" | "28000" | "42501" => ErrorKind::PermissionDenied,
            "3D000" => ErrorKind::NotFound,
            // The server shuts down, starts up, or an administrator has ended the session.
            state if state.starts_with("57P") => ErrorKind::ConnectionAborted,
            _ => ErrorKind::Other,
        };
        io::Error::new(kind, self.text.clone())
    }

    /// Returns the error with the database's name and a hint.
    pub(super) fn error_at(&self, what: &str, address: &PostgresAddress) -> io::Error {
        let error = self.to_io();
        let hint = self.hint(address).map_or(String::new(), |hint| format!(" ({hint})"));
        io::Error::new(error.kind(), format!("{what} {address}: {error}{hint}"))
    }

    fn hint(&self, address: &PostgresAddress) -> Option<String> {
        let (user, database) =
            (sys::escape_bytes(address.user.as_bytes()), sys::escape_bytes(address.database.as_bytes()));
        Some(match &*self.state {
            "28P01" => format!("check the password of {user}: PGPASSWORD, ?passfile=FILE or USER:PASSWORD@"),
            "28000" => format!("check that {user} may log in from here: CREATE ROLE, and the server's pg_hba.conf"),
            "3D000" => format!("createdb {database}"),
            "42501" => format!(
                "GRANT CREATE ON SCHEMA … TO {user} allows netwren to create the table; for an existing table, GRANT \
                 INSERT, SELECT ON it"
            ),
            "3F000" => "CREATE SCHEMA creates it".to_owned(),
            "53100" => "the server's disk is full: rows are queued until there is room".to_owned(),
            "53300" => "max_connections of the server".to_owned(),
            "55P03" => "another session has locked the table: rows are queued".to_owned(),
            "25006" => "a standby, or default_transaction_read_only: connect to the primary".to_owned(),
            "23514" => "rows are queued until the partition exists".to_owned(),
            _ => return None,
        })
    }
}
