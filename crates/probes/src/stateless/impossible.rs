//! Reasons why a port cannot be published without state.

use super::{Publish, Transport};
use record::Addr;
use std::fmt;

/// A reason, with advice.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Impossible {
    /// The notation is malformed.
    NotUnderstood {
        /// The text of the user.
        written: String,
        /// The fault in it.
        why: &'static str,
    },
    /// The backend is a name: its address may change, but the rules would not follow.
    Dynamic {
        /// The text of the user.
        written: String,
    },
    /// The host has no address of that family, or several, and the user named none.
    NoAddress {
        /// The requested port.
        publish: Publish,
        /// Addresses that the user may mean.
        candidates: Vec<Addr>,
    },
    /// IPv4 on one side and IPv6 on the other cannot be rewritten into each other.
    MixedFamilies(Publish),
    /// One port for two backends: only state shows whose connection a packet belongs to.
    Overlapping(Publish, Publish),
    /// Two ports for one backend: an answer does not show which of them the client used.
    SameBackend(Publish, Publish),
    /// The protocol carries addresses and further ports inside its data.
    Helper {
        /// The requested port.
        publish: Publish,
        /// The protocol's name.
        speaks: &'static str,
    },
    /// The backend's address is this host's own.
    BackendIsHere(Publish),
    /// The backend is a loopback, multicast or wildcard address, which no router reaches.
    BackendUnroutable(Publish),
    /// The public address is a loopback, multicast or wildcard address, not one of a single host.
    PublicUnusable(Publish),
}

/// Ports whose protocols need a helper, because they open further ports.
pub(super) const HELPERS: &[(Transport, u16, &str)] = &[
    (Transport::Tcp, 21, "FTP"),
    (Transport::Udp, 69, "TFTP"),
    (Transport::Tcp, 554, "RTSP"),
    (Transport::Tcp, 1720, "H.323"),
    (Transport::Tcp, 1723, "PPTP"),
    (Transport::Tcp, 5060, "SIP"),
    (Transport::Udp, 5060, "SIP"),
    (Transport::Tcp, 6667, "IRC"),
];

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::NotUnderstood { written, why } => {
                write!(f, "cannot publish `{}`: {why}", written.escape_debug())
            }
            Impossible::Dynamic { written } => write!(
                f,
                "cannot publish to `{}`: it is not an IP address, and rules without state cannot follow a changing \
                    name; use the address, or keep stateful NAT",
                written.escape_debug()
            ),
            Impossible::NoAddress { publish, candidates } if candidates.is_empty() => {
                write!(
                    f,
                    "cannot publish {publish}: this host has no address of that family; write ADDR:PORT:BACKEND:PORT"
                )
            }
            Impossible::NoAddress { publish, candidates } => {
                write!(
                    f,
                    "cannot publish {publish}: the address that clients use is ambiguous; write ADDR:PORT:BACKEND:PORT \
                    with one of"
                )?;
                candidates.iter().try_for_each(|addr| write!(f, " {addr}"))
            }
            Impossible::MixedFamilies(publish) => {
                write!(f, "cannot publish {publish}: IPv4 on one side and IPv6 on the other needs a proxy")
            }
            Impossible::Overlapping(one, other) => {
                write!(f, "cannot publish {one} and {other}: one port for two backends needs connection state")
            }
            Impossible::SameBackend(one, other) => write!(
                f,
                "cannot publish {one} and {other}: the backend's answer does not show which of the two the client \
                    used; give the backend a second port or address"
            ),
            Impossible::Helper { publish, speaks } => write!(
                f,
                "cannot publish {publish}: {speaks} opens further ports that only a helper of stateful NAT can find; \
                    if another protocol uses this port, add --no-helper"
            ),
            Impossible::BackendIsHere(publish) => {
                write!(
                    f,
                    "cannot publish {publish}: the backend is this host itself; make it listen on that port, or \
                        redirect with state"
                )
            }
            Impossible::BackendUnroutable(publish) => {
                write!(f, "cannot publish {publish}: packets are not routed to such a backend address")
            }
            Impossible::PublicUnusable(publish) => {
                write!(
                    f,
                    "cannot publish {publish}: the published address must be a single host address, not a wildcard, \
                    loopback or multicast address"
                )
            }
        }
    }
}

impl std::error::Error for Impossible {}
