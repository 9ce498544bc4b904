//! Flows that wait for their hosts' names.

use record::rows::{Direction, Flow};
use record::{Addr, Owner};

/// The parts of a flow that lstf shows.
#[derive(Clone, Copy)]
pub(super) struct WaitingFlow {
    direction: Direction,
    local_addr: Addr,
    local_port: Option<u16>,
    peer_addr: Addr,
    peer_port: Option<u16>,
    connections: u64,
    owner: Option<Owner>,
}

impl WaitingFlow {
    pub(super) fn new(flow: &Flow<'_>) -> WaitingFlow {
        WaitingFlow {
            direction: flow.direction,
            local_addr: flow.local_addr,
            local_port: flow.local_port,
            peer_addr: flow.peer_addr,
            peer_port: flow.peer_port,
            connections: flow.connections,
            owner: flow.owners.first().copied(),
        }
    }

    /// A flow with the values that lstf shows.
    pub(super) fn flow(&self) -> Flow<'_> {
        Flow {
            direction: self.direction,
            local_addr: self.local_addr,
            local_port: self.local_port,
            peer_addr: self.peer_addr,
            peer_port: self.peer_port,
            connections: self.connections,
            owners: self.owner.as_slice(),
            ..Flow::EMPTY
        }
    }
}
