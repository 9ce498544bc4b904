//! Flows: which hosts talk to this one, over which service, and who opened the connections.
//!
//! Sockets in, flows out: [`FlowSource`] reads the listeners, then the connections, and folds those that share
//! their hosts, their service and their direction into one row while they are read; no connection is kept. Pure, on
//! rows: knows no kernel interface, no process table, no output. Start reading at [`FlowSource`], the rule is in
//! [`direction`](fn@direction).
//!
//! # Which sockets are connections
//! Every TCP socket that has a peer and does not listen (half-open ones too: they have their own columns), and every
//! connected UDP socket. An unconnected UDP socket is a service, as a listener is. Unix sockets never count.
//!
//! # Several namespaces
//! The two ends of a connection inside one namespace are two flows. If those of all namespaces are read
//! ([`FlowOptions::netns_addresses`]), the two ends of a connection between two of them are one flow, seen by the end
//! that opened it (direction `out`), with the owners of both, provided that no third socket on the host has the same
//! two addresses and ports. Addresses that were translated on the way (NAT) are not followed.
//!
//! # The row counts
//! Two kinds of rows are met on the way, and each is in one place. Of the sockets that the second step saw, those
//! in a flow are `grouped`, the others (tested false, or no connection) `filtered`; `failed`, `duplicates` and `lost`
//! are what their source says. The flows handed out are counted in `seen` as well and nowhere else: what becomes of
//! them (`emitted`, `filtered`, `cut`) is for the caller to add, and then the row counts balance. The listeners of the
//! first step are read to know, not to show, and are not counted.
#![forbid(unsafe_code)]

mod chunks;
mod connection;
mod direction;
mod grouping;
mod listeners;
mod mirror;
mod netns_addresses;
mod owner_lists;
mod packed;
mod source;
mod steps;
mod tally;

pub use direction::{Ephemeral, Ranges, Verdict, direction, direction_of_lstf};
pub use grouping::Grouping;
pub use listeners::{Listeners, Service};
pub use netns_addresses::NetnsAddresses;
pub use owner_lists::OWNERS_MAX;
pub use source::{Conjunct, FlowOptions, FlowSource, Rule};

use record::rows::Socket;
use record::{Proto, State};

/// True if the row is one end of a connection, which is what flows are made of.
pub fn is_connection(row: &Socket<'_>) -> bool {
    match row.proto {
        Proto::Tcp => row.state != State::LISTEN && !row.peer.is_none(),
        Proto::Udp => row.state == State::ESTABLISHED,
        _ => false,
    }
}

/// True if the row takes what anybody sends: a TCP listener or a bound UDP socket without a peer.
pub fn is_service(row: &Socket<'_>) -> bool {
    match row.proto {
        Proto::Tcp => row.state == State::LISTEN,
        Proto::Udp => row.state != State::ESTABLISHED && row.local.port != 0,
        _ => false,
    }
}
