//! `netwren nat stats`: shows counters and settings of connection tracking.

use super::super::saved;
use super::super::table;
use crate::command::{Command, ParsedWords, Prepared, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use conntrack::stats::{StatOptions, StatVia};
use lookups::session::Session;
use record::rows::NatStats;
use record::{Accounting, Demand, Lookups};
use tables::nat::StatsProvider;
use tables::{Repeat, SourceProvider};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat stats",
    about: "Conntrack statistics: entries, limits, drops and failed insertions",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).and(Scope::VIA).and(Scope::PER_CPU),
    tables: &[tables::NAT_STATS],
    recorded: Some(SavedPart { rows: None, is_large: false, open: || Box::new(save) }),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat stats                                  this namespace
  netwren nat stats --all-netns 'fill_percent > 80'  nearly full tables
  netwren nat stats --per-cpu
  netwren nat stats --watch 'drop_delta > 0'         rounds in which packets were dropped
  netwren nat stats -c netns,tcp_timeout_established_s,udp_timeout_s --all-netns
  netwren nat stats --columns help                   every counter and setting
";

/// Additional columns for rounds.
const OF_ROUNDS: &str = "drop_delta,early_drop_delta,insert_failed_delta,invalid_delta";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let (request, options) = asked(words)?;
    let provider = StatsProvider::new(options, request.repeat);
    table::prepare(request, |_| Ok(provider))
}

/// The request, and the options for its source.
fn asked(words: &ParsedWords<'_>) -> Result<(Request, StatOptions), String> {
    let mut request = Request::of(words)?;
    let via = match request.via {
        None => None,
        Some(record::Via::Netlink) => Some(StatVia::Netlink),
        Some(record::Via::Proc) => Some(StatVia::Proc),
        Some(record::Via::Bpf) => return Err("counters are read via netlink or proc: leave out --via bpf".to_owned()),
    };
    let per_cpu = words.has("per-cpu");
    request.shown.columns = columns(&request, per_cpu);
    Ok((request, StatOptions { via, per_cpu }))
}

/// The columns to show: sizes do not belong to a CPU, and rounds show how much counters increased.
fn columns(request: &Request, per_cpu: bool) -> Option<String> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    let is_plain = request.format.is_table() && !request.shown.wide;
    if !(spec.is_empty() || spec.starts_with(['+', '-'])) || request.shown.by.is_some() {
        return request.shown.columns.clone();
    }
    let mut parts = Vec::new();
    if per_cpu && is_plain {
        // A list that starts without a sign replaces the defaults, so the automatically added columns must be named.
        let change = (request.repeat != Repeat::Once).then_some("change");
        let netns = request.all_netns.then_some("netns");
        parts.extend(change.into_iter().chain(netns));
        parts.push("cpu,default,-entries,-max,-fill_percent");
    }
    let deltas = format!("+{}", OF_ROUNDS.replace(',', ",+"));
    if request.repeat != Repeat::Once {
        parts.push(&deltas);
    }
    // The user's list comes last, so that it can remove columns.
    parts.extend((!spec.is_empty()).then_some(spec));
    (!parts.is_empty()).then(|| parts.join(","))
}

/// Saves counters and settings.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let (mut notes, all) = (Accounting::default(), Demand::<NatStats>::every_field(0));
    let reading = StatsProvider::new(StatOptions::default(), Repeat::Once);
    let rows = reading.with_source(session, Lookups::empty(), &mut notes, |source| saved::read(source, &all, stats));
    stats.add(&notes);
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    fn parse(line: &str) -> Result<(Request, StatOptions), clap::Error> {
        parser::parse_line(&COMMAND, line, asked)
    }

    #[test]
    fn columns_fit_the_rows() {
        let columns = |line: &str| parse(line).unwrap().0.shown.columns.unwrap_or_default();
        assert_eq!(columns(""), "");
        assert_eq!(columns("--per-cpu"), "cpu,default,-entries,-max,-fill_percent");
        assert_eq!(columns("--per-cpu -o json"), "", "machines get the same keys");
        assert!(columns("--watch").starts_with("+drop_delta,+early_drop_delta"));
        assert!(columns("--watch --columns -drop_delta").ends_with(",-drop_delta"));
        assert!(columns("--per-cpu --watch --all-netns").starts_with("change,netns,cpu,default,"));
        assert_eq!(columns("--watch --columns drop"), "drop");
        assert!(parse("--per-cpu drop > 0").unwrap().1.per_cpu);
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for (line, says) in
            [("--via bpf", "leave out"), ("--follow", "cannot be used with"), ("--no-owner", "cannot be used with")]
        {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
