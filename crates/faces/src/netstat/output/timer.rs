//! The cell "Timer".

use record::rows::Socket;
use record::{Proto, text};

/// Appends `off (0.00/0/0)`, `keepalive (7196.34/0/0)`, …: the timer, its seconds, retransmissions, probes.
pub(super) fn put_timer(out: &mut Vec<u8>, row: &Socket<'_>) {
    let (retransmits, probes) = counts(row);
    let name: &[u8] = match row.timer.0 {
        _ if row.proto != Proto::Tcp => b"off",
        0 => b"off",
        1 => b"on",
        2 => b"keepalive",
        3 => b"timewait",
        4 => b"probe",
        _ => b"unkn-",
    };
    out.extend_from_slice(name);
    if name.ends_with(b"-") {
        text::put_u64(out, row.timer.0.into());
    }
    out.extend_from_slice(b" (");
    // The kernel's file counts in hundredths of a second.
    let ticks = if name == b"off" { 0 } else { u64::from(row.timer_ms / 10) };
    text::put_u64(out, ticks / 100);
    out.extend([b'.', b'0' + (ticks / 10 % 10) as u8, b'0' + (ticks % 10) as u8, b'/']);
    text::put_u64(out, retransmits);
    out.push(b'/');
    text::put_u64(out, probes);
    out.push(b')');
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
