//! `netwren capture latency`: every packet socket of the host, the delay until its ring delivers packets, and the
//! cause.

use crate::command::{Command, ParsedWords, Prepared};
use crate::commands::sockets;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use lookups::packet_delays::SAMPLE;
use record::Schema;
use record::rows::Sockets;
use std::time::Duration;
use tables::Repeat;

/// The registry's entry. It shows the sockets table.
pub(crate) static COMMAND: Command = Command {
    name: "capture latency",
    about: "Packet sockets of all programs, with the delay of their rings and its cause",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.without(Scope::LASTS).and(Scope::LATENCY),
    tables: &[Schema::from_table::<Sockets>()],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren capture latency                             all capturing programs and their delays
  netwren capture latency 'late_ms > 1ms' --all-netns   programs that get packets late, in all namespaces
  netwren capture latency --for 10 process = tcpdump -o json   delays measured for ten seconds
  netwren capture latency --for 0 -c +netns,filter_len,memberships   the configuration of the sockets
late_ms is the socket's configuration (packet_diag). delay_us and delay_max_us are measured for two seconds, or --for
SECONDS: the time from the timestamp of the oldest waiting packet to the wake-up of the socket's reader (rings of
TPACKET_V2 and V3, Linux 6.12, privileges for BPF). --for 0 leaves that out. Delays inside the reader are not included.
";

const COLUMNS: &str =
    "process,pid,iface,packet_version,rx_blocks,rx_block_size,rx_retire_ms,fanout_id,late_ms,late_why";
/// The measured columns.
const MEASURED: &str = ",wakeups,delay_us,delay_max_us";
/// Valid range of `--for` in seconds.
const FOR_S: std::ops::RangeInclusive<f64> = 0.0..=86_400.0;

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let mut request = Request::of(words)?;
    // With `--watch`, `--for` ends the rounds, which measure no longer than that; 0 always measures no delays.
    let most = if request.repeat == Repeat::Once { Duration::MAX } else { SAMPLE };
    request.sample = words.seconds("for", FOR_S)?.map(|time| time.min(most));
    let shown = &mut request.shown;
    // The user's filter is parsed alone, so that columns in errors are correct.
    engine::filter::parse(&shown.filter).map_err(|error| error.to_string())?;
    shown.filter = match shown.filter.trim() {
        "" => "proto = packet".to_owned(),
        filter => format!("({filter}) and proto = packet"),
    };
    if shown.by.is_none() {
        let netns = if request.all_netns { "netns," } else { "" };
        let measured = if request.sample.is_some_and(|time| time.is_zero()) { "" } else { MEASURED };
        shown.columns = Some(match shown.columns.as_deref() {
            None => format!("{netns}{COLUMNS}{measured}"),
            Some(columns) => match columns.strip_prefix('+') {
                Some(more) => format!("{netns}{COLUMNS}{measured},{more}"),
                None => columns.to_owned(),
            },
        });
        shown.order = Some("late_ms:desc");
    }
    sockets::prepare_list(request)
}
