//! Routes, one row per next hop (`routes`).

use crate::kernel_words::{KernelWords, kernel_words};
use crate::table::table;
use crate::{Addr, Key, Link, LookupId, RowLink, Show, Value};

/// A route with one next hop, or one of the next hops of a multipath route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Route<'b> {
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// The destination and its prefix length.
    pub dst: (Addr, u8),
    /// The destination as text: `default`, `192.0.2.0/24`, `192.0.2.1`.
    pub destination: &'b [u8],
    /// The prefix that packets must come from, as text; empty without one.
    pub source: &'b [u8],
    /// Number of the routing table.
    pub table_id: u32,
    /// The table as text: `main`, `local`, `default`, or the number.
    pub table: &'b [u8],
    /// `RTN_…` (include/uapi/linux/rtnetlink.h).
    pub kind: u8,
    /// `RT_SCOPE_…`
    pub scope: u8,
    /// `RTPROT_…`
    pub protocol: u8,
    /// `RTNH_F_…` of the next hop.
    pub flags: u32,
    /// Address of the next hop, possibly of the other family.
    pub gateway: Option<Addr>,
    /// Number of the outgoing interface.
    pub ifindex: Option<u32>,
    /// Metric: the kernel prefers the lowest.
    pub metric: u32,
    /// Source address of packets whose socket is not bound to a different address.
    pub prefsrc: Option<Addr>,
    /// The next hop's share of the traffic of a multipath route.
    pub weight: Option<u32>,
    /// MTU in bytes, if set.
    pub mtu: Option<u32>,
}

/// `RTN_…`
const TYPES: KernelWords = kernel_words!(0 "unspec", 1 "unicast", 2 "local", 3 "broadcast", 4 "anycast", 5 "multicast",
    6 "blackhole", 7 "unreachable", 8 "prohibit", 9 "throw", 10 "nat", 11 "xresolve");
/// `RT_SCOPE_…`
const SCOPES: KernelWords = kernel_words!(0 "global", 200 "site", 253 "link", 254 "host", 255 "nowhere");
/// `RTPROT_…`
const PROTOCOLS: KernelWords = kernel_words!(0 "unspec", 1 "redirect", 2 "kernel", 3 "boot", 4 "static", 8 "gated",
    9 "ra", 10 "mrt", 11 "zebra", 12 "bird", 13 "dnrouted", 14 "xorp", 15 "ntk", 16 "dhcp", 17 "mrouted",
    18 "keepalived", 42 "babel", 99 "openr", 186 "bgp", 187 "isis", 188 "ospf", 189 "rip", 192 "eigrp");
/// `RTNH_F_DEAD` … `RTNH_F_TRAP`, by bit.
const FLAGS: &[&str] = &["dead", "pervasive", "onlink", "offload", "linkdown", "unresolved", "trap"];

const LINK: Link<Routes> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex.unwrap_or(0)),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: false,
};

table! {
    /// The table of routes (`routes`).
    pub enum Routes of Route = "routes";

    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// Address family of the destination.
    family: Name(Addr::FAMILIES) = own(|row| Value::Name(row.dst.0.family())),
        kernel "rtm_family", show Show::Wide;
    /// Destination as `ip route` writes it: default, a prefix, or a host.
    destination: Text = own(|row| Value::nonempty(row.destination)), kernel "RTA_DST", show Show::Default;
    /// Address of the destination, for filters like `dst_addr in 192.0.2.0/24`.
    dst_addr: Addr = own(|row| Value::Addr(row.dst.0)), kernel "RTA_DST";
    /// Prefix length of the destination; 0 for a default route.
    prefix_len: Id = own(|row| Value::U64(row.dst.1.into())), kernel "rtm_dst_len";
    /// Source prefix that packets must match; null for any.
    source: Text = own(|row| Value::nonempty(row.source)), kernel "RTA_SRC";
    /// Address of the next hop; null if the route needs none.
    gateway: Addr = own(|row| row.gateway.map_or(Value::Null, Value::Addr)),
        kernel "RTA_GATEWAY, RTA_VIA", show Show::Default, link &LINK;
    /// Outgoing interface; null for routes without one.
    iface: Text = joined(LookupId::Ifaces, |row| Key::Pair(row.netns_id, row.ifindex.unwrap_or(0))),
        kernel "RTA_OIF", show Show::Default;
    /// Index of that interface.
    ifindex: Id = own(|row| Value::number(row.ifindex)), kernel "RTA_OIF";
    /// Metric; among routes to one destination the kernel uses the one with the lowest.
    metric: Count = own(|row| Value::U64(row.metric.into())), kernel "RTA_PRIORITY", show Show::Default;
    /// Routing table: main, local, default, or its number.
    table: Text = own(|row| Value::nonempty(row.table)), kernel "RTA_TABLE", show Show::Default;
    /// Number of that table.
    table_id: Id = own(|row| Value::U64(row.table_id.into())), kernel "RTA_TABLE";
    /// Distance of the destination; global for every IPv6 route.
    scope: Name(SCOPES.names) = own(|row| SCOPES.value(row.scope)), kernel "rtm_scope", show Show::Default;
    /// What installed the route; `other` for a protocol without a name here.
    protocol: Name(PROTOCOLS.names) = own(|row| PROTOCOLS.value(row.protocol)),
        kernel "rtm_protocol", show Show::Default;
    /// Protocol number of what installed the route.
    protocol_number: Id = own(|row| Value::U64(row.protocol.into())), kernel "rtm_protocol";
    /// What happens to packets: unicast, local, broadcast, blackhole, and so on.
    type: Name(TYPES.names) = own(|row| TYPES.value(row.kind)), kernel "rtm_type", show Show::Default;
    /// Preferred source address, used by sockets that are not bound to an address.
    prefsrc: Addr = own(|row| row.prefsrc.map_or(Value::Null, Value::Addr)), kernel "RTA_PREFSRC", show Show::Wide;
    /// Weight of this next hop in a multipath route: its share of the traffic.
    weight: Count = own(|row| Value::number(row.weight)), kernel "rtnh_hops", show Show::Wide;
    /// MTU of the route, if it sets one.
    mtu: Bytes = own(|row| Value::number(row.mtu)), kernel "RTAX_MTU";
    /// State of the next hop: dead, linkdown, onlink, …
    flags: Words(FLAGS) = own(|row| Value::Bits(row.flags, FLAGS)), kernel "rtnh_flags", show Show::Wide;
}
