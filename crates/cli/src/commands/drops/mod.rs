//! `netwren drops [FILTER]`: packets that the kernel drops, counted or one by one while the command runs.

mod counted;
mod events;

use super::{plan, table};
use crate::command::{Command, GroupRate, ParsedWords, TableEntry};
use crate::exit::Exit;
use crate::flags::defs::Scope;
use crate::flags::request::{PERIODS_S, Repeat, Request};
use crate::outcome::Outcome;
use crate::session::Session;
use ::drops::DropScope;
use counted::DropProvider;
use record::Kind;
use record::rows::{DropEvents, Drops};
use std::time::Duration;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "drops",
    about: "Packets that the kernel drops while it runs: how many, why, where, and what that means",
    examples: EXAMPLES,
    scope: Scope::TABLE
        .without(Scope::WATCH)
        .and(Scope::OWNERS)
        .and(Scope::OWNERS_VIA)
        .and(Scope::USERS)
        .and(Scope::DROPS),
    refusals: &[("follow", "--follow does not go with `drops`: --watch shows rounds, --events each packet")],
    tables: &[TableEntry::of::<Drops>(), TableEntry::of::<DropEvents>()],
    group_rates: &[GroupRate { of: "count", name: "per_s", kind: Kind::Thousandths }],
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren drops                                      until Ctrl-C: on a terminal every second, else one table
  netwren drops --for 5                              what is dropped in five seconds, in this network namespace
  netwren drops --for 5 --all-netns -o wide          in all of them, with advice
  netwren drops 'reason = NETFILTER_DROP' --for 5    what rules and connection tracking drop
  netwren drops 'hook = forward or proto = udp' --for 5 --stack
  netwren drops --for 5 --all-netns --columns count,reason,process,pid,container,dport 'process != null'
  netwren drops --for 5 --by reason,place            groups: how many packets each
  netwren drops --for 5 --all 'benign = true'        what is freed in routine ways
  netwren drops --watch=2 --for 6 -o json
  netwren drops --events --for 5 'dport = 53'        each packet: time, reason, place, addresses, ports
  netwren drops --events --for 5 --by src,dst,dport --limit 10    whose packets are dropped most
Counting costs nothing while nothing is dropped, and about 0.2 us for each packet that is. It needs CAP_BPF and
CAP_PERFMON, names of functions CAP_SYSLOG.
";

/// The default of `--sum` with `--by`.
const SUMS: &str = "count,bytes";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut request = Request::of(words)?;
    request.sample = words.seconds("for", PERIODS_S)?;
    if words.has("stack") {
        let columns = request.shown.columns.take();
        request.shown.columns = Some(columns.map_or("+stack".to_owned(), |columns| format!("{columns},stack")));
    }
    if words.has("events") {
        return of_events(request, words);
    }
    if words.value("exit-after").is_some() {
        return Err("--exit-after needs --events: counts have no order".to_owned());
    }
    let is_replay = request.replay.is_some();
    let is_endless = request.sample.is_none() && !is_replay && request.repeat == Repeat::Once;
    if is_endless && sys::term::is_terminal(sys::term::STDOUT) {
        request.repeat = Repeat::Every(Duration::from_secs(1));
    }
    if request.shown.by.is_some() && request.shown.aggregates.iter().all(Option::is_none) {
        request.shown.aggregates[0] = Some(SUMS.to_owned());
        request.shown.sort.get_or_insert_with(|| "sum_count:desc".to_owned());
    }
    Ok(match plan::of_request::<Drops>(&request) {
        Ok(plan) => table::run(&request, &plan, &DropProvider::new(words.has("all"))),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    })
}

fn of_events(mut request: Request, words: &ParsedWords<'_>) -> Result<Outcome, String> {
    if request.repeat != Repeat::Once && request.shown.by.is_none() {
        return Err("--watch with --events shows groups: it needs --by".to_owned());
    }
    if let Some(text) = words.value("exit-after") {
        if request.shown.limit.is_some() || request.shown.by.is_some() || request.shown.sort.is_some() {
            return Err("--exit-after does not go with --limit, --by and --sort".to_owned());
        }
        let packets = text.parse().ok().filter(|packets| *packets > 0);
        let wrong = || format!("--exit-after takes a number of packets, not `{text}`");
        request.shown.limit = Some(packets.ok_or_else(wrong)?);
    }
    Ok(match plan::of_request::<DropEvents>(&request) {
        Ok(plan) => events::followed(&request, &plan, words.has("all")),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    })
}

/// The namespaces whose drops a session counts.
pub(super) fn scope(session: &Session) -> DropScope {
    match session.namespaces() {
        Some(_) => DropScope::AllNetns,
        None => DropScope::Netns(u32::try_from(session.netns_id()).unwrap_or(0)),
    }
}
