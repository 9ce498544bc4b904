//! Rows and a source of rows for the tests of this crate.
#![allow(clippy::unwrap_used, dead_code)]

use record::rows::{Endpoint, Socket, Sockets};
use record::{Accounting, Demand, Each, FilterPushdown, Next, Offer, Proto, Scan, Source, SourceError, State};
use std::cell::RefCell;

/// An endpoint from `192.0.2.1:80` or `[::1]:80`.
pub(crate) fn end(text: &str) -> Endpoint {
    let addr: std::net::SocketAddr = text.parse().unwrap();
    Endpoint { addr: addr.ip().to_string().parse().unwrap(), port: addr.port() }
}

fn family(local: &str) -> u8 {
    if local.starts_with('[') { 10 } else { 2 }
}

/// A TCP listener.
pub(crate) fn listener(local: &str) -> Socket<'static> {
    Socket { state: State::LISTEN, family: family(local), local: end(local), netns_id: 1, inode: 7, ..Socket::EMPTY }
}

/// An established TCP connection.
pub(crate) fn tcp(local: &str, peer: &str) -> Socket<'static> {
    let (local_end, peer_end) = (end(local), end(peer));
    Socket {
        state: State::ESTABLISHED,
        family: family(local),
        local: local_end,
        peer: peer_end,
        netns_id: 1,
        inode: 8,
        ..Socket::EMPTY
    }
}

/// An unconnected UDP socket.
pub(crate) fn udp_service(local: &str) -> Socket<'static> {
    Socket { proto: Proto::Udp, state: State::CLOSE, ..listener(local) }
}

/// A connected UDP socket.
pub(crate) fn udp(local: &str, peer: &str) -> Socket<'static> {
    Socket { proto: Proto::Udp, ..tcp(local, peer) }
}

/// A source with fixed rows that applies the first two conjuncts of every demand as the kernel would, and records the
/// demands.
pub(crate) struct Rows {
    pub(crate) rows: Vec<Socket<'static>>,
    pub(crate) asked: RefCell<Vec<Demand<Sockets>>>,
    pub(crate) push: FilterPushdown,
    pub(crate) fails_for: Option<Proto>,
    /// Whether something is missing, and whether only namespaces are.
    pub(crate) incomplete: Option<bool>,
}

impl Rows {
    pub(crate) fn new(rows: Vec<Socket<'static>>) -> Rows {
        Rows { rows, asked: RefCell::default(), push: FilterPushdown::Unsupported, fails_for: None, incomplete: None }
    }
}

/// Tests a row against a condition on words, the only kind that flows add.
fn holds(expr: &record::Expr, row: &Socket<'_>) -> bool {
    let record::Expr::Test(test) = expr else { return true };
    let (record::Operand::Words(words), Some(field)) =
        (&test.operand, <Sockets as record::Table>::FIELDS.get(test.field))
    else {
        return true;
    };
    match field.cell(row, &record::Lookups::empty()) {
        record::Value::Name(name) => words.iter().any(|w| **w == *name.as_bytes()),
        _ => true,
    }
}

fn asks_only_for(proto: Proto, demand: &Demand<Sockets>) -> bool {
    let Some(record::Expr::Test(test)) = demand.conjuncts.first() else { return false };
    test.operand == record::Operand::Words(vec![proto.name().as_bytes().into()])
}

impl Source<Sockets> for Rows {
    fn prepare(&self, demand: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        Box::new(RowScan { rows: self, demand: demand.clone() })
    }
}

struct RowScan<'r> {
    rows: &'r Rows,
    demand: Demand<Sockets>,
}

impl Scan<Sockets> for RowScan<'_> {
    fn offer(&self) -> Offer {
        let conjuncts = self.demand.conjuncts.len();
        Offer {
            backend: "rows",
            pushdown: vec![self.rows.push; conjuncts],
            explain: vec![format!("{conjuncts} conjuncts")],
            ..Offer::default()
        }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let RowScan { rows, demand } = self;
        rows.asked.borrow_mut().push(demand.clone());
        let mut acct = Accounting::default();
        acct.add_backend("rows");
        acct.incomplete = rows.incomplete.is_some();
        acct.only_namespaces_missing = rows.incomplete == Some(true);
        if rows.fails_for.is_some_and(|proto| asks_only_for(proto, demand)) {
            let cause = "no such table".into();
            return Err(SourceError { what: "rows", fault: record::SourceFault::Unsupported, cause });
        }
        for row in &rows.rows {
            if !demand.conjuncts.iter().take(2).all(|c| holds(c, row)) {
                continue;
            }
            acct.seen += 1;
            if each(row) == Next::Stop {
                break;
            }
        }
        Ok(acct)
    }
}
