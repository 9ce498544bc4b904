//! Limits the flows of one interval and divides them so that no user can take them all: for events that are summed up
//! here.
//!
//! The rule is the same as in crates/bpf/c/sockets_events.bpf.c: the first [`FREE`] flows get entries unconditionally;
//! each further flow is charged to an account, which may take one [`SHARE_DIVISOR`]th of the rest of [`SHARED`]. Flows
//! without a share are summed up in the row of their account.
use netlink::prefix::array_at;
use record::rows::{Direction, SocketEvent};
use std::collections::HashMap;

use super::flow_key::{DIRECTION_FOLDED, FlowTotals, KEY, key_of, put};
use crate::address_families::AF_INET;

/// Number of flows per interval that get entries unconditionally.
///
/// Bound: flows in an interval of `flows --follow` without shares. Beyond: a user then has a share (docs/adr/0015). By:
/// a local user; peers of a service.
pub(super) const FREE: usize = 1 << 16;
/// Number of further flows, limited by shares.
///
/// Bound: further flows, shared out: each user gets an eighth of the rest. Beyond: further flows of a user without a
/// share become one row (`folded_uid`), counted (exit code 3); others keep their rows. By: a local user, for that
/// user's rows; peers of a service, for its rows.
pub(super) const SHARED: usize = 1 << 15;
/// An account may take one part in this many of the remaining entries.
const SHARE_DIVISOR: usize = 8;

/// The flows of one interval. Memory: [`FREE`] + [`SHARED`] entries of 100 bytes, and one for each account.
#[derive(Default)]
pub(super) struct FlowTable {
    sums: HashMap<[u8; KEY], FlowTotals>,
    /// Number of shared entries that each account has taken.
    charged: HashMap<[u8; KEY], usize>,
}

impl FlowTable {
    /// The sums of the flow of an event, or of its account if that has no share left.
    pub(super) fn sums_of(&mut self, event: &SocketEvent) -> &mut FlowTotals {
        let mut key = key_of(event);
        if self.sums.len() >= FREE && !self.sums.contains_key(&key) {
            key = self.full_account(event, &key).unwrap_or(key);
        }
        self.sums.entry(key).or_default()
    }

    /// Charges a new flow; returns the account into which it must be folded, if that has no share left.
    fn full_account(&mut self, event: &SocketEvent, flow: &[u8; KEY]) -> Option<[u8; KEY]> {
        let share = (FREE + SHARED).saturating_sub(self.sums.len()) / SHARE_DIVISOR;
        let user = account(event.uid);
        let of_user = self.charged.get(&user).copied().unwrap_or(0);
        if of_user >= share {
            return Some(user);
        }
        // Without a user, connections that we opened are also separated by service.
        if event.direction == Direction::In || event.uid.is_none() {
            let service = service(user, flow);
            let of_service = self.charged.entry(service).or_default();
            if *of_service > (share - of_user) / SHARE_DIVISOR {
                return Some(service);
            }
            *of_service += 1;
        }
        self.charged.insert(user, of_user + 1);
        None
    }

    /// Takes out all flows, in an order that is the same in a replay.
    pub(super) fn take(&mut self) -> Vec<([u8; KEY], FlowTotals)> {
        self.charged.clear();
        let mut flows: Vec<_> = self.sums.drain().collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        flows
    }
}

/// The account of a user; the netlink backend does not know the user of a connection that was never listed.
fn account(uid: Option<u32>) -> [u8; KEY] {
    let mut key = [0; KEY];
    put(&mut key, 5, &[DIRECTION_FOLDED]);
    put(&mut key, 8, &uid.unwrap_or(u32::MAX).to_ne_bytes());
    key
}

/// The user's account for one port and one network of peers: 24 bits of IPv4, 127.0.0.0/8, 64 bits of IPv6.
fn service(user: [u8; KEY], flow: &[u8; KEY]) -> [u8; KEY] {
    let [_, _, _, _, family, direction, port @ ..] = flow;
    let mut key = user;
    let peer: [u8; 16] = array_at(flow, 24).unwrap_or([0; 16]);
    let at = if *family == AF_INET { 0 } else { 12 };
    let is_v4 = *family == AF_INET || peer.starts_with(&[0; 8]);
    let network = match peer.get(at) {
        Some(127) if is_v4 => at + 1,
        _ if is_v4 => at + 3,
        _ => 8,
    };
    put(&mut key, 6, port.get(..2).unwrap_or_default());
    put(&mut key, 16, &[*family, *direction]);
    put(&mut key, 24, peer.get(..network).unwrap_or_default());
    key
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Addr;
    use record::rows::Endpoint;

    fn event(uid: Option<u32>, direction: Direction, peer: [u8; 4]) -> SocketEvent {
        let end = |addr, port| Endpoint { addr: Addr::V4(addr), port };
        let (local, peer) = (end([127, 0, 0, 1], 80), end(peer, 80));
        SocketEvent { family: AF_INET, direction, local, peer, uid, ..SocketEvent::EMPTY }
    }

    /// Creates flows from one of many peers.
    fn flood(table: &mut FlowTable, uid: Option<u32>, direction: Direction, count: usize) {
        for number in 0..count {
            let [_, a, b, c] = u32::try_from(number).unwrap().to_be_bytes();
            let event = event(uid, direction, [127, a, b, c]);
            table.sums_of(&event).opened += 1;
        }
    }

    fn folded(flows: &[([u8; KEY], FlowTotals)]) -> u64 {
        flows.iter().filter(|(key, _)| key[5] == DIRECTION_FOLDED).map(|(_, sums)| sums.opened).sum()
    }

    #[test]
    fn issue_10_who_fills_the_table_pays_for_it() {
        let mut table = FlowTable::default();
        flood(&mut table, Some(65_534), Direction::Out, FREE + SHARED);
        flood(&mut table, Some(65_534), Direction::In, 1000);
        for uid in [Some(0), None] {
            for (direction, last) in [(Direction::Out, 1), (Direction::In, 2)] {
                table.sums_of(&event(uid, direction, [10, 0, 0, last])).opened += 7;
            }
        }
        let flows = table.take();
        assert_eq!(flows.iter().filter(|(key, sums)| key[24] == 10 && sums.opened == 14).count(), 2);
        let own = flows.len() - flows.iter().filter(|(key, _)| key[5] == DIRECTION_FOLDED).count() - 2;
        assert_eq!(own as u64 + folded(&flows), (FREE + SHARED + 1000) as u64, "nothing is lost");
        assert!((FREE + SHARED / 16..FREE + SHARED / 4).contains(&own), "{own}");
        flood(&mut table, None, Direction::Out, 1000);
        assert_eq!(folded(&table.take()), 0, "the next interval begins anew");
    }

    #[test]
    fn issue_10_peers_of_one_service_leave_room_for_others_of_its_user() {
        let mut table = FlowTable::default();
        flood(&mut table, Some(0), Direction::In, FREE + SHARED);
        let other = SocketEvent {
            local: Endpoint { port: 22, ..event(None, Direction::In, [0; 4]).local },
            ..event(Some(0), Direction::In, [127, 0, 0, 9])
        };
        table.sums_of(&other).opened += 1;
        table.sums_of(&event(Some(0), Direction::In, [10, 0, 0, 1])).opened += 1;
        table.sums_of(&event(Some(0), Direction::Out, [127, 0, 0, 9])).opened += 1;
        let flows = table.take();
        let folds: Vec<_> = flows.iter().filter(|(key, _)| key[5] == DIRECTION_FOLDED).collect();
        assert_eq!(folds.len(), 1, "only the service's own");
        assert_eq!(folds[0].0[6..8], 80u16.to_ne_bytes());
        assert_eq!(flows.len() as u64 - 1 + folds[0].1.opened, (FREE + SHARED + 3) as u64);
    }
}
