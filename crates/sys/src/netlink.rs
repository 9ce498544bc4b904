//! Netlink sockets: sending and receiving raw messages. Does not interpret them.
use std::mem::MaybeUninit;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::errno::{Errno, SysError};
use crate::fault;
use crate::fd::Fd;
use crate::fs;
use crate::netns_holder;
use crate::signal;
use crate::socket;
use crate::syscall::{call, count_read, length, retry};

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Its length.
    pub bytes: usize,
    /// The nsid of the sending namespace in the socket's namespace; `None` if it is the same namespace.
    pub nsid: Option<i32>,
}

/// One message from any sender.
struct AnyMessage {
    bytes: usize,
    /// Port id of the sender; 0 is the kernel.
    sender: u32,
    /// True if the message was truncated.
    cut: bool,
    nsid: Option<i32>,
}

/// The namespace's nsid, if the first control message of a received header contains it.
///
/// # Safety
/// `header` was filled in by recvmsg, and its control messages are still alive.
unsafe fn nsid_of(header: &libc::msghdr) -> Option<i32> {
    // SAFETY: the caller guarantees the header; the result is null or lies in the control messages.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    let is_nsid = first.cmsg_level == libc::SOL_NETLINK && first.cmsg_type == libc::NETLINK_LISTEN_ALL_NSID;
    // SAFETY: only computes a length.
    let whole = unsafe { libc::CMSG_LEN(size_of::<i32>() as u32) } as usize;
    if !is_nsid || (first.cmsg_len as usize) < whole {
        return None;
    }
    // SAFETY: this message is `whole` bytes long, and the last four are its content; read without alignment.
    Some(unsafe { libc::CMSG_DATA(first).cast::<i32>().read_unaligned() })
}

/// Waits until one of `files` is readable or its other end is closed, for at most `timeout_ms` (-1: no limit), and
/// stores the indexes of these files in `ready`. A signal ends the wait with an empty list.
pub fn wait_any(files: &[BorrowedFd<'_>], timeout_ms: i32, ready: &mut Vec<usize>) -> Result<(), SysError> {
    ready.clear();
    let polled = |file: &BorrowedFd<'_>| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polls: Vec<libc::pollfd> = files.iter().map(polled).collect();
    let (first, count) = (polls.as_mut_ptr(), polls.len() as libc::nfds_t);
    // SAFETY: `first` points to `count` live pollfds.
    match call("poll", || unsafe { libc::poll(first, count, timeout_ms) }.into()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(()),
        Err(errno) => return Err(SysError::new("poll", "netlink sockets", errno)),
    }
    ready.extend(polls.iter().enumerate().filter(|(_, poll)| poll.revents != 0).map(|(index, _)| index));
    Ok(())
}

/// Number of consecutive ENOBUFS errors, with no message between them, after which a socket counts as broken. The
/// kernel reports one each time its buffer fills, and a full buffer contains messages. A healthy kernel never reports
/// more in a row, and callers that continue after ENOBUFS would do so forever.
///
/// Bound: ENOBUFS errors in a row without a message between them. Beyond: the run ends with an error. By: a broken
/// kernel.
const ALARMS_MAX: u32 = 64;

/// An open netlink socket of one protocol, for communication with the kernel only.
#[derive(Debug)]
pub struct NetlinkSocket {
    fd: Fd,
    protocol: i32,
    /// ENOBUFS errors since the last message.
    alarms: AtomicU32,
}

impl NetlinkSocket {
    /// Opens a socket in the calling thread's network namespace.
    ///
    /// Enables extended error texts (kernel 4.12; older ones send none). Two system calls; the kernel assigns the port
    /// id with the first request.
    pub fn open(protocol: i32) -> Result<NetlinkSocket, SysError> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes three integers.
        let fd = call("socket", || unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) }.into())
            .map_err(|errno| SysError::new("socket", protocol_name(protocol), errno))?;
        // SAFETY: socket just returned this descriptor to us alone.
        let socket = NetlinkSocket { fd: unsafe { Fd::take(fd) }, protocol, alarms: AtomicU32::new(0) };
        // A kernel without this option costs an error text, not a row.
        let _ = socket.switch_on(libc::NETLINK_EXT_ACK);
        Ok(socket)
    }

    /// Takes over a socket that another process has opened, if it has this `protocol` and belongs to the namespace
    /// with this inode. The error is a sentence about it. Needs CAP_NET_ADMIN in the namespace; Linux 4.10.
    pub fn adopt(file: OwnedFd, protocol: i32, netns_inode: u64) -> Result<NetlinkSocket, String> {
        let fd = Fd::from(file);
        let number = |option| {
            let mut bytes = [0; 4];
            socket::get_bytes(&fd, libc::SOL_SOCKET, option, &mut bytes).map(|_| i32::from_ne_bytes(bytes))
        };
        let (family, of) = (number(libc::SO_DOMAIN), number(libc::SO_PROTOCOL));
        if family != Ok(libc::AF_NETLINK) || of != Ok(protocol) {
            return Err(format!("it is not a {}", protocol_name(protocol)));
        }
        let netns = netns_holder::netns_of(&fd).and_then(|netns| fs::stat_fd(&netns));
        let inode = netns.map_err(|errno| format!("its network namespace cannot be read: {errno}"))?.inode;
        if inode != netns_inode {
            return Err(format!("it belongs to another network namespace ({inode}, not {netns_inode})"));
        }
        Ok(NetlinkSocket { fd, protocol, alarms: AtomicU32::new(0) })
    }

    /// Asks the kernel to check requests strictly and to apply filters in route dumps (kernel 4.20).
    pub fn check_strictly(&self) -> Result<(), SysError> {
        self.switch_on(libc::NETLINK_GET_STRICT_CHK)
            .map_err(|errno| SysError::new("setsockopt", protocol_name(self.protocol), errno))
    }

    fn switch_on(&self, option: libc::c_int) -> Result<(), Errno> {
        self.set(option, 1)
    }

    fn set(&self, option: libc::c_int, number: libc::c_int) -> Result<(), Errno> {
        let (value, size) = ((&raw const number).cast(), size_of::<libc::c_int>() as libc::socklen_t);
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

    /// Joins the multicast groups in this mask (bit 0 is group 1): the kernel sends their events from now on.
    pub fn join(&self, groups: u32) -> Result<(), SysError> {
        // SAFETY: sockaddr_nl holds integers, for which all bits zero is a value.
        let mut own: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        own.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        own.nl_groups = groups;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: the pointer is to a live sockaddr_nl of that size.
        call("bind", || unsafe { libc::bind(self.fd.raw(), (&raw const own).cast(), size) }.into())
            .map_err(|errno| SysError::new("bind", protocol_name(self.protocol), errno))?;
        Ok(())
    }

    /// Leaves the multicast groups in this mask: messages that are already queued still arrive.
    pub fn leave_groups(&self, groups: u32) -> Result<(), SysError> {
        for group in (1..=32).filter(|group| groups & 1 << (group - 1) != 0) {
            self.set(libc::NETLINK_DROP_MEMBERSHIP, group)
                .map_err(|errno| SysError::new("setsockopt", protocol_name(self.protocol), errno))?;
        }
        Ok(())
    }

    /// Requests a receive buffer of this many bytes: above the system's limit with CAP_NET_ADMIN, otherwise up to it.
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

    /// Also receives multicast messages of other namespaces, if the socket's namespace has an nsid for them. Needs
    /// CAP_NET_BROADCAST there; Linux 4.2.
    pub fn listen_all_netns(&self) -> Result<(), SysError> {
        self.switch_on(libc::NETLINK_LISTEN_ALL_NSID)
            .map_err(|errno| SysError::new("setsockopt", protocol_name(self.protocol), errno))
    }

    /// Makes the kernel drop only the messages that do not fit into the receive buffer. By default it also reports
    /// each loss with ENOBUFS, and then drops everything until the buffer is empty. Use it for senders that number
    /// their messages.
    pub fn report_no_losses(&self) -> Result<(), SysError> {
        self.switch_on(libc::NETLINK_NO_ENOBUFS)
            .map_err(|errno| SysError::new("setsockopt", protocol_name(self.protocol), errno))
    }

    /// Receives a waiting message into `into`; `None` if there is none. Does not wait.
    ///
    /// Messages of other processes are dropped. ENOBUFS means that messages have been lost since the last call, and
    /// that the kernel drops all others until all waiting messages have been received. Endless ENOBUFS becomes EIO, as
    /// for [`NetlinkSocket::recv`].
    pub fn try_recv(&self, into: &mut [u8]) -> Result<Option<ReceivedMessage>, SysError> {
        match self.receive_from_kernel(as_uninit(into), libc::MSG_DONTWAIT) {
            Ok(got) => Ok(Some(ReceivedMessage { bytes: got.bytes, nsid: got.nsid })),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(SysError::new("recvmsg", protocol_name(self.protocol), errno)),
        }
    }

    /// Number of messages that the kernel dropped because the buffer was full, modulo 2^32 (`SK_MEMINFO_DROPS`, Linux
    /// 4.12; the column Drops of /proc/net/netlink). One cheap call, usable from any namespace.
    pub fn drops(&self) -> Result<u32, SysError> {
        // include/uapi/linux/sock_diag.h and asm-generic/socket.h
        const SK_MEMINFO_DROPS: usize = 8;
        const SO_MEMINFO: libc::c_int = 55;
        let mut numbers = [0u32; SK_MEMINFO_DROPS + 1];
        self.option(SO_MEMINFO, &mut numbers)?;
        Ok(numbers.last().copied().unwrap_or(0))
    }

    /// The size of the receive buffer as the kernel accounts it: twice the requested size.
    pub fn room(&self) -> Result<u32, SysError> {
        let mut number = [0u32; 1];
        self.option(libc::SO_RCVBUF, &mut number)?;
        Ok(number.first().copied().unwrap_or(0))
    }

    fn option(&self, option: libc::c_int, into: &mut [u32]) -> Result<(), SysError> {
        let mut size = size_of_val(into) as libc::socklen_t;
        let to = into.as_mut_ptr().cast();
        // SAFETY: `to` points to `size` bytes of exclusively borrowed numbers; the kernel writes at most `size` bytes.
        call("getsockopt", || unsafe {
            libc::getsockopt(self.fd.raw(), libc::SOL_SOCKET, option, to, &raw mut size).into()
        })
        .map_err(|errno| SysError::new("getsockopt", protocol_name(self.protocol), errno))?;
        Ok(())
    }

    /// Waits at most `timeout_ms` until something can be received; false after a timeout or a signal.
    pub fn wait(&self, timeout_ms: i32) -> Result<bool, SysError> {
        let mut poll = libc::pollfd { fd: self.fd.raw(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        match call("poll", || unsafe { libc::poll(&raw mut poll, 1, timeout_ms) }.into()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(SysError::new("poll", protocol_name(self.protocol), errno)),
        }
    }

    /// Sends one request to the kernel.
    pub fn send(&self, request: &[u8]) -> Result<(), SysError> {
        let (from, size) = (request.as_ptr().cast(), request.len());
        // SAFETY: `from` points to `size` borrowed bytes. Without an address the message goes to the kernel (port 0).
        let sent =
            retry("sendto", || unsafe { libc::sendto(self.fd.raw(), from, size, 0, std::ptr::null(), 0) as i64 })
                .map_err(|errno| SysError::new("sendto", protocol_name(self.protocol), errno))?;
        // A netlink message is sent completely or not at all.
        if length(sent, size) != size {
            return Err(SysError::new("sendto", protocol_name(self.protocol), Errno::MSGSIZE));
        }
        Ok(())
    }

    /// Waits for the next answer from the kernel and stores it in `into`; returns its length.
    ///
    /// Interrupted calls are retried until the user wants the run to end (then EINTR). Messages from other processes
    /// are dropped. A message longer than `into` is EMSGSIZE: its end is lost. An empty message, which the kernel
    /// never sends, and endless ENOBUFS are EIO: neither may keep the caller busy forever.
    pub fn recv(&self, into: &mut [u8]) -> Result<usize, SysError> {
        let got = self.receive_from_kernel(as_uninit(into), 0);
        got.map(|got| got.bytes).map_err(|errno| SysError::new("recvmsg", protocol_name(self.protocol), errno))
    }

    /// Works like [`NetlinkSocket::recv`], but replaces the contents of `into`, up to its capacity. Memory beyond the
    /// received bytes is not touched, so a short answer avoids the page faults for the rest of the buffer.
    pub fn recv_in_place(&self, into: &mut Vec<u8>) -> Result<(), SysError> {
        into.clear();
        let got = self.receive_from_kernel(into.spare_capacity_mut(), 0);
        let got = got.map_err(|errno| SysError::new("recvmsg", protocol_name(self.protocol), errno))?;
        // SAFETY: the kernel has written this many bytes at the beginning of the capacity, and no more than fit.
        unsafe { into.set_len(got.bytes) };
        Ok(())
    }

    fn receive_from_kernel(&self, into: &mut [MaybeUninit<u8>], flags: libc::c_int) -> Result<AnyMessage, Errno> {
        loop {
            let got = match self.receive_one(into, flags) {
                Ok(got) => got,
                Err(Errno::INTR) if !signal::is_requested() => continue,
                Err(Errno::NOBUFS) if self.alarms.fetch_add(1, Relaxed) >= ALARMS_MAX => return Err(Errno::IO),
                Err(errno) => return Err(errno),
            };
            if got.sender != 0 {
                // A process could send messages endlessly; callers bound the calls that do not wait.
                if flags & libc::MSG_DONTWAIT == 0 && signal::is_requested() {
                    return Err(Errno::INTR);
                }
                continue;
            }
            if got.cut {
                return Err(Errno::MSGSIZE);
            }
            if got.bytes == 0 {
                return Err(Errno::IO);
            }
            self.alarms.store(0, Relaxed);
            count_read(got.bytes);
            return Ok(got);
        }
    }

    fn receive_one(&self, into: &mut [MaybeUninit<u8>], flags: libc::c_int) -> Result<AnyMessage, Errno> {
        let most = fault::shorten("recvmsg", into.len());
        // Room for one control message with a number, aligned as required for its header.
        let mut control = [0u64; 4];
        // SAFETY: sockaddr_nl and msghdr hold integers and pointers, for which all bits zero is a value.
        let (mut from, mut header): (libc::sockaddr_nl, libc::msghdr) = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: most };
        header.msg_name = (&raw mut from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `header` points to `from`, `part` and `control`, which live on this stack frame, and `part`
        // to `most` exclusively borrowed bytes of `into`.
        let got = call("recvmsg", || unsafe { libc::recvmsg(self.fd.raw(), &raw mut header, flags) } as i64)?;
        // SAFETY: recvmsg has filled in `header`; `control` is alive.
        let nsid = unsafe { nsid_of(&header) };
        Ok(AnyMessage {
            bytes: length(got, most),
            sender: from.nl_pid,
            cut: header.msg_flags & libc::MSG_TRUNC != 0,
            nsid,
        })
    }

    /// The socket's port id; 0 before the first request.
    pub fn port_id(&self) -> Result<u32, SysError> {
        // SAFETY: sockaddr_nl holds integers, for which all bits zero is a value.
        let mut own: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        let mut size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: both pointers are to live values; `size` contains the size of the first.
        call("getsockname", || unsafe {
            libc::getsockname(self.fd.raw(), (&raw mut own).cast(), &raw mut size).into()
        })
        .map_err(|errno| SysError::new("getsockname", protocol_name(self.protocol), errno))?;
        Ok(own.nl_pid)
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The bytes as write-only memory.
fn as_uninit(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: both have the same layout, and the kernel, the only writer, writes bytes.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn protocol_name(protocol: i32) -> &'static str {
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

    /// A route request for one object that cannot exist: the answer is one NLMSG_ERROR.
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
        if !testkit::root::root_or_skip("sending to another netlink socket") {
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
        assert_eq!(sent, 40, "{:?}", Errno::last_error());
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

    /// Simulates what kernels never send: an empty message, and endless ENOBUFS. Callers continue after ENOBUFS, so it
    /// must not repeat forever.
    #[test]
    fn issue_10_an_endless_answer_is_an_error() {
        let socket = NetlinkSocket::open(libc::NETLINK_ROUTE).unwrap();
        let mut into = [0; 8192];
        arm("recvmsg", 0, 2, Fault::Gives(0));
        let (waited, looked) = (socket.recv(&mut into), socket.try_recv(&mut into));
        disarm_all();
        assert_eq!((waited.unwrap_err().errno, looked.unwrap_err().errno), (Errno::IO, Errno::IO));
        arm("recvmsg", 0, u32::MAX, Fault::Fails(Errno::NOBUFS));
        let alarms = (0..10_000).take_while(|_| socket.recv(&mut into).unwrap_err().errno == Errno::NOBUFS).count();
        disarm_all();
        assert_eq!(alarms, ALARMS_MAX as usize);
        socket.send(&bad_request()).unwrap();
        assert!(socket.recv(&mut into).unwrap() > 0);
        arm("recvmsg", 0, 1, Fault::Fails(Errno::NOBUFS));
        let healthy = socket.recv(&mut into);
        disarm_all();
        assert_eq!(healthy.unwrap_err().errno, Errno::NOBUFS, "a message makes it healthy again");
    }
}
