//! `netwren sockets kill`: the table of what would be closed, or was.
//!
//! One pass chooses, as for any table. Each socket is closed by the cookie of the very row that is shown (`acting`).

use super::Outcome;
use super::acting::{self, Act, Rows};
use super::plan::{Wrong, plan};
use super::table::{self, Reads};
use crate::exit::Exit;
use crate::flags::Kill;
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use engine::{Plan, Predicate, columns};
use record::rows::Sockets;
use record::{Accounting, Demand, Each, LookupId, Lookups, Next, Offer, Proto, Source, SourceError, Unchanged, Value};
use sockets::{Closing, Options, SocketSource, Target, Via};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use sys::Host;

/// The column that tells rows apart; it is also the order, the oldest socket first, if none is asked for.
const COOKIE: &str = "cookie";

/// Runs the command with the words behind `sockets kill`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let mut kill = match Kill::parse(args) {
        Ok(kill) => kill,
        Err(error) => return refused(&error).into(),
    };
    if kill.request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Sockets>()).into();
    }
    kill.request.shown.sort.get_or_insert_with(|| COOKIE.to_owned());
    match prepare(&kill) {
        Ok((plan, choosing)) => table::run_through(&kill.request, &plan, &choosing, |session, sink, rounds| {
            let closer = Closer { host: session.host(), choosing: &choosing, closed: 0, not_closed: Vec::new() };
            acting::run(session, sink, rounds, kill.yes, closer)
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

    fn read(
        &mut self,
        demand: &Demand<Sockets>,
        _: Option<&dyn Unchanged>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
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

/// Closes the sockets of the rows that are shown.
struct Closer<'c> {
    host: &'c Host,
    choosing: &'c Choosing,
    closed: u64,
    not_closed: Vec<Closing>,
}

impl Act for Closer<'_> {
    const RESULTS: &'static [&'static str] = Closing::NAMES;

    /// Closes the socket of this cookie.
    fn act(&mut self, cookie: Option<u64>) -> Value<'static> {
        let target = cookie.and_then(|cookie| self.choosing.chosen.borrow().targets.get(&cookie).copied());
        let Some(target) = target else { return Value::Null };
        let result = sockets::close(self.host, &target);
        let name = result.name();
        match result {
            Closing::Closed => self.closed += 1,
            other => self.not_closed.push(other),
        }
        Value::Name(name)
    }

    fn tell(&self, rows: Rows, books: &mut Accounting) {
        for (proto, count) in &self.choosing.chosen.borrow().closed_to_us {
            let proto = proto.name();
            books.because(
                0,
                format!("{proto} sockets are left alone, only TCP and UDP ones can be closed: {count} match"),
            );
        }
        if !rows.yes {
            let words = match rows.shown {
                0 => "no socket to close".to_owned(),
                n => format!("sockets that would be closed: {n}; nothing was done, --yes closes them"),
            };
            return books.because(0, words);
        }
        books.because(0, format!("sockets closed: {} of {}", self.closed, rows.shown));
        for result in &self.not_closed {
            books.incomplete |= result.is_failure();
            books.because(1, format!("not closed: {result}"));
        }
        if rows.left > 0 {
            books.incomplete = true;
            books.because(rows.left, "not closed: interrupted");
        }
    }
}
