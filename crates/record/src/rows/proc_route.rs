//! Routes as the files of /proc list them: a typed row for the face `netstat`, without a field table.

use crate::Addr;

/// A route with the words and numbers of /proc/net/route and /proc/net/ipv6_route, even if netlink reported it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcRoute<'a> {
    /// The destination network.
    pub target: Addr,
    /// Its prefix length.
    pub prefix_len: u8,
    /// The next hop; unspecified without a next hop, or if it has another address family.
    pub gateway: Addr,
    /// `RTF_…`: see [`rtf`].
    pub flags: u32,
    /// Its metric.
    pub metric: u32,
    /// Reference count (IPv6 only).
    pub refs: u32,
    /// Use count, which is always 0 in both kernel tables.
    pub uses: u32,
    /// Name of the interface, or `*`; unescaped.
    pub iface: &'a [u8],
    /// The advertised MSS plus 40 bytes for headers; 0 if not set.
    pub mss: u32,
    /// The window; 0 if not set.
    pub window: u32,
    /// Initial round-trip time in ms; 0 if not set.
    pub rtt_ms: u32,
}

/// Flags of a route: include/uapi/linux/route.h and include/uapi/linux/ipv6_route.h.
#[allow(missing_docs)] // The kernel's names, explained in its headers.
pub mod rtf {
    pub const UP: u32 = 0x1;
    pub const GATEWAY: u32 = 0x2;
    pub const HOST: u32 = 0x4;
    pub const REINSTATE: u32 = 0x8;
    pub const DYNAMIC: u32 = 0x10;
    pub const MODIFIED: u32 = 0x20;
    pub const MTU: u32 = 0x40;
    pub const WINDOW: u32 = 0x80;
    pub const IRTT: u32 = 0x100;
    pub const REJECT: u32 = 0x200;
    pub const NOTCACHED: u32 = 0x400;
    pub const DEFAULT: u32 = 0x1_0000;
    pub const ALLONLINK: u32 = 0x2_0000;
    pub const ADDRCONF: u32 = 0x4_0000;
    pub const NONEXTHOP: u32 = 0x20_0000;
    pub const EXPIRES: u32 = 0x40_0000;
    pub const CACHE: u32 = 0x100_0000;
    pub const FLOW: u32 = 0x200_0000;
    pub const POLICY: u32 = 0x400_0000;
    pub const LOCAL: u32 = 0x8000_0000;
}
