//! Finds the namespace of an event when one socket receives the events of many namespaces.
//!
//! The kernel assigns a namespace a number (nsid) within another namespace when it needs one, for example for a veth
//! pair between the two, or when `ip netns set` requests it. A socket with NETLINK_LISTEN_ALL_NSID receives the
//! messages of every namespace that has an nsid in the socket's namespace, and each message carries only the nsid. No
//! nsid is assigned here: it would outlive the process.
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd};

use netlink::{Attrs, Messages, Request};
use sys::{BufferLimits, FoundNetns, NetNs, NetlinkSocket, SysError};

/// `NETLINK_ROUTE`
const ROUTE: i32 = 0;
/// `RTM_NEWNSID`, `RTM_GETNSID` (include/uapi/linux/rtnetlink.h).
const RTM_NEWNSID: u16 = 88;
const RTM_GETNSID: u16 = 90;
/// `NETNSA_NSID`, `NETNSA_FD` (include/uapi/linux/net_namespace.h).
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// `struct rtgenmsg`, padded.
const RTGENMSG: usize = 4;

/// Finds the namespaces of the host. Called on the reader's thread.
pub type FindNamespaces = Box<dyn FnMut() -> Vec<FoundNetns> + Send>;

/// Settings for following other namespaces.
pub struct OtherNetnsOptions {
    /// Finds the namespaces.
    pub find: FindNamespaces,
    /// Memory limits for the sockets in namespaces without an nsid.
    pub buffers: BufferLimits,
}

/// The nsids that one namespace has for others.
#[derive(Debug, Default)]
pub(crate) struct NsidMap {
    inodes: HashMap<i32, u64>,
    known: HashSet<u64>,
}

impl NsidMap {
    /// The inode of the namespace with this nsid.
    pub(crate) fn inode(&self, nsid: i32) -> Option<u64> {
        self.inodes.get(&nsid).copied()
    }

    /// True if the namespace with this inode has an nsid.
    pub(crate) fn contains(&self, inode: u64) -> bool {
        self.known.contains(&inode)
    }

    /// Asks the kernel for the nsid that the calling thread's namespace has for `other`, stores it and returns it.
    pub(crate) fn query_nsid(&mut self, inode: u64, other: &NetNs) -> Result<Option<i32>, SysError> {
        let nsid = nsid_of(other)?;
        // The kernel reuses the inode of a removed namespace.
        if self.known.remove(&inode) {
            self.inodes.retain(|_, known| *known != inode);
        }
        if let Some(nsid) = nsid {
            // The kernel reuses the nsid of a removed namespace.
            if let Some(before) = self.inodes.insert(nsid, inode) {
                self.known.remove(&before);
            }
            self.known.insert(inode);
        }
        Ok(nsid)
    }

    /// Drops the namespaces for which `is_there` is false.
    pub(crate) fn retain(&mut self, is_there: impl Fn(u64) -> bool) {
        self.inodes.retain(|_, inode| is_there(*inode));
        self.known.retain(|inode| is_there(*inode));
    }
}

/// The nsid of `other` in the calling thread's namespace; `None` if it has no nsid there. Does not assign an nsid.
fn nsid_of(other: &NetNs) -> Result<Option<i32>, SysError> {
    let socket = NetlinkSocket::open(ROUTE)?;
    let mut request = Request::for_one(RTM_GETNSID);
    let descriptor = u32::try_from(other.as_fd().as_raw_fd()).unwrap_or(0);
    request.append(&[0; RTGENMSG]).attr_u32(NETNSA_FD, descriptor);
    socket.send(request.bytes().unwrap_or_default())?;
    let mut buffer = [0; 1024];
    let got = socket.recv(&mut buffer)?;
    let answers = Messages::new(buffer.get(..got).unwrap_or_default()).flatten();
    let attrs = answers.filter(|answer| answer.kind == RTM_NEWNSID).flat_map(|answer| {
        let attrs = answer.payload.get(RTGENMSG..).unwrap_or_default();
        Attrs::new(attrs).flatten()
    });
    let numbers = attrs.filter(|attr| attr.kind == NETNSA_NSID).filter_map(|attr| attr.i32().ok());
    Ok(numbers.filter(|nsid| *nsid >= 0).last())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn root_numbers_are_learnt_and_not_given() {
        testkit::require_root!();
        let (near, far) = (Lab::new("nsidnear"), Lab::new("nsidfar"));
        let other = NetNs::open_path(&far.path()).unwrap();
        near.run_inside(|| {
            let mut numbers = NsidMap::default();
            assert_eq!(numbers.query_nsid(other.inode(), &other).unwrap(), None);
            assert_eq!(nsid_of(&other).unwrap(), None, "asking gives none");
            near.ip(&["netns", "set", far.name(), "41"]);
            assert_eq!(numbers.query_nsid(other.inode(), &other).unwrap(), Some(41));
            assert_eq!(numbers.inode(41), Some(other.inode()));
            assert!(numbers.contains(other.inode()));
            numbers.retain(|_| false);
            assert_eq!(numbers.inode(41), None);
        });
    }
}
