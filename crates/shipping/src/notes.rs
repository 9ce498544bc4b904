//! Messages about outputs, during a run and at its end.

use export::{OutputNotice, Status, Target};
use record::{Accounting, text};
use std::fmt::Write;

/// Adds the rows to `stats` that the receiver `target` did not get.
pub(super) fn add(target: &str, status: &Status, stats: &mut Accounting) {
    let ledger = status.ledger;
    let why = status.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    for (reason, count) in ledger.dropped.reasons().into_iter().filter(|(_, count)| *count > 0) {
        stats.incomplete(0, format!("{target}: {count} of {} rows {}{why}", ledger.seen, words_of(reason)));
    }
}

/// The end of a message about rows dropped for one of [`export::Drops::reasons`].
fn words_of(reason: &str) -> &'static str {
    match reason {
        "full" => "dropped because the queue was full (--queue-max, --when-full)",
        "age" => "dropped because they waited too long (--spool-age)",
        "lost" => "lost in a crash or a damaged spool",
        "end" => "not delivered when the run ended",
        _ => "refused",
    }
}

/// The message for a notice of the output to `target`.
pub(super) fn sentence(target: &str, notice: &OutputNotice) -> String {
    match notice {
        OutputNotice::Away(error) => format!("{target}: {error}; rows are queued until it is available"),
        OutputNotice::Back(after) => format!("{target}: available again after {:.1} s", after.as_secs_f64()),
        OutputNotice::Dropped { reason, count, error } => {
            let why = error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{target}: {count} rows so far {}{why}", words_of(reason))
        }
        OutputNotice::StoreFault(fault) => format!("{target}: {fault}"),
        OutputNotice::StoreWorks => format!("{target}: the spool works again"),
    }
}

/// The summed counts of all outputs, for the service manager.
pub(super) fn status_line(outputs: impl Iterator<Item = Status>) -> String {
    let (mut seen, mut delivered, mut waiting, mut dropped, mut away) = (0, 0, 0, 0, 0);
    for Status { ledger, is_open, .. } in outputs {
        seen += ledger.seen;
        delivered += ledger.delivered;
        waiting += ledger.waiting_records();
        dropped += ledger.dropped.reasons().iter().map(|(_, count)| count).sum::<u64>();
        away += u32::from(!is_open);
    }
    let away = if away > 0 { format!(", unavailable receivers {away}") } else { String::new() };
    format!("seen {seen}, delivered {delivered}, waiting {waiting}, dropped {dropped}{away}")
}

/// `--stats`: prints the ledgers as one JSON object, the last line of standard output.
pub(super) fn print(outputs: &[(&Target, Status)], lost_in_kernel: u64) {
    let mut line = b"{\"outputs\":[".to_vec();
    for (index, (target, status)) in outputs.iter().enumerate() {
        line.extend_from_slice(if index == 0 { b"{\"output\":\"" } else { b",{\"output\":\"" });
        text::put_json(&mut line, target.to_string().as_bytes());
        line.extend_from_slice(ledger(status, lost_in_kernel).as_bytes());
    }
    line.extend_from_slice(b"]}\n");
    let _ = sys::Out::stdout().write_all(&line);
}

fn ledger(status: &Status, lost_in_kernel: u64) -> String {
    let counts = status.ledger;
    let mut text = format!(
        "\",\"seen\":{},\"delivered\":{},\"folded\":{},\"limited\":{},\"dropped\":{{",
        counts.seen, counts.delivered, counts.folded, counts.limited
    );
    for (index, (reason, count)) in counts.dropped.reasons().into_iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{reason}\":{count}");
    }
    let _ = write!(
        text,
        "}},\"in_spool\":{},\"resent\":{},\"failures\":{},\"lost_in_kernel\":{lost_in_kernel}}}",
        counts.waiting_records(),
        counts.resent,
        status.failures
    );
    text
}
