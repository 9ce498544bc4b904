//! Two readings of the kernel's counters: the base of each sample, because the time between them is the window.

use counters::{CounterMemory, CounterTable, NextReading};
use doctor::seen::Sample;
use engine::Windows;
use lookups::asked::with_asked;
use lookups::kernel_counters::counter_reader;
use lookups::long_work;
use lookups::session::Session;
use record::rows::KernelCounters;
use record::{Accounting, Demand, Next, Source, SourceError};
use runtime::messages::print_message;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;
use sys::clock;

/// Samples by namespace; the host's has the key `None`.
pub(crate) type Samples = BTreeMap<Option<u64>, Sample>;

/// The time between two readings of the counters, and the readings of the previous round.
pub struct CounterWindow {
    window: Cell<Option<Duration>>,
    /// The windows unless `window` is set.
    windows: Windows,
    changed_only: bool,
    /// True to include the drivers' counters.
    drivers: bool,
    /// True if a wait that is cut short is followed by the second reading. Only used without rounds.
    compares_early: bool,
    /// The message printed on stderr before the wait for the second reading; `None` for a wait too short to notice.
    announced: Option<&'static str>,
    memory: RefCell<CounterMemory>,
}

impl CounterWindow {
    /// Makes a window of length `window`; if that is `None`, of `windows`.
    pub fn new(window: Option<Duration>, windows: Windows) -> CounterWindow {
        CounterWindow {
            window: Cell::new(window),
            windows,
            changed_only: false,
            drivers: false,
            compares_early: false,
            announced: None,
            memory: RefCell::default(),
        }
    }

    /// Returns a window that includes the drivers' counters, and whose second reading is taken even if Ctrl-C ends
    /// the wait.
    pub fn with_drivers(self) -> CounterWindow {
        CounterWindow { drivers: true, compares_early: true, ..self }
    }

    /// Returns a window that leaves out the counters that did not change, if `changed_only`.
    pub fn changed_only(self, changed_only: bool) -> CounterWindow {
        CounterWindow { changed_only, ..self }
    }

    /// Returns a window that prints `what` on stderr before it waits.
    pub fn announced(self, what: &'static str) -> CounterWindow {
        CounterWindow { announced: Some(what), ..self }
    }

    /// True if there is only one round.
    pub fn is_once(&self) -> bool {
        self.windows.period.is_none()
    }

    /// True if the second reading is taken even if Ctrl-C ends the wait.
    pub fn compares_early(&self) -> bool {
        self.compares_early && self.is_once()
    }

    /// Sets the window; `None` selects the length of a round or the default window.
    pub fn set_window(&self, window: Option<Duration>) {
        self.window.set(window);
    }

    /// Calls `then` with the counters of the session's namespaces. Reading them takes as long as the window.
    pub fn with_source<R>(&self, session: &Session, then: impl FnOnce(&dyn Source<KernelCounters>) -> R) -> R {
        let namespaces = session.namespaces();
        let reader = counter_reader(session, namespaces.as_deref(), self.drivers);
        let next = || self.next(session);
        let source = CounterTable::of_two(reader, &self.memory, &next).changed_only(self.changed_only);
        with_asked(session.host(), &source, then)
    }

    /// Makes a sample of each namespace and of the host from the two readings.
    pub(crate) fn samples(&self, session: &Session, stats: &mut Accounting) -> Result<Samples, SourceError> {
        let mut samples: Samples = BTreeMap::new();
        let read = self.with_source(session, |source| {
            source.run(&Demand::every_field(0), &mut |row| {
                let sample = samples.entry(row.netns_id);
                sample.or_insert_with(|| Sample::new(row.netns_id)).add_counter(row);
                Next::More
            })
        })?;
        stats.add_gaps(&read);
        Ok(samples)
    }

    /// Waits until the second reading is due; in a recording, advances to the round that has it.
    fn next(&self, session: &Session) -> NextReading {
        if session.host().is_replay() {
            return self.next_of_recording(session);
        }
        let window = self.window.get().unwrap_or_else(|| self.windows.begin(clock::monotonic_ns()).0);
        let announced = self.announced.filter(|_| self.is_once());
        if let Some(what) = announced {
            print_message(&format!("{what} {}", long_work::until(Some(window))));
        }
        let is_over = long_work::wait(session, window, announced.unwrap_or("waiting"));
        if !is_over && !self.compares_early() {
            return NextReading::Ended;
        }
        session.host().begin_round();
        NextReading::Begun
    }

    /// With rounds advances to the next one, otherwise to the first round that is at least the window later, or to
    /// the last one.
    fn next_of_recording(&self, session: &Session) -> NextReading {
        let (host, begun_ns) = (session.host(), session.steady_ns());
        let mut found = NextReading::Missing;
        while host.has_more_rounds() && host.begin_round() {
            found = NextReading::Begun;
            let passed = Duration::from_nanos(session.steady_ns().saturating_sub(begun_ns));
            if !self.is_once() || self.window.get().is_some_and(|window| passed >= window) {
                break;
            }
        }
        found
    }
}
