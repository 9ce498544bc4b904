//! `netwren drops [FILTER]`: packets that the kernel drops, counted while the command runs.

use super::plan;
use super::source_provider::{RoundTime, SourceProvider};
use super::table;
use crate::asked::Asked;
use crate::command::{Command, ParsedWords, TableEntry};
use crate::exit::Exit;
use crate::flags::defs::Scope;
use crate::flags::request::{PERIODS_S, Repeat, Request};
use crate::outcome::Outcome;
use crate::pillar_cache::PillarCache;
use crate::session::Session;
use ::drops::{DropCounter, DropOptions, DropScope, DropSource};
use record::rows::Drops;
use record::{Accounting, Lookups, Source, SourceError};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use sys::Mode;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "drops",
    about: "Packets that the kernel drops while it runs: how many, why, where, and what that means",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::WATCH).and(Scope::DROPS),
    refusals: &[("follow", "--follow does not go with `drops`: --watch shows what is dropped, round by round")],
    tables: &[TableEntry::of::<Drops>()],
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren drops                                      until Ctrl-C: on a terminal every second, else one table
  netwren drops --for 5                              what is dropped in five seconds, in this network namespace
  netwren drops --for 5 --all-netns -o wide          in all of them, with advice
  netwren drops 'reason = NETFILTER_DROP' --for 5    what rules and connection tracking drop
  netwren drops 'hook = forward or proto = udp' --for 5 --columns +dport,stack
  netwren drops --for 5 --by reason,place            groups: how many packets each
  netwren drops --for 5 --all 'benign = true'        what is freed in routine ways
  netwren drops --watch=2 --for 6 -o json
Counting costs nothing while nothing is dropped, and about 0.2 us for each packet that is. It needs CAP_BPF and
CAP_PERFMON, names of functions CAP_SYSLOG.
";

/// What groups are summed up by, if nothing else is said.
const SUMS: &str = "count,bytes";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut request = Request::of(words)?;
    request.sample = words.seconds("for", PERIODS_S)?;
    let is_replay = request.replay.is_some();
    if request.sample.is_none() && !is_replay && sys::term::is_terminal(sys::term::STDOUT) {
        if let Repeat::Once = request.repeat {
            request.repeat = Repeat::Every(Duration::from_secs(1));
        }
    }
    if request.shown.by.is_some() && request.shown.aggregates.iter().all(Option::is_none) {
        request.shown.aggregates[0] = Some(SUMS.to_owned());
        request.shown.sort.get_or_insert_with(|| "sum_count:desc".to_owned());
    }
    let provider = DropProvider { all: words.has("all"), clock: Cell::default() };
    Ok(match plan::of_request::<Drops>(&request) {
        Ok(plan) => table::run(&request, &plan, &provider),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    })
}

/// The counter of a session, from its first round on.
#[derive(Default)]
struct OpenCounter(RefCell<Option<DropCounter>>);

impl PillarCache for OpenCounter {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Times of the monotonic clock in ns.
#[derive(Clone, Copy, Default)]
struct SampleClock {
    /// When counting began; 0: not yet.
    begin_ns: u64,
    /// Rounds that are over.
    rounds: u64,
}

struct DropProvider {
    all: bool,
    clock: Cell<SampleClock>,
}

/// While nothing is to be written, nobody but us notices that the reader of the output has gone.
const LOOK_NS: u64 = 200_000_000;

impl DropProvider {
    /// Counts from now on.
    fn open(&self, session: &Session) -> Result<(), SourceError> {
        let open = session.cache::<OpenCounter>();
        if open.0.borrow().is_none() {
            open.0.replace(Some(DropCounter::open(session.host(), scope(session))?));
            self.clock.set(SampleClock { begin_ns: sys::clock::monotonic_ns(), rounds: 0 });
        }
        Ok(())
    }

    /// When this round is over, and whether it is the last one.
    fn end_of_round(&self, sample: Option<Duration>, repeat: Repeat) -> (u64, bool) {
        let mut clock = self.clock.get();
        clock.rounds += 1;
        self.clock.set(clock);
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let after = |time_ns: u64| clock.begin_ns.saturating_add(time_ns);
        let end = sample.map_or(u64::MAX, |sample| after(ns(sample)));
        match repeat {
            Repeat::Once => (end, true),
            Repeat::Every(period) => {
                let next = after(ns(period).saturating_mul(clock.rounds));
                (next.min(end), next >= end)
            }
        }
    }
}

impl SourceProvider<Drops> for DropProvider {
    fn open_round(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        if session.host().is_replay() {
            return Ok(RoundTime::Moment);
        }
        self.open(session)?;
        let (end, is_last) = self.end_of_round(session.sample(), repeat);
        loop {
            let now = sys::clock::monotonic_ns();
            let is_over = now >= end;
            let goes_on = is_over || session.sleep_until(end.min(now.saturating_add(LOOK_NS)));
            if !goes_on || sys::term::reader_is_gone(sys::term::STDOUT) {
                return Ok(RoundTime::LastInterval);
            }
            if is_over {
                return Ok(if is_last { RoundTime::LastInterval } else { RoundTime::Interval });
            }
        }
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<Drops>) -> R,
    ) -> R {
        let options = DropOptions { scope: scope(session), all: self.all };
        let source = DropSource::new(session.host(), options, &session.cache::<OpenCounter>().0);
        match session.host().mode() {
            Mode::Live => then(&source),
            _ => then(&Asked::new(&source, session.host(), |_, demanded| demanded)),
        }
    }
}

fn scope(session: &Session) -> DropScope {
    match session.namespaces() {
        Some(_) => DropScope::AllNetns,
        None => DropScope::Netns(u32::try_from(session.netns_id()).unwrap_or(0)),
    }
}
