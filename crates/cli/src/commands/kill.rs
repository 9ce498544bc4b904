//! `netwren sockets kill`: the table of what would be closed, or was.
//!
//! One pass chooses, as for any table. Its rows are put in order, which keeps them until the last one is read: only
//! then the first socket is closed. Closing while the kernel walks its table would shift what it has not shown yet.
//! Each is closed by the cookie of the very row that is shown.

use super::Outcome;
use super::plan::{Wrong, plan};
use super::table::{self, Reads};
use crate::exit::Exit;
use crate::flags::Kill;
use crate::output;
use crate::session::Session;
use engine::{Plan, Predicate, columns};
use record::rows::Sockets;
use record::{
    Accounting, Column, Columns, Demand, Each, Kind, LookupId, Lookups, Next, Offer, Proto, Round, Sink, SinkError,
    Source, SourceError, Value,
};
use sockets::{Closing, Options, SocketSource, Target, Via};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

/// The column that tells rows apart; it is also the order, the oldest socket first, if none is asked for.
const COOKIE: &str = "cookie";

/// Runs the command with the words behind `sockets kill`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let mut kill = match Kill::parse(args) {
        Ok(kill) => kill,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
        }
    };
    if kill.request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    kill.request.shown.sort.get_or_insert_with(|| COOKIE.to_owned());
    match prepare(&kill) {
        Ok((plan, choosing)) => table::run_through(&kill.request, &plan, &choosing, |session, sink, rounds| {
            let mut closer = Closer::new(session, &choosing, kill.yes, sink);
            let mut run = rounds(&mut closer)?;
            closer.tell(&mut run.books);
            Ok(run)
        }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

fn prepare(kill: &Kill) -> Result<(Plan<Sockets>, Choosing), Wrong> {
    let ast = engine::filter::parse(&kill.request.shown.filter)?;
    let plan = plan(&kill.request, &ast)?.with_last_column(COOKIE);
    let test = Predicate::new(&plan.demand().conjuncts).map_err(|bad| Wrong::Plan(engine::PlanError::Pattern(bad)))?;
    Ok((plan, Choosing { test, chosen: RefCell::default() }))
}

/// Reads sockets and keeps what is needed to close those that pass the filter.
struct Choosing {
    test: Predicate<Sockets>,
    chosen: RefCell<Chosen>,
}

/// What passed the filter.
#[derive(Default)]
struct Chosen {
    /// By cookie.
    targets: HashMap<u64, Target>,
    /// Sockets that nobody can close, by protocol.
    closed_to_us: BTreeMap<Proto, u64>,
}

impl Reads<Sockets> for Choosing {
    fn needs_lookup(&self, _id: LookupId) -> bool {
        false
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        _books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Sockets>) -> R,
    ) -> R {
        // /proc has no cookies.
        let options = Options { via: Some(Via::Netlink), ..Options::new(session.netns_id()) };
        let mut source = SocketSource::new(session.host(), options);
        then(&mut Remembering { source: &mut source, choosing: self, lookups })
    }
}

/// The source between: sockets that cannot be closed go no further.
struct Remembering<'c> {
    source: &'c mut dyn Source<Sockets>,
    choosing: &'c Choosing,
    lookups: Lookups<'c>,
}

impl Source<Sockets> for Remembering<'_> {
    fn offer(&self, demand: &Demand<Sockets>) -> Offer {
        self.source.offer(demand)
    }

    fn run(&mut self, demand: &Demand<Sockets>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let (choosing, lookups) = (self.choosing, self.lookups);
        self.source.run(demand, &mut |row| {
            if !choosing.test.matches(row, &lookups) {
                return each(row);
            }
            let mut chosen = choosing.chosen.borrow_mut();
            match Target::of(row) {
                Some(target) => {
                    chosen.targets.insert(target.cookie(), target);
                    each(row)
                }
                None => {
                    *chosen.closed_to_us.entry(row.proto).or_default() += 1;
                    Next::More
                }
            }
        })
    }
}

/// The sink between: closes the socket of every row that would be shown, and shows what became of it.
struct Closer<'c> {
    session: &'c Session,
    choosing: &'c Choosing,
    yes: bool,
    inner: Box<dyn Sink>,
    /// The first trouble of the output. Closing goes on: half of a list is what nobody asked for.
    fault: Option<SinkError>,
    shown: u64,
    closed: u64,
    not_closed: Vec<Closing>,
    left: u64,
}

impl<'c> Closer<'c> {
    fn new(session: &'c Session, choosing: &'c Choosing, yes: bool, inner: Box<dyn Sink>) -> Closer<'c> {
        Closer { session, choosing, yes, inner, fault: None, shown: 0, closed: 0, not_closed: Vec::new(), left: 0 }
    }

    /// Closes the socket of this cookie; null if the user wanted no more.
    fn close(&mut self, cookie: Option<&Value<'_>>) -> Value<'static> {
        if self.session.interrupted() {
            self.left += 1;
            return Value::Null;
        }
        let Some(Value::U64(cookie)) = cookie else { return Value::Null };
        let target = self.choosing.chosen.borrow().targets.get(cookie).copied();
        let Some(target) = target else { return Value::Null };
        let result = sockets::close(self.session.host(), &target);
        let name = result.name();
        match result {
            Closing::Closed => self.closed += 1,
            other => self.not_closed.push(other),
        }
        Value::Name(name)
    }

    /// What was done, and what could not be.
    fn tell(&self, books: &mut Accounting) {
        for (proto, count) in &self.choosing.chosen.borrow().closed_to_us {
            let proto = proto.name();
            books.because(
                0,
                format!("{proto} sockets are left alone, only TCP and UDP ones can be closed: {count} match"),
            );
        }
        if !self.yes {
            let words = match self.shown {
                0 => "no socket to close".to_owned(),
                n => format!("sockets that would be closed: {n}; nothing was done, --yes closes them"),
            };
            return books.because(0, words);
        }
        books.because(0, format!("sockets closed: {} of {}", self.closed, self.shown));
        for result in &self.not_closed {
            books.incomplete |= result.is_failure();
            books.because(1, format!("not closed: {result}"));
        }
        if self.left > 0 {
            books.incomplete = true;
            books.because(self.left, "not closed: interrupted");
        }
    }
}

impl Sink for Closer<'_> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        let mut columns = columns.clone();
        // The cookie is there for us; the user's own, if any, stands before it.
        columns.0.pop();
        if self.yes {
            columns.0.push(Column { name: "result".into(), kind: Kind::Name(Closing::NAMES) });
        }
        self.fault = self.inner.begin(&columns, round).err();
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let (cookie, shown) = match cells.split_last() {
            Some((cookie, shown)) => (Some(cookie), shown),
            None => (None, cells),
        };
        self.shown += 1;
        let mut shown = shown.to_vec();
        if self.yes {
            shown.push(self.close(cookie));
        }
        if self.fault.is_none() {
            match self.inner.row(&shown) {
                Ok(Next::More) => {}
                Ok(Next::Stop) => self.fault = Some(SinkError::Closed),
                Err(fault) => self.fault = Some(fault),
            }
        }
        Ok(Next::More)
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.inner.end(totals),
        }
    }
}
