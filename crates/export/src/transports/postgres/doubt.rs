//! A transaction with an unknown end: the connection broke after COMMIT was written.
//!
//! Its number reveals later whether it was committed, if the later session is with the same server.

use super::wire::Wire;
use std::io::{self, ErrorKind};

/// Query that identifies the server, its timeline (a standby that takes over starts a new one), and the database.
const IDENTITY: &str = "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || \
                        left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || \
                        (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The identity of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionIdentity {
    /// `None` if the server does not reveal it.
    server: Option<String>,
    /// Id of the server's process for this session.
    pub(super) process: i32,
}

impl SessionIdentity {
    /// Queries the server for its identity.
    pub(super) fn query_identity(wire: &mut Wire, process: i32) -> io::Result<SessionIdentity> {
        let rows = wire.query(IDENTITY)?.unwrap_or_default();
        Ok(SessionIdentity { server: first_cell(rows), process })
    }
}

/// A transaction with an unknown end.
#[derive(Debug)]
pub(super) struct UnknownTransaction {
    pub(super) transaction: u64,
    pub(super) serving: SessionIdentity,
    /// Number of its last message, plus one.
    pub(super) end: u64,
    /// Refused messages in it.
    pub(super) refused: u64,
}

/// The end of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TransactionEnd {
    Committed,
    /// It was not committed, or its end is unknown.
    Other,
}

impl UnknownTransaction {
    /// Queries how the transaction ended. Fails if it is still in progress, or if the query fails.
    pub(super) fn query_end(&self, wire: &mut Wire, now: &SessionIdentity) -> io::Result<TransactionEnd> {
        if self.serving.server.is_none() || self.serving.server != now.server {
            return Ok(TransactionEnd::Other);
        }
        let (transaction, process) = (self.transaction, self.serving.process);
        let status = wire.query(&format!("SELECT txid_status({transaction})"))?.unwrap_or_default();
        match first_cell(status).as_deref() {
            Some("committed") => Ok(TransactionEnd::Committed),
            Some("in progress") => {
                // The server's process waits for a message that was lost on the way: terminate it.
                let number = transaction & u64::from(u32::MAX);
                let _ = wire.query(&format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {process} AND \
                     backend_xid::text = '{number}'"
                ))?;
                let text = "a transaction of the broken connection has not ended yet";
                Err(io::Error::new(ErrorKind::ResourceBusy, text))
            }
            _ => Ok(TransactionEnd::Other),
        }
    }
}

fn first_cell(rows: super::wire::Rows) -> Option<String> {
    rows.into_iter().flatten().flatten().next()
}
