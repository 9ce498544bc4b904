//! A flow in the compact form used while grouping: 36 bytes.
//!
//! A million sockets may be a million flows. IPv4 addresses are part of the row; a pair with an IPv6 address is in a
//! separate list. Data that few flows have (three different states, queued bytes, owners) is also in separate lists.

use crate::tally::Tally;
use record::rows::Direction;
use record::{Addr, Proto};

/// Identifies a flow: sockets with the same key are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) local: Addr,
    pub(crate) peer: Addr,
    /// Index into the list of places.
    pub(crate) place: u32,
    /// Local and peer port; 0 if folded.
    pub(crate) ports: [u16; 2],
    pub(crate) kind: Kind,
}

/// Protocol, direction and the folded ends, in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Kind(u8);

const UDP: u8 = 1;
const OUT: u8 = 1 << 1;
const UNKNOWN: u8 = 1 << 2;

impl Kind {
    pub(crate) fn new(proto: Proto, direction: Direction) -> Kind {
        let proto = if proto == Proto::Udp { UDP } else { 0 };
        Kind(match direction {
            Direction::In => proto,
            Direction::Out => proto | OUT,
            Direction::Unknown => proto | UNKNOWN,
        })
    }

    pub(crate) fn proto(self) -> Proto {
        if self.0 & UDP == 0 { Proto::Tcp } else { Proto::Udp }
    }

    pub(crate) fn direction(self) -> Direction {
        match (self.0 & OUT, self.0 & UNKNOWN) {
            (0, 0) => Direction::In,
            (0, _) => Direction::Unknown,
            _ => Direction::Out,
        }
    }

    pub(crate) fn folds_local(self) -> bool {
        self.0 & OUT != 0
    }

    pub(crate) fn folds_peer(self) -> bool {
        self.0 & (OUT | UNKNOWN) == 0
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

/// Instead of an index: the flow has no entry in that list.
pub(crate) const NONE: u32 = u32::MAX;

/// One flow, packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed {
    /// Both addresses, or the index of the pair and [`NONE`] (see `wide`).
    pub(crate) ends: [u32; 2],
    pub(crate) place: u32,
    /// Counts of the tally.
    pub(crate) counts: [u32; 2],
    /// Index of its queues and sums, or [`NONE`].
    pub(crate) sums: u32,
    /// Index of its first owner, or [`NONE`].
    pub(crate) first_owner: u32,
    pub(crate) ports: [u16; 2],
    pub(crate) kind: Kind,
    /// States of the tally.
    pub(crate) states: u8,
    /// True if `ends` is an index.
    pub(crate) wide: bool,
    pub(crate) guessed: bool,
}

const _: () = assert!(size_of::<Packed>() == 36);

impl Packed {
    /// Returns the connections by state.
    pub(crate) fn tally(&self) -> Tally {
        Tally { counts: self.counts, states: self.states }
    }

    /// Stores the connections by state.
    pub(crate) fn set_tally(&mut self, tally: Tally) {
        self.counts = tally.counts;
        self.states = tally.states;
    }
}

/// Returns both addresses as numbers if both are IPv4.
#[inline]
pub(crate) fn narrow(local: Addr, peer: Addr) -> Option<[u32; 2]> {
    match (local, peer) {
        (Addr::V4(l), Addr::V4(p)) => Some([u32::from_be_bytes(l), u32::from_be_bytes(p)]),
        _ => None,
    }
}
