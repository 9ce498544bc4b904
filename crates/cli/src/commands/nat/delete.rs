//! `netwren nat delete FILTER`: the table of what would be deleted, or was.
//!
//! One pass chooses, as for any table. Each entry is deleted by the original direction of the very row that is shown
//! (`acting`), its zone and its id, so that an entry which took its place meanwhile stays.

use super::super::Outcome;
use super::super::acting::{self, Act, Rows};
use super::super::plan::Wrong;
use super::super::table::{self, Reads};
use super::list::{Reading, prepare};
use crate::exit::Exit;
use crate::flags::NatDelete;
use crate::messages::refused;
use crate::output;
use crate::session::Session;
use conntrack::change::{Changes, Given};
use conntrack::{CtTable, Place, Via};
use engine::{Predicate, columns};
use netlink::DumpError;
use record::rows::{CtTuple, Nat};
use record::{Accounting, Demand, Each, LookupId, Lookups, Offer, Source, SourceError, Unchanged, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use sys::Errno;

/// The column that tells rows apart; it is also the order if none is asked for.
const ID: &str = "id";

/// Runs the command with the words behind `nat delete`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let NatDelete { mut request, yes } = match NatDelete::parse(args) {
        Ok(delete) => delete,
        Err(error) => return refused(&error).into(),
    };
    if request.shown.columns.as_deref() == Some("help") {
        return output::print(&columns::help::<Nat>()).into();
    }
    request.shown.sort.get_or_insert_with(|| ID.to_owned());
    let prepared = prepare(&request, CtTable::Conntrack).and_then(|(plan, reading)| {
        let plan = plan.with_last_column(ID);
        let test = Predicate::new(&plan.demand().conjuncts);
        let test = test.map_err(|bad| Wrong::Plan(engine::PlanError::Pattern(bad)))?;
        // /proc has no ids.
        Ok((
            plan,
            Choosing { reading: Reading { via: Some(Via::Netlink), ..reading }, test, chosen: RefCell::default() },
        ))
    });
    match prepared {
        Ok((plan, choosing)) => table::run_through(&request, &plan, &choosing, |session, sink, rounds| {
            let place = Place { netns: None, netns_id: session.netns_id() };
            let changes = Changes::new(session.host(), place);
            let deleter = Deleter { choosing: &choosing, changes, deleted: 0, gone: 0, refused: Vec::new() };
            acting::run(session, sink, rounds, yes, deleter)
        }),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    }
}

/// Reads entries and keeps what is needed to delete those that pass the filter.
struct Choosing {
    reading: Reading,
    test: Predicate<Nat>,
    /// By id: a hash of 32 bits, which two entries may share. Each is deleted once, whichever row comes first.
    chosen: RefCell<HashMap<u32, Vec<Target>>>,
}

/// What names an entry.
#[derive(Clone, Copy)]
struct Target {
    orig: CtTuple,
    zone: Option<u16>,
    id: Option<u32>,
}

impl Reads<Nat> for Choosing {
    fn needs_lookup(&self, id: LookupId) -> bool {
        self.reading.needs_lookup(id)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        books: &mut Accounting,
        then: impl FnOnce(&mut dyn Source<Nat>) -> R,
    ) -> R {
        self.reading
            .with_source(session, lookups, books, |source| then(&mut Remembering { source, choosing: self, lookups }))
    }
}

/// The source between.
struct Remembering<'c> {
    source: &'c mut dyn Source<Nat>,
    choosing: &'c Choosing,
    lookups: Lookups<'c>,
}

impl Source<Nat> for Remembering<'_> {
    fn offer(&self, demand: &Demand<Nat>) -> Offer {
        self.source.offer(demand)
    }

    fn read(
        &mut self,
        demand: &Demand<Nat>,
        _: Option<&dyn Unchanged>,
        each: &mut Each<'_, Nat>,
    ) -> Result<Accounting, SourceError> {
        let (choosing, lookups) = (self.choosing, self.lookups);
        self.source.run(demand, &mut |row| {
            if choosing.test.matches(row, &lookups) {
                let target = Target { orig: row.orig, zone: row.zone, id: row.id };
                choosing.chosen.borrow_mut().entry(row.id.unwrap_or(0)).or_default().push(target);
            }
            each(row)
        })
    }
}

/// Deletes the entries of the rows that are shown.
struct Deleter<'c> {
    choosing: &'c Choosing,
    changes: Changes<'c>,
    deleted: u64,
    gone: u64,
    refused: Vec<DumpError>,
}

impl Act for Deleter<'_> {
    const RESULTS: &'static [&'static str] = &["deleted", "gone", "refused"];

    /// Deletes the entry of this id; one without an id stands under 0.
    fn act(&mut self, id: Option<u64>) -> Value<'static> {
        let id = id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let target = self.choosing.chosen.borrow_mut().get_mut(&id).and_then(Vec::pop);
        let Some(Target { orig, zone, id }) = target else { return Value::Null };
        match self.changes.delete(&Given { orig: Some(orig), zone, id, ..Given::default() }) {
            Ok(()) => {
                self.deleted += 1;
                Value::Name("deleted")
            }
            // It ended by itself, or another one has its place by now: what was shown is no more.
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                self.gone += 1;
                Value::Name("gone")
            }
            Err(error) => {
                self.refused.push(error);
                Value::Name("refused")
            }
        }
    }

    fn tell(&self, rows: Rows, books: &mut Accounting) {
        if !rows.yes {
            let words = match rows.shown {
                0 => "no entry to delete".to_owned(),
                n => format!("entries that would be deleted: {n}; nothing was done, --yes deletes them"),
            };
            return books.because(0, words);
        }
        books.because(0, format!("entries deleted: {} of {}", self.deleted, rows.shown));
        if self.gone > 0 {
            books.because(self.gone, "gone before they were deleted");
        }
        for error in &self.refused {
            books.incomplete = true;
            books.because(1, format!("not deleted: {}", why(error)));
        }
        if rows.left > 0 {
            books.incomplete = true;
            books.because(rows.left, "not deleted: interrupted");
        }
    }
}

fn why(error: &DumpError) -> String {
    match error.errno() {
        Some(errno) if errno.is_denied() => format!("{} (needs CAP_NET_ADMIN)", errno.words()),
        Some(errno) => errno.words().to_string(),
        None => error.to_string(),
    }
}
