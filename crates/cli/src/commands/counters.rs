//! `netwren counters [FILTER]`: the kernel's counters, with their meanings.

use super::saved;
use super::table;
use crate::command::{Command, ParsedWords, Prepared, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::{Format, PERIODS_S, Request};
use ::counters::CounterTable;
use lookups::kernel_counters::counter_reader;
use lookups::session::Session;
use record::{Accounting, Demand};
use std::time::Duration;
use tables::Repeat;
use tables::counters::{WINDOW, window_of};

/// The registry's entry. Any user can create interfaces in a network namespace of their own, so counters are recorded
/// after the small parts.
pub(crate) static COMMAND: Command = Command {
    name: "counters",
    about: "Kernel counters with their change in one second and their meaning",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).without(Scope::LASTS).and(Scope::COUNTERS),
    tables: &[tables::COUNTERS],
    recorded: Some(SavedPart { rows: None, is_large: true, open: || Box::new(save) }),
    prepare: Some(prepare),
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

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let mut request = Request::of(words)?;
    let window = window(words, &request)?;
    let provider = window_of(&request.table(), window, WINDOW).with_drivers().changed_only(words.has("changed"));
    let is_long = window.is_some() && request.replay.is_none();
    let provider = if is_long { provider.announced("comparing the counters of this host") } else { provider };
    // After a long wait, the row counts are printed.
    request.stats |= is_long && request.format != Format::Json;
    table::prepare(request, |_| Ok(provider))
}

/// Shows the counters over the default window.
pub(super) fn prepare_usual(request: Request) -> Prepared<'static> {
    let provider = window_of(&request.table(), None, WINDOW).with_drivers();
    table::prepare(request, |_| Ok(provider))
}

/// The time between two readings requested by the user; `None` with `--watch`, which `--for` ends.
pub(super) fn window(words: &ParsedWords<'_>, request: &Request) -> Result<Option<Duration>, String> {
    Ok(words.seconds("for", PERIODS_S)?.filter(|_| request.repeat == Repeat::Once))
}

/// Saves one reading per round; a replay compares the readings of its rounds.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let namespaces = session.namespaces();
    let reader = counter_reader(session, namespaces.as_deref(), true);
    saved::read(&CounterTable::from_reading(reader), &Demand::every_field(0), stats)
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
