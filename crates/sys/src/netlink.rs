//! A netlink socket: bytes out, messages in. Knows no message.
use std::mem::size_of;

use crate::cost;
use crate::errno::{Errno, SysError};
use crate::fault;
use crate::fd::Fd;
use crate::syscall::{call, length, retried};

/// An open netlink socket of one protocol, bound to the kernel only.
#[derive(Debug)]
pub struct NetlinkSocket {
    fd: Fd,
    protocol: i32,
}

impl NetlinkSocket {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// Extended error texts are switched on (kernel 4.12; an older one just keeps silent).
    /// Two system calls; the port id is given by the kernel with the first request.
    pub fn open(protocol: i32) -> Result<NetlinkSocket, SysError> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes three integers.
        let fd = call("socket", || unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) }.into())
            .map_err(|errno| SysError::new("socket", shown(protocol), errno))?;
        // SAFETY: socket just returned this descriptor to us alone.
        let socket = NetlinkSocket { fd: unsafe { Fd::take(fd) }, protocol };
        // Not having it costs a text, not a row.
        let _ = socket.switch_on(libc::NETLINK_EXT_ACK);
        Ok(socket)
    }

    /// Asks the kernel to check requests strictly and to honour filters in route dumps (kernel 4.20).
    pub fn check_strictly(&self) -> Result<(), SysError> {
        self.switch_on(libc::NETLINK_GET_STRICT_CHK)
            .map_err(|errno| SysError::new("setsockopt", shown(self.protocol), errno))
    }

    fn switch_on(&self, option: libc::c_int) -> Result<(), Errno> {
        let on: libc::c_int = 1;
        let (value, size) = ((&raw const on).cast(), size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: `value` points to a live int of `size` bytes.
        call("setsockopt", || unsafe {
            libc::setsockopt(self.fd.raw(), libc::SOL_NETLINK, option, value, size).into()
        })?;
        Ok(())
    }

    /// The protocol it was opened with (NETLINK_SOCK_DIAG = 4 …).
    pub fn protocol(&self) -> i32 {
        self.protocol
    }

    /// Takes part in the multicast groups of this mask (bit 0 is group 1): from now on the kernel sends what happens.
    pub fn join(&self, groups: u32) -> Result<(), SysError> {
        // SAFETY: sockaddr_nl holds integers, for which all bits zero is a value.
        let mut own: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        own.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        own.nl_groups = groups;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the pointer is to a live sockaddr_nl of that size.
        call("bind", || unsafe { libc::bind(self.fd.raw(), (&raw const own).cast(), size) }.into())
            .map_err(|errno| SysError::new("bind", shown(self.protocol), errno))?;
        Ok(())
    }

    /// Asks for a receive buffer of so many bytes: beyond the system's limit with CAP_NET_ADMIN, else up to it.
    pub fn make_room(&self, bytes: i32) {
        let (value, size) = ((&raw const bytes).cast(), size_of::<libc::c_int>() as libc::socklen_t);
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // SAFETY: `value` points to a live int of `size` bytes.
            let set = call("setsockopt", || unsafe {
                libc::setsockopt(self.fd.raw(), libc::SOL_SOCKET, option, value, size).into()
            });
            if set.is_ok() {
                break;
            }
        }
    }

    /// Waits until something can be received, for `timeout_ms` at most; false if nothing came or a signal did.
    pub fn wait(&self, timeout_ms: i32) -> Result<bool, SysError> {
        let mut poll = libc::pollfd { fd: self.fd.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        match call("poll", || unsafe { libc::poll(&raw mut poll, 1, timeout_ms) }.into()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SysError::new("poll", shown(self.protocol), errno)),
        }
    }

    /// Sends one request to the kernel.
    pub fn send(&self, request: &[u8]) -> Result<(), SysError> {
        let (from, size) = (request.as_ptr().cast(), request.len());
        // SAFETY: `from` points to `size` borrowed bytes. Without an address the kernel (port 0) gets it.
        let sent =
            retried("sendto", || unsafe { libc::sendto(self.fd.raw(), from, size, 0, std::ptr::null(), 0) as i64 })
                .map_err(|errno| SysError::new("sendto", shown(self.protocol), errno))?;
        // A netlink message goes out whole or not at all.
        if length(sent, size) != size {
            return Err(SysError::new("sendto", shown(self.protocol), Errno::MSGSIZE));
        }
        Ok(())
    }

    /// Waits for the next answer from the kernel and puts it into `into`; returns its length.
    ///
    /// Interruptions are retried, messages that other processes send us are dropped. A message
    /// longer than `into` is EMSGSIZE: its end is lost for good.
    pub fn recv(&self, into: &mut [u8]) -> Result<usize, SysError> {
        let failed = |errno| SysError::new("recvmsg", shown(self.protocol), errno);
        loop {
            let (got, sender, cut) = self.recv_any(into).map_err(failed)?;
            if sender != 0 {
                continue;
            }
            if cut {
                return Err(failed(Errno::MSGSIZE));
            }
            cost::count_read(got);
            return Ok(got);
        }
    }

    // One message: length, port id of its sender (0 = kernel), whether its end was cut off.
    fn recv_any(&self, into: &mut [u8]) -> Result<(usize, u32, bool), Errno> {
        let most = fault::shortened("recvmsg", into.len());
        // SAFETY: sockaddr_nl and msghdr hold integers and pointers, for which all bits zero is a value.
        let (mut from, mut header): (libc::sockaddr_nl, libc::msghdr) = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: most };
        header.msg_name = (&raw mut from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        // SAFETY: `header` points to `from` and `part`, which live on this stack frame, and `part`
        // to `most` exclusively borrowed bytes of `into`.
        let got = retried("recvmsg", || unsafe { libc::recvmsg(self.fd.raw(), &raw mut header, 0) } as i64)?;
        Ok((length(got, most), from.nl_pid, header.msg_flags & libc::MSG_TRUNC != 0))
    }

    /// The socket's port id; 0 before the first request.
    pub fn port_id(&self) -> Result<u32, SysError> {
        // SAFETY: sockaddr_nl holds integers, for which all bits zero is a value.
        let mut own: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        let mut size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: both pointers are to live values; `size` tells the room behind the first.
        call("getsockname", || unsafe {
            libc::getsockname(self.fd.raw(), (&raw mut own).cast(), &raw mut size).into()
        })
        .map_err(|errno| SysError::new("getsockname", shown(self.protocol), errno))?;
        Ok(own.nl_pid)
    }
}

fn shown(protocol: i32) -> &'static str {
    match protocol {
        libc::NETLINK_ROUTE => "netlink socket (route)",
        libc::NETLINK_INET_DIAG => "netlink socket (sock_diag)",
        libc::NETLINK_NETFILTER => "netlink socket (netfilter)",
        libc::NETLINK_GENERIC => "netlink socket (generic)",
        _ => "netlink socket",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::fault::{Fault, arm, disarm_all};

    /// A route request for one thing that cannot exist: the answer is one NLMSG_ERROR.
    fn bad_request() -> Vec<u8> {
        let mut request = Vec::new();
        request.extend_from_slice(&17u32.to_ne_bytes());
        request.extend_from_slice(&0x7ff0u16.to_ne_bytes());
        request.extend_from_slice(&5u16.to_ne_bytes()); // REQUEST | ACK
        request.extend_from_slice(&[0; 8]);
        request.push(0);
        request
    }

    #[test]
    fn the_kernel_answers() {
        let socket = NetlinkSocket::open(libc::NETLINK_ROUTE).unwrap();
        socket.send(&bad_request()).unwrap();
        assert_ne!(socket.port_id().unwrap(), 0);
        let mut into = [0; 4096];
        arm("recvmsg", 0, 2, Fault::Fails(Errno::INTR));
        let got = socket.recv(&mut into);
        disarm_all();
        assert!(got.unwrap() >= 20);
        assert_eq!(u16::from_ne_bytes([into[4], into[5]]), 2, "NLMSG_ERROR");
    }

    #[test]
    fn a_message_longer_than_the_buffer_is_an_error() {
        let socket = NetlinkSocket::open(libc::NETLINK_ROUTE).unwrap();
        socket.send(&bad_request()).unwrap();
        let mut into = [0; 4096];
        arm("recvmsg", 0, 1, Fault::Short(10));
        let error = socket.recv(&mut into);
        disarm_all();
        assert_eq!(error.unwrap_err().errno, Errno::MSGSIZE);
    }

    #[test]
    fn root_what_other_processes_send_is_dropped() {
        if !crate::sandbox::root_or_skip("sending to another netlink socket") {
            return;
        }
        let socket = NetlinkSocket::open(libc::NETLINK_ROUTE).unwrap();
        socket.send(&bad_request()).unwrap();
        let mut into = [0; 4096];
        let kernels = socket.recv(&mut into).unwrap();
        let forger = NetlinkSocket::open(libc::NETLINK_ROUTE).unwrap();
        // SAFETY: sockaddr_nl holds integers, for which all bits zero is a value.
        let mut to: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        to.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        to.nl_pid = socket.port_id().unwrap();
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        let forged = [0x55u8; 40];
        // SAFETY: both pointers are to live values of the sizes given.
        let sent =
            unsafe { libc::sendto(forger.fd.raw(), forged.as_ptr().cast(), 40, 0, (&raw const to).cast(), size) };
        assert_eq!(sent, 40, "{:?}", Errno::last());
        socket.send(&bad_request()).unwrap();
        assert_eq!(socket.recv(&mut into).unwrap(), kernels);
        assert_ne!(into[..40], forged);
    }

    #[test]
    fn a_refused_socket_is_named() {
        arm("socket", 0, 1, Fault::Fails(Errno::PERM));
        let error = NetlinkSocket::open(libc::NETLINK_INET_DIAG).unwrap_err();
        disarm_all();
        assert_eq!(error.to_string(), "cannot open netlink socket (sock_diag): operation not permitted");
    }
}
