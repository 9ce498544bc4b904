//! Notifications about network interfaces that are added, removed or changed.
use std::os::fd::{AsFd, BorrowedFd};

use crate::errno::{Errno, SysError};
use crate::netlink::NetlinkSocket;

/// NETLINK_ROUTE (include/uapi/linux/netlink.h), and RTNLGRP_LINK as a bit (include/uapi/linux/rtnetlink.h).
const NETLINK_ROUTE: i32 = 0;
const LINK_GROUP: u32 = 1;
/// Maximum notifications per call: a process that keeps changing interfaces must not block the caller.
const NOTIFICATIONS_MAX: usize = 1000;
/// Buffer for a few notifications: an overflow only means that something changed.
const BUFFER_BYTES: i32 = 16 << 10;

/// A socket that receives a notification for each interface change in a network namespace.
#[derive(Debug)]
pub struct LinkEvents {
    socket: NetlinkSocket,
    place: Vec<u8>,
}

impl LinkEvents {
    /// Subscribes in the calling thread's namespace. Needs no privilege.
    pub fn open() -> Result<LinkEvents, SysError> {
        let socket = NetlinkSocket::open(NETLINK_ROUTE)?;
        socket.make_room(BUFFER_BYTES);
        socket.join(LINK_GROUP)?;
        Ok(LinkEvents { socket, place: vec![0; 32 << 10] })
    }

    /// Receives the notifications since the last call; true if something may have changed. Costs one system call if
    /// nothing has changed.
    pub fn receive_changes(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..NOTIFICATIONS_MAX {
            match self.socket.try_recv(&mut self.place) {
                Ok(None) => return changed,
                Ok(Some(_)) => changed = true,
                Err(error) if matches!(error.errno, Errno::NOBUFS | Errno::MSGSIZE) => changed = true,
                // If the socket fails, changes are noticed when packets from unknown interfaces arrive.
                Err(_) => return changed,
            }
        }
        true
    }
}

impl AsFd for LinkEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
