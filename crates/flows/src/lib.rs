//! Flows: which hosts talk to this one, over which service, and who opened the connections.
//!
//! Turns sockets into flows: [`FlowSource`] reads the listeners, then the connections, and folds those with the same
//! hosts, service, direction and bound interface into one row while they are read; connections are not kept. It only
//! works on rows and knows no kernel interface, process table or output. Start reading at [`FlowSource`]; the rule is
//! in [`direction`](fn@direction).
//!
//! # Which sockets are connections
//! Every TCP socket that has a peer and does not listen (also half-open ones, which have separate columns), and every
//! connected UDP socket. An unconnected UDP socket is a service, like a listener. Unix sockets never count.
//!
//! # Several namespaces
//! The two ends of a connection inside one namespace are two flows. If all namespaces are read
//! ([`FlowOptions::netns_addresses`]), the two ends of a connection between two of them are one flow, seen from the end
//! that opened it (direction `out`), with the owners of both, unless a third socket on the host has the same two
//! addresses and ports. Connections with translated addresses (NAT) are not joined.
//!
//! # The row counts
//! The row counts include two kinds of rows, each counted once. Of the sockets that the second step saw, those in a
//! flow count as `grouped`, the others (rejected by a test, or not a connection) as `filtered`; `failed`, `duplicates`
//! and `lost` are taken from their source. The flows handed out also count as `seen`, but nowhere else: the caller must
//! add how they end (`emitted`, `filtered`, `cut`), and then the row counts balance. The listeners of the first step
//! are not shown and not counted.
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

/// True if the row is one end of a connection, so that it becomes part of a flow.
pub fn is_connection(row: &Socket<'_>) -> bool {
    match row.proto {
        Proto::Tcp => row.state != State::LISTEN && !row.peer.is_unset(),
        Proto::Udp => row.state == State::ESTABLISHED,
        _ => false,
    }
}

/// True if the row accepts data from any sender: a TCP listener or a bound UDP socket without a peer.
pub fn is_service(row: &Socket<'_>) -> bool {
    match row.proto {
        Proto::Tcp => row.state == State::LISTEN,
        Proto::Udp => row.state != State::ESTABLISHED && row.local.port != 0,
        _ => false,
    }
}
