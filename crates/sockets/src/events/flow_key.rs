//! A flow as the kernel's programs and this process count it: key, sums and row.
use netlink::DecodeError;
use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use record::rows::{Direction, EventKind, FlowEvent, SocketEvent};
use record::{Addr, Proto};

use crate::address_families::{AF_INET, AF_INET6};

/// Sizes of `struct flow_key`: netns u32, family u8, direction u8, port u16, both addresses, ifindex u32; and of
/// `struct flow_sum`: six u64.
pub(crate) const KEY: usize = 44;
/// Size of the key in older recordings, which has no ifindex.
pub(super) const OLD_KEY: usize = 40;
pub(crate) const SUM: usize = 6 * 8;
/// Size of the interval's length in ns, which follows a block's header; after it come keys and sums.
pub(crate) const SPAN: usize = 8;

/// Direction of a connection in a key.
const DIRECTION_IN: u8 = 1;
const DIRECTION_OUT: u8 = 2;
const DIRECTION_UNKNOWN: u8 = 3;
/// The key belongs to an account; its user takes the place of the local address.
pub(super) const DIRECTION_FOLDED: u8 = 4;

/// The sums of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FlowTotals {
    pub(super) opened: u64,
    closed: u64,
    bytes_in: u64,
    bytes_out: u64,
    retrans: u64,
    lasted_ns: u64,
}

impl FlowTotals {
    pub(super) fn parse_at(bytes: &[u8], at: usize) -> Option<FlowTotals> {
        let number = |index: usize| u64_at(bytes, at + index * 8);
        Some(FlowTotals {
            opened: number(0)?,
            closed: number(1)?,
            bytes_in: number(2)?,
            bytes_out: number(3)?,
            retrans: number(4)?,
            lasted_ns: number(5)?,
        })
    }

    pub(super) fn add(&mut self, event: &SocketEvent) {
        if event.kind == EventKind::Open {
            self.opened += 1;
            return;
        }
        self.closed += 1;
        self.bytes_in = self.bytes_in.saturating_add(event.bytes_in.unwrap_or(0));
        self.bytes_out = self.bytes_out.saturating_add(event.bytes_out.unwrap_or(0));
        self.retrans += u64::from(event.retrans_total.unwrap_or(0));
        self.lasted_ns = self.lasted_ns.saturating_add(event.duration_us.unwrap_or(0).saturating_mul(1000));
    }
}

/// The kernel's key for the flow of an event.
pub(super) fn key_of(event: &SocketEvent) -> [u8; KEY] {
    let (direction, port) = match event.direction {
        Direction::In => (DIRECTION_IN, event.local.port),
        Direction::Out => (DIRECTION_OUT, event.peer.port),
        Direction::Unknown => (DIRECTION_UNKNOWN, 0),
    };
    let mut key = [0; KEY];
    put(&mut key, 0, &u32::try_from(event.netns_id).unwrap_or(0).to_ne_bytes());
    put(&mut key, 4, &[event.family, direction]);
    put(&mut key, 6, &port.to_ne_bytes());
    for (addr, at) in [(event.local.addr, 8), (event.peer.addr, 24)] {
        put(&mut key, at, addr.octets());
    }
    put(&mut key, 40, &event.ifindex.to_ne_bytes());
    key
}

/// Writes `bytes` into a key, starting at byte `at`.
pub(super) fn put(key: &mut [u8; KEY], at: usize, bytes: &[u8]) {
    key.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
}

/// The row of a flow; `time_ns` is since 1970, `span_ns` the length of the interval.
pub(super) fn row(key: &[u8; KEY], sums: &FlowTotals, time_ns: u64, span_ns: u64) -> Result<FlowEvent, DecodeError> {
    let is_folded = key.get(5) == Some(&DIRECTION_FOLDED);
    // The account of a service has the family and the direction of its connections after its user.
    let family = key.get(if is_folded { 16 } else { 4 }).copied().unwrap_or(0);
    let addr = |at| match family {
        _ if is_folded => Ok(None),
        AF_INET => Ok(Some(Addr::V4(array_at(key, at).unwrap_or([0; 4])))),
        AF_INET6 => Ok(Some(Addr::V6(array_at(key, at).unwrap_or([0; 16])))),
        other => Err(DecodeError::Family(other)),
    };
    let port = u16_at(key, 6);
    let (direction, local_port, peer_port) = match key.get(5) {
        Some(&DIRECTION_IN) => (Direction::In, port, None),
        Some(&DIRECTION_OUT) => (Direction::Out, None, port),
        Some(&DIRECTION_FOLDED) if key.get(17) == Some(&DIRECTION_IN) => (Direction::In, port, None),
        Some(&DIRECTION_FOLDED) if key.get(17) == Some(&DIRECTION_OUT) => (Direction::Out, None, port),
        _ => (Direction::Unknown, None, None),
    };
    Ok(FlowEvent {
        time_ns,
        interval_us: span_ns / 1000,
        netns_id: u32_at(key, 0).unwrap_or(0).into(),
        proto: Proto::Tcp,
        family,
        direction,
        local_addr: addr(8)?,
        local_port,
        peer_addr: addr(24)?,
        peer_port,
        ifindex: u32_at(key, 40).unwrap_or(0),
        folded_uid: if is_folded { u32_at(key, 8) } else { None },
        opened: sums.opened,
        closed: sums.closed,
        bytes_in: Some(sums.bytes_in),
        bytes_out: Some(sums.bytes_out),
        retrans_total: Some(sums.retrans),
        lasted_us: sums.lasted_ns / 1000,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::Endpoint;

    #[test]
    fn a_flow_is_its_service_and_its_hosts() {
        let end = |last, port| Endpoint { addr: Addr::V4([10, 0, 0, last]), port };
        let event = SocketEvent {
            netns_id: 7,
            direction: Direction::In,
            local: end(1, 443),
            peer: end(2, 40_000),
            ..SocketEvent::EMPTY
        };
        let other = SocketEvent { peer: end(2, 40_001), ..event };
        assert_eq!(key_of(&event), key_of(&other));
        let mut sums = FlowTotals::default();
        sums.add(&event);
        sums.add(&SocketEvent {
            kind: EventKind::Close,
            bytes_in: Some(5),
            bytes_out: Some(6),
            duration_us: Some(9),
            ..event
        });
        let row = row(&key_of(&event), &sums, 7_000, 2_000).unwrap();
        assert_eq!((row.netns_id, row.direction, row.local_port, row.peer_port), (7, Direction::In, Some(443), None));
        assert_eq!((row.local_addr, row.peer_addr), (Some(event.local.addr), Some(event.peer.addr)));
        assert_eq!((row.opened, row.closed, row.bytes_in, row.lasted_us, row.interval_us), (1, 1, Some(5), 9, 2));
        let out = SocketEvent { direction: Direction::Out, ..event };
        let key = key_of(&out);
        assert_ne!(key, key_of(&event));
        assert_eq!(super::row(&key, &sums, 0, 0).unwrap().peer_port, Some(40_000));
        let mut unknown = key;
        unknown[4] = 99;
        assert_eq!(super::row(&unknown, &sums, 0, 0).unwrap_err(), DecodeError::Family(99));
    }
}
