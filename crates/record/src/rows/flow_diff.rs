//! Comparison of flows between rounds. The rates of a flow are the sums of its connections' rates, because the sums of
//! the transferred bytes fall when a connection ends.

use super::diff::{Counters, DiffTable, Identity, RowDiff};
use super::{Direction, Flow, Flows};
use crate::hash::{mix_addr, mix_into};
use crate::{Addr, Proto};

/// The data saved from a flow, to show it after it has disappeared.
#[derive(Clone, Copy, Debug)]
pub struct SavedFlow {
    key: Key,
    guessed: bool,
    connections: u64,
}

/// The identity of a flow within its namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    peer_netns_id: u64,
    proto: Proto,
    direction: Direction,
    local_addr: Addr,
    local_port: Option<u16>,
    peer_addr: Addr,
    peer_port: Option<u16>,
    ifindex: u32,
}

impl Key {
    fn from_flow(row: &Flow<'_>) -> Key {
        let Flow { peer_netns_id, proto, direction, local_addr, local_port, peer_addr, peer_port, ifindex, .. } = *row;
        Key { peer_netns_id, proto, direction, local_addr, local_port, peer_addr, peer_port, ifindex }
    }
}

impl DiffTable for Flows {
    type Saved = SavedFlow;

    fn identity(row: &Flow<'_>, secret: u64) -> Identity {
        let port = |port: Option<u16>| port.map_or(1 << 16, u64::from);
        let kind = u64::from(row.ifindex) << 16 | u64::from(row.proto as u8) << 8 | u64::from(row.direction as u8);
        let ends = mix_addr(mix_addr(secret, &row.local_addr), &row.peer_addr);
        let ports = port(row.local_port) << 32 | port(row.peer_port);
        Identity { netns_id: row.netns_id, id: mix_into(mix_into(mix_into(ends, ports), kind), row.peer_netns_id) }
    }

    fn is_same(kept: &SavedFlow, row: &Flow<'_>) -> bool {
        kept.key == Key::from_flow(row)
    }

    fn counters(_row: &Flow<'_>) -> Option<Counters> {
        None
    }

    fn save(row: &Flow<'_>) -> SavedFlow {
        SavedFlow { key: Key::from_flow(row), guessed: row.guessed, connections: row.connections }
    }

    fn with_diff<'w>(row: &'w Flow<'_>, diff: &'w RowDiff) -> Flow<'w> {
        Flow { diff: Some(diff), ..*row }
    }

    fn vanished_row<'w>(identity: Identity, kept: &'w SavedFlow, diff: &'w RowDiff) -> Flow<'w> {
        let Key { peer_netns_id, proto, direction, local_addr, local_port, peer_addr, peer_port, ifindex } = kept.key;
        Flow {
            netns_id: identity.netns_id,
            peer_netns_id,
            proto,
            direction,
            guessed: kept.guessed,
            local_addr,
            local_port,
            peer_addr,
            peer_port,
            ifindex,
            connections: kept.connections,
            diff: Some(diff),
            ..Flow::EMPTY
        }
    }
}
