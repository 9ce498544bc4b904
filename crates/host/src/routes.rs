//! The routing tables: IPv4 from a dump of rtnetlink, IPv6 from its file.
//!
//! Rows are streamed: hosts with a million routes exist. They contain the same data as /proc/net/route and ipv6_route.
//! For IPv4 it is computed from the messages (net/ipv4/fib_trie.c, `fib_route_seq_show`), with a tenth of the kernel's
//! work. For IPv6 that is impossible: messages contain neither `Ref` nor the kernel's "no route" rows.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Attr, AttrError, Attrs, DumpEnd, Query, Request, prefix};
use record::Addr;
use record::rows::{ProcRoute, Route, rtf};
use sys::{Host, NetNs, SysError};

use crate::inside::read_inside;
use crate::words::{hex_u8, hex_u32, hex16, words};
use crate::{HostError, Ifaces};

mod source;
#[cfg(test)]
mod tests;

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RT_TABLE_DEFAULT: u32 = 253;
const RT_TABLE_MAIN: u32 = 254;
const RT_TABLE_LOCAL: u32 = 255;
const RTM_F_CLONED: u32 = 0x200;
/// include/uapi/linux/in_route.h
const RTCF_REDIRECTED: u32 = 0x0004_0000;
/// RTNH_F_…: the lower bits of the flags of a route without `struct rtnexthop`.
const RTNH_FLAGS: u32 = 0xff;
const RTN_BROADCAST: u8 = 3;
const RTN_MULTICAST: u8 = 5;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTAX_MTU: u16 = 2;
const RTAX_WINDOW: u16 = 3;
const RTAX_RTT: u16 = 4;
const RTAX_ADVMSS: u16 = 8;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `struct rtmsg`: family, destination bits, source bits, tos, table, protocol, scope, type: u8 each; flags u32.
const RTMSG: usize = 12;
/// `struct rtnexthop`: length u16, flags u8, hops u8, interface s32; attributes follow.
const RTNEXTHOP: usize = 8;

const IPV6_ROUTE: &str = "/proc/thread-self/net/ipv6_route";

/// A route decoded from a message of rtnetlink, with empty text cells.
struct Decoded<'b> {
    /// The route with the next hop outside of `hops`.
    route: Route<'static>,
    source: (Addr, u8),
    /// RTA_METRICS: attributes RTAX_….
    metrics: &'b [u8],
    /// RTA_MULTIPATH: `struct rtnexthop` with attributes, one after the other.
    hops: &'b [u8],
}

/// The route of `family` in a message; `None` for other messages, and for cached exceptions, which are not routes.
fn decode<'b>(part: &AnswerMessage<'b>, family: u8) -> Result<Option<Decoded<'b>>, AttrError> {
    let head = part.payload.get(..RTMSG).unwrap_or_default();
    let &[of, dst_len, src_len, _, table, protocol, scope, kind, ref flags @ ..] = head else { return Ok(None) };
    let flags = prefix::u32_at(flags, 0).unwrap_or(0);
    if part.kind != RTM_NEWROUTE || of != family || flags & RTM_F_CLONED != 0 {
        return Ok(None);
    }
    let any = if family == AF_INET { Addr::ANY4 } else { Addr::ANY6 };
    let is_of_family = |address: &Addr| address.bits() == any.bits();
    let dst = (any, dst_len.min(any.bits()));
    let table_id = table.into();
    let route = Route { dst, table_id, protocol, scope, kind, flags: flags & RTNH_FLAGS, ..Route::default() };
    let mut decoded = Decoded { route, source: (any, src_len.min(any.bits())), metrics: &[], hops: &[] };
    let route = &mut decoded.route;
    for attr in Attrs::new(part.payload.get(RTMSG..).unwrap_or_default()) {
        let attr = attr?;
        match attr.kind {
            RTA_DST => route.dst.0 = address(attr.payload).filter(is_of_family).unwrap_or(any),
            RTA_SRC => decoded.source.0 = address(attr.payload).filter(is_of_family).unwrap_or(any),
            RTA_PREFSRC => route.prefsrc = address(attr.payload),
            RTA_PRIORITY => route.metric = attr.u32()?,
            RTA_TABLE => route.table_id = attr.u32()?,
            RTA_METRICS => decoded.metrics = attr.payload,
            RTA_MULTIPATH => decoded.hops = attr.payload,
            _ => put_hop(route, &attr)?,
        }
    }
    decoded.route.mtu = decoded.metric(RTAX_MTU);
    Ok(Some(decoded))
}

fn put_hop(route: &mut Route<'_>, attr: &Attr<'_>) -> Result<(), AttrError> {
    match attr.kind {
        RTA_OIF => route.ifindex = Some(attr.u32()?),
        RTA_GATEWAY => route.gateway = address(attr.payload),
        // `struct rtvia`: family u16, address.
        RTA_VIA => route.gateway = address(attr.payload.get(2..).unwrap_or_default()),
        _ => {}
    }
    Ok(())
}

fn address(bytes: &[u8]) -> Option<Addr> {
    let v4 = || Some(Addr::V4(bytes.try_into().ok()?));
    bytes.try_into().ok().map(Addr::V6).or_else(v4)
}

impl<'b> Decoded<'b> {
    /// The route once per next hop, if it is a multipath route.
    fn hops(&self) -> impl Iterator<Item = Route<'static>> + use<'_, 'b> {
        let mut rest = self.hops;
        std::iter::from_fn(move || {
            let (length, hops) = (prefix::u16_at(rest, 0)?, *rest.get(3)?);
            let hop = rest.get(RTNEXTHOP..usize::from(length))?;
            let (flags, weight) = ((*rest.get(2)?).into(), Some(u32::from(hops) + 1));
            let mut route = Route { flags, weight, ifindex: prefix::u32_at(rest, 4), ..self.route };
            Attrs::new(hop).flatten().for_each(|attr| _ = put_hop(&mut route, &attr));
            rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
            Some(route)
        })
    }

    fn metric(&self, kind: u16) -> Option<u32> {
        Attrs::new(self.metrics).flatten().find(|attr| attr.kind == kind)?.u32().ok()
    }
}

/// Passes the routes of the IPv4 main table to `each`, in the kernel's order, until it stops.
///
/// Reads the namespace with inode `netns`: `inside`, or the calling thread's; `ifaces` must contain its interfaces. The
/// kernel sends all tables; all but the main table are skipped here. The result says whether the table changed during
/// the dump.
pub fn read4(
    host: &Host,
    netns: u64,
    inside: Option<&NetNs>,
    ifaces: &Ifaces,
    mut each: impl FnMut(&ProcRoute<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, HostError> {
    dump(host, netns, inside, AF_INET, |part| {
        match decode(part, AF_INET).ok().flatten().and_then(|route| proc_route(&route)) {
            Some((mut route, oif)) => {
                route.iface = oif.and_then(|index| ifaces.name(netns, index)).unwrap_or(b"*");
                each(&route)
            }
            None => ControlFlow::Continue(()),
        }
    })
}

/// A destination with a cached route: a router redirected this host to a different gateway (ICMP redirect), or for IPv6
/// perhaps only its path MTU is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedRoute {
    /// The destination.
    pub to: Addr,
    /// The gateway.
    pub gateway: Addr,
    /// Index of the interface.
    pub ifindex: u32,
}

/// Bound: cached routes of a reading. Beyond: further ones are left out; earlier ones are findings. By: a router that
/// sends redirects.
const CACHED_MAX: usize = 4096;

/// Reads the destinations that ICMP redirects lead through other gateways, of both families. For IPv6 the kernel does
/// not distinguish them from destinations with a known path MTU, whose gateway also is in a route.
///
/// Two dumps of all routes; the kernel cannot send cached ones alone.
pub fn cached(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Vec<CachedRoute>, HostError> {
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        dump(host, netns, inside, family, |part| {
            found.extend(cached_route(part, family));
            if found.len() < CACHED_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// The cached route in a message; `None` for other messages, and for IPv4 if it is not redirected.
fn cached_route(part: &AnswerMessage<'_>, family: u8) -> Option<CachedRoute> {
    let head = part.payload.get(..RTMSG)?;
    let flags = prefix::u32_at(head, 8)?;
    let wanted = if family == AF_INET { RTM_F_CLONED | RTCF_REDIRECTED } else { RTM_F_CLONED };
    if part.kind != RTM_NEWROUTE || head.first() != Some(&family) || flags & wanted != wanted {
        return None;
    }
    let (mut route, mut to) = (Route::default(), None);
    for attr in Attrs::new(part.payload.get(RTMSG..)?).flatten() {
        match attr.kind {
            RTA_DST => to = address(attr.payload),
            _ => put_hop(&mut route, &attr).ok()?,
        }
    }
    Some(CachedRoute { to: to?, gateway: route.gateway?, ifindex: route.ifindex? })
}

fn dump(
    host: &Host,
    netns: u64,
    inside: Option<&NetNs>,
    family: u8,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, HostError> {
    let mut request = Request::dump(RTM_GETROUTE);
    request.append(&[family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let key = format!("{} routes@{netns}", if family == AF_INET { "ipv4" } else { "ipv6" });
    let ask = Query { what: "routes", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    Ok(netlink::dump(host, &ask, each)?)
}

// A route of the main table that /proc/net/route shows, with the interface as a number. For several next hops that file
// shows the first.
fn proc_route(decoded: &Decoded<'_>) -> Option<(ProcRoute<'static>, Option<u32>)> {
    let route = decoded.hops().next().unwrap_or(decoded.route);
    if route.table_id != RT_TABLE_MAIN || matches!(route.kind, RTN_BROADCAST | RTN_MULTICAST) {
        return None;
    }
    let gateway = match route.gateway {
        Some(Addr::V4(gateway)) => (Addr::V4(gateway), true),
        // A gateway of another family has no cell, only its flag, which depends on its first four bytes.
        Some(Addr::V6(gateway)) => (Addr::ANY4, gateway.first_chunk() != Some(&[0; 4])),
        None => (Addr::ANY4, false),
    };
    let (target, prefix_len) = route.dst;
    let proc_route = ProcRoute {
        target,
        prefix_len,
        gateway: gateway.0,
        flags: flags4(route.kind, prefix_len) | if gateway.1 { rtf::GATEWAY } else { 0 },
        metric: route.metric,
        refs: 0,
        uses: 0,
        iface: b"*",
        mss: decoded.metric(RTAX_ADVMSS).filter(|mss| *mss != 0).map_or(0, |mss| mss.wrapping_add(40)),
        window: decoded.metric(RTAX_WINDOW).unwrap_or(0),
        // The kernel stores eighths of a millisecond.
        rtt_ms: decoded.metric(RTAX_RTT).unwrap_or(0) >> 3,
    };
    Some((proc_route, route.ifindex))
}

fn flags4(kind: u8, prefix_len: u8) -> u32 {
    let rejected = if matches!(kind, RTN_UNREACHABLE | RTN_PROHIBIT) { rtf::REJECT } else { 0 };
    let host = if prefix_len >= 32 { rtf::HOST } else { 0 };
    rtf::UP | rejected | host
}

/// The IPv6 routes of a namespace in all tables, as the kernel's file.
#[derive(Debug, Default)]
pub struct Routes6 {
    text: Vec<u8>,
}

impl Routes6 {
    /// Reads the file of the namespace with inode `netns`: of `inside`, or of the calling thread's. Fails on a kernel
    /// without IPv6.
    pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Routes6, SysError> {
        let mut text = Vec::new();
        read_inside(host, IPV6_ROUTE, netns, inside, &mut text)?;
        Ok(Routes6 { text })
    }

    /// The routes in the kernel's order. Malformed lines are left out.
    pub fn iter(&self) -> impl Iterator<Item = ProcRoute<'_>> {
        self.text.split(|&b| b == b'\n').filter_map(route6)
    }
}

// Parses target, bits, source, bits, gateway, metric, references, uses, flags, interface.
fn route6(line: &[u8]) -> Option<ProcRoute<'_>> {
    let mut words = words(line);
    let (target, prefix_len) = (hex16(words.next()?)?, hex_u8(words.next()?)?);
    let (_source, _bits) = (words.next()?, words.next()?);
    Some(ProcRoute {
        target: Addr::V6(target),
        prefix_len,
        gateway: Addr::V6(hex16(words.next()?)?),
        metric: hex_u32(words.next()?)?,
        refs: hex_u32(words.next()?)?,
        uses: hex_u32(words.next()?)?,
        flags: hex_u32(words.next()?)?,
        iface: words.next().unwrap_or_default(),
        mss: 0,
        window: 0,
        rtt_ms: 0,
    })
}

/// Decodes any bytes as messages and lines about routes. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_routes(data: &[u8]) {
    let part = AnswerMessage { kind: RTM_NEWROUTE, flags: 0, payload: data, block: 0 };
    for family in [AF_INET, AF_INET6] {
        let _ = cached_route(&part, family);
        let Ok(Some(decoded)) = decode(&part, family) else { continue };
        let (dst, prefix_len) = decoded.route.dst;
        assert!(prefix_len <= dst.bits() && decoded.hops().count() <= data.len() / RTNEXTHOP);
        let _ = proc_route(&decoded);
        let mut text = source::RouteText::default();
        text.put(&decoded);
        assert!(!text.row(decoded.route).destination.is_empty());
    }
    let _ = data.split(|&b| b == b'\n').filter_map(route6).count();
}
