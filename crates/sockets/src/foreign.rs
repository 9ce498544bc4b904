//! Socket tables whose rows are not read: only how many there are is asked for.

use netlink::{Ask, Request};
use std::ops::ControlFlow;
use sys::Host;

use crate::inet_diag::{AF_INET, AF_INET6, SOCK_DIAG_BY_FAMILY, Wanted};

/// NETLINK_SOCK_DIAG, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 4;
// include/linux/socket.h
const AF_TIPC: u8 = 30;
const AF_VSOCK: u8 = 40;
const AF_XDP: u8 = 44;
// include/uapi/linux/in.h
const IPPROTO_DCCP: u8 = 33;
const IPPROTO_SCTP: u8 = 132;

/// A table that some kernels have and nobody here reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foreign {
    /// DCCP, gone from the kernel with 6.16.
    Dccp,
    /// SCTP.
    Sctp,
    /// Sockets between a virtual machine and its host.
    Vsock,
    /// TIPC.
    Tipc,
    /// AF_XDP.
    Xdp,
}

impl Foreign {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Foreign::Dccp => "dccp",
            Foreign::Sctp => "sctp",
            Foreign::Vsock => "vsock",
            Foreign::Tipc => "tipc",
            Foreign::Xdp => "xdp",
        }
    }

    /// How many sockets of these `states` (the kernel's mask) the calling thread's namespace has; `netns_id` is its
    /// inode. 0 where the kernel has no such table or does not tell. One dump a family.
    pub fn count(self, host: &Host, netns_id: u64, states: u32) -> u64 {
        let mut count = 0;
        for request in self.requests(states) {
            let key = format!("{} states {states:x}@{netns_id}", self.name());
            let ask =
                Ask { what: self.name(), protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
            let dump = netlink::dump(host, &ask, |part| {
                count += u64::from(part.kind == SOCK_DIAG_BY_FAMILY);
                ControlFlow::Continue(())
            });
            // A kernel without the table refuses the first as it would the second.
            if dump.is_err() {
                break;
            }
        }
        count
    }

    fn requests(self, states: u32) -> Vec<Request> {
        let one = |body: &[u8]| {
            let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
            request.body(body);
            vec![request]
        };
        let head = |family: u8| u32::from_ne_bytes([family, 0, 0, 0]);
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        // No message needs anything but its fixed part, so nothing more is asked for.
        match self {
            Foreign::Dccp => inet(IPPROTO_DCCP, states),
            Foreign::Sctp => inet(IPPROTO_SCTP, states),
            // `struct vsock_diag_req`: head, states, inode, what to show, cookie.
            Foreign::Vsock => one(&words(&[head(AF_VSOCK), states, 0, 0, 0, 0])),
            // `struct tipc_sock_diag_req`: head, states.
            Foreign::Tipc => one(&words(&[head(AF_TIPC), states])),
            // `struct xdp_diag_req`: head, inode, what to show, cookie.
            Foreign::Xdp => one(&words(&[head(AF_XDP), 0, 0, 0, 0])),
        }
    }
}

fn inet(protocol: u8, states: u32) -> Vec<Request> {
    let wanted = Wanted { ext: 0, states, sport: 0, dport: 0, bytecode: &[], storages: false };
    [AF_INET, AF_INET6].into_iter().map(|family| wanted.by_number(family, protocol)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn requests_have_their_structs_sizes() {
        let sizes = |foreign: Foreign| -> Vec<usize> {
            foreign.requests(1).iter().map(|request| request.bytes().unwrap().len() - 16).collect()
        };
        assert_eq!(sizes(Foreign::Vsock), [24]);
        assert_eq!(sizes(Foreign::Tipc), [8]);
        assert_eq!(sizes(Foreign::Xdp), [20]);
        assert_eq!(sizes(Foreign::Sctp), [56, 56]);
        assert_eq!(Foreign::Sctp.requests(1)[1].bytes().unwrap()[16..18], [AF_INET6, IPPROTO_SCTP]);
    }

    #[test]
    fn a_table_that_is_not_there_is_empty() {
        for foreign in [Foreign::Dccp, Foreign::Sctp, Foreign::Tipc] {
            // States that no socket is in.
            assert_eq!(foreign.count(&Host::live(), 1, 0), 0, "{foreign:?}");
        }
    }
}
