//! Flows that wait for their hosts' names.

use record::rows::{Direction, Flow, FlowStates};
use record::{Addr, Owner, Proto};

/// The parts of a flow that lstf shows.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    direction: Direction,
    local_addr: Addr,
    local_port: Option<u16>,
    peer_addr: Addr,
    peer_port: Option<u16>,
    connections: u64,
    owner: Option<Owner>,
}

const NO_STATES: FlowStates = [0; 14];

impl Kept {
    pub(super) fn new(flow: &Flow<'_>) -> Kept {
        Kept {
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
            netns_id: 0,
            peer_netns_id: 0,
            proto: Proto::Tcp,
            direction: self.direction,
            guessed: false,
            local_addr: self.local_addr,
            local_port: self.local_port,
            peer_addr: self.peer_addr,
            peer_port: self.peer_port,
            ifindex: 0,
            connections: self.connections,
            states: &NO_STATES,
            owners: self.owner.as_slice(),
            peer_owners: &[],
            bytes_in: None,
            bytes_out: None,
            retrans_total: None,
            recv_q: 0,
            send_q: 0,
            bytes_in_per_s: None,
            bytes_out_per_s: None,
            rtt: None,
            diff: None,
        }
    }
}
