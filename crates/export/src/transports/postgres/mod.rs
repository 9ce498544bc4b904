//! The transport to PostgreSQL: rows are copied into a table, in one transaction per batch.
//!
//! A row is delivered once its transaction is committed. Start reading at [`Database`].

mod copy;
mod doubt;
mod faults;
mod login;
mod password;
mod table;
mod wire;

use super::stream::{WRITE_TIMEOUT, closed_error};
use super::{OTHER_COLUMNS, TakenPart, Transport, with_object};
use crate::typed_row::{TypedValue, TypedValues};
use crate::{Batch, PostgresAddress, TlsFiles};
use doubt::{SessionIdentity, TransactionEnd, UnknownTransaction};
use faults::ServerError;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, CopyData};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use table::ServerTable;
use wire::Wire;

/// A server that does not answer for this long counts as away: the table may be locked, or its disk may hang.
///
/// Bound: for a transaction of a database. Beyond: the connection is reopened; rows wait. By: the server, or a program
/// that answers in its place.
const SILENCE: Duration = Duration::from_secs(60);
/// Most rows in one transaction.
///
/// Bound: rows of a transaction. Beyond: further rows go into the next transaction. By: any sender of packets that a
/// rule logs.
const ROWS_MAX: usize = 1 << 16;

/// A database and its table for the rows, which is created if necessary.
pub(super) struct Database {
    address: PostgresAddress,
    tls: TlsFiles,
    table: ServerTable,
    session: Option<Session>,
    /// A transaction of an earlier session that may or may not be committed.
    doubt: Option<UnknownTransaction>,
    /// Most rows in the next transaction: fewer after a refusal, until the refused row is found.
    rows: usize,
    complaint: Option<String>,
    /// Rows as text; the field keeps the memory.
    text: Vec<u8>,
}

struct Session {
    wire: Wire,
    serving: SessionIdentity,
    transfer: Option<Transfer>,
    /// True after an error within a transaction.
    is_aborted: bool,
}

/// A transaction in progress.
struct Transfer {
    step: TransferStep,
    begun: Instant,
    taken: TakenPart,
    rows: usize,
    /// Number of the last message, plus one.
    end: u64,
    transaction: Option<u64>,
    fault: Option<ServerError>,
    is_committed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferStep {
    Copying,
    Committing,
}

impl Database {
    /// Writes to the database at `address`, into the table that `header` describes.
    pub(super) fn new(address: PostgresAddress, header: &[u8], tls: TlsFiles) -> Database {
        let table = ServerTable::from_header(header, &address);
        let (session, doubt, complaint) = (None, None, None);
        Database { address, tls, table, session, doubt, rows: ROWS_MAX, complaint, text: Vec::new() }
    }

    /// Begins a transaction with the messages of `batch` from `first` on. Returns the taken messages at once if there
    /// is nothing to write, otherwise `None`.
    fn begin(&mut self, batch: &Batch, first: usize) -> io::Result<Option<TakenPart>> {
        let Some(session) = &mut self.session else { return Err(closed_error()) };
        let mut taken = TakenPart::default();
        let (mut rows, mut end, mut cells) = (0, first, Vec::new());
        self.text.clear();
        for message in (first..).map_while(|index| batch.message(index)).take(self.rows) {
            let mut values = TypedValues::from_bytes(message);
            end += 1;
            if values.next() != Some(TypedValue::Integer(self.table.id)) {
                // The row waited on disk while the columns were changed.
                taken.refused += 1;
                continue;
            }
            self.table.put_row(&mut self.text, &mut cells, values);
            rows += 1;
        }
        taken.bytes = batch.start_of(end) - batch.start_of(first);
        if rows == 0 {
            return Ok(Some(taken));
        }
        let clean = if std::mem::take(&mut session.is_aborted) { "ROLLBACK; " } else { "" };
        let out = &mut session.wire.out;
        let begin = format!("{clean}BEGIN; SELECT txid_current(); ");
        match self.table.copy() {
            Some(copy) => {
                frontend::query(&(begin + &copy), out)?;
                CopyData::new(&self.text[..])?.write(out);
                frontend::copy_done(out);
            }
            None => frontend::query(&(begin + &String::from_utf8_lossy(&self.text)), out)?,
        }
        session.transfer = Some(Transfer {
            step: TransferStep::Copying,
            begun: Instant::now(),
            taken,
            rows,
            end: batch.first_number() + end as u64,
            transaction: None,
            fault: None,
            is_committed: false,
        });
        Ok(None)
    }

    /// Continues the transaction in progress while the server answers soon.
    fn continue_transfer(&mut self) -> io::Result<TakenPart> {
        let Some(session) = &mut self.session else { return Err(closed_error()) };
        let Some(transfer) = &mut session.transfer else { return Ok(TakenPart::default()) };
        let until = Instant::now() + WRITE_TIMEOUT;
        while transfer.begun.elapsed() < SILENCE {
            let left = until.saturating_duration_since(Instant::now());
            let Some(message) = session.wire.next(left)? else { return Ok(TakenPart::default()) };
            let is_over = left.is_zero();
            match message {
                Message::DataRow(row) => {
                    let cells = wire::row_cells(&row)?;
                    let number = cells.first().and_then(|cell| cell.as_deref()?.parse().ok());
                    transfer.transaction = transfer.transaction.or(number);
                }
                Message::CommandComplete(body) => transfer.is_committed = body.tag().is_ok_and(|tag| tag == "COMMIT"),
                Message::ErrorResponse(body) => {
                    transfer.fault = transfer.fault.take().or_else(|| Some(faults::read(&body)));
                }
                Message::ReadyForQuery(body) => {
                    session.is_aborted = body.status() == b'E';
                    if transfer.step == TransferStep::Committing || transfer.fault.is_some() {
                        return self.finish_transfer();
                    }
                    transfer.step = TransferStep::Committing;
                    frontend::query("COMMIT", &mut session.wire.out)?;
                }
                _ => {}
            }
            // An endless stream of messages must not block the thread here.
            if is_over {
                return Ok(TakenPart::default());
            }
        }
        let text =
            format!("no answer for {} s: the table may be locked, or the server's disk may hang", SILENCE.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, text))
    }

    /// Evaluates the server's answer: it has taken the rows, or refused them.
    fn finish_transfer(&mut self) -> io::Result<TakenPart> {
        let transfer = self.session.as_mut().and_then(|session| session.transfer.take());
        let Some(transfer) = transfer else { return Ok(TakenPart::default()) };
        match transfer.fault {
            None if transfer.is_committed => {
                self.rows = self.rows.saturating_mul(2).min(ROWS_MAX);
                Ok(transfer.taken)
            }
            None => Err(io::Error::other(format!("{} has not committed a transaction", self.address))),
            Some(error) if !error.is_of_the_row() => Err(error.error_at("cannot write to", &self.address)),
            Some(error) if transfer.rows == 1 => {
                self.complaint = Some(error.error_at("a row was rejected by", &self.address).to_string());
                self.rows = 2;
                Ok(TakenPart { refused: transfer.taken.refused + 1, ..transfer.taken })
            }
            // One of the rows is bad: try fewer at once, so that the others are still delivered.
            Some(_) => {
                self.rows = (transfer.rows / 2).max(1);
                Ok(TakenPart::default())
            }
        }
    }

    /// Ends the session. If a COMMIT was written without an answer, the next session has to find out how it ended.
    fn end_session(&mut self) {
        let Some(session) = self.session.take() else { return };
        let Some(transfer) = session.transfer else { return session.wire.end() };
        if let (TransferStep::Committing, Some(transaction)) = (transfer.step, transfer.transaction) {
            let (end, refused) = (transfer.end, transfer.taken.refused);
            self.doubt = Some(UnknownTransaction { transaction, serving: session.serving, end, refused });
        }
    }

    /// Returns the messages from `first` on that an earlier session has committed.
    fn take_committed(&mut self, batch: &Batch, first: usize) -> Option<TakenPart> {
        let doubt = self.doubt.take_if(|doubt| doubt.transaction == SETTLED)?;
        let number = batch.first_number() + first as u64;
        let index = usize::try_from(doubt.end.checked_sub(batch.first_number())?).ok()?;
        let bytes = batch.start_of(index).checked_sub(batch.start_of(first)).filter(|_| doubt.end > number)?;
        Some(TakenPart { bytes, refused: doubt.refused, ..TakenPart::default() })
    }
}

/// Replaces a transaction's number once it is known to be committed.
const SETTLED: u64 = 0;

impl Transport for Database {
    fn open(&mut self) -> io::Result<()> {
        self.end_session();
        let (mut wire, process) = login::log_in(&self.address, &self.tls)?;
        let serving = SessionIdentity::query_identity(&mut wire, process)?;
        if let Some(doubt) = &mut self.doubt {
            match doubt.query_end(&mut wire, &serving)? {
                TransactionEnd::Committed => doubt.transaction = SETTLED,
                TransactionEnd::Other => self.doubt = None,
            }
        }
        let created = self.table.create_or_inspect(&mut wire)?;
        created.map_err(|error| error.error_at("cannot create the table in", &self.address))?;
        self.session = Some(Session { wire, serving, transfer: None, is_aborted: false });
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let first = batch.count_complete(at);
        if let Some(taken) = self.take_committed(batch, first) {
            return Ok(taken);
        }
        let session = self.session.as_ref().ok_or_else(closed_error)?;
        let is_begun = session.transfer.is_some();
        let named = |error: io::Error, address: &PostgresAddress| match error.kind() {
            // Errors of the server already have its name.
            ErrorKind::Other | ErrorKind::PermissionDenied | ErrorKind::StorageFull | ErrorKind::NotFound => error,
            _ => with_object("cannot write to", &address.to_string(), &error),
        };
        if !is_begun {
            if let Some(taken) = self.begin(batch, first)? {
                return Ok(taken);
            }
        }
        self.continue_transfer().map_err(|error| named(error, &self.address))
    }

    fn check(&mut self) -> io::Result<()> {
        let session = self.session.as_mut().ok_or_else(closed_error)?;
        if session.transfer.is_some() {
            return Ok(());
        }
        session
            .wire
            .check_open()
            .map_err(|error| with_object("the connection has ended to", &self.address.to_string(), &error))
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        self.complaint.take().or_else(|| Some(OTHER_COLUMNS.to_owned()))
    }

    fn close(&mut self) {
        self.end_session();
    }
}
