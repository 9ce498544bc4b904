//! `netwren log top`: counts records by some fields for a limited time.
//!
//! `log` with groups and an end.

use super::{Log, followed};
use crate::command::{Command, ParsedWords, Prepared, Refusal, ready};
use crate::commands::follow;
use crate::flags::defs::Scope;
use record::Schema;
use record::rows::LogRecords;
use std::ops::RangeInclusive;
use std::time::Duration;
use sys::clock;

/// The default fields of groups.
const BY: &str = "prefix,src";
/// The default duration.
const WHILE: Duration = Duration::from_secs(10);
/// Valid durations in seconds.
const WHILE_S: RangeInclusive<f64> = 0.1..=86_400.0;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log top",
    about: "Most frequently logged packets: records counted by fields, for 10 seconds",
    examples: EXAMPLES,
    scope: Scope::ROWS
        .and(Scope::BY)
        .and(Scope::FOLDS)
        .and(Scope::SORT)
        .and(Scope::NAMES)
        .and(Scope::PLACES)
        .and(Scope::ALL_NETNS)
        .and(Scope::LOG)
        .and(Scope::LOG_TOP),
    tables: &[Schema::from_table::<LogRecords>()],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log top --group 1                         by prefix and source address, most frequent first
  netwren log top --group 1 --by rule,src --for 30s     by the rule's text; Ctrl-C ends it earlier
  netwren log top --group 1,5 --by dst,dport 'hook = input' --limit 10
  netwren log top --group 1 --by src --sum len --resolve    with bytes and host names
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let log = asked(words)?;
    let plan = follow::plan_of(&log.request)?;
    ready(move || followed(&log, &plan, None))
}

/// Groups of the records of a limited time; Ctrl-C also shows the counts so far.
fn asked(words: &ParsedWords<'_>) -> Result<Log, Refusal> {
    let mut log = super::asked(words)?;
    log.request.shown.by.get_or_insert_with(|| BY.to_owned());
    let lasts = words.seconds("for", WHILE_S)?.unwrap_or(WHILE);
    let lasts_ns = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
    log.request.ends_ns = Some(clock::monotonic_ns().saturating_add(lasts_ns));
    Ok(log)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn words_become_groups_and_a_time() {
        let parse = |line: &str| parser::parse_line(&COMMAND, line, |words| asked(words).map_err(Refusal::into_text));
        let log = parse("--group 1 --by rule,src --for 30s dport = 22").unwrap();
        let left = engine::time_left(log.request.ends_ns, clock::monotonic_ns()).unwrap();
        assert_eq!(log.request.shown.by.as_deref(), Some("rule,src"));
        assert!(left <= Duration::from_secs(30) && left > Duration::from_secs(20), "{left:?}");
        for (line, says) in [
            ("", "needs --group"),
            ("--group 1 --for soon", "--for takes seconds from 0.1 to 86400"),
            ("--group 1 --columns a", "--columns"),
            ("--group 1 --to json:x", "--to"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
