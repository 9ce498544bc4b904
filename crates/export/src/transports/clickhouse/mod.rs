//! The transport to ClickHouse: rows are inserted into a table over its HTTP interface, as blocks of columns.
//!
//! A row is delivered once the server has answered that it is stored. Each insert has a token that the server
//! remembers: it stores an insert once, however often it arrives. The store keeps the token and the bounds, so that
//! this also holds after the program was killed. Start reading at [`ClickHouse`]; docs/adr/0047.

mod block;
mod column;
mod fault;
mod http_interface;
mod table;

use super::exchange::Protocol;
use super::frozen_request::FrozenRequest;
use super::http::{Http, HttpAnswer};
use super::http_sender::{HttpReceiver, HttpSender, RequestOutcome, WrittenRows, gzip};
use super::stream::closed_error;
use super::tokened_request::fuzz_note;
use crate::typed_row::TableShape;
use crate::{Batch, ClickHouseAddress, TlsFiles};
use block::InsertPlan;
use http_interface::HttpInterface;
use std::io;
use std::time::Duration;

/// Most rows in a request. The server makes one block of them, which it stores as a whole
/// (`max_insert_block_size` is 1,048,449).
///
/// Bound: rows of an insert into ClickHouse. Beyond: further rows go into the next one. By: any sender of packets that
/// a rule logs.
const ROWS_MAX: usize = 1 << 16;
/// Most bytes of rows in a request, before they are packed.
const BYTES_MAX: usize = 8 << 20;
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
    /// The columns that the server's table takes; `None` while the connection is closed.
    plan: Option<InsertPlan>,
    /// The rows of a request; the field keeps the memory.
    body: Vec<u8>,
}

impl ClickHouse {
    /// The transport into the table that `header` describes, at `address`.
    pub(super) fn sender(address: ClickHouseAddress, header: &[u8], tls: TlsFiles) -> HttpSender<ClickHouse> {
        HttpSender::new(ClickHouse {
            connection: HttpInterface::new(address, tls),
            shape: TableShape::of_header(header),
            host: sys::fs::host_name(),
            plan: None,
            body: Vec::new(),
        })
    }
}

impl HttpReceiver for ClickHouse {
    const REQUEST_MAX: (usize, usize) = (ROWS_MAX, BYTES_MAX);
    const SILENCE: Duration = SILENCE;
    const INTERVAL: Duration = INTERVAL;

    fn name(&self) -> String {
        format!("table {} at {}", self.shape.name, self.connection.address.server)
    }

    fn open(&mut self) -> io::Result<()> {
        self.plan = Some(table::create_or_inspect(&mut self.connection, &self.shape)?);
        Ok(())
    }

    fn write(&mut self, request: &FrozenRequest, batch: &Batch, token: &str) -> io::Result<WrittenRows> {
        let plan = self.plan.as_mut().ok_or_else(closed_error)?;
        self.body.clear();
        let written = plan.put_block(request.messages(batch), &self.host, &mut self.body);
        if written.rows > 0 {
            // A table does not store a second insert with the same token.
            let token = format!("netwren-{token}-{}-{}", request.first, request.end);
            let packed = if self.connection.address.is_packed { Some(gzip(&self.body)?) } else { None };
            self.connection.insert(&plan.statement, &token, packed.as_ref().unwrap_or(&self.body))?;
        }
        Ok(written)
    }

    fn answer(&mut self, wait: Duration) -> io::Result<Option<HttpAnswer>> {
        self.connection.answer(wait)
    }

    fn evaluate(&mut self, answer: &HttpAnswer) -> RequestOutcome {
        match fault::evaluate(answer) {
            Ok(()) => RequestOutcome::Taken { rejected: 0, words: String::new() },
            Err(fault) if fault.is_of_a_row() => RequestOutcome::Split(fault.words()),
            Err(fault) => RequestOutcome::Unknown(fault.error("cannot insert into", &self.name())),
        }
    }

    fn knows_tokens(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.knows_tokens)
    }

    fn close(&mut self) {
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
