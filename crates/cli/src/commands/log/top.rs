//! `netwren log top`: counts records by some fields for a limited time.
//!
//! The plan is a table with groups; its source is the stream of records, read until the time is over.

use super::Log;
use crate::command::{Command, ParsedWords};
use crate::commands::finish::finish;
use crate::commands::plan::of_request;
use crate::flags::defs::Scope;
use crate::output;
use engine::{OneRound, Plan};
use lookups::asked;
use lookups::enrich::Enrichment;
use lookups::log_groups::name_holder;
use lookups::long_work;
use lookups::names::{self, DnsNames};
use lookups::record_annotators::RecordAnnotators;
use lookups::session::Session;
use nflog::LogStream;
use record::rows::LogRecords;
use record::{Accounting, Demand, Each, LookupId, Next, Offer, Scan, Schema, Source, SourceError, Stream, StreamState};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::ops::RangeInclusive;
use std::time::Duration;
use sys::{clock, cost};

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
    check: Some(super::check_words),
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log top --group 1                         by prefix and source address, most frequent first
  netwren log top --group 1 --by rule,src --for 30s     by the rule's text; Ctrl-C ends it earlier
  netwren log top --group 1,5 --by dst,dport 'hook = input' --limit 10
  netwren log top --group 1 --by src --sum len --resolve    with bytes and host names
";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut log = super::asked(words)?;
    log.request.shown.by.get_or_insert_with(|| BY.to_owned());
    let lasts = words.seconds("for", WHILE_S)?.unwrap_or(WHILE);
    Ok(match of_request::<LogRecords>(&log.request) {
        Ok(plan) => counted(&log, &plan, lasts),
        Err(wrong) => Outcome::with_message(Exit::Usage, wrong),
    })
}

/// Counts records until the time is over or Ctrl-C, which also shows the counts so far.
fn counted(log: &Log, plan: &Plan<LogRecords>, lasts: Duration) -> Outcome {
    let request = &log.request;
    let session = match Session::open(request.target()) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    let source = RecordsOfAWhile { log, lasts, session: &session };
    if request.explain {
        return print::print_prose(&engine::explain(plan, &source.prepare(plan.demand()).offer())).into();
    }
    let before = cost::measure();
    session.host().begin_round();
    let mut notes = Accounting::default();
    session.find_namespaces(None, &mut notes);
    let needed = LookupId::ALL.into_iter().filter(|id| plan.needs_lookup(*id)).collect();
    let wanted = asked::lookups(session.host(), plan.demand(), needed, &mut notes);
    let mut enrichment = Enrichment::read(&session, &wanted, &mut notes);
    enrichment.add_for_some_rows(&session, |id| plan.may_need_lookup(id));
    let lookups = enrichment.lookups();
    let mut names = request.resolve.map(|bound| DnsNames::new(&session, bound, false));
    let mut sink = output::sink(request);
    let stop = || session.host().is_replay() && session.interrupted();
    let outcome = names::run(plan, &mut OneRound::new(&source, &lookups, &stop), names.as_mut(), &mut *sink);
    let outcome = outcome.map(|mut run| {
        run.stats.add(&notes);
        run
    });
    finish(request, &session, outcome, &before)
}

/// The records of a limited time.
struct RecordsOfAWhile<'l> {
    log: &'l Log,
    lasts: Duration,
    session: &'l Session,
}

impl Source<LogRecords> for RecordsOfAWhile<'_> {
    fn prepare(&self, demand: &Demand<LogRecords>) -> Box<dyn Scan<LogRecords> + '_> {
        Box::new(WhileScan { of: self, demand: demand.clone() })
    }
}

struct WhileScan<'l> {
    of: &'l RecordsOfAWhile<'l>,
    demand: Demand<LogRecords>,
}

impl Scan<LogRecords> for WhileScan<'_> {
    fn offer(&self) -> Offer {
        let line = format!("log records via netlink for {} s: nfnetlink_log", self.of.lasts.as_secs_f64());
        Offer { backend: "netlink", explain: vec![line], ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, LogRecords>) -> Result<Accounting, SourceError> {
        let RecordsOfAWhile { log, lasts, session } = self.of;
        let _line = long_work::progress(session, "counting log records", Some(*lasts), String::new);
        let lasts_ns = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = clock::monotonic_ns().saturating_add(lasts_ns);
        let annotators = RecordAnnotators::open(session, &self.demand, log.latency);
        let stop = || {
            annotators.refresh();
            session.interrupted() || clock::monotonic_ns() >= end_ns
        };
        let opened = LogStream::open(session.host(), log.follow(session, &annotators, &stop));
        let mut stream = opened.map_err(|error| name_holder(session, error))?;
        read_all(&mut *annotators.annotate(&mut stream), &self.demand, each)
    }
}

/// Hands every record of `stream` to `each` until it ends.
fn read_all(
    stream: &mut dyn Stream<LogRecords>,
    demand: &Demand<LogRecords>,
    each: &mut Each<'_, LogRecords>,
) -> Result<Accounting, SourceError> {
    let mut is_stopped = false;
    while !is_stopped {
        let state = stream.next(demand, &mut |record| {
            let next = each(record);
            is_stopped |= next == Next::Stop;
            next
        })?;
        is_stopped |= state == StreamState::Ended;
    }
    Ok(stream.close())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn words_become_groups_and_a_time() {
        let parse = |line: &str| {
            parser::parse_line(&COMMAND, line, |words| {
                Ok((super::super::asked(words)?, words.seconds("for", WHILE_S)?))
            })
        };
        let (log, lasts) = parse("--group 1 --by rule,src --for 30s dport = 22").unwrap();
        assert_eq!((log.request.shown.by.as_deref(), lasts), (Some("rule,src"), Some(Duration::from_secs(30))));
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
