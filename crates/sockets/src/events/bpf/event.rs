//! Decodes one event of the BPF program into a row.
use netlink::DecodeError;
use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use record::rows::{CloseReason, Direction, Endpoint, EventKind, Holder, SocketEvent};
use record::{Addr, Comm, Proto, State};

use crate::address_families::{AF_INET, AF_INET6};

/// Size of `struct event` in crates/bpf/c/sockets_events.bpf.c, in machine byte order.
pub(crate) const EVENT: usize = 120;
/// Size of `struct event6`: a `struct event` with IPv6 addresses.
pub(crate) const EVENT6: usize = 184;
/// Offsets of the IPv6 addresses.
const LOCAL6: usize = EVENT;
const PEER6: usize = EVENT + 16;

/// One event: at least [`EVENT`] bytes, [`EVENT6`] if its family is inet6.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'b>(&'b [u8]);

impl<'b> Event<'b> {
    /// The first of `events` and the rest; `Err` with all of it if it is too short for an event.
    pub(crate) fn split_first(events: &'b [u8]) -> Result<(Event<'b>, &'b [u8]), &'b [u8]> {
        let bytes = if events.get(FAMILY) == Some(&AF_INET6) { EVENT6 } else { EVENT };
        events.split_at_checked(bytes).map(|(event, rest)| (Event(event), rest)).ok_or(events)
    }
}

const FAMILY: usize = 89;

const KIND_OPEN: u8 = 1;
const KIND_CLOSE: u8 = 2;
/// A UDP socket sends (crates/bpf/c/udp_senders.bpf.c).
const KIND_SENDS: u8 = 3;
/// With the kind: the event has an interface. Events of older recordings have anything in its place.
const WITH_IFINDEX: u8 = 128;
const DIRECTION_IN: u8 = 1;
const DIRECTION_OUT: u8 = 2;
/// Added to the direction: a further subflow of an MPTCP connection, whose process is not known.
const NAMELESS_SUBFLOW: u8 = 1 << 7;
const DIRECTION: usize = 90;

// errno values as in sk_err (include/uapi/asm-generic/errno.h).
const EPIPE: u32 = 32;
const ECONNABORTED: u32 = 103;
const ECONNRESET: u32 = 104;
const ETIMEDOUT: u32 = 110;

/// Time of an event on the kernel's monotonic clock, in ns.
pub(crate) fn happened_ns(event: Event<'_>) -> u64 {
    u64_at(event.0, 0).unwrap_or(0)
}

/// True for an event of a further subflow of an MPTCP connection, whose process is not known.
pub(crate) fn is_nameless_subflow(event: Event<'_>) -> bool {
    event.0.get(DIRECTION).is_some_and(|direction| direction & NAMELESS_SUBFLOW != 0)
}

/// Decodes an event that happened at `time_ns` (since 1970).
pub(crate) fn decode(event: Event<'_>, time_ns: u64) -> Result<SocketEvent, DecodeError> {
    let event = event.0;
    // Every offset is inside the event, so the fallbacks are never used.
    let (wide, word) = (|at| u64_at(event, at).unwrap_or(0), |at| u32_at(event, at).unwrap_or(0));
    let byte = |at: usize| event.get(at).copied().unwrap_or(0);
    let number = byte(88) & !WITH_IFINDEX;
    let kind = match number {
        KIND_OPEN | KIND_SENDS => EventKind::Open,
        KIND_CLOSE => EventKind::Close,
        _ => return Err(DecodeError::Word("kind")),
    };
    let (family, state) = (byte(FAMILY), State(byte(91)));
    let end = |addr, addr6, port| -> Result<Endpoint, DecodeError> {
        let addr = match family {
            AF_INET => Addr::V4(array_at(event, addr).unwrap_or([0; 4])),
            AF_INET6 => Addr::V6(array_at(event, addr6).unwrap_or([0; 16])),
            other => return Err(DecodeError::Family(other)),
        };
        Ok(Endpoint { addr, port: u16_at(event, port).unwrap_or(0) })
    };
    let opened_ns = wide(8);
    let lasted_us = wide(0).saturating_sub(opened_ns) / 1000;
    let is_close = kind == EventKind::Close;
    let holder = (word(52) != 0).then(|| holder_of(event));
    Ok(SocketEvent {
        kind,
        time_ns,
        duration_us: (is_close && opened_ns != 0).then_some(lasted_us),
        netns_id: word(48).into(),
        proto: if number == KIND_SENDS { Proto::Udp } else { Proto::Tcp },
        family,
        direction: match byte(DIRECTION) & !NAMELESS_SUBFLOW {
            DIRECTION_IN => Direction::In,
            DIRECTION_OUT => Direction::Out,
            _ => Direction::Unknown,
        },
        local: end(76, LOCAL6, 84)?,
        peer: end(80, PEER6, 86)?,
        ifindex: if byte(88) & WITH_IFINDEX != 0 { word(116) } else { 0 },
        uid: holder.is_some().then(|| word(56)),
        holder,
        bytes_in: Some(wide(32)),
        bytes_out: Some(wide(40)),
        rtt_us: Some(word(60)),
        retrans_total: Some(word(64)),
        segs_in: Some(word(68)),
        segs_out: Some(word(72)),
        state,
        reason: is_close.then(|| reason_of(word(92), state)),
        cookie: wide(16),
    })
}

fn holder_of(event: &[u8]) -> Holder {
    Holder {
        pid: u32_at(event, 52).unwrap_or(0),
        process: Comm::new(event.get(96..112).unwrap_or_default()),
        started: u32_at(event, 112).unwrap_or(0),
        cgroup_id: u64_at(event, 24),
    }
}

/// Derives the reason from the socket's error and its state before the close.
fn reason_of(error: u32, state: State) -> CloseReason {
    match error {
        ECONNRESET | EPIPE => CloseReason::Reset,
        ETIMEDOUT => CloseReason::Timeout,
        ECONNABORTED => CloseReason::Killed,
        0 => match state {
            State::FIN_WAIT2 | State::TIME_WAIT | State::LAST_ACK | State::CLOSING => CloseReason::Fin,
            _ => CloseReason::Abort,
        },
        _ => CloseReason::Error,
    }
}
