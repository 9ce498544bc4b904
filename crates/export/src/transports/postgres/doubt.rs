//! A transaction whose end is not known: the connection broke after COMMIT was written.
//!
//! Its number tells afterwards whether it was committed, as long as it is the same server that is asked.

use super::wire::Wire;
use std::io::{self, ErrorKind};

/// The server, its history (which a standby begins anew when it takes over), and the database.
const IDENTITY: &str = "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' || \
                        left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || \
                        (SELECT oid FROM pg_database WHERE datname = current_database())";

/// What a session is known by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Serving {
    /// None where the server does not tell.
    server: Option<String>,
    /// Its process for us.
    pub(super) process: i32,
}

impl Serving {
    /// Asks the server.
    pub(super) fn ask(wire: &mut Wire, process: i32) -> io::Result<Serving> {
        let rows = wire.query(IDENTITY)?.unwrap_or_default();
        Ok(Serving { server: first(rows), process })
    }
}

/// Such a transaction.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) transaction: u64,
    pub(super) serving: Serving,
    /// Number behind that of its last message.
    pub(super) end: u64,
    /// Messages of it that were refused.
    pub(super) refused: u64,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TransactionEnd {
    Committed,
    /// Its rows are not there, or nobody knows.
    Other,
}

impl Doubt {
    /// Asks how it ended; an error while it has not.
    pub(super) fn settle(&self, wire: &mut Wire, now: &Serving) -> io::Result<TransactionEnd> {
        if self.serving.server.is_none() || self.serving.server != now.server {
            return Ok(TransactionEnd::Other);
        }
        let (transaction, process) = (self.transaction, self.serving.process);
        let status = wire.query(&format!("SELECT txid_status({transaction})"))?.unwrap_or_default();
        match first(status).as_deref() {
            Some("committed") => Ok(TransactionEnd::Committed),
            Some("in progress") => {
                // It waits for words that were lost on the way.
                let number = transaction & u64::from(u32::MAX);
                let _ = wire.query(&format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {process} AND \
                     backend_xid::text = '{number}'"
                ))?;
                let text = "a transaction of the connection that broke has not ended yet";
                Err(io::Error::new(ErrorKind::ResourceBusy, text))
            }
            _ => Ok(TransactionEnd::Other),
        }
    }
}

fn first(rows: super::wire::Rows) -> Option<String> {
    rows.into_iter().flatten().flatten().next()
}
