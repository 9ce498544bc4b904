//! The routing tables: IPv4 by a dump of rtnetlink, IPv6 from its file.
//!
//! Rows are streamed: hosts with a million routes exist. They carry what /proc/net/route and ipv6_route say; for IPv4
//! that is worked out of the messages (net/ipv4/fib_trie.c, `fib_route_seq_show`), with a tenth of the kernel's work.
//! For IPv6 it cannot be: `Ref` and the kernel's own "no route" rows are in no message.
use std::ops::ControlFlow;

use netlink::{Ask, Attr, Attrs, DumpEnd, Part, Request, prefix};
use record::Addr;
use record::rows::{Route, rtf};
use sys::{Host, NetNs, SysError};

use crate::inside::read_inside;
use crate::words::{hex_u8, hex_u32, hex16, words};
use crate::{HostError, Ifaces};

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RT_TABLE_MAIN: u8 = 254;
const RTN_BROADCAST: u8 = 3;
const RTN_MULTICAST: u8 = 5;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_VIA: u16 = 18;
const RTAX_WINDOW: u16 = 3;
const RTAX_RTT: u16 = 4;
const RTAX_ADVMSS: u16 = 8;
const AF_INET: u8 = 2;
/// `struct rtmsg`: family, destination bits, source bits, tos, table, protocol, scope, type: u8 each; flags u32.
const RTMSG: usize = 12;
/// `struct rtnexthop`: length u16, flags u8, hops u8, interface s32; attributes follow.
const RTNEXTHOP: usize = 8;

const IPV6_ROUTE: &str = "/proc/thread-self/net/ipv6_route";

/// Hands the routes of the IPv4 main table to `each`, in the kernel's order, until it breaks.
///
/// Of the namespace whose inode is `netns`: of `inside`, or of the calling thread's; `ifaces` has its interfaces.
/// All tables cross from the kernel, the others are skipped here. A table that changed under the reading is told in
/// the result.
pub fn read4(
    host: &Host,
    netns: u64,
    inside: Option<&NetNs>,
    ifaces: &Ifaces,
    mut each: impl FnMut(&Route<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, HostError> {
    let mut request = Request::dump(RTM_GETROUTE);
    request.body(&[AF_INET, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let key = format!("ipv4 routes@{netns}");
    let ask = Ask { what: "routes", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    let end = netlink::dump(host, &ask, |part| match route4(part) {
        Some((mut route, oif)) => {
            route.iface = oif.and_then(|index| ifaces.name(netns, index)).unwrap_or(b"*");
            each(&route)
        }
        None => ControlFlow::Continue(()),
    })?;
    Ok(end)
}

// A route of the main table that is shown, its interface still a number. `None` for all else.
fn route4(part: &Part<'_>) -> Option<(Route<'static>, Option<u32>)> {
    let head = part.payload.get(..RTMSG)?;
    let &[family, prefix_len, _, _, table, _, _, kind, ..] = head else { return None };
    let shown = kind != RTN_BROADCAST && kind != RTN_MULTICAST;
    if part.kind != RTM_NEWROUTE || family != AF_INET || table != RT_TABLE_MAIN || !shown {
        return None;
    }
    let mut route = Route {
        target: Addr::ANY4,
        prefix_len: prefix_len.min(32),
        gateway: Addr::ANY4,
        flags: flags4(kind, prefix_len),
        metric: 0,
        refs: 0,
        uses: 0,
        iface: b"*",
        mss: 0,
        window: 0,
        rtt_ms: 0,
    };
    let mut oif = None;
    for attr in Attrs::new(part.payload.get(RTMSG..)?).flatten() {
        match attr.kind {
            RTA_DST => route.target = Addr::V4(attr.array().unwrap_or_default()),
            RTA_PRIORITY => route.metric = attr.u32().unwrap_or(0),
            RTA_METRICS => put_metrics(&mut route, &attr),
            RTA_MULTIPATH => first_hop(&mut route, &mut oif, attr.payload),
            _ => put_hop(&mut route, &mut oif, &attr),
        }
    }
    Some((route, oif))
}

fn flags4(kind: u8, prefix_len: u8) -> u32 {
    let rejected = if matches!(kind, RTN_UNREACHABLE | RTN_PROHIBIT) { rtf::REJECT } else { 0 };
    let host = if prefix_len >= 32 { rtf::HOST } else { 0 };
    rtf::UP | rejected | host
}

fn put_hop(route: &mut Route<'_>, oif: &mut Option<u32>, attr: &Attr<'_>) {
    match attr.kind {
        RTA_OIF => *oif = attr.u32().ok(),
        RTA_GATEWAY => {
            route.gateway = Addr::V4(attr.array().unwrap_or_default());
            route.flags |= rtf::GATEWAY;
        }
        // A gateway of another family (u16) has no cell, only its flag; that by its first four bytes.
        RTA_VIA if attr.payload.get(2..6).is_some_and(|start| start != [0; 4]) => route.flags |= rtf::GATEWAY,
        _ => {}
    }
}

// Of several next hops the kernel's file shows the first.
fn first_hop(route: &mut Route<'_>, oif: &mut Option<u32>, hops: &[u8]) {
    let length = prefix::u16_at(hops, 0).map_or(0, usize::from);
    *oif = prefix::u32_at(hops, 4);
    for attr in Attrs::new(hops.get(RTNEXTHOP..length).unwrap_or_default()).flatten() {
        put_hop(route, oif, &attr);
    }
}

fn put_metrics(route: &mut Route<'_>, metrics: &Attr<'_>) {
    for attr in metrics.nested().flatten() {
        let number = attr.u32().unwrap_or(0);
        match attr.kind {
            RTAX_ADVMSS if number != 0 => route.mss = number.wrapping_add(40),
            RTAX_WINDOW => route.window = number,
            // The kernel keeps eighths.
            RTAX_RTT => route.rtt_ms = number >> 3,
            _ => {}
        }
    }
}

/// The IPv6 routes of a namespace, all tables, as the kernel's file has them.
#[derive(Debug, Default)]
pub struct Routes6 {
    text: Vec<u8>,
}

impl Routes6 {
    /// Reads the file: of the namespace with inode `netns`, that of `inside` or of the calling thread. An error where
    /// the kernel has no IPv6.
    pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Routes6, SysError> {
        let mut text = Vec::new();
        read_inside(host, IPV6_ROUTE, netns, inside, &mut text)?;
        Ok(Routes6 { text })
    }

    /// In the kernel's order. Lines that make no sense are left out.
    pub fn iter(&self) -> impl Iterator<Item = Route<'_>> {
        self.text.split(|&b| b == b'\n').filter_map(route6)
    }
}

// Target, bits, source, bits, gateway, metric, references, uses, flags, interface.
fn route6(line: &[u8]) -> Option<Route<'_>> {
    let mut words = words(line);
    let (target, prefix_len) = (hex16(words.next()?)?, hex_u8(words.next()?)?);
    let (_source, _bits) = (words.next()?, words.next()?);
    Some(Route {
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

/// Takes any bytes as messages and lines about routes. For the fuzzer: it must neither panic nor fail to end.
pub fn fuzz_routes(data: &[u8]) {
    let part = Part { kind: RTM_NEWROUTE, flags: 0, payload: data, block: 0 };
    if let Some((route, _)) = route4(&part) {
        assert!(route.prefix_len <= 32 && route.flags & rtf::UP != 0);
    }
    let _ = data.split(|&b| b == b'\n').filter_map(route6).count();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    #[test]
    fn lines_of_ipv6_route() {
        let line = b"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 \
                     fe800000000000000000000000000001 ffffffff 00000003 00000000 80200003     eth0";
        let route = route6(line).unwrap();
        assert_eq!(route.target, "2001:db8::".parse().unwrap());
        assert_eq!((route.prefix_len, route.metric, route.refs, route.flags), (64, u32::MAX, 3, 0x8020_0003));
        assert_eq!((route.gateway, route.iface), ("fe80::1".parse().unwrap(), &b"eth0"[..]));
        assert_eq!(route6(b"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 fe80"), None);
        assert_eq!(route6(b""), None);
    }

    #[test]
    fn root_routes_say_what_the_kernels_file_says() {
        testkit::require_root!();
        let lab = Lab::new("routes");
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "va"]);
        lab.ip(&["link", "set", "va", "up"]);
        lab.ip(&["link", "set", "vb", "up"]);
        for route in [
            "default via 192.0.2.9",
            "unreachable 198.51.100.0/24 metric 7",
            "203.0.113.0/24 via 192.0.2.8 metric 4000000000 advmss 1200 window 10 rtt 200ms",
            "10.1.0.0/16 nexthop via 192.0.2.8 nexthop via 192.0.2.7",
            "10.2.0.0/16 via inet6 fe80::1 dev va",
            "10.3.0.1 dev vb table 99",
            "multicast 224.1.1.0/24 dev va",
        ] {
            lab.ip(&[&["route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
        }
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let read = |host: &Host, inside: Option<&NetNs>| {
            let mut ifaces = Ifaces::new();
            ifaces.add(host, netns.inode(), inside).unwrap();
            let mut lines = Vec::new();
            read4(host, netns.inode(), inside, &ifaces, |r| {
                let (Addr::V4(target), Addr::V4(gateway)) = (r.target, r.gateway) else { panic!("{r:?}") };
                let [target, gateway] = [target, gateway].map(u32::from_ne_bytes);
                let mask = u32::MAX.checked_shl(32 - u32::from(r.prefix_len)).unwrap_or(0).to_be();
                let iface = String::from_utf8_lossy(r.iface);
                lines.push(format!(
                    "{iface}\t{target:08X}\t{gateway:08X}\t{:04X}\t0\t0\t{}\t{mask:08X}\t{}\t{}\t{}",
                    r.flags, r.metric, r.mss, r.window, r.rtt_ms
                ));
                ControlFlow::Continue(())
            })
            .unwrap();
            lines
        };
        let ours = read(&host, Some(&netns));
        host.finish().unwrap();
        let file = lab.command("cat").arg("/proc/net/route").output().unwrap();
        let file = String::from_utf8(file.stdout).unwrap();
        let theirs: Vec<&str> = file.lines().skip(1).map(str::trim_end).collect();
        assert_eq!(ours, theirs);
        assert!(ours.len() >= 6, "{ours:?}");
        assert_eq!(read(&Host::replaying(&tape).unwrap(), None), ours);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, text in "([0-9a-f]{31,33} [0-9a-f]{2} x 0 [0-9a-f]{32} 0 1 2 3 [a-z]{0,3}\n?){0,3}") {
            fuzz_routes(&bytes);
            fuzz_routes(text.as_bytes());
        }

        #[test]
        fn any_attributes(kind in 0u16..20, payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut message = vec![AF_INET, 24, 0, 0, RT_TABLE_MAIN, 0, 0, 1, 0, 0, 0, 0];
            message.extend_from_slice(&((payload.len() + 4) as u16).to_ne_bytes());
            message.extend_from_slice(&kind.to_ne_bytes());
            message.extend_from_slice(&payload);
            fuzz_routes(&message);
        }
    }
}
