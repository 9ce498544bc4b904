//! Groups of other network namespaces: each has groups of its own with the same numbers.
use std::sync::Arc;

use sys::netns::{NetNs, within};

use super::groups::{Delivery, GroupSocket};

/// Most sockets in other namespaces; further groups are not read, and said.
const SOCKETS_MAX: usize = 4096;

/// A network namespace whose groups are read as well.
#[derive(Debug)]
pub struct OtherNetns {
    /// Its inode.
    pub netns_id: u64,
    /// The way in.
    pub netns: NetNs,
}

/// Sockets in other namespaces.
#[derive(Debug, Default)]
pub(crate) struct OtherSockets {
    pub(crate) sockets: Vec<Arc<GroupSocket>>,
    /// Datagrams that came while they were bound, each with its namespace.
    pub(crate) early: Vec<(u64, Vec<u8>)>,
    /// Groups that could not be bound.
    pub(crate) unread: u64,
    /// Why the first of them could not.
    pub(crate) why: Option<String>,
}

impl OtherSockets {
    /// Binds the groups in each of these namespaces. Needs CAP_NET_ADMIN there, and CAP_SYS_ADMIN to enter them.
    pub(crate) fn bind(others: &[OtherNetns], groups: &[u16], delivery: Delivery) -> OtherSockets {
        let mut all = OtherSockets::default();
        for OtherNetns { netns_id, netns } in others {
            let bound = within(Some(netns), || all.bind_in(*netns_id, groups, delivery));
            if let Err(error) = bound {
                all.leave_out(groups.len(), *netns_id, &error.to_string());
            }
        }
        all
    }

    fn bind_in(&mut self, netns_id: u64, groups: &[u16], delivery: Delivery) {
        let mut early = Vec::new();
        for group in groups {
            if self.sockets.len() >= SOCKETS_MAX {
                self.leave_out(1, netns_id, &format!("more than {SOCKETS_MAX} groups"));
                continue;
            }
            match GroupSocket::bind(*group, netns_id, delivery, &mut early) {
                Ok(socket) => self.sockets.push(Arc::new(socket)),
                Err(error) => self.leave_out(1, netns_id, &format!("group {group}: {error}")),
            }
            self.early.extend(early.drain(..).map(|datagram| (netns_id, datagram)));
        }
    }

    fn leave_out(&mut self, groups: usize, netns_id: u64, why: &str) {
        self.unread += groups as u64;
        self.why.get_or_insert_with(|| format!("in network namespace {netns_id}, {why}"));
    }
}
