//! `netwren counters [FILTER]`: the kernel's counters, with their meanings.

use super::saved;
use super::source_provider::{RoundTime, SourceProvider};
use super::table;
use crate::command::{Command, ParsedWords, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::{Format, PERIODS_S, Repeat, Request, time_left};
use ::host::Namespaces;
use conntrack::stats::{Stats, StatsError};
use counters::{CounterMemory, CounterReader, CounterReading, CounterTable, NextReading, Width};
use lookups::asked::Asked;
use lookups::long_work;
use lookups::session::Session;
use record::rows::{CounterSource, KernelCounters, StatCounter};
use record::{Accounting, Lookups, RowStats, Schema, Source, SourceError};
use runtime::messages::say;
use runtime::outcome::Outcome;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use sys::{Errno, Host, Mode};

/// The default time between the two readings.
const WINDOW: Duration = Duration::from_secs(1);

/// Columns of counters that a narrow terminal keeps, the most important one first.
const KEEPS: &[&str] = &["name", "delta", "per_s", "meaning", "object", "value", "source"];

/// The registry's entry. Any user can create interfaces in a network namespace of their own, so counters are recorded
/// after the small parts.
pub(crate) static COMMAND: Command = Command {
    name: "counters",
    about: "Kernel counters with their change in one second and their meaning",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).without(Scope::LASTS).and(Scope::COUNTERS),
    tables: &[Schema::of::<KernelCounters>().keeping(KEEPS)],
    recorded: Some(SavedPart { rows: None, is_large: true, read: save }),
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren counters --changed                              what changed in one second, with meanings
  netwren counters 'name ~ \"(?i)drop|err|fail\"' --changed --for 2
  netwren counters 'source = iface and delta > 0' --sort per_s --limit 10
  netwren counters source = driver --changed              driver statistics, as in ethtool -S
  netwren counters --changed --all-netns --by netns,source --sum delta
  netwren counters name = TcpExtListenOverflows -o json   one counter: value, delta, rate, meaning
  netwren counters --columns name,meaning                 the meaning of each counter
  netwren counters --changed --record before-after.nw     for later analysis
";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut request = Request::of(words)?;
    let window = window(words, &request)?;
    let provider = CounterProvider::new(&request, window, WINDOW).with_drivers();
    let provider = CounterProvider { changed_only: words.has("changed"), ..provider };
    let is_long = window.is_some() && request.replay.is_none();
    let provider = if is_long { provider.announced("comparing the counters of this host") } else { provider };
    // After a long wait, the row counts are printed.
    request.stats |= is_long && request.format != Format::Json;
    Ok(table::show(&request, |_| Ok(provider)))
}

/// Shows the counters over the default window.
pub(super) fn shown(request: &Request) -> Result<Outcome, String> {
    Ok(table::show(request, |_| Ok(CounterProvider::new(request, None, WINDOW).with_drivers())))
}

/// The time between two readings requested by the user; `None` with `--watch`, which `--for` ends.
pub(super) fn window(words: &ParsedWords<'_>, request: &Request) -> Result<Option<Duration>, String> {
    Ok(words.seconds("for", PERIODS_S)?.filter(|_| request.repeat == Repeat::Once))
}

/// Saves one reading per round; a replay compares the readings of its rounds.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let namespaces = session.namespaces();
    let reader = reader(session, namespaces.as_deref(), true);
    saved::read(&CounterTable::of_one(reader), &saved::every_field::<KernelCounters>(0), stats)
}

/// A reader for all counters of these namespaces; with `drivers` also for the drivers' own counters.
pub(super) fn reader<'s>(session: &'s Session, namespaces: Option<&'s Namespaces>, drivers: bool) -> CounterReader<'s> {
    let reader = CounterReader::new(session.host(), session.ways(namespaces), &add_conntrack);
    if drivers { reader.with_drivers() } else { reader }
}

/// Provides two readings, or one per round.
pub(super) struct CounterProvider {
    window: Cell<Option<Duration>>,
    /// The default window.
    usual: Duration,
    repeat: Repeat,
    /// See [`Request::ends_ns`].
    ends_ns: Option<u64>,
    changed_only: bool,
    /// True to include the drivers' counters.
    drivers: bool,
    /// True if a wait that is cut short is followed by the second reading. Only used without `--watch`.
    compares_early: bool,
    /// The message printed on stderr before the wait for the second reading; `None` for a wait too short to notice.
    announced: Option<&'static str>,
    memory: RefCell<CounterMemory>,
}

impl CounterProvider {
    /// Makes a provider with the interval of the request: `window`, the time of a round, or `usual`.
    pub(super) fn new(request: &Request, window: Option<Duration>, usual: Duration) -> CounterProvider {
        CounterProvider {
            window: Cell::new(window),
            usual,
            repeat: request.repeat,
            ends_ns: request.ends_ns,
            changed_only: false,
            drivers: false,
            compares_early: false,
            announced: None,
            memory: RefCell::default(),
        }
    }

    /// Returns a provider for the command itself: it also reads driver counters, and takes the second reading even if
    /// Ctrl-C ends the wait.
    fn with_drivers(self) -> CounterProvider {
        CounterProvider { drivers: true, compares_early: true, ..self }
    }

    /// True if the counters are read once, without `--watch`.
    pub(super) fn is_once(&self) -> bool {
        self.repeat == Repeat::Once
    }

    /// Returns a provider that prints `what` on stderr before it waits.
    pub(super) fn announced(self, what: &'static str) -> CounterProvider {
        CounterProvider { announced: Some(what), ..self }
    }

    /// Sets the window; `None` selects the time of a round or the default window.
    pub(super) fn set_window(&self, window: Option<Duration>) {
        self.window.set(window);
    }

    /// Waits until the second reading is due; in a recording, advances to the round that has it.
    fn next(&self, session: &Session) -> NextReading {
        if session.host().is_replay() {
            return self.next_of_recording(session);
        }
        let window = match (self.window.get(), self.repeat) {
            (Some(window), _) => window,
            (None, Repeat::Every(period)) => time_left(self.ends_ns).map_or(period, |left| left.min(period)),
            (None, Repeat::Once) => self.usual,
        };
        let announced = self.announced.filter(|_| self.repeat == Repeat::Once);
        if let Some(what) = announced {
            say(&format!("{what} {}", long_work::until(Some(window))));
        }
        let is_over = long_work::wait(session, window, announced.unwrap_or("waiting"));
        let compares_early = self.compares_early && self.repeat == Repeat::Once;
        if !is_over && !compares_early {
            return NextReading::Ended;
        }
        session.host().begin_round();
        NextReading::Begun
    }

    /// With `--watch` advances to the next round, otherwise to the first round that is at least `--for` later, or to
    /// the last one.
    fn next_of_recording(&self, session: &Session) -> NextReading {
        let (host, begun_ns) = (session.host(), session.steady_ns());
        let mut found = NextReading::Missing;
        while host.has_more_rounds() && host.begin_round() {
            found = NextReading::Begun;
            let gone = Duration::from_nanos(session.steady_ns().saturating_sub(begun_ns));
            if self.repeat != Repeat::Once || self.window.get().is_some_and(|window| gone >= window) {
                break;
            }
        }
        found
    }
}

impl SourceProvider<KernelCounters> for CounterProvider {
    fn open_round(&self, _: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        let ends_early = self.compares_early && repeat == Repeat::Once;
        Ok(if ends_early { RoundTime::LastInterval } else { RoundTime::Moment })
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<KernelCounters>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let reader = reader(session, namespaces.as_deref(), self.drivers);
        let next = || self.next(session);
        let source = CounterTable::of_two(reader, &self.memory, &next).changed_only(self.changed_only);
        match session.host().mode() {
            Mode::Live => then(&source),
            _ => then(&Asked::new(&source, session.host(), |_, demanded| demanded)),
        }
    }
}

/// Adds the conntrack counters, summed over all CPUs; adds nothing if conntrack is not loaded.
pub(super) fn add_conntrack(host: &Host, netns_id: u64, reading: &mut CounterReading, stats: &mut RowStats) {
    match conntrack::stats::read(host, netns_id, 0, None) {
        Ok(found) => {
            if let Some(via) = found.via {
                stats.used(via.name());
            }
            if let Some(why) = &found.without {
                stats.incomplete(1, format!("conntrack counters are not available: {why}"));
            }
            add_stats(reading, &found);
        }
        Err(StatsError::Absent) => {}
        Err(StatsError::Unreadable(error)) if error.errno == Errno::NOT_RECORDED => {
            stats.unanswered("the recording does not hold the counters of connection tracking");
        }
        Err(error) => stats.incomplete(1, format!("conntrack counters are not available: {error}")),
    }
}

fn add_stats(reading: &mut CounterReading, found: &Stats) {
    let mut add = |name, value: Option<u64>| {
        let Some(value) = value else { return };
        // A sum of 32-bit counters: if one of them wraps around, the sum decreases, and no difference is shown.
        reading.add(CounterSource::Conntrack, name, None, value.into(), Width::Bits64);
    };
    add("entries", found.entries);
    add("max", found.max);
    let sum = found.sum();
    StatCounter::ALL.into_iter().for_each(|counter| add(counter.name(), sum.get(counter)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn windows_and_what_does_not_go_together() {
        let of = |line: &str| parser::parse_line(&COMMAND, line, |words| window(words, &Request::of(words)?));
        assert_eq!(of("source = udp").unwrap(), None);
        assert_eq!(of("--for 0.5 --changed").unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(of("--for 0.5 --watch").unwrap(), None);
        for (line, says) in
            [("--for ever", "--for takes seconds"), ("--watch --for ever", "--for takes"), ("--resolve", "belongs to")]
        {
            assert!(of(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
