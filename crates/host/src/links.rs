//! Interfaces with their counters and addresses: two dumps of rtnetlink, and a file for IPv6.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Attr, Attrs, Conversation, DumpEnd, Query, Request, prefix};
use record::rows::{Link, LinkAddr, LinkAddr6, LinkMap, LinkStats, LinkXdp};
use sys::{Host, NetNs, SysError};

use crate::HostError;
use crate::inside::read_inside;
use crate::link_kinds;
use crate::words::{hex_u8, hex16, words};

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;

// include/uapi/linux/if_link.h
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_MAP: u16 = 14;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_TARGET_NETNSID: u16 = 46;
const IFLA_XDP: u16 = 43;
/// `struct ifinfomsg`: family u8, pad u8, type u16, index s32, flags u32, change u32.
const IFINFOMSG: usize = 16;

// include/uapi/linux/if_addr.h
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;
const IFA_BROADCAST: u16 = 4;
/// `struct ifaddrmsg`: family u8, prefix length u8, flags u8, scope u8, index u32.
const IFADDRMSG: usize = 8;
const AF_INET: u8 = 2;

/// Maximum number of attempts at a dump that the kernel interrupted because an interface came or went.
const TRIES: u32 = 3;

/// Maximum number of interfaces kept, and of addresses of each family. [`Links::over`] counts the others.
///
/// Bound: interfaces of a namespace, and addresses of each family. Beyond: further ones are left out and counted (exit
/// code 3). By: anyone who may make interfaces.
pub const LINKS_MAX: usize = 1 << 20;

/// The file with the IPv6 addresses.
const IF_INET6: &str = "/proc/thread-self/net/if_inet6";

/// The interfaces of a namespace.
#[derive(Debug, Default)]
pub struct Links {
    /// Interfaces, in the kernel's order.
    pub links: Vec<Link>,
    /// IPv4 addresses in the kernel's order.
    pub addrs: Vec<LinkAddr>,
    /// IPv6 addresses in the order of the kernel's file.
    pub addrs6: Vec<LinkAddr6>,
    /// Number of interfaces and addresses beyond the limit of 1 Mi each, which are not kept.
    pub over: u64,
    /// True if the tables changed during every attempt: entries may be missing.
    pub interrupted: bool,
}

/// Reads the interfaces of one namespace repeatedly. The socket is opened at the first read: later reads need no
/// privilege to enter the namespace.
#[derive(Debug, Default)]
pub struct LinksReader {
    conversation: Conversation,
}

impl LinksReader {
    /// Like [`Links::read`]; call it for the same namespace each time.
    pub fn read(&mut self, host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Links, HostError> {
        Links::read_by(&mut self.conversation, host, netns, inside)
    }
}

impl Links {
    /// Interfaces and IPv4 addresses of the namespace with inode `netns`: of `inside`, or of the calling thread's.
    ///
    /// Two dumps, some 5 µs per interface. Needs no privilege, except to enter another namespace.
    pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Links, HostError> {
        LinksReader::default().read(host, netns, inside)
    }

    /// Reads only the IPv4 addresses: one dump.
    pub fn read_inet(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Links, HostError> {
        let mut all = Links::default();
        all.interrupted = all.read_addrs(&mut Conversation::new(), host, netns, inside)?.interrupted;
        Ok(all)
    }

    fn read_by(
        conversation: &mut Conversation,
        host: &Host,
        netns: u64,
        inside: Option<&NetNs>,
    ) -> Result<Links, HostError> {
        let mut all = Links::default();
        for _ in 0..TRIES {
            all = Links::default();
            let links = all.read_links(conversation, host, netns, inside)?;
            let ends = [links, all.read_addrs(conversation, host, netns, inside)?];
            all.interrupted = ends.iter().any(|end| end.interrupted);
            if !all.interrupted {
                break;
            }
        }
        Ok(all)
    }

    /// Adds the IPv6 addresses, from the kernel's file: rtnetlink sends them in another order, and without the scope
    /// that tools show. Fails on a kernel without IPv6.
    pub fn read_inet6(&mut self, host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(), SysError> {
        let mut text = Vec::new();
        read_inside(host, IF_INET6, netns, inside, &mut text)?;
        for addr in text.split(|&b| b == b'\n').filter_map(addr6) {
            keep(&mut self.addrs6, addr, &mut self.over);
        }
        Ok(())
    }

    /// Reads the MTU of the other end of a veth pair, which may be in another namespace; `None` if it is not known
    /// there by a number, or does not exist.
    ///
    /// Needs CAP_NET_ADMIN in the other end's namespace.
    pub fn read_peer_mtu(host: &Host, netns: u64, link: &Link) -> Result<Option<u32>, HostError> {
        if link.is_lower_elsewhere && link.lower_nsid.is_none() {
            return Ok(None);
        }
        let mut request = Request::for_one(RTM_GETLINK);
        let mut head = [0; IFINFOMSG];
        head[4..8].copy_from_slice(&link.lower.to_ne_bytes());
        request.append(&head);
        if let Some(nsid) = link.lower_nsid {
            request.attr_u32(IFLA_TARGET_NETNSID, nsid);
        }
        let key = format!("peer of link {}@{netns}", link.index);
        let ask = Query { what: "interfaces", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
        let mut mtu = None;
        netlink::exchange(host, &ask, |part| {
            mtu = self::link(part).map(|peer| peer.mtu);
            ControlFlow::Continue(())
        })?;
        Ok(mtu)
    }

    fn read_links(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        netns: u64,
        inside: Option<&NetNs>,
    ) -> Result<DumpEnd, HostError> {
        let mut request = Request::dump(RTM_GETLINK);
        request.append(&[0; IFINFOMSG]);
        let key = format!("links with counters@{netns}");
        let ask =
            Query { what: "interfaces", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
        Ok(conversation.exchange(host, &ask, |part| {
            if let Some(link) = link(part) {
                keep(&mut self.links, link, &mut self.over);
            }
            ControlFlow::Continue(())
        })?)
    }

    fn read_addrs(
        &mut self,
        conversation: &mut Conversation,
        host: &Host,
        netns: u64,
        inside: Option<&NetNs>,
    ) -> Result<DumpEnd, HostError> {
        let mut request = Request::dump(RTM_GETADDR);
        request.append(&[AF_INET, 0, 0, 0, 0, 0, 0, 0]);
        let key = format!("ipv4 addresses@{netns}");
        let ask =
            Query { what: "addresses", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
        Ok(conversation.exchange(host, &ask, |part| {
            if let Some(addr) = addr4(part) {
                keep(&mut self.addrs, addr, &mut self.over);
            }
            ControlFlow::Continue(())
        })?)
    }
}

fn keep<T>(all: &mut Vec<T>, one: T, over: &mut u64) {
    if all.len() < LINKS_MAX { all.push(one) } else { *over += 1 }
}

// `None` for other messages and for interfaces without a name, which nothing could refer to.
fn link(part: &AnswerMessage<'_>) -> Option<Link> {
    if part.kind != RTM_NEWLINK {
        return None;
    }
    let mut link = Link {
        hardware: prefix::u16_at(part.payload, 2)?,
        index: prefix::u32_at(part.payload, 4)?,
        flags: prefix::u32_at(part.payload, 8)?,
        ..Link::default()
    };
    for attr in Attrs::new(part.payload.get(IFINFOMSG..)?).flatten() {
        match attr.kind {
            IFLA_IFNAME => link.name = attr.c_str().into(),
            IFLA_ADDRESS => link.address = attr.payload.into(),
            IFLA_MTU => link.mtu = attr.u32().unwrap_or(0),
            IFLA_LINK => link.lower = attr.u32().unwrap_or(0),
            IFLA_MASTER => link.master = attr.u32().unwrap_or(0),
            IFLA_TXQLEN => link.tx_queue = attr.u32().unwrap_or(0),
            IFLA_MAP => link.map = map(&attr),
            IFLA_LINKINFO => link_kinds::add(&mut link, &attr),
            IFLA_STATS64 => link.stats = stats(&attr),
            IFLA_AF_SPEC => link.hop_limit = link_kinds::hop_limit(&attr),
            IFLA_LINK_NETNSID => {
                // A negative number: the other namespace has no number here.
                link.is_lower_elsewhere = true;
                link.lower_nsid = attr.i32().ok().and_then(|nsid| u32::try_from(nsid).ok());
            }
            IFLA_XDP => link.xdp = xdp(&attr),
            _ => {}
        }
    }
    (!link.name.is_empty()).then_some(link)
}

// IFLA_XDP: nested attributes; without a program the mode is 0.
fn xdp(attr: &Attr<'_>) -> Option<LinkXdp> {
    const IFLA_XDP_ATTACHED: u16 = 2;
    const IFLA_XDP_PROG_ID: u16 = 4;
    let mut xdp = LinkXdp::default();
    for one in attr.nested().flatten() {
        match one.kind {
            IFLA_XDP_ATTACHED => xdp.mode = one.u8().ok()?,
            IFLA_XDP_PROG_ID => xdp.program = one.u32().ok()?,
            _ => {}
        }
    }
    (xdp.mode != 0).then_some(xdp)
}

// `struct rtnl_link_ifmap`: three u64, u16, two u8.
fn map(attr: &Attr<'_>) -> LinkMap {
    let number = |at| prefix::u64_at(attr.payload, at).unwrap_or(0);
    LinkMap {
        mem_start: number(0),
        mem_end: number(8),
        base_addr: number(16),
        irq: prefix::u16_at(attr.payload, 24).unwrap_or(0),
        dma: prefix::u8_at(attr.payload, 26).unwrap_or(0),
        port: prefix::u8_at(attr.payload, 27).unwrap_or(0),
    }
}

// `struct rtnl_link_stats64`: u64 members; newer kernels append more. Number 8 is `multicast`.
fn stats(attr: &Attr<'_>) -> Option<LinkStats> {
    let number = |n: usize| prefix::u64_at(attr.payload, n * 8);
    let later = |n: usize| number(n).unwrap_or(0);
    Some(LinkStats {
        rx_packets: number(0)?,
        tx_packets: number(1)?,
        rx_bytes: number(2)?,
        tx_bytes: number(3)?,
        rx_errors: number(4)?,
        tx_errors: number(5)?,
        rx_dropped: number(6)?,
        tx_dropped: number(7)?,
        collisions: later(9),
        rx_length_errors: later(10),
        rx_over_errors: later(11),
        rx_crc_errors: later(12),
        rx_frame_errors: later(13),
        rx_fifo_errors: later(14),
        rx_missed_errors: later(15),
        tx_aborted_errors: later(16),
        tx_carrier_errors: later(17),
        tx_fifo_errors: later(18),
        tx_heartbeat_errors: later(19),
        tx_window_errors: later(20),
        rx_compressed: later(21),
        tx_compressed: later(22),
    })
}

fn addr4(part: &AnswerMessage<'_>) -> Option<LinkAddr> {
    // A kernel that does not filter by family sends all of them.
    if part.kind != RTM_NEWADDR || prefix::u8_at(part.payload, 0)? != AF_INET {
        return None;
    }
    let (mut local, mut peer, mut broadcast, mut label) = (None, None, [0; 4], None);
    for attr in Attrs::new(part.payload.get(IFADDRMSG..)?).flatten() {
        match attr.kind {
            IFA_LOCAL => local = attr.array().ok(),
            IFA_ADDRESS => peer = attr.array().ok(),
            IFA_BROADCAST => broadcast = attr.array().unwrap_or_default(),
            IFA_LABEL => label = Some(attr.c_str()),
            _ => {}
        }
    }
    // The kernel leaves out the address 0.
    let local = local.unwrap_or_default();
    Some(LinkAddr {
        index: prefix::u32_at(part.payload, 4)?,
        label: label.unwrap_or_default().into(),
        local,
        peer: peer.unwrap_or_default(),
        broadcast,
        prefix_len: prefix::u8_at(part.payload, 1)?,
    })
}

// `fe80000000000000… 02 40 20 80 eth0`: address, index, prefix length, scope, flags, name.
fn addr6(line: &[u8]) -> Option<LinkAddr6> {
    let mut words = words(line);
    let addr = hex16(words.next()?)?;
    let _index = words.next()?;
    let (prefix_len, scope, flags) = (hex_u8(words.next()?)?, hex_u8(words.next()?)?, hex_u8(words.next()?)?);
    Some(LinkAddr6 { iface: words.next()?.into(), addr, prefix_len, scope, flags })
}

/// Decodes any bytes as messages and lines about interfaces. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_links(data: &[u8]) {
    for kind in [RTM_NEWLINK, RTM_NEWADDR] {
        let part = AnswerMessage { kind, flags: 0, payload: data, block: 0 };
        let _ = (link(&part), addr4(&part));
    }
    for line in data.split(|&b| b == b'\n') {
        if let Some(addr) = addr6(line) {
            assert!(!addr.iface.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    #[test]
    fn lines_of_if_inet6() {
        let line = b"fe8000000000000000fc00fffe000001 04 40 20 80     eth0";
        let addr = addr6(line).unwrap();
        assert_eq!((&*addr.iface, addr.prefix_len, addr.scope), (&b"eth0"[..], 64, 0x20));
        assert_eq!(addr.addr, [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0xfc, 0, 0xff, 0xfe, 0, 0, 1]);
        assert_eq!(addr6(b"fe80 04 40 20 80 eth0"), None);
        assert_eq!(addr6(b"fe8000000000000000fc00fffe000001 04 40 20 80"), None);
    }

    #[test]
    fn messages_that_end_early() {
        let part = |kind, payload: &'static [u8]| AnswerMessage { kind, flags: 0, payload, block: 0 };
        assert_eq!(link(&part(RTM_NEWLINK, &[0; 11])), None);
        assert_eq!(link(&part(RTM_NEWLINK, &[0; 16])), None, "no name");
        assert_eq!(addr4(&part(RTM_NEWADDR, &[2, 24, 0, 0, 1, 0])), None);
        assert_eq!(addr4(&part(RTM_NEWADDR, &[10, 24, 0, 0, 1, 0, 0, 0])), None, "another family");
        assert_eq!(stats(&Attr { kind: IFLA_STATS64, payload: &[1; 63] }), None);
        assert_eq!(stats(&Attr { kind: IFLA_STATS64, payload: &[0; 64] }), Some(LinkStats::default()));
        let payload = &[5, 0, 2, 0, 1, 0, 0, 0, 8, 0, 4, 0, 7, 0, 0, 0];
        assert_eq!(xdp(&Attr { kind: IFLA_XDP, payload }), Some(LinkXdp { mode: 1, program: 7 }));
        assert_eq!(xdp(&Attr { kind: IFLA_XDP, payload: &[5, 0, 2, 0, 0] }), None);
    }

    #[test]
    fn root_interfaces_of_another_namespace_and_their_replay() {
        testkit::require_root!();
        let lab = Lab::new("links");
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        lab.ip(&["addr", "add", "192.0.2.1/24", "brd", "+", "dev", "va"]);
        lab.ip(&["addr", "add", "192.0.2.2/24", "dev", "va", "label", "va:7"]);
        lab.ip(&["addr", "add", "10.0.0.1", "peer", "10.0.0.2", "dev", "vb"]);
        lab.ip(&["addr", "add", "2001:db8::1/64", "dev", "va", "nodad"]);
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let mut live = Links::read(&host, netns.inode(), Some(&netns)).unwrap();
        live.read_inet6(&host, netns.inode(), Some(&netns)).unwrap();
        host.finish().unwrap();
        let va = live.links.iter().find(|link| *link.name == *b"va").unwrap();
        assert_eq!((va.hardware, va.mtu, va.tx_queue, va.address.len()), (1, 1500, 1000, 6));
        let vb = live.links.iter().find(|link| *link.name == *b"vb").unwrap();
        assert_eq!((va.lower, vb.lower), (vb.index, va.index));
        assert_eq!(va.stats.unwrap().rx_packets, 0);
        let labels: Vec<&[u8]> = live.addrs.iter().map(|addr| &*addr.label).collect();
        assert!(labels.contains(&&b"va"[..]) && labels.contains(&&b"va:7"[..]), "{labels:?}");
        let peer = live.addrs.iter().find(|addr| addr.local == [10, 0, 0, 1]).unwrap();
        assert_eq!((peer.peer, peer.prefix_len), ([10, 0, 0, 2], 32));
        let first = live.addrs.iter().find(|addr| addr.local == [192, 0, 2, 1]).unwrap();
        assert_eq!((first.broadcast, first.index), ([192, 0, 2, 255], va.index));
        assert!(live.addrs6.iter().any(|addr| *addr.iface == *b"va" && addr.prefix_len == 64 && addr.scope == 0));
        let replay = Host::open_replay(&tape).unwrap();
        let mut again = Links::read(&replay, netns.inode(), None).unwrap();
        again.read_inet6(&replay, netns.inode(), None).unwrap();
        assert_eq!((again.links, again.addrs, again.addrs6), (live.links, live.addrs, live.addrs6));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, text in "([0-9a-f]{31,33} [0-9a-f]{0,3} [0-9a-fx]{2} 20 80 [a-z]{0,3}\n?){0,3}") {
            fuzz_links(&bytes);
            fuzz_links(text.as_bytes());
        }

        #[test]
        fn any_attributes(kind in 0u16..30, payload in prop::collection::vec(any::<u8>(), 0..220)) {
            let mut message = vec![0; IFINFOMSG];
            message.extend_from_slice(&((payload.len() + 4) as u16).to_ne_bytes());
            message.extend_from_slice(&kind.to_ne_bytes());
            message.extend_from_slice(&payload);
            fuzz_links(&message);
            fuzz_links(&message[IFINFOMSG - IFADDRMSG..]);
        }
    }
}
