//! `netwren log tail`: records as sentences, for human readers.

use super::{Log, asked, followed};
use crate::command::{Command, ParsedWords, Prepared, ready};
use crate::commands::follow;
use crate::flags::defs::Scope;
use crate::flags::request::Format;
use record::Schema;
use record::rows::LogRecords;
use sinks::LOG_TAIL_COLUMNS;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log tail",
    about: "Packets logged by rules, one line each with the rule; repeated packets are counted",
    examples: EXAMPLES,
    scope: Scope::ROWS.and(Scope::NAMES).and(Scope::PLACES).and(Scope::ALL_NETNS).and(Scope::LOG).and(Scope::LASTS),
    tables: &[Schema::from_table::<LogRecords>()],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log tail --group 1                        logged packets, and the rule that logs or drops them
  netwren log tail --group 1 'not dport = 53'       without DNS; `rule_verdict = drop` shows dropped packets
  netwren log tail --group 1 --resolve              with host names
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let log = in_words(asked(words)?, words.is_given("output") || words.has("json") || words.has("csv"));
    let plan = follow::plan_of(&log.request)?;
    ready(move || followed(&log, &plan, None))
}

/// Selects the sentence format, unless the user requested another one.
fn in_words(mut log: Log, has_format: bool) -> Log {
    if !has_format {
        log.request.format = Format::LogTail;
    }
    log.request.shown.columns = Some(LOG_TAIL_COLUMNS.join(","));
    log
}
