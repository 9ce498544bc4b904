//! `netwren nat advise`: recommends a size for the conntrack table, and explains why.
//!
//! `probes::nat` reads the data, `doctor::nat` judges it, `show` shows the advice, and with `--apply` `probes::nat`
//! writes it as settings.

mod asked;
mod show;

use super::super::made_rows::MadeRows;
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use asked::NatAdvise;
use doctor::nat::{Evidence, Judged, advise};
use lookups::pillars;
use lookups::session::{Session, SessionTarget};
use probes::nat::{self, ApplyOptions};
use record::Accounting;
use record::rows::NatAdvices;
use runtime::exit::Exit;
use runtime::messages::footer_lines;
use runtime::outcome::Outcome;
use runtime::print;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat advise",
    about: "Conntrack table: fill level, forecast, recommended limit and its cost",
    examples: EXAMPLES,
    scope: Scope::ADVICE.and(Scope::COLUMNS).and(Scope::SORT).and(Scope::BY).and(Scope::FOLDS),
    tables: &[tables::NAT_ADVICE],
    recorded: Some(SavedPart { rows: None, is_large: false, open: || Box::new(nat::save) }),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat advise                              the whole host, or this container; three samples
  netwren nat advise --samples 60 --interval 1    a minute
  netwren nat advise -o json | jq 'select(.verdict != \"roomy\")'
  netwren nat advise 'verdict != roomy' -o csv    only namespaces that need a change, for a spreadsheet
  netwren nat advise --netns /proc/self/ns/net    only the current network namespace
  netwren nat advise --memory 2GiB                allow a table of up to 2 GiB
  netwren nat advise --apply                      show what would be set and written
  netwren nat advise --apply --yes                set it, also for the next boot
  netwren nat advise --apply --timeouts           show also which timeouts would be set
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    let asked = NatAdvise::of(words, &request)?;
    let target = SessionTarget {
        netns: request.netns.clone(),
        all_netns: request.all_netns,
        record: request.record.clone(),
        replay: request.replay.clone(),
        ..SessionTarget::default()
    };
    let rows = MadeRows::<NatAdvices>::plan(request)?;
    ready(move || run(target, asked, &rows))
}

fn run(mut target: SessionTarget, asked: NatAdvise, rows: &MadeRows<NatAdvices>) -> Outcome {
    // The limit, the buckets and the memory belong to the host. A run in the host's first namespace judges them for all
    // namespaces, a run in another namespace for that namespace only. A recording has the namespaces it was made from.
    target.all_netns |= target.netns.is_none() && target.replay.is_none() && nat::is_first_netns();
    let session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    let mut stats = Accounting::default();
    pillars::find_namespaces(&session, true, &mut stats);
    let outcome = match nat::gather(&session, &asked.sampling, &mut stats) {
        Ok(found) => tell(&session, asked.apply, rows, found, &mut stats),
        Err(error) => Outcome::with_message(Exit::Failed, error),
    };
    session.finish(&mut stats);
    let Outcome { mut exit, mut messages } = outcome;
    messages.extend(footer_lines(&stats));
    if exit == Exit::Ok && stats.is_partial() {
        exit = Exit::Partial;
    }
    Outcome { exit, messages }
}

fn tell(
    session: &Session,
    options: Option<ApplyOptions>,
    rows: &MadeRows<NatAdvices>,
    found: Vec<(u64, Evidence)>,
    stats: &mut Accounting,
) -> Outcome {
    let names = nat::names(session, &found, stats);
    let judged: Vec<Judged> = found
        .into_iter()
        .zip(names)
        .map(|((netns_id, evidence), name)| Judged { netns_id, name, advice: advise(&evidence), evidence })
        .collect();
    let shown = match rows.wants_text() {
        true => print::print_prose(&show::words(&judged)).into(),
        false => rows.write(&show::AdviceRows::of(&judged).rows()),
    };
    match options.filter(|_| shown.exit == Exit::Ok) {
        Some(options) => nat::apply(session, &judged, options),
        None => shown,
    }
}
