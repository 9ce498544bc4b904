//! The cell "Timer".

use crate::pieces::{Padded, put};
use record::Proto;
use record::rows::Socket;

/// Appends ` off (0.00/0/0)`, ` keepalive (7196.34/0/0)`, …: the timer, its seconds, retransmissions, probes.
pub(super) fn put_timer(out: &mut Vec<u8>, row: &Socket<'_>) {
    let (retransmits, probes) = counts(row);
    let name = match row.timer.0 {
        _ if row.proto != Proto::Tcp => Ok("off"),
        0 => Ok("off"),
        1 => Ok("on"),
        2 => Ok("keepalive"),
        3 => Ok("timewait"),
        4 => Ok("probe"),
        timer => Err(("unkn-", timer)),
    };
    // The kernel's file counts in hundredths of a second.
    let ticks = if name == Ok("off") { 0 } else { row.timer_ms / 10 };
    put!(out, " ", name, " (", ticks / 100, ".", Padded(ticks % 100, 2), "/", retransmits, "/", probes, ")");
}

/// Returns retransmissions and probes. Only `tcp_info` has both; without it, only the count of the running timer is
/// known.
fn counts(row: &Socket<'_>) -> (u64, u64) {
    if row.proto != Proto::Tcp {
        return (0, 0);
    }
    if let Some(info) = row.tcp_info {
        return (info.retransmits().unwrap_or(0).into(), info.probes().unwrap_or(0).into());
    }
    match row.timer.0 {
        1 => (row.retrans.into(), 0),
        2 | 4 => (0, row.retrans.into()),
        _ => (0, 0),
    }
}
