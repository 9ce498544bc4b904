//! `netwren flows`: filter parts about sockets select sockets before they are grouped, and the rest selects flows.

use super::{follow, table};
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use lookups::session::Session;
use record::Accounting;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "flows",
    about: "Flows between hosts: endpoints, direction and number of connections",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::FOLLOW).and(Scope::FLOWS).without(Scope::COLUMNS),
    tables: &[tables::FLOWS, tables::FLOW_EVENTS],
    other_table: &["follow"],
    null_words: &[("local_addr", "many"), ("local_port", "many"), ("peer_addr", "many"), ("peer_port", "many")],
    recorded: Some(SavedPart { rows: None, is_large: false, open: || Box::new(save) }),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren flows                                   all flows, the largest first
  netwren flows 'peer_scope = public'             flows with public addresses
  netwren flows 'direction = in and connections > 100'
  netwren flows --columns +bytes_in,bytes_out --sort bytes_out --limit 10
  netwren flows --by peer_addr,process --sum connections
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    match request.follow {
        Some(interval) => follow::prepare_flows(request, interval),
        None => prepare_list(request),
    }
}

/// Prepares a run that shows the current flows.
pub(super) fn prepare_list(request: Request) -> Prepared<'static> {
    let (plan, provider) = tables::flows::prepare(&request.table())?;
    ready(move || table::run(&request, &plan, &provider))
}

/// Saves the data that flows need in addition to sockets.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    tables::flows::read_surroundings(session, stats);
    0
}
