//! Neighbours of a network namespace that do not answer or that the kernel never checks, and further hardware addresses
//! of interfaces, from dumps of rtnetlink.

use std::collections::BTreeSet;

use netlink::{AnswerMessage, Attrs, Query, Request, prefix};
use record::Addr;
use sys::{Host, NetNs};

use crate::{HostError, bounded_dump};

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;

// include/uapi/linux/neighbour.h
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_CACHEINFO: u16 = 3;
const NUD_INCOMPLETE: u16 = 1;
const NUD_FAILED: u16 = 0x20;
const NUD_PERMANENT: u16 = 0x80;
const NTF_SELF: u8 = 0x02;
const NTF_EXT_LEARNED: u8 = 0x10;
/// PF_BRIDGE, include/linux/socket.h: asks for hardware addresses instead of neighbours.
const PF_BRIDGE: u8 = 7;
/// `struct ndmsg`: family u8, three bytes, ifindex s32, state u16, flags u8, type u8.
const NDMSG: usize = 12;
/// USER_HZ: the ticks per second in the ages that the kernel reports.
const TICKS_PER_S: u32 = 100;

/// The group bit of a hardware address.
const GROUP_BIT: u8 = 1;

/// Bound: neighbours without an answer and permanent ones that `doctor` remembers for a namespace. Beyond: further
/// neighbours are not checked, counted (exit code 3). By: a user who scans.
pub const NEIGHBOURS_MAX: usize = 65_536;

/// A neighbour that did not answer a request for its hardware address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentNeighbour {
    /// The interface on which it is expected.
    pub ifindex: u32,
    /// Its address.
    pub addr: Addr,
    /// True if the kernel has given it up; false if it is still sending requests.
    pub is_given_up: bool,
    /// Seconds since a packet was last sent to it; `None` if the kernel does not report it.
    pub used_s: Option<u32>,
    /// Seconds since the kernel gave it up or sent the first request; `None` if the kernel does not report it.
    pub since_s: Option<u32>,
}

/// A neighbour whose hardware address an administrator or a program has set, and which the kernel never checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermanentNeighbour {
    /// Its interface.
    pub ifindex: u32,
    /// Its address.
    pub addr: Addr,
    /// The hardware address that frames to it are sent to.
    pub hardware: [u8; 6],
}

/// Neighbours of a namespace that need attention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Neighbours that did not answer.
    pub silent: Vec<SilentNeighbour>,
    /// Neighbours that the kernel never checks. Entries that a routing daemon maintains are left out.
    pub permanent: Vec<PermanentNeighbour>,
    /// Number of further neighbours of both kinds beyond [`NEIGHBOURS_MAX`].
    pub over: u64,
}

/// A neighbour of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Neighbour {
    Silent(SilentNeighbour),
    Permanent(PermanentNeighbour),
}

/// Reads the neighbours of the namespace with inode `netns` (of `inside`, or of the calling thread's) that do not
/// answer, and the permanent ones.
///
/// One dump, some 100 ns per neighbour. Needs no privilege, except to enter another namespace.
pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<Neighbours, HostError> {
    let mut request = Request::dump(RTM_GETNEIGH);
    request.append(&[0; NDMSG]);
    let key = format!("neighbours@{netns}");
    let ask = Query { what: "neighbours", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    let (all, over) = bounded_dump::read(host, &ask, NEIGHBOURS_MAX, neighbour)?;
    let mut found = Neighbours { over, ..Neighbours::default() };
    for one in all {
        match one {
            Neighbour::Silent(one) => found.silent.push(one),
            Neighbour::Permanent(one) => found.permanent.push(one),
        }
    }
    Ok(found)
}

/// Reads the unicast hardware addresses that interfaces receive frames for in addition to their own, such as a
/// macvlan's.
///
/// One dump. Needs no privilege, except to enter another namespace.
pub fn further_addresses(
    host: &Host,
    netns: u64,
    inside: Option<&NetNs>,
) -> Result<BTreeSet<(u32, [u8; 6])>, HostError> {
    let mut request = Request::dump(RTM_GETNEIGH);
    let mut head = [0; NDMSG];
    head[0] = PF_BRIDGE;
    request.append(&head);
    let key = format!("hardware addresses@{netns}");
    let what = "hardware addresses";
    let ask = Query { what, protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    Ok(bounded_dump::read(host, &ask, NEIGHBOURS_MAX, further_address)?.0.into_iter().collect())
}

/// The interface and the address of a message about a further unicast address of an interface.
fn further_address(part: &AnswerMessage<'_>) -> Option<(u32, [u8; 6])> {
    let (ifindex, flags) = (prefix::u32_at(part.payload, 4)?, prefix::u8_at(part.payload, 10)?);
    if part.kind != RTM_NEWNEIGH || prefix::u8_at(part.payload, 0)? != PF_BRIDGE || flags & NTF_SELF == 0 {
        return None;
    }
    let mut attrs = Attrs::new(part.payload.get(NDMSG..)?).flatten();
    hardware(attrs.find(|attr| attr.kind == NDA_LLADDR)?.payload).map(|address| (ifindex, address))
}

/// `None` for other messages, other neighbours, and messages that are too short.
fn neighbour(part: &AnswerMessage<'_>) -> Option<Neighbour> {
    if part.kind != RTM_NEWNEIGH {
        return None;
    }
    let (ifindex, state) = (prefix::u32_at(part.payload, 4)?, prefix::u16_at(part.payload, 8)?);
    let is_permanent = state & NUD_PERMANENT != 0 && prefix::u8_at(part.payload, 10)? & NTF_EXT_LEARNED == 0;
    if state & (NUD_INCOMPLETE | NUD_FAILED) == 0 && !is_permanent {
        return None;
    }
    let (mut addr, mut link_address, mut used_s, mut since_s) = (None, None, None, None);
    for attr in Attrs::new(part.payload.get(NDMSG..)?).flatten() {
        match attr.kind {
            NDA_DST => addr = address(attr.payload),
            NDA_LLADDR => link_address = hardware(attr.payload),
            // `struct nda_cacheinfo`: confirmed, used, updated, references: u32 each.
            NDA_CACHEINFO => {
                let seconds = |at| prefix::u32_at(attr.payload, at).map(|ticks| ticks / TICKS_PER_S);
                (used_s, since_s) = (seconds(4), seconds(8));
            }
            _ => {}
        }
    }
    let addr = addr?;
    Some(match is_permanent {
        true => Neighbour::Permanent(PermanentNeighbour { ifindex, addr, hardware: link_address? }),
        false => {
            let is_given_up = state & NUD_FAILED != 0;
            Neighbour::Silent(SilentNeighbour { ifindex, addr, is_given_up, used_s, since_s })
        }
    })
}

/// A hardware address of Ethernet; `None` for groups and for other links.
fn hardware(bytes: &[u8]) -> Option<[u8; 6]> {
    let address: [u8; 6] = bytes.try_into().ok()?;
    (address[0] & GROUP_BIT == 0 && address != [0; 6]).then_some(address)
}

fn address(bytes: &[u8]) -> Option<Addr> {
    match bytes.len() {
        4 => Some(Addr::V4(bytes.try_into().ok()?)),
        16 => Some(Addr::V6(bytes.try_into().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn message(state: u16) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 7, 0, 0, 0];
        bytes.extend_from_slice(&state.to_ne_bytes());
        bytes.extend_from_slice(&[0, 1, 8, 0, 1, 0, 192, 0, 2, 9]);
        bytes.extend_from_slice(&[20, 0, 3, 0, 1, 0, 0, 0, 0x2C, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        bytes
    }

    #[test]
    fn those_that_do_not_answer() {
        let of = |state, end: usize| {
            let bytes = message(state);
            neighbour(&AnswerMessage {
                kind: RTM_NEWNEIGH,
                flags: 0,
                payload: bytes.get(..end).unwrap_or(&bytes),
                block: 0,
            })
        };
        let addr = Addr::V4([192, 0, 2, 9]);
        let silent = SilentNeighbour { ifindex: 7, addr, is_given_up: true, used_s: Some(3), since_s: Some(0) };
        let as_silent = |one: SilentNeighbour| Some(Neighbour::Silent(one));
        assert_eq!(of(NUD_FAILED, 99), as_silent(silent.clone()));
        assert_eq!(of(NUD_INCOMPLETE, 99), as_silent(SilentNeighbour { is_given_up: false, ..silent.clone() }));
        assert_eq!(of(NUD_FAILED, 20), as_silent(SilentNeighbour { used_s: None, since_s: None, ..silent }));
        assert_eq!((of(2, 99), of(NUD_FAILED, 15), of(NUD_FAILED, 9)), (None, None, None));
        assert_eq!(of(NUD_PERMANENT, 99), None, "without a hardware address");
    }

    #[test]
    fn root_interfaces_below_a_macvlan() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("shared");
        let _ = lab.link_local();
        let shared = || lab.run_inside(|| further_addresses(&Host::live(), 0, None).unwrap());
        assert_eq!(shared(), BTreeSet::new());
        lab.ip(&["link", "add", "m0", "link", "nwl0", "address", "02:00:00:00:00:07", "type", "macvlan"]);
        lab.ip(&["link", "set", "m0", "up"]);
        let index: u32 = lab.output("cat", &["/sys/class/net/nwl0/ifindex"]).trim().parse().unwrap();
        assert_eq!(shared(), BTreeSet::from([(index, [2, 0, 0, 0, 0, 7])]));
    }

    #[test]
    fn root_a_neighbour_that_is_not_there() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("neigh");
        let _ = lab.link_local();
        lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "nwl0"]);
        lab.ip(&["neigh", "add", "192.0.2.7", "lladdr", "02:00:00:00:00:07", "dev", "nwl0"]);
        let all = lab.run_inside(|| super::read(&Host::live(), 0, None).unwrap());
        let permanent: Vec<_> = all.permanent.iter().map(|one| (one.addr, one.hardware)).collect();
        assert_eq!((all.silent, permanent), (vec![], vec![(Addr::V4([192, 0, 2, 7]), [2, 0, 0, 0, 0, 7])]));
        let read = || lab.run_inside(|| super::read(&Host::live(), 0, None).unwrap().silent);
        lab.run_inside(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"x", "192.0.2.9:9").unwrap());
        let is_it = |one: &SilentNeighbour| one.addr == Addr::V4([192, 0, 2, 9]);
        testkit::wait_until("it is asked for", || read().iter().any(is_it));
    }
}
