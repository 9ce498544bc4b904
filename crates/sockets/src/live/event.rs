//! One event of the BPF program as a row.
use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use record::rows::{Direction, Endpoint, Happening, Holder, Reason, SocketEvent};
use record::{Addr, Comm, State};

use crate::error::DecodeError;
use crate::inet_diag::{AF_INET, AF_INET6};

/// `struct event` in crates/bpf/c/sockets_events.bpf.c, in the machine's byte order.
pub(super) const EVENT: usize = 136;

const KIND_OPEN: u8 = 1;
const KIND_CLOSE: u8 = 2;
const DIRECTION_IN: u8 = 1;
const DIRECTION_OUT: u8 = 2;

// errno as sk_err holds it (include/uapi/asm-generic/errno.h).
const EPIPE: u32 = 32;
const ECONNABORTED: u32 = 103;
const ECONNRESET: u32 = 104;
const ETIMEDOUT: u32 = 110;

/// When an event happened, by the kernel's monotonic clock.
pub(super) fn happened_ns(event: &[u8; EVENT]) -> u64 {
    u64_at(event, 0).unwrap_or(0)
}

/// The row of an event that happened at the moment `time` says.
pub(super) fn decode<'b>(event: &[u8; EVENT], time: &'b [u8]) -> Result<SocketEvent<'b>, DecodeError> {
    // Every offset lies inside the array: the fallbacks are never taken.
    let (wide, word) = (|at| u64_at(event, at).unwrap_or(0), |at| u32_at(event, at).unwrap_or(0));
    let byte = |at: usize| event.get(at).copied().unwrap_or(0);
    let happening = match byte(116) {
        KIND_OPEN => Happening::Open,
        KIND_CLOSE => Happening::Close,
        _ => return Err(DecodeError::Column("kind")),
    };
    let (family, state) = (byte(117), State(byte(119)));
    let end = |addr, port| -> Result<Endpoint, DecodeError> {
        Ok(Endpoint { addr: addr_at(event, family, addr)?, port: u16_at(event, port).unwrap_or(0) })
    };
    let opened_ns = wide(8);
    let lasted_us = wide(0).saturating_sub(opened_ns) / 1000;
    let is_close = happening == Happening::Close;
    let holder = (word(52) != 0).then(|| holder_of(event));
    Ok(SocketEvent {
        happening,
        time,
        duration_us: (is_close && opened_ns != 0).then_some(lasted_us),
        netns_id: word(48).into(),
        family,
        direction: match byte(118) {
            DIRECTION_IN => Direction::In,
            DIRECTION_OUT => Direction::Out,
            _ => Direction::Unknown,
        },
        local: end(80, 112)?,
        peer: end(96, 114)?,
        uid: holder.is_some().then(|| word(56)),
        holder,
        bytes_in: Some(wide(32)),
        bytes_out: Some(wide(40)),
        rtt_us: Some(word(60)),
        retrans_total: Some(word(64)),
        segs_in: Some(word(68)),
        segs_out: Some(word(72)),
        state,
        reason: is_close.then(|| reason_of(word(76), state)),
        cookie: wide(16),
        ..SocketEvent::EMPTY
    })
}

fn addr_at(event: &[u8; EVENT], family: u8, at: usize) -> Result<Addr, DecodeError> {
    match family {
        AF_INET => Ok(Addr::V4(array_at(event, at).unwrap_or([0; 4]))),
        AF_INET6 => Ok(Addr::V6(array_at(event, at).unwrap_or([0; 16]))),
        other => Err(DecodeError::Family(other)),
    }
}

fn holder_of(event: &[u8; EVENT]) -> Holder {
    Holder {
        pid: u32_at(event, 52).unwrap_or(0),
        process: Comm::new(event.get(120..).unwrap_or_default()),
        cgroup_id: u64_at(event, 24),
    }
}

/// From the socket's error and the state that the close ended.
fn reason_of(error: u32, state: State) -> Reason {
    match error {
        ECONNRESET | EPIPE => Reason::Reset,
        ETIMEDOUT => Reason::Timeout,
        ECONNABORTED => Reason::Killed,
        0 => match state {
            State::FIN_WAIT2 | State::TIME_WAIT | State::LAST_ACK | State::CLOSING => Reason::Fin,
            _ => Reason::Abort,
        },
        _ => Reason::Error,
    }
}
