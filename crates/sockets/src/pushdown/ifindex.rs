//! Looks up the index of an interface by its name, for the kernel's filter.
//!
//! Uses rtnetlink instead of /sys, because a mounted sysfs shows the namespace of the process that mounted it.
use std::ops::ControlFlow;

use netlink::prefix::u32_at;
use netlink::{Query, Request};
use sys::{Host, NetNs};

/// NETLINK_ROUTE (include/uapi/linux/netlink.h).
const NETLINK_ROUTE: i32 = 0;
/// include/uapi/linux/rtnetlink.h
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// `struct ifinfomsg`: family u8, pad, type u16, index s32, flags u32, change u32.
const IFINFOMSG: usize = 16;
/// include/uapi/linux/if_link.h
const IFLA_IFNAME: u16 = 3;
/// IFNAMSIZ, including the NUL.
const NAME_MAX: usize = 16;

/// Returns the index, or `None` if there is no such interface or the kernel does not answer. One request with four
/// system calls.
pub(crate) fn find_ifindex(host: &Host, netns: Option<&NetNs>, netns_id: u64, name: &[u8]) -> Option<u32> {
    if name.is_empty() || name.len() >= NAME_MAX || name.contains(&0) {
        return None;
    }
    let mut terminated = name.to_vec();
    terminated.push(0);
    let mut request = Request::for_one(RTM_GETLINK);
    request.append(&[0; IFINFOMSG]).attr(IFLA_IFNAME, &terminated);
    let key = format!("sockets/ifindex/{}@{netns_id}", sys::escape_bytes(name));
    let ask = Query { what: "interface", protocol: NETLINK_ROUTE, request: &request, key: &key, note: "", netns };
    let mut index = None;
    let answer = netlink::exchange(host, &ask, |part| {
        if part.kind == RTM_NEWLINK {
            index = u32_at(part.payload, 4).filter(|index| *index != 0);
        }
        ControlFlow::Continue(())
    });
    answer.ok().and(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_the_first() {
        let host = Host::live();
        assert_eq!(find_ifindex(&host, None, 0, b"lo"), Some(1));
        assert_eq!(find_ifindex(&host, None, 0, b"none-such"), None);
        assert_eq!(find_ifindex(&host, None, 0, b"a-name-that-is-too-long"), None);
        assert_eq!(find_ifindex(&host, None, 0, b""), None);
    }
}
