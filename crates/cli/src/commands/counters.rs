//! `netwren counters [FILTER]`: the kernel's counters, with their meanings.

use super::saved;
use super::source_provider::{RoundTime, SourceProvider};
use super::table;
use crate::command::{Command, ParsedWords, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::{Format, PERIODS_S, Repeat, Request};
use ::counters::CounterTable;
use lookups::session::Session;
use probes::{CounterWindow, counter_reader};
use record::rows::KernelCounters;
use record::{Accounting, Demand, Lookups, Schema, Source, SourceError};
use runtime::outcome::Outcome;
use std::time::Duration;

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
    let provider = counter_window(&request, window, WINDOW).with_drivers().changed_only(words.has("changed"));
    let is_long = window.is_some() && request.replay.is_none();
    let provider = if is_long { provider.announced("comparing the counters of this host") } else { provider };
    // After a long wait, the row counts are printed.
    request.stats |= is_long && request.format != Format::Json;
    Ok(table::show(&request, |_| Ok(provider)))
}

/// Shows the counters over the default window.
pub(super) fn shown(request: &Request) -> Result<Outcome, String> {
    Ok(table::show(request, |_| Ok(counter_window(request, None, WINDOW).with_drivers())))
}

/// The time between two readings requested by the user; `None` with `--watch`, which `--for` ends.
pub(super) fn window(words: &ParsedWords<'_>, request: &Request) -> Result<Option<Duration>, String> {
    Ok(words.seconds("for", PERIODS_S)?.filter(|_| request.repeat == Repeat::Once))
}

/// Saves one reading per round; a replay compares the readings of its rounds.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let namespaces = session.namespaces();
    let reader = counter_reader(session, namespaces.as_deref(), true);
    saved::read(&CounterTable::of_one(reader), &Demand::every_field(0), stats)
}

/// Makes a window with the interval of the request: `window`, the time of a round, or `usual`.
pub(super) fn counter_window(request: &Request, window: Option<Duration>, usual: Duration) -> CounterWindow {
    let period = match request.repeat {
        Repeat::Once => None,
        Repeat::Every(period) => Some(period),
    };
    CounterWindow::new(window, usual, period, request.ends_ns)
}

impl SourceProvider<KernelCounters> for CounterWindow {
    fn open_round(&self, _: &Session, _: Repeat) -> Result<RoundTime, SourceError> {
        Ok(if self.compares_early() { RoundTime::LastInterval } else { RoundTime::Moment })
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
