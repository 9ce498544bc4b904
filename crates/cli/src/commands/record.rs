//! `netwren record FILE`: everything of the host in one recording.
//!
//! The sources are those of the other commands, with the widest demand; only their reading is wanted, so their rows go
//! nowhere. Each is read once a round: a replay plays the streams of a round in the order in which they were recorded.

use super::nat::{self, survey};
use super::table::SourceProvider;
use super::{Outcome, flows};
use crate::asked;
use crate::enrich::Enrichment;
use crate::exit::Exit;
use crate::flags::Record;
use crate::messages::{footer_lines, refused};
use crate::output;
use crate::session::{Place, Session};
use conntrack::CtTable;
use host::{Counters, HostError, Ifaces, Links};
use record::rows::{Nat, NatStats, Sockets, nat_need};
use record::{Accounting, Demand, LookupId, Lookups, Next, Source, SourceError, SourceFault, Table};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::Duration;
use sys::{Errno, Host};

/// The time from one round to the next.
const PERIOD: Duration = Duration::from_secs(1);

/// What a round gave.
#[derive(Default)]
struct Counted {
    rounds: u64,
    namespaces: usize,
    sockets: u64,
    entries: u64,
}

/// Runs the command with the words behind `record`.
pub(super) fn run(args: impl Iterator<Item = OsString>) -> Outcome {
    let asked = match Record::parse(args) {
        Ok(asked) => asked,
        Err(error) => return refused(&error).into(),
    };
    let place =
        Place { all_netns: true, record: Some(&asked.file), size_max: Some(asked.size_max), ..Place::default() };
    let session = match Session::open(place) {
        Ok(session) => session,
        Err(error) => return Outcome::because(error.exit(), error),
    };
    let mut stats = Accounting::default();
    let counted = rounds(&session, asked.length, &mut stats);
    session.finish(&mut stats);
    let Counted { rounds, namespaces, sockets, entries } = counted;
    let plural = if rounds == 1 { "" } else { "s" };
    let printed = output::print(&format!(
        "{}: {rounds} round{plural} of {namespaces} network namespaces; in the last one {sockets} sockets, \
         {entries} entries of connection tracking\n",
        sys::escaped(asked.file.as_os_str().as_encoded_bytes()),
    ));
    let exit = if printed == Exit::Ok && stats.is_partial() { Exit::Partial } else { printed };
    Outcome { exit, messages: footer_lines(&stats) }
}

/// A round every [`PERIOD`] until `length` is over, the user ends it or the file takes nothing more.
fn rounds(session: &Session, length: Duration, stats: &mut Accounting) -> Counted {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let begun_ns = sys::clock::monotonic_ns();
    let end_ns = begun_ns.saturating_add(nanoseconds(length));
    let mut counted = Counted::default();
    let mut now_ns = begun_ns;
    loop {
        session.host().begin_round();
        round(session, stats, &mut counted);
        counted.rounds += 1;
        // The last round begins at the end of the time, so that what grew meanwhile is in the file.
        if now_ns >= end_ns || session.interrupted() || session.host().recording_has_stopped() {
            return counted;
        }
        let next_ns = begun_ns.saturating_add(nanoseconds(PERIOD).saturating_mul(counted.rounds));
        // A round that took longer than the period is followed by the next one at once.
        if !session.sleep_until(next_ns.min(end_ns)) {
            return counted;
        }
        now_ns = sys::clock::monotonic_ns();
    }
}

fn round(session: &Session, stats: &mut Accounting, counted: &mut Counted) {
    session.find_namespaces(true, stats);
    counted.namespaces = session.namespaces().map_or(1, |namespaces| namespaces.list().len());
    // What is small comes first: no user can make so many sockets that it finds the file full.
    session.in_each_namespace(&mut |netns_id| network(session.host(), netns_id, stats));
    survey(session, stats);
    flows::surroundings(session, stats);
    counters(session, stats);
    counted.entries = entries(session, stats);
    let sockets = every_field::<Sockets>(0);
    let ids = LookupId::ALL.into_iter().filter(|id| *id != LookupId::Hosts).collect();
    let ids = asked::lookups(session.host(), &sockets, ids, stats);
    // Owners before their sockets, as in every table.
    Enrichment::read(session, &ids, stats);
    counted.sockets = session.with_sockets(None, &|_| true, |source| read(source, &sockets, stats));
}

/// Counters and settings of connection tracking.
fn counters(session: &Session, stats: &mut Accounting) {
    let (mut notes, all) = (Accounting::default(), every_field::<NatStats>(0));
    let reading = nat::every_counter();
    reading.with_source(session, Lookups::none(), &mut notes, |source| read(source, &all, stats));
    stats.add(&notes);
}

/// Entries of connection tracking and expectations; returns how many entries there were.
fn entries(session: &Session, stats: &mut Accounting) -> u64 {
    // What is there after its time only the walk tells, which lacks other fields.
    let (mut notes, demand) = (Accounting::default(), every_field::<Nat>(nat_need::EXPIRED));
    let [entries, _] = [CtTable::Conntrack, CtTable::Expect].map(|table| {
        let reading = nat::every_entry(table);
        reading.with_source(session, Lookups::none(), &mut notes, |source| read(source, &demand, stats))
    });
    stats.add(&notes);
    entries
}

/// All fields but those that need one of these bits.
fn every_field<T: Table>(but: u64) -> Demand<T> {
    let fields = T::FIELDS.iter().enumerate().filter(|(_, field)| field.need & but == 0);
    Demand::new(&fields.map(|(at, _)| at).collect::<Vec<_>>(), Vec::new())
}

/// Reads a source to its end; returns the number of rows. A table that this kernel does not have is said, and nothing
/// is missing.
fn read<T: Table>(source: &mut dyn Source<T>, demand: &Demand<T>, stats: &mut Accounting) -> u64 {
    let mut rows = 0;
    let result = source.run(demand, &mut |_| {
        rows += 1;
        Next::More
    });
    match result {
        Ok(read) => {
            stats.incomplete |= read.is_partial();
            read.why.into_iter().for_each(|why| stats.add_reason(why.count, why.text));
        }
        Err(SourceError { what, fault, cause }) => {
            stats.incomplete |= fault != SourceFault::Unsupported;
            stats.add_reason(0, format!("{what} could not be recorded: {cause}"));
        }
    }
    rows
}

/// Links, routes and counters of the namespace that the calling thread is in.
fn network(host: &Host, netns_id: u64, stats: &mut Accounting) {
    let mut note = |result: Result<(), HostError>| match result {
        // IPv6 is turned off, or the protocol is not built in: the file is not there.
        Ok(()) | Err(HostError::Sys(sys::SysError { errno: Errno::NOENT, .. })) => {}
        Err(error) => {
            stats.incomplete = true;
            stats.add_reason(1, error.to_string());
        }
    };
    note(Links::read(host, netns_id, None).and_then(|mut links| Ok(links.read_inet6(host, netns_id, None)?)));
    let ifaces = Ifaces::read(host, netns_id);
    note(ifaces.and_then(|ifaces| {
        host::routes::read4(host, netns_id, None, &ifaces, |_| ControlFlow::Continue(())).map(drop)
    }));
    note(host::routes::Routes6::read(host, netns_id, None).map(drop).map_err(Into::into));
    note(Counters::read_sockets(host, netns_id, None).map(drop));
    note(Counters::read_protocols(host, netns_id, None).map(drop));
}
