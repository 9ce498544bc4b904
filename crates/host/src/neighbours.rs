//! Neighbours of a network namespace that do not answer, from a dump of rtnetlink.

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
const NDA_CACHEINFO: u16 = 3;
const NUD_INCOMPLETE: u16 = 1;
const NUD_FAILED: u16 = 0x20;
/// `struct ndmsg`: family u8, three bytes, ifindex s32, state u16, flags u8, type u8.
const NDMSG: usize = 12;
/// USER_HZ: the ticks per second in the ages that the kernel reports.
const TICKS_PER_S: u32 = 100;

/// Bound: neighbours without an answer that `doctor` remembers for a namespace. Beyond: further neighbours are not
/// checked, counted (exit code 3). By: a user who scans.
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

/// Reads the neighbours of the namespace with inode `netns` (of `inside`, or of the calling thread's) that do not
/// answer. Returns them, and the number of neighbours beyond the maximum.
///
/// One dump, some 100 ns per neighbour. Needs no privilege, except to enter another namespace.
pub fn silent(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(Vec<SilentNeighbour>, u64), HostError> {
    let mut request = Request::dump(RTM_GETNEIGH);
    request.append(&[0; NDMSG]);
    let key = format!("neighbours@{netns}");
    let ask = Query { what: "neighbours", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    bounded_dump::read(host, &ask, NEIGHBOURS_MAX, neighbour)
}

/// `None` for other messages, neighbours that answer, and messages that are too short.
fn neighbour(part: &AnswerMessage<'_>) -> Option<SilentNeighbour> {
    if part.kind != RTM_NEWNEIGH {
        return None;
    }
    let (ifindex, state) = (prefix::u32_at(part.payload, 4)?, prefix::u16_at(part.payload, 8)?);
    if state & (NUD_INCOMPLETE | NUD_FAILED) == 0 {
        return None;
    }
    let (mut addr, mut used_s, mut since_s) = (None, None, None);
    for attr in Attrs::new(part.payload.get(NDMSG..)?).flatten() {
        match attr.kind {
            NDA_DST => addr = address(attr.payload),
            // `struct nda_cacheinfo`: confirmed, used, updated, references: u32 each.
            NDA_CACHEINFO => {
                let seconds = |at| prefix::u32_at(attr.payload, at).map(|ticks| ticks / TICKS_PER_S);
                (used_s, since_s) = (seconds(4), seconds(8));
            }
            _ => {}
        }
    }
    Some(SilentNeighbour { ifindex, addr: addr?, is_given_up: state & NUD_FAILED != 0, used_s, since_s })
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
        assert_eq!(of(NUD_FAILED, 99), Some(silent.clone()));
        assert!(!of(NUD_INCOMPLETE, 99).unwrap().is_given_up);
        assert_eq!(of(NUD_FAILED, 20), Some(SilentNeighbour { used_s: None, since_s: None, ..silent }));
        assert_eq!((of(2, 99), of(NUD_FAILED, 15), of(NUD_FAILED, 9)), (None, None, None));
    }

    #[test]
    fn root_a_neighbour_that_is_not_there() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("neigh");
        let _ = lab.link_local();
        lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "nwl0"]);
        lab.ip(&["neigh", "add", "192.0.2.7", "lladdr", "02:00:00:00:00:07", "dev", "nwl0"]);
        let read = || lab.run_inside(|| silent(&Host::live(), 0, None).unwrap().0);
        assert_eq!(read(), []);
        lab.run_inside(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"x", "192.0.2.9:9").unwrap());
        let is_it = |one: &SilentNeighbour| one.addr == Addr::V4([192, 0, 2, 9]);
        testkit::wait_until("it is asked for", || read().iter().any(is_it));
    }
}
