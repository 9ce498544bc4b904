//! Support for the tests of several modules: canned rows, canned lookups, a sink that remembers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::filter;
use crate::plan::{Plan, PlanRequest};
use crate::run::{Answers, Feed, FeedPart, FeedState, OneRound, ReadPart, Run, RunError};
use record::rows::{Endpoint, Socket, Sockets};
use record::{
    Accounting, Addr, Columns, Comm, Demand, Each, FilterPushdown, Key, Lookup, LookupId, Lookups, Next, Offer, Owner,
    Proto, Round, Scan, Schema, Sink, SinkError, Source, SourceError, SourceFault, State, Table, Value, field_index,
};
use std::cell::Cell;
use std::ops::Range;

#[global_allocator]
static HEAP: sys::allocator::CountingAllocator = sys::allocator::CountingAllocator;

/// A source that returns rows from memory.
#[derive(Default)]
pub(crate) struct CannedSource {
    pub(crate) rows: Vec<Socket<'static>>,
    /// The parts of the filter that it claims to apply (it does not: the test may leave such rows out itself).
    pub(crate) pushdown: Vec<FilterPushdown>,
    pub(crate) extra: Accounting,
    pub(crate) fails: bool,
    /// Rows passed on so far.
    pub(crate) handed: Cell<usize>,
    /// Scans prepared so far.
    pub(crate) prepared: Cell<usize>,
    /// The row, counted from 1, that gets lost on its way.
    pub(crate) loses: Option<usize>,
}

impl Source<Sockets> for CannedSource {
    fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        self.prepared.set(self.prepared.get() + 1);
        Box::new(CannedScan(self))
    }
}

/// A scan of [`CannedSource`].
pub(crate) struct CannedScan<'c>(pub(crate) &'c CannedSource);

impl Scan<Sockets> for CannedScan<'_> {
    fn offer(&self) -> Offer {
        Offer { backend: "canned", pushdown: self.0.pushdown.clone(), ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.0.read(each)
    }
}

impl CannedSource {
    fn read(&self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        if self.fails {
            return Err(SourceError { what: "canned rows", fault: SourceFault::Io, cause: "the can is shut".into() });
        }
        let mut stats = self.extra.clone();
        for row in &self.rows {
            self.handed.set(self.handed.get() + 1);
            stats.seen += 1;
            if self.loses == Some(self.handed.get()) {
                continue;
            }
            if each(row) == Next::Stop {
                break;
            }
        }
        Ok(stats)
    }
}

/// A sink that keeps every row as text.
#[derive(Default)]
pub(crate) struct TextSink {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<String>,
    pub(crate) rounds: Vec<Option<Round>>,
    pub(crate) totals: Option<Accounting>,
    /// Returns stop with this row, counted from 1.
    pub(crate) stop_at: Option<usize>,
    /// Fails at that row instead.
    pub(crate) fault: Option<fn() -> SinkError>,
    /// See [`Sink::rows_wanted`].
    pub(crate) wants: Option<u64>,
    /// Rows that were only counted.
    pub(crate) left_out: u64,
    /// See [`Sink::keeps_addresses`].
    pub(crate) keeps_addresses: bool,
}

impl Sink for TextSink {
    fn rows_wanted(&self) -> Option<u64> {
        self.wants
    }

    fn keeps_addresses(&self) -> bool {
        self.keeps_addresses
    }

    fn leave_out(&mut self, rows: u64) {
        self.left_out += rows;
    }

    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.header = columns.0.iter().map(|c| c.name.to_string()).collect();
        self.rounds.push(round);
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let last = self.stop_at == Some(self.rows.len() + 1);
        if let Some(fault) = self.fault.filter(|_| last) {
            return Err(fault());
        }
        self.rows.push(cells.iter().map(cell_text).collect::<Vec<_>>().join(" "));
        Ok(if last { Next::Stop } else { Next::More })
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        self.totals = Some(totals.clone());
        Ok(())
    }
}

/// Runs a plan over one reading of a source.
pub(crate) fn run_once<T: Table>(
    plan: &Plan<T>,
    source: &dyn Source<T>,
    lookups: &Lookups<'_>,
    sink: &mut dyn Sink,
) -> Result<Run, RunError> {
    plan.run(&mut OneRound::new(source, lookups, &|| false), sink)
}

/// A source that is read once per round, with these answers of lookups.
pub(crate) struct CannedRounds<'s> {
    pub(crate) source: &'s dyn Source<Sockets>,
    pub(crate) answers: Answers,
    /// The rounds that follow.
    pub(crate) rounds: Range<u64>,
}

impl Feed<Sockets> for CannedRounds<'_> {
    fn next(
        &mut self,
        demand: &Demand<Sockets>,
        _: &mut Accounting,
        read: &mut ReadPart<'_, Sockets>,
    ) -> Result<FeedState, SourceError> {
        let Some(before) = self.rounds.next() else { return Ok(FeedState::Ended) };
        let (mut scan, lookups) = (self.source.prepare(demand), Lookups::empty());
        let round = Some(Round { n: before + 1, time_ns: 0 });
        read(FeedPart { round, answers: self.answers, ..FeedPart::new(&mut *scan, &lookups, &|| false) });
        Ok(FeedState::EndOfRound)
    }
}

pub(crate) fn cell_text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::U64(n) | Value::Time(n) => n.to_string(),
        Value::FarTime(time) => time.nanoseconds().to_string(),
        Value::I64(n) => n.to_string(),
        Value::Addr(addr) => addr.to_string(),
        Value::LinkAddr(link) => format!("{}%{}", link.addr(), link.iface().escape_ascii()),
        Value::Bytes(text) => text.escape_ascii().to_string(),
        Value::FirstOf(text, others) => format!("{} +{others}", text.escape_ascii()),
        Value::Name(word) => (*word).to_owned(),
        Value::Guess(word) => format!("{word}?"),
        Value::Thousandths(n) => format!("{}.{:03}", n / 1000, n % 1000),
        Value::List(_) | Value::Object(_) => format!("{value:?}"),
        Value::Owners(owners) => format!("{}owners", owners.len()),
        Value::Prefix(addr, len) => format!("{addr}/{len}"),
        Value::Endpoint(addr, None) => addr.to_string(),
        Value::Endpoint(addr, Some(port)) => format!("{addr}:{port}"),
        Value::Bits(..) | Value::Words(_) => {
            value.words().iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(",")
        }
    }
}

/// A socket with the fields that tests vary; the peer is absent for port 0.
pub(crate) fn socket(state: State, local_port: u16, peer: &str, peer_port: u16) -> Socket<'static> {
    let peer = if peer.is_empty() { Endpoint::NONE } else { Endpoint { addr: addr(peer), port: peer_port } };
    Socket {
        proto: Proto::Tcp,
        family: 2,
        state,
        local: Endpoint { addr: addr("192.0.2.1"), port: local_port },
        peer,
        inode: u32::from(local_port),
        uid: Some(u32::from(local_port) % 3),
        ..Socket::EMPTY
    }
}

pub(crate) fn addr(text: &str) -> Addr {
    text.parse().unwrap()
}

/// Owners by inode and users by uid.
#[derive(Default)]
pub(crate) struct FakeOwners {
    pub(crate) owners: Vec<(u64, Vec<Owner>)>,
    pub(crate) users: Vec<(u64, Vec<u8>)>,
    pub(crate) containers: FakeNames,
}

/// Names under keys.
#[derive(Default)]
pub(crate) struct FakeNames(pub(crate) Vec<(Key, Vec<u8>)>);

impl Lookup for FakeNames {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(self.0.iter().find(|(known, _)| *known == key).map(|(_, name)| name.as_slice()))
    }
}

impl Lookup for FakeOwners {
    fn value(&self, key: Key) -> Value<'_> {
        let found = self.users.iter().find(|(id, _)| key == Key::Id(*id));
        found.map_or(Value::Null, |(_, name)| Value::Bytes(name))
    }

    fn owners(&self, key: Key) -> &[Owner] {
        self.owners.iter().find(|(id, _)| key == Key::Id(*id)).map_or(&[], |(_, owners)| owners)
    }
}

impl FakeOwners {
    pub(crate) fn lookups(&self) -> Lookups<'_> {
        Lookups::empty()
            .with_lookup(LookupId::Owners, self)
            .with_lookup(LookupId::Users, self)
            .with_lookup(LookupId::Containers, &self.containers)
    }
}

pub(crate) fn owner(pid: u32, process: &str) -> Owner {
    Owner { pid, fd: 3, process: Comm::new(process.as_bytes()), started: 0 }
}

pub(crate) fn field(name: &str) -> usize {
    field_index::<Sockets>(name).unwrap()
}

pub(crate) fn request(columns: &[&str], filter: &str) -> PlanRequest {
    PlanRequest {
        columns: columns.iter().map(|name| field(name)).collect(),
        conjuncts: filter::conjuncts(Schema::from_table::<Sockets>(), filter).unwrap(),
        ..PlanRequest::default()
    }
}

pub(crate) fn plan(request: PlanRequest) -> Plan<Sockets> {
    Plan::new(request).unwrap()
}

/// A deterministic generator of numbers for tests with many rows.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next_below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Sockets of many states, ports and peers.
pub(crate) fn make_sockets(n: u64) -> Vec<Socket<'static>> {
    let mut numbers = Numbers(7);
    let mut one = || {
        let peer = format!("10.0.{}.{}", numbers.next_below(3), numbers.next_below(5));
        let state = State(numbers.next_below(11) as u8 + 1);
        let (local, remote) = (numbers.next_below(50) as u16 + 1, numbers.next_below(4) as u16);
        let mut row = socket(state, local, &peer, remote);
        row.rqueue = numbers.next_below(1_000) as u32;
        row
    };
    (0..n).map(|_| one()).collect()
}
