//! Next hops of routes, and the ways to peers.

use record::Addr;

/// A next hop of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gateway {
    /// Its address; `None` if the destinations are on the link itself.
    pub addr: Option<Addr>,
    /// Index of the interface.
    pub ifindex: u32,
    /// The destination of the route: `default`, `192.0.2.0/24`.
    pub to: String,
    /// The route's metric: the kernel prefers the lowest.
    pub metric: u32,
    /// True if the route has several next hops.
    pub is_shared: bool,
    /// True if the route says that the gateway is on the link although no address of the interface shows it.
    pub is_onlink: bool,
}

/// A destination that an ICMP redirect leads through another gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectSeen {
    /// The destination.
    pub to: Addr,
    /// The gateway.
    pub gateway: Addr,
    /// Index of the interface.
    pub ifindex: u32,
}

/// The way to a peer: the most specific route of the main table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSeen {
    /// Length of its prefix; `None` if no route leads there.
    pub prefix_len: Option<u8>,
    /// The route.
    pub hop: Gateway,
}

/// Most peers of each kind, those that answer and those that do not, whose way is searched for in a namespace.
///
/// Bound: peers whose way `doctor` searches for (`sample::peers_are_bounded`). Beyond: further peers prove and refute
/// nothing. By: a user who connects to many peers.
pub const PATHS_MAX: usize = 16;
