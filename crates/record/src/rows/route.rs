//! Routes, one row per next hop (`routes`).

use crate::{Addr, Field, Key, Kind, LookupId, Show, Table, Value};

/// The table of routes (`routes`).
#[derive(Clone, Copy, Debug)]
pub enum Routes {}

impl Table for Routes {
    type Row<'b> = Route<'b>;
    const NAME: &'static str = "routes";
    const FIELDS: &'static [Field<Routes>] = FIELDS;
}

/// A route with one next hop, or one of the next hops of a multipath route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// Metric: the kernel takes the lowest.
    pub metric: u32,
    /// Source address of packets whose socket is not bound to another one.
    pub prefsrc: Option<Addr>,
    /// Share of the traffic of a multipath route that the next hop gets.
    pub weight: Option<u32>,
    /// Largest packet in bytes, if one is set.
    pub mtu: Option<u32>,
}

impl Route<'_> {
    /// A route of which nothing is known.
    #[rustfmt::skip]
    pub const EMPTY: Route<'static> = Route { netns_id: 0, dst: (Addr::ANY4, 0), destination: b"", source: b"", table_id: 0,
        table: b"", kind: 0, scope: 0, protocol: 0, flags: 0, gateway: None, ifindex: None, metric: 0, prefsrc: None,
        weight: None, mtu: None };
}

/// `RTN_UNSPEC` … `RTN_XRESOLVE`, by number.
#[rustfmt::skip]
const TYPES: &[&str] = &["unspec", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable",
    "prohibit", "throw", "nat", "xresolve", "other"];
/// `RTNH_F_DEAD` … `RTNH_F_TRAP`, by bit.
const FLAGS: &[&str] = &["dead", "pervasive", "onlink", "offload", "linkdown", "unresolved", "trap"];
/// `RTPROT_UNSPEC` … `RTPROT_KEEPALIVED` by number, then the words of [`LATER_PROTOCOLS`].
#[rustfmt::skip]
const PROTOCOLS: &[&str] = &["unspec", "redirect", "kernel", "boot", "static", "other", "other", "other", "gated", "ra",
    "mrt", "zebra", "bird", "dnrouted", "xorp", "ntk", "dhcp", "mrouted", "keepalived", "babel", "openr", "bgp", "isis",
    "ospf", "rip", "eigrp"];
/// Numbers of the last words of [`PROTOCOLS`].
const LATER_PROTOCOLS: [u8; 7] = [42, 99, 186, 187, 188, 189, 192];
const FAMILIES: &[&str] = &["inet", "inet6"];
const SCOPES: &[&str] = &["global", "site", "link", "host", "nowhere", "other"];

type F = Field<Routes>;

fn word(words: &'static [&'static str], at: Option<usize>) -> Value<'static> {
    Value::Name(at.and_then(|at| words.get(at)).unwrap_or(&"other"))
}

fn protocol(number: u8) -> Value<'static> {
    let first_later = PROTOCOLS.len() - LATER_PROTOCOLS.len();
    let later = LATER_PROTOCOLS.iter().position(|later| *later == number).map(|at| first_later + at);
    word(PROTOCOLS, later.or(Some(number.into()).filter(|at| *at < first_later)))
}

fn scope(number: u8) -> Value<'static> {
    word(SCOPES, [0, 200, 253, 254, 255].iter().position(|scope| *scope == number))
}

fn text(text: &[u8]) -> Value<'_> {
    Value::text(Some(text).filter(|text| !text.is_empty()))
}

fn addr(addr: Option<Addr>) -> Value<'static> {
    addr.map_or(Value::Null, Value::Addr)
}

const fn own(name: &'static str, kind: Kind, get: for<'r, 'b> fn(&'r Route<'b>) -> Value<'r>, doc: &'static str) -> F {
    F::own(name, kind, get).doc(doc)
}

#[rustfmt::skip] // Two lines per field.
const FIELDS: &[F] = &[
    F::joined("netns", Kind::Text, LookupId::Netns, |row| Key::Id(row.netns_id))
        .doc("Name of the network namespace; its number where it has none.").show(Show::Wide),
    own("netns_id", Kind::Id, |row| Value::U64(row.netns_id), "Inode of the network namespace."),
    own("family", Kind::Name(FAMILIES), |row| word(FAMILIES, Some(usize::from(row.dst.0.bits() != 32))),
        "Address family of the destination.").kernel("rtm_family").show(Show::Wide),
    own("destination", Kind::Text, |row| text(row.destination),
        "Destination as ip route writes it: default, a prefix, or a host.").kernel("RTA_DST").show(Show::Default),
    own("dst_addr", Kind::Addr, |row| Value::Addr(row.dst.0),
        "Address of the destination, for filters like `dst_addr in 192.0.2.0/24`.").kernel("RTA_DST"),
    own("prefix_len", Kind::Id, |row| Value::U64(row.dst.1.into()),
        "Prefix length of the destination; 0 for a default route.").kernel("rtm_dst_len"),
    own("source", Kind::Text, |row| text(row.source),
        "Prefix that packets must come from; null for any.").kernel("RTA_SRC"),
    own("gateway", Kind::Addr, |row| addr(row.gateway),
        "Address of the next hop; null where none is needed.").kernel("RTA_GATEWAY, RTA_VIA").show(Show::Default),
    F::joined("iface", Kind::Text, LookupId::Ifaces, |row| Key::Pair(row.netns_id, row.ifindex.unwrap_or(0)))
        .doc("Interface that packets leave by; null for routes without one.").kernel("RTA_OIF").show(Show::Default),
    own("ifindex", Kind::Id, |row| Value::number(row.ifindex), "Number of that interface.").kernel("RTA_OIF"),
    own("metric", Kind::Count, |row| Value::U64(row.metric.into()),
        "Metric: of routes to one destination the kernel takes the lowest.").kernel("RTA_PRIORITY").show(Show::Default),
    own("table", Kind::Text, |row| text(row.table),
        "Routing table: main, local, default, or its number.").kernel("RTA_TABLE").show(Show::Default),
    own("table_id", Kind::Id, |row| Value::U64(row.table_id.into()), "Number of that table.").kernel("RTA_TABLE"),
    own("scope", Kind::Name(SCOPES), |row| scope(row.scope),
        "Distance of the destination; global for every IPv6 route.").kernel("rtm_scope").show(Show::Default),
    own("protocol", Kind::Name(PROTOCOLS), |row| protocol(row.protocol),
        "What installed the route; `other` without a word here.").kernel("rtm_protocol").show(Show::Default),
    own("protocol_number", Kind::Id, |row| Value::U64(row.protocol.into()), "Number of what installed the route.")
        .kernel("rtm_protocol"),
    own("type", Kind::Name(TYPES), |row| word(TYPES, Some(row.kind.into())),
        "What happens to packets: unicast, local, broadcast, blackhole, and so on.").kernel("rtm_type").show(Show::Default),
    own("prefsrc", Kind::Addr, |row| addr(row.prefsrc),
        "Source address of packets whose socket is not bound to another one.").kernel("RTA_PREFSRC").show(Show::Wide),
    own("weight", Kind::Count, |row| Value::number(row.weight),
        "Share of the traffic that this next hop of a multipath route gets.").kernel("rtnh_hops").show(Show::Wide),
    own("mtu", Kind::Bytes, |row| Value::number(row.mtu), "Largest packet, if the route limits it.").kernel("RTAX_MTU"),
    own("flags", Kind::Words(FLAGS), |row| Value::Bits(row.flags, FLAGS),
        "State of the next hop: dead, linkdown, onlink, …").kernel("rtnh_flags").show(Show::Wide),
];
