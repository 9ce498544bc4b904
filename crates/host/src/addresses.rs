//! Local addresses of a network namespace, from rtnetlink.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Attrs, Query, Request};
use record::Addr;
use sys::{Host, NetNs};

use crate::HostError;

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;

// include/uapi/linux/if_addr.h
const IFA_ADDRESS: u16 = 1;
/// IPv4 only; on a point-to-point link it differs from IFA_ADDRESS, which is the peer's address.
const IFA_LOCAL: u16 = 2;

/// `struct ifaddrmsg`: family u8, prefixlen u8, flags u8, scope u8, index u32.
const IFADDRMSG: usize = 8;

/// Maximum number of attempts at a dump that the kernel interrupted because an address came or went.
const TRIES: u32 = 3;

/// Passes the addresses of the namespace with inode `netns` to `each`: of `inside`, or of the calling thread's. An
/// address may be passed twice.
///
/// One dump, 1 µs per address. Needs no privilege, except to enter another namespace. Does not report the additional
/// addresses that a route of type `local` makes local.
pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>, each: &mut dyn FnMut(Addr)) -> Result<(), HostError> {
    let mut request = Request::dump(RTM_GETADDR);
    request.append(&[0; IFADDRMSG]);
    let key = format!("addresses@{netns}");
    let ask = Query { what: "addresses", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    for _ in 0..TRIES {
        let end = netlink::dump(host, &ask, |part| {
            if let Some(addr) = address(part) {
                each(addr);
            }
            ControlFlow::Continue(())
        })?;
        if !end.interrupted {
            break;
        }
    }
    Ok(())
}

/// The IPv4 address of an interface and its network mask, if it has one. If it has several, this is the first, like in
/// the ioctl `SIOCGIFADDR`. Reads the calling thread's namespace, whose inode is `netns`.
pub fn network_of(host: &Host, netns: u64, ifindex: u32) -> Result<Option<([u8; 4], u32)>, HostError> {
    let mut request = Request::dump(RTM_GETADDR);
    request.append(&[0; IFADDRMSG]);
    let key = format!("addresses@{netns}");
    let ask = Query { what: "addresses", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
    let mut found = None;
    netlink::dump(host, &ask, |part| {
        if found.is_none() && index(part) == Some(ifindex) {
            if let Some(Addr::V4(octets)) = address(part) {
                let bits = part.payload.get(1).copied().unwrap_or(0).min(32);
                found = Some((octets, u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)));
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

// The number of the interface that has the address.
fn index(part: &AnswerMessage<'_>) -> Option<u32> {
    part.payload.get(4..8)?.try_into().ok().map(u32::from_ne_bytes)
}

// `None` for other messages, other families and messages that are too short.
fn address(part: &AnswerMessage<'_>) -> Option<Addr> {
    if part.kind != RTM_NEWADDR {
        return None;
    }
    let attrs = Attrs::new(part.payload.get(IFADDRMSG..)?);
    let mut found = None;
    for attr in attrs.flatten() {
        match attr.kind {
            IFA_LOCAL => return addr_of(attr.payload),
            IFA_ADDRESS => found = addr_of(attr.payload),
            _ => {}
        }
    }
    found
}

fn addr_of(bytes: &[u8]) -> Option<Addr> {
    match bytes.len() {
        4 => bytes.try_into().ok().map(Addr::V4),
        16 => bytes.try_into().ok().map(Addr::V6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn messages_that_make_no_sense_have_no_address() {
        let part = |kind, payload: &'static [u8]| AnswerMessage { kind, flags: 0, payload, block: 0 };
        assert_eq!(address(&part(RTM_NEWADDR, &[0; 7])), None);
        assert_eq!(address(&part(RTM_NEWADDR, &[0; 8])), None);
        assert_eq!(address(&part(3, &[0; 64])), None);
        const BOTH: &[u8] = &[2, 32, 0, 0, 9, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 2, 8, 0, 2, 0, 10, 0, 0, 1];
        const SHORT: &[u8] = &[2, 32, 0, 0, 9, 0, 0, 0, 7, 0, 1, 0, 10, 0, 0, 0];
        if cfg!(target_endian = "little") {
            assert_eq!(address(&part(RTM_NEWADDR, BOTH)), Some(Addr::V4([10, 0, 0, 1])));
            assert_eq!(address(&part(RTM_NEWADDR, SHORT)), None);
        }
    }

    #[test]
    fn root_another_namespace_and_its_replay() {
        testkit::require_root!();
        let lab = Lab::new("addresses");
        for addr in ["192.0.2.7/24", "2001:db8::7/64"] {
            lab.ip(&["addr", "add", addr, "dev", "lo"]);
        }
        lab.ip(&["addr", "add", "192.0.2.8", "peer", "192.0.2.9", "dev", "lo"]);
        let netns = NetNs::open_path(&lab.path()).unwrap();
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let host = Host::live().recording(&tape).unwrap();
        let list = |host: &Host, inside| {
            let mut found = Vec::new();
            read(host, netns.inode(), inside, &mut |addr| found.push(addr.to_string())).unwrap();
            found.sort();
            found
        };
        let live = list(&host, Some(&netns));
        lab.run_inside(|| {
            let network = network_of(&Host::live(), netns.inode(), 1).unwrap();
            assert_eq!(network, Some(([127, 0, 0, 1], 0xff00_0000)));
            assert_eq!(network_of(&Host::live(), netns.inode(), 77).unwrap(), None);
        });
        host.finish().unwrap();
        assert_eq!(live, ["127.0.0.1", "192.0.2.7", "192.0.2.8", "2001:db8::7", "::1"]);
        assert_eq!(list(&Host::open_replay(&tape).unwrap(), None), live);
    }
}
