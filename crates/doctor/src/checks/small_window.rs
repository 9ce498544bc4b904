//! Receive windows that are too small for a long path.

use record::rows::{Confidence, Severity};

use super::pace::{FAST, TransferRate, add_each, and_further, kib, ms, paces, per_s, rate};
use super::reach::Reach;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::LONG_US;

pub(super) const CHECK: Check = Check {
    id: "small-window",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A connection is slow because the receive window is smaller than the path holds in one round trip.",
    rule: "A connection with a round trip of at least 5 ms sends about one window per round trip, waits for the \
           peer's window during a tenth of the time with data in flight (a thirtieth if it sends 90 % of a window \
           per round trip: the congestion window may be nearly as small), and the window is the same at both readings. \
           Or it receives about one own window per round trip, the window is about the same at both readings, and \
           less than half of it is unread. From 100 Mb/s on it is a hint, and if the peer's window does not \
           show whether a small buffer or a slow program limits it.",
    sources: "tcp_info via sock_diag: rwnd_limited, busy_time, snd_wnd, rcv_wnd, min_rtt, bytes_acked, bytes_received",
    refuted_by: "unread data at the receiver (Recv-Q in `netwren sockets`): then its program reads too slowly.",
    run,
};

/// True if the peer's window limits the connection. A window that changes belongs to a program that reads slowly.
fn is_limited_by_peer(one: &TransferRate<'_>) -> bool {
    let (wait, (window, _)) = (one.grown.rwnd_limited_us, one.now.peer_window);
    // Windows are rounded to their scale.
    let is_same = |before: u32| before.abs_diff(window) <= window / 20;
    let is_steady = window > 0 && one.before.is_some_and(|before| is_same(before.peer_window.0));
    let window_per_trip = per_s(window.into(), one.now.rtt_us.into());
    let is_one_each_trip = one.sent_per_s() >= window_per_trip / 2;
    // The congestion window does not grow while the peer's window limits it, so both may be about the same.
    let is_filled = one.sent_per_s() >= window_per_trip / 10 * 9 && wait.saturating_mul(30) >= one.grown.busy_us;
    let is_much = (one.is_much(wait) || is_filled) && wait > one.grown.sndbuf_limited_us;
    one.now.min_rtt_us >= LONG_US && is_much && is_steady && is_one_each_trip
}

/// True if the own window limits the connection. The kernel aims at twice of what arrives in a round trip.
fn is_limited_here(one: &TransferRate<'_>, window_us: u64) -> bool {
    let (now, Some(before)) = (one.now, one.before) else { return false };
    let is_read = [now, before].iter().all(|one| one.unread < one.own_window / 2);
    let whole = u64::from(now.own_window) * window_us / u64::from(now.min_rtt_us).max(1);
    now.min_rtt_us >= LONG_US
        && is_read
        && now.own_window.abs_diff(before.own_window) <= before.own_window / 10
        && one.grown.received > 64 << 10
        && one.grown.received.saturating_mul(10) >= whole.saturating_mul(6)
}

/// True if the window is as large as the peer's buffer ever allows: the scale is the smallest that the buffer needs
/// (tcp_select_initial_window), so a window far below it may belong to a program that reads slowly.
fn is_whole_buffer((window, scale): (u32, u8)) -> bool {
    scale == 0 || scale <= 14 && window >= 1 << (14 + u32::from(scale))
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut all: Vec<_> = paces(sample).filter(is_limited_by_peer).collect();
    all.sort_by_key(TransferRate::sent_per_s);
    add_each(&all, found, add_peer);
    let window_us = sample.window_ns / 1000;
    let mut all: Vec<_> = paces(sample).filter(|one| is_limited_here(one, window_us)).collect();
    all.sort_by_key(|one| one.grown.received);
    add_each(&all, found, add_own);
}

fn add_peer(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, speed, window) = (one.now, one.sent_per_s(), one.now.peer_window.0);
    let is_sure = is_whole_buffer(now.peer_window);
    let why = if is_sure { "" } else { ", or the peer's program reads slowly" };
    let title = format!(
        "{} sends slowly to {}: the peer's receive window of {} is too small for a round trip of {}{why}",
        now.owner,
        now.peer,
        kib(window.into()),
        ms(now.min_rtt_us.into())
    );
    let severity = if speed < FAST { Severity::Warning } else { Severity::Hint };
    // Players read slowly on purpose.
    let reach = if is_sure { Reach::part(1, 1) } else { Reach::Nobody };
    found
        .add(severity, Confidence::Likely, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("microseconds limited by the peer's window", |all| all.rwnd_limited_us),
            one.evidence("microseconds with data in flight", |all| all.busy_us),
            one.evidence("bytes acknowledged", |all| all.acked),
            state(format!("receive window of {}", now.peer), window, None),
        ])
        .cost(format!("{}: one window per round trip{}", rate(speed), and_further(further)))
        .reach(reach, "")
        .remedy(
            "",
            "run `ss -tm` at the peer: with Recv-Q 0 its receive buffer is too small (SO_RCVBUF, tcp_rmem), otherwise \
             its program reads slowly",
            "",
        );
}

fn add_own(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, window) = (one.now, one.now.own_window);
    let speed = per_s(one.grown.received, found.sample.window_ns / 1000);
    let max = found.sample.setting("ipv4/tcp_rmem", 2);
    let title = format!(
        "{} receives slowly from {}: its receive window of {} is too small for a round trip of {}",
        now.owner,
        now.peer,
        kib(window.into()),
        ms(now.min_rtt_us.into())
    );
    let severity = if speed < FAST { Severity::Warning } else { Severity::Hint };
    let draft = found
        .add(severity, Confidence::Likely, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("bytes received", |all| all.received),
            state(format!("receive window of {}", now.name), window, None),
            state(format!("receive buffer of {}", now.name), now.rcvbuf, max),
        ])
        .cost(format!("{}: one window per round trip{}", rate(speed), and_further(further)));
    let wanted = (FAST.saturating_mul(now.min_rtt_us.into()) / 250_000).max(6 << 20);
    if max.is_some_and(|max| i64::from(now.rcvbuf) >= max) {
        draft.remedy(
            format!("sysctl -w net.ipv4.tcp_rmem='4096 131072 {wanted}'"),
            "lets the kernel enlarge receive buffers of new connections as far as a fast long path needs",
            "each busy connection may use that much memory",
        );
    } else {
        draft.remedy(
            "",
            "let the program not set SO_RCVBUF: the kernel then enlarges the buffer as needed, up to \
             net.ipv4.tcp_rmem; a buffer that is set stays as it is",
            "",
        );
    }
}
