//! Notifications of network interfaces that come, go and change.
use std::os::fd::{AsFd, BorrowedFd};

use crate::errno::{Errno, SysError};
use crate::netlink::NetlinkSocket;

/// NETLINK_ROUTE (include/uapi/linux/netlink.h), and RTNLGRP_LINK as a bit (include/uapi/linux/rtnetlink.h).
const NETLINK_ROUTE: i32 = 0;
const LINK_GROUP: u32 = 1;
/// Notifications received in one call, so that a process that changes interfaces without end does not hold the caller.
const AT_ONCE: usize = 1000;
/// Room for some notifications: more than that is only a change, too.
const BUFFER_BYTES: i32 = 16 << 10;

/// A socket that receives a notification for each change of an interface of a network namespace.
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

    /// True if something may have changed since the last call. One system call where nothing has.
    pub fn have_come(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..AT_ONCE {
            match self.socket.receive_waiting(&mut self.place) {
                Ok(None) => return changed,
                Ok(Some(_)) => changed = true,
                Err(error) if matches!(error.errno, Errno::NOBUFS | Errno::MSGSIZE) => changed = true,
                // Without it changes are noticed when packets of unknown interfaces come.
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
