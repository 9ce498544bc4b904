//! The kernel's numbers of address families: include/linux/socket.h.

pub(crate) const AF_UNIX: u8 = 1;
pub(crate) const AF_INET: u8 = 2;
pub(crate) const AF_INET6: u8 = 10;
pub(crate) const AF_NETLINK: u8 = 16;
pub(crate) const AF_PACKET: u8 = 17;
pub(crate) const AF_TIPC: u8 = 30;
pub(crate) const AF_VSOCK: u8 = 40;
pub(crate) const AF_XDP: u8 = 44;
