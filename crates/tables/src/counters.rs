//! The kernel's counters: two readings, or one per round.

use crate::error::TableError;
use crate::plan;
use crate::provider::{Intervals, RoundTime, SourceProvider};
use crate::request::{Repeat, TableRequest};
use crate::rounds;
use engine::{Run, Windows};
use lookups::session::Session;
use probes::CounterWindow;
use record::rows::KernelCounters;
use record::{Accounting, Lookups, Sink, Source, SourceError};
use std::time::Duration;

/// The default time between the two readings.
pub const WINDOW: Duration = Duration::from_secs(1);

/// Reads the counters of a request into a sink.
pub fn read(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let plan = plan::of_request::<KernelCounters>(request).map_err(TableError::Plan)?;
    let provider = window_of(request, None, WINDOW).with_drivers();
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// Makes a window with the interval of the request: `window`, the time of a round, or `usual`.
pub fn window_of(request: &TableRequest<'_>, window: Option<Duration>, usual: Duration) -> CounterWindow {
    let windows = Windows { once: usual, period: request.repeat.period(), ends_ns: request.ends_ns };
    CounterWindow::new(window, windows)
}

/// The wait is part of the reading, because it lies between the two readings of the counters.
impl Intervals for CounterWindow {
    fn wait(&self, _: &Session, _: Repeat) -> Result<RoundTime, SourceError> {
        Ok(if self.compares_early() { RoundTime::LastInterval } else { RoundTime::Moment })
    }
}

impl SourceProvider<KernelCounters> for CounterWindow {
    fn intervals(&self) -> Option<&dyn Intervals> {
        Some(self)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<KernelCounters>) -> R,
    ) -> R {
        CounterWindow::with_source(self, session, then)
    }
}
