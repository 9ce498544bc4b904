//! `netwren capture latency`: every packet socket of the host, how late its ring gives packets out, and why.

use crate::command::{Command, ParsedWords, TableEntry};
use crate::commands::sockets;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use crate::outcome::Outcome;
use record::rows::Sockets;

/// The registry's entry. Its table is that of sockets.
pub(crate) static COMMAND: Command = Command {
    name: "capture latency",
    about: "Packet sockets of every program: how late each one's ring gives packets out, and why",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE,
    tables: &[TableEntry::of::<Sockets>()],
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren capture latency                             who captures, and what it waits for
  netwren capture latency 'late_ms > 1ms' --all-netns   who gets packets late, in every namespace
  netwren capture latency process = tcpdump -o json
  netwren capture latency -c +netns,filter_len,memberships
late_ms comes from the socket's set-up (packet_diag). The delay itself is not measured: this would need probes in the
kernel; `netwren capture` says at its end what its own was.
";

const COLUMNS: &str =
    "process,pid,iface,packet_version,rx_blocks,rx_block_size,rx_retire_ms,fanout_id,late_ms,late_why";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut request = Request::of(words)?;
    let shown = &mut request.shown;
    // As the user wrote it: an error in it has its own column.
    engine::filter::parse(&shown.filter).map_err(|error| error.to_string())?;
    shown.filter = match shown.filter.trim() {
        "" => "proto = packet".to_owned(),
        filter => format!("({filter}) and proto = packet"),
    };
    if shown.by.is_none() {
        shown.columns = Some(match shown.columns.as_deref() {
            None => COLUMNS.to_owned(),
            Some(columns) => match columns.strip_prefix('+') {
                Some(more) => format!("{COLUMNS},{more}"),
                None => columns.to_owned(),
            },
        });
        shown.order = Some("late_ms:desc");
    }
    sockets::shown(&request)
}
