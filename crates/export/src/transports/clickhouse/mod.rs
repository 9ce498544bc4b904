//! The transport to ClickHouse: rows are inserted into a table over its HTTP interface, as blocks of columns.
//!
//! A row is delivered once the server has answered that it is stored. Rows are sent together in requests whose bounds
//! do not change until then, each with a token that the server remembers: it stores a request once, however often it
//! arrives. The store keeps the token and the bounds, so that this also holds after the program was killed. Start
//! reading at [`ClickHouse`]; docs/adr/0047.

mod block;
mod column;
mod fault;
mod http_interface;
mod table;

use super::exchange::Protocol;
use super::http::Http;
use super::marked_request::{MarkedRequest, fuzz_note};
use super::stream::{WRITE_TIMEOUT, closed_error};
use super::{Gathering, TakenPart, Transport, with_object};
use crate::typed_row::TableShape;
use crate::{Batch, ClickHouseAddress, TlsFiles};
use block::{EncodedBlock, InsertPlan};
use fault::Remedy;
use flate2::{Compression, write::GzEncoder};
use http_interface::HttpInterface;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most bytes of rows in a request, before they are packed.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// Most rows in a request. The server makes one block of them, which it stores as a whole
/// (`max_insert_block_size` is 1,048,449).
///
/// Bound: rows of an insert into ClickHouse. Beyond: further rows go into the next one. By: any sender of packets that
/// a rule logs.
const ROWS_MAX: usize = 1 << 16;
/// A server that does not answer for this long counts as away.
///
/// Bound: for the answer to an insert into ClickHouse. Beyond: the connection is reopened; rows wait. By: the server,
/// or a program that answers in its place.
const SILENCE: Duration = Duration::from_secs(120);
/// Least time between two inserts: each makes a file that the server must merge later.
const INTERVAL: Duration = Duration::from_secs(1);

/// Inserts rows into a table.
pub(super) struct ClickHouse {
    connection: HttpInterface,
    shape: TableShape,
    /// The column `host`.
    host: Vec<u8>,
    /// What the server's table takes; `None` while the transport is closed.
    plan: Option<InsertPlan>,
    request: MarkedRequest,
    /// The request that was written, and whose answer is expected.
    asked: Option<AskedInsert>,
    /// Most rows in the next request: fewer after a refusal, until the refused row is found.
    rows: usize,
    complaint: Option<String>,
    /// The body of the request; the field keeps the memory.
    body: Vec<u8>,
}

/// An insert without an answer.
struct AskedInsert {
    since: Instant,
    block: EncodedBlock,
}

impl ClickHouse {
    /// Writes into the table that `header` describes, at `address`.
    pub(super) fn new(address: ClickHouseAddress, header: &[u8], tls: TlsFiles) -> ClickHouse {
        ClickHouse {
            connection: HttpInterface::new(address, tls),
            shape: TableShape::of_header(header),
            host: sys::fs::host_name(),
            plan: None,
            request: MarkedRequest::default(),
            asked: None,
            rows: ROWS_MAX,
            complaint: None,
            body: Vec::new(),
        }
    }

    /// The table and the server, for errors.
    fn name(&self) -> String {
        format!("table {} at {}", self.shape.name, self.connection.address.server)
    }

    /// Writes the request. Returns the taken messages at once if there is nothing to insert.
    fn begin(&mut self, batch: &Batch) -> io::Result<Option<TakenPart>> {
        let (Some(request), Some(plan)) = (self.request.current, &mut self.plan) else { return Err(closed_error()) };
        self.body.clear();
        let block = plan.put_block(request.messages(batch), &self.host, &mut self.body);
        self.complaint = block.misfit.clone().or(self.complaint.take());
        if block.rows == 0 {
            self.request.forget();
            return Ok(Some(TakenPart { bytes: request.bytes(batch), refused: block.refused, repeated: 0 }));
        }
        let statement = plan.statement.clone();
        if self.connection.address.is_packed {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            packer.write_all(&self.body)?;
            self.body = packer.finish()?;
        }
        // A table does not store a second insert with the same token.
        let token = format!("netwren-{}-{}-{}", self.request.mark(), request.first, request.end);
        self.connection.insert(&statement, &token, &self.body)?;
        self.asked = Some(AskedInsert { since: Instant::now(), block });
        Ok(None)
    }

    /// Waits a short time for the answer, and evaluates it.
    fn finish(&mut self, batch: &Batch) -> io::Result<TakenPart> {
        let Some(answer) = self.connection.answer(WRITE_TIMEOUT)? else {
            if self.asked.as_ref().is_some_and(|asked| asked.since.elapsed() < SILENCE) {
                return Ok(TakenPart::default());
            }
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", SILENCE.as_secs())));
        };
        let (Some(asked), Some(request)) = (self.asked.take(), self.request.current) else {
            return Err(closed_error());
        };
        let bytes = request.bytes(batch);
        match fault::evaluate(&answer) {
            Ok(()) => {
                let knows_tokens = self.plan.as_ref().is_some_and(|plan| plan.knows_tokens);
                let repeated = if self.request.is_twice(knows_tokens) { asked.block.rows } else { 0 };
                self.rows = self.rows.saturating_mul(2).min(ROWS_MAX);
                Ok(TakenPart { bytes, repeated, refused: asked.block.refused })
            }
            Err(fault) if fault.remedy() == Remedy::Again => {
                // The server may have stored a part of it, for example one of its partitions.
                self.request.set_doubtful();
                Err(fault.error("cannot insert into", &self.name()))
            }
            Err(fault) if request.len() == 1 => {
                self.complaint = Some(fault.error("a row was rejected by", &self.name()).to_string());
                self.request.forget();
                self.rows = 2;
                Ok(TakenPart { bytes, refused: 1, ..TakenPart::default() })
            }
            // One of the rows is bad: try fewer at once, so that the others are still delivered.
            Err(_) => {
                self.rows = (request.len() as usize / 2).max(1);
                self.request.forget();
                Ok(TakenPart::default())
            }
        }
    }
}

impl Transport for ClickHouse {
    fn open(&mut self) -> io::Result<()> {
        self.close();
        self.request.open()?;
        self.plan = Some(table::create_or_inspect(&mut self.connection, &self.shape)?);
        Ok(())
    }

    fn resume(&mut self, note: &[u8]) -> Option<Range<u64>> {
        self.request.resume(note)
    }

    fn prepare(&mut self, batch: &Batch, at: usize) -> io::Result<Option<Vec<u8>>> {
        let name = self.name();
        self.request.prepare((batch, at), (self.rows, REQUEST_BYTES_MAX), &name)
    }

    fn gathering(&self) -> Option<Gathering> {
        Some(Gathering { every: INTERVAL, together: self.request.current.map_or(0, |request| request.end) })
    }

    fn send(&mut self, batch: &Batch, _: usize) -> io::Result<TakenPart> {
        let begun = if self.asked.is_none() { self.begin(batch) } else { Ok(None) };
        let sent = match begun {
            Ok(Some(taken)) => return Ok(taken),
            Ok(None) => self.finish(batch),
            Err(error) => Err(error),
        };
        sent.map_err(|error| match error.kind() {
            // Errors of the server already have its name.
            ErrorKind::Other | ErrorKind::PermissionDenied => error,
            _ => with_object("cannot write to", &self.name(), &error),
        })
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        self.complaint.take()
    }

    fn close(&mut self) {
        if self.asked.take().is_some() {
            self.request.set_doubtful();
        }
        self.plan = None;
        self.connection.close();
    }
}

/// Reads bytes as each answer of a server; for the fuzzer.
pub fn fuzz_clickhouse_answers(data: &[u8]) {
    let mut input = bytes::BytesMut::from(data);
    while let Ok(Some(answer)) = Http::parse(&mut input) {
        let _ = fault::evaluate(&answer);
    }
    let _ = table::read_texts(data);
    let _ = column::ServerType::parse(&String::from_utf8_lossy(data));
    fuzz_note(data);
}
