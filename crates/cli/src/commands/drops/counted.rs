//! Drops counted by reason and place, round by round.

use crate::asked::Asked;
use crate::commands::source_provider::{RoundTime, SourceProvider};
use crate::flags::request::Repeat;
use crate::pillar_cache::PillarCache;
use crate::session::Session;
use ::drops::{DropCounter, DropOptions, DropSource};
use record::rows::Drops;
use record::{Accounting, Lookups, Source, SourceError};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use sys::Mode;

use super::scope;

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

/// Makes the source of each round.
pub(super) struct DropProvider {
    all: bool,
    clock: Cell<SampleClock>,
}

/// Time between two tests for a closed output pipe, while nothing is written.
const LOOK_NS: u64 = 200_000_000;

impl DropProvider {
    /// `all`: with drops that are routine.
    pub(super) fn new(all: bool) -> DropProvider {
        DropProvider { all, clock: Cell::default() }
    }

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
