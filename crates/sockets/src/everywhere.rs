//! Sockets of many network namespaces as one table.
//!
//! Each namespace is entered once for all of its tables, on the calling thread, and read by a [`SocketSource`] of its
//! own: sock_diag answers for the namespace that its socket was opened in. One namespace that cannot be entered or that
//! has gone costs its own rows and a line, not the run. TCP is read in one pass over the kernel's tables, without
//! entering anything, where the walk can (`walk`). Knows nothing of how namespaces are found.
mod walk;

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::path::Path;

use record::rows::{Socket, Sockets};
use record::{Accounting, Demand, Each, Next, Offer, Proto, Push, Source, SourceError, SourceFault, Table, Unchanged};
use sys::caps::{self, Cap};
use sys::netns::Inside;
use sys::{Host, Mode, NetNs, SysError};

use crate::bpf_door::Doors;
use crate::choose::Via;
use crate::pushdown::{Split, World, split};
use crate::source::{Options, PlannedTable, SocketSource, explain_table, is_named};

/// Names told of namespaces that could not be read; the others are counted.
const NAMES_TOLD: usize = 3;

/// What is said where only the walk gets to.
const UNREACHABLE: &str = "nothing leads into a network namespace: of its sockets only TCP was read";

/// A namespace and the ways into it.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// Its inode: it goes into every row and names the recording's streams.
    pub netns_id: u64,
    /// True for the namespace that the calling thread is in: nothing needs to be entered.
    pub is_here: bool,
    /// A file that is the namespace.
    pub path: Option<&'p Path>,
    /// A process in it, if there is no file or it turns out to be another one.
    pub pid: Option<u32>,
}

/// The sockets of several namespaces, one after the other in the order of the places.
#[derive(Debug)]
pub struct EverySocket<'h> {
    host: &'h Host,
    options: Options,
    places: Vec<Place<'h>>,
    doors: &'h Doors,
}

impl<'h> EverySocket<'h> {
    /// Sockets of all `places`; what `options` say of the namespace is not used. Entering needs CAP_SYS_ADMIN. What is
    /// dear to open is kept in `doors`.
    pub fn new(host: &'h Host, options: Options, places: Vec<Place<'h>>, doors: &'h Doors) -> EverySocket<'h> {
        EverySocket { host, options, places, doors }
    }

    /// One namespace's own source, without the protocol that is read for all at once.
    fn source(&self, netns_id: u64, without: Option<Proto>) -> SocketSource<'h> {
        let mut options = Options { netns_id, ..self.options.clone() };
        options.order.retain(|proto| Some(*proto) != without);
        SocketSource::new(self.host, options).keeping(self.doors)
    }

    /// The tables that the filter leaves, whatever the namespace.
    fn split(&self, demand: &Demand<Sockets>) -> Split {
        let wanted = |proto: &Proto| !self.options.if_named.contains(proto) || is_named(demand, *proto);
        let order: Vec<Proto> = self.options.order.iter().copied().filter(wanted).collect();
        split(&demand.conjuncts, &order, self.options.families, self, &|_| true)
    }

    /// Goes into a namespace. The outcome is recorded: a replay enters nothing, but fails where the run had failed.
    fn enter(&self, place: &Place<'_>) -> Result<Option<Inside>, SysError> {
        if place.is_here {
            return Ok(None);
        }
        if self.host.mode() == Mode::Live {
            return enter(place).map(Some);
        }
        let mut inside = None;
        self.host.bytes(&format!("netns-enter@{}", place.netns_id), "", &mut Vec::new(), |_| {
            inside = Some(enter(place)?);
            Ok(())
        })?;
        Ok(inside)
    }
}

fn enter(place: &Place<'_>) -> Result<Inside, SysError> {
    NetNs::open_known(place.netns_id, place.path, place.pid)?.enter()
}

impl World for EverySocket<'_> {
    /// An interface of this name is another one, or none, elsewhere: the engine has the last word.
    fn ifindex(&self, _name: &[u8]) -> Option<u32> {
        None
    }

    fn may_ask_marks(&self) -> bool {
        caps::effective().is_ok_and(|set| set.has(Cap::NetAdmin))
    }
}

impl Source<Sockets> for EverySocket<'_> {
    fn offer(&self, demand: &Demand<Sockets>) -> Offer {
        let Some(first) = self.places.first() else { return Offer::default() };
        let walk = self.tcp_by_walk(demand);
        let mut offer = self.source(first.netns_id, None).offer(demand);
        for (push, part) in offer.pushed.iter_mut().zip(&demand.conjuncts) {
            let mut names_one = false;
            part.for_each_test(&mut |test| {
                names_one |= Sockets::FIELDS.get(test.field).is_some_and(|f| f.name == "iface");
            });
            if names_one {
                *push = Push::No;
            }
        }
        let mut explain = Vec::new();
        if let Some((filter, choice)) = walk {
            let others = self.split(demand).tables.iter().any(|table| table.proto != Proto::Tcp);
            let rest = self.source(first.netns_id, Some(Proto::Tcp)).offer(demand);
            explain.push(explain_table(&PlannedTable { choice, filter }));
            offer.lacks = choice.lacks | if others { rest.lacks } else { 0 };
            offer.door = if others { "bpf, netlink" } else { Via::Bpf.name() };
            offer.explain = if others { rest.explain } else { Vec::new() };
        }
        if self.doors.why_not().is_some() || !cfg!(feature = "bpf") {
            explain.push("network namespaces that nothing leads to are not known without bpf".into());
        }
        if !offer.explain.is_empty() {
            explain.append(&mut offer.explain);
            let many = self.places.len();
            explain.push(format!("by netlink and proc in each of {many} network namespaces, one after the other"));
        }
        Offer { explain, ..offer }
    }

    fn run(&mut self, demand: &Demand<Sockets>, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.read(demand, None, each)
    }

    fn run_again(
        &mut self,
        demand: &Demand<Sockets>,
        unchanged: &dyn Unchanged,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        self.read(demand, Some(unchanged), each)
    }
}

impl EverySocket<'_> {
    // Of what is read by each namespace's own source no row is known by its bytes: they are few where TCP is walked.
    fn read(
        &self,
        demand: &Demand<Sockets>,
        unchanged: Option<&dyn Unchanged>,
        each: &mut Each<'_, Sockets>,
    ) -> Result<Accounting, SourceError> {
        let mut round = Round::default();
        if self.places.is_empty() {
            return round.finish();
        }
        let stopped = Cell::new(false);
        let mut each = |row: &Socket<'_>| {
            let next = each(row);
            stopped.set(next == Next::Stop);
            next
        };
        let walk = self.tcp_by_walk(demand);
        let walked = walk.is_some_and(|(filter, choice)| {
            let walker = self.walker(demand, &filter, unchanged);
            self.walk_all(&walker, choice, &mut each, &mut round)
        });
        let without = walked.then_some(Proto::Tcp);
        let tables = self.split(demand).tables;
        let rest = tables.iter().any(|table| Some(table.proto) != without);
        for place in self.places.iter().filter(|_| rest) {
            if stopped.get() {
                break;
            }
            self.read_one(place, demand, without, &mut each, &mut round);
        }
        round.finish()
    }

    fn read_one(
        &self,
        place: &Place<'_>,
        demand: &Demand<Sockets>,
        without: Option<Proto>,
        each: &mut Each<'_, Sockets>,
        round: &mut Round,
    ) {
        if !place.is_here && place.path.is_none() && place.pid.is_none() {
            return self.without_a_way(place, demand, without, each, round);
        }
        match self.enter(place) {
            Ok(inside) => {
                let read = self.source(place.netns_id, without).run(demand, each);
                drop(inside);
                round.add(read);
            }
            Err(error) => round.not_entered(place, error),
        }
    }
}

/// The books of all namespaces.
#[derive(Default)]
struct Round {
    books: Accounting,
    /// True if any namespace gave something.
    has_read: bool,
    /// Namespaces that had gone.
    gone: u64,
    /// Those that nothing leads to.
    unreachable: u64,
    /// Those that could not be entered, by the reason.
    refused: Vec<Refused>,
    failure: Option<SourceError>,
}

/// Namespaces that could not be entered for one reason.
struct Refused {
    error: SysError,
    names: Vec<String>,
    count: u64,
}

impl Round {
    fn add(&mut self, read: Result<Accounting, SourceError>) {
        match read {
            Ok(books) => {
                self.has_read = true;
                self.books.add(&books);
            }
            Err(error) => {
                self.books.incomplete = true;
                self.books.because(1, error.to_string());
                self.failure.get_or_insert(error);
            }
        }
    }

    fn not_entered(&mut self, place: &Place<'_>, error: SysError) {
        if error.errno.is_gone() {
            self.gone += 1;
            return;
        }
        let name = match (place.path, place.pid) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(pid)) => format!("/proc/{pid}/ns/net"),
            (None, None) => format!("net:[{}]", place.netns_id),
        };
        match self.refused.iter_mut().find(|known| known.error.errno == error.errno) {
            Some(known) => {
                known.count += 1;
                if known.names.len() < NAMES_TOLD {
                    known.names.push(name);
                }
            }
            None => self.refused.push(Refused { error, names: vec![name], count: 1 }),
        }
    }

    fn finish(mut self) -> Result<Accounting, SourceError> {
        if self.gone > 0 {
            // What they had went with them: the table is as whole as one read a moment later.
            self.books.because(self.gone, "a network namespace went away before it was read");
        }
        if self.unreachable > 0 {
            self.books.incomplete = true;
            self.books.because(self.unreachable, UNREACHABLE);
        }
        for refused in self.refused {
            self.books.incomplete = true;
            let unreadable = Unreadable(refused);
            self.books.because(0, unreadable.to_string());
            self.failure.get_or_insert_with(|| {
                let fault = if unreadable.0.error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
                SourceError { what: "network namespaces", fault, cause: Box::new(unreadable) }
            });
        }
        match self.failure {
            Some(error) if !self.has_read => Err(error),
            _ => Ok(self.books),
        }
    }
}

/// Namespaces that could not be entered, as a sentence.
struct Unreadable(Refused);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { error, names, count } = &self.0;
        let needs = if error.errno.is_denied() { " (needs CAP_SYS_ADMIN)" } else { "" };
        let more = if *count > names.len() as u64 { ", …" } else { "" };
        match count {
            1 => write!(f, "one network namespace was not read: {error}{needs}"),
            _ => {
                let (why, names) = (error.errno.words(), names.join(", "));
                write!(f, "{count} network namespaces were not read ({names}{more}): {why}{needs}")
            }
        }
    }
}

impl fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.error)
    }
}
