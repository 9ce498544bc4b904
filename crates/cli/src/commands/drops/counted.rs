//! Counts drops by reason and location in rounds.

use crate::command::SaveRound;
use crate::commands::saved;
use ::drops::DropsVia;
use lookups::asked::{Asked, with_asked};
use lookups::long_work;
use lookups::losses::{OpenLosses, OtherLosses, save_mark};
use lookups::session::Session;
use probes::DropWatch;
use record::rows::{Drops, drop_need};
use record::{Accounting, Annotated, Demand, LookupId, Lookups, Source, SourceError};
use std::cell::Cell;
use std::time::Duration;
use sys::Mode;
use tables::{Intervals, Repeat, RoundTime, SourceProvider};

/// Times in ns of the monotonic clock.
#[derive(Clone, Copy, Default)]
struct SampleClock {
    /// Start of counting; 0 if it has not started.
    begin_ns: u64,
    /// Number of completed rounds.
    rounds: u64,
}

/// Returns a function that saves the drops since the previous round, with the rules that dropped them. Its first call
/// starts the counting.
pub(super) fn save_rounds() -> SaveRound {
    let drops = DropWatch::default();
    Box::new(move |session, stats| save(session, &drops, stats))
}

fn save(session: &Session, drops: &DropWatch, stats: &mut Accounting) -> u64 {
    if let Err(error) = drops.open(session, Some(DropsVia::Bpf), true) {
        // A replay will report that the recording holds no drops.
        stats.add_reason(0, format!("drops are not recorded: {error}"));
        return 0;
    }
    save_mark(session);
    let source = drops.source(session, true, false);
    saved::read(&Asked::new(&source, session.host(), |_, demanded| demanded), &Demand::<Drops>::every_field(0), stats)
}

/// Makes the source of each round.
pub(super) struct DropProvider {
    all: bool,
    /// True if rules are displayed or filtered by.
    shows_rules: bool,
    /// `--via`
    via: Option<DropsVia>,
    drops: DropWatch,
    losses: OpenLosses,
    clock: Cell<SampleClock>,
    /// True if nothing was lost in this round.
    is_quiet: Cell<bool>,
    /// True if the whole run gets one table instead of one per round.
    is_once: Cell<bool>,
}

/// Time between checks for a closed output pipe while nothing is written.
const LOOK_NS: u64 = 200_000_000;
/// Maximum time between reads while drops are waiting, in ns.
const DRAIN_NS: u64 = 20_000_000;

impl DropProvider {
    /// Makes a provider; with `all` it includes routine drops.
    pub(super) fn new(all: bool, via: Option<DropsVia>, demand: &Demand<Drops>) -> DropProvider {
        DropProvider {
            all,
            via,
            shows_rules: demand.need & drop_need::RULE != 0,
            drops: DropWatch::default(),
            losses: OpenLosses::default(),
            clock: Cell::default(),
            is_quiet: Cell::default(),
            is_once: Cell::default(),
        }
    }

    /// Starts counting.
    fn open(&self, session: &Session) -> Result<(), SourceError> {
        if self.clock.get().begin_ns != 0 {
            return Ok(());
        }
        let why = match self.via {
            Some(DropsVia::Counters) => Some(String::new()),
            via => match self.drops.open(session, via, self.shows_rules) {
                Ok(()) => None,
                Err(error) if via.is_none() => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            },
        };
        self.clock.set(SampleClock { begin_ns: sys::clock::monotonic_ns(), rounds: 0 });
        self.losses.begin(session, why);
        Ok(())
    }

    /// The end of this round, and whether it is the last one.
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

impl Intervals for DropProvider {
    fn wait(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        let losses = &self.losses;
        self.is_once.set(repeat == Repeat::Once);
        if session.host().is_replay() {
            if !losses.is_begun() {
                losses.begin(session, None);
            }
            // If `--watch` is not given, one table covers the whole recording.
            while repeat == Repeat::Once && session.host().has_more_rounds() && session.host().begin_round() {}
            losses.read(session);
            return Ok(RoundTime::Moment);
        }

        self.open(session)?;
        let (end, is_last) = self.end_of_round(session.sample(), repeat);
        let mut counter = self.drops.counter.borrow_mut();
        let is_drained = counter.as_ref().is_some_and(|counter| counter.via().is_of_host());
        let look_ns = if is_drained { DRAIN_NS } else { LOOK_NS };
        let is_once = repeat == Repeat::Once;
        let _line = is_once.then(|| long_work::progress(session, "counting drops", session.sample(), String::new));
        loop {
            if let Some(counter) = counter.as_mut() {
                counter.drain()?;
            }
            let now = sys::clock::monotonic_ns();
            let is_over = now >= end;
            let goes_on = is_over || session.sleep_until(end.min(now.saturating_add(look_ns)));
            let is_ended = !goes_on || sys::term::is_reader_closed(sys::term::STDOUT);
            if is_ended || is_over {
                let mut is_any = losses.read(session);
                if let Some(counter) = counter.as_mut() {
                    is_any |= counter.read_ahead(session.host())?;
                }
                self.is_quiet.set(!is_any);
                return Ok(RoundTime::of_interval(is_ended || is_last));
            }
        }
    }
}

impl SourceProvider<Drops> for DropProvider {
    fn intervals(&self) -> Option<&dyn Intervals> {
        Some(self)
    }

    /// Owners require a search of all processes, so they are not read for rounds without rows. A recording always
    /// includes them.
    fn can_use_lookup(&self, session: &Session, _: LookupId) -> bool {
        !self.is_quiet.get() || session.host().mode() != Mode::Live
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<Drops>) -> R,
    ) -> R {
        let drops = self.drops.source(session, self.all, self.is_once.get());
        let source = Annotated::new(drops, OtherLosses::new(&self.losses, self.via));
        with_asked(session.host(), &source, then)
    }
}
