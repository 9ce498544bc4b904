//! Binds a log group, and configures how the kernel delivers its records.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use netlink::{Messages, Request};
use sys::{Errno, NetlinkSocket, ReceivedMessage, SysError, clock};

use crate::events::succession::InheritedGroup;
use crate::uapi::{
    NETLINK_NETFILTER, NFNL_SUBSYS_ULOG, NFULNL_CFG_CMD_BIND, NFULNL_CFG_CMD_UNBIND, NFULNL_CFG_F_CONNTRACK,
    NFULNL_CFG_F_SEQ, NFULNL_COPY_PACKET, cfg, msg,
};

/// Default number of bytes to copy of each packet: enough for all headers.
pub const COPY_BYTES: u32 = 128;
/// Default time for which records may accumulate in the kernel. Accumulating costs nothing, and each wake-up of the
/// reader costs as much as several hundred records.
pub const LATENCY: Duration = Duration::from_millis(50);

/// Maximum size of a datagram in which the kernel collects records; it silently reduces larger values.
const NLBUFSIZ: u32 = 128 << 10;
/// Receive buffer for such a datagram, with room to spare: the kernel fills [`NLBUFSIZ`] rounded up by kmalloc.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 320 << 10;
/// Maximum number of records in one datagram. A smaller `queue-threshold` of the rule takes precedence.
const QTHRESH: u32 = 1000;
/// NLMSG_ERROR: the answer to a request, with an errno as its first four bytes.
const NLMSG_ERROR: u16 = 2;

/// Maximum number of times that an inherited socket is asked for an answer.
const QUERIES_MAX: u32 = 5;
/// See [`QUERIES_MAX`]: this time without a datagram means that there will be no answer.
const ANSWER_MS: i32 = 500;
/// Maximum number of datagrams received at once from such a socket before the receiving thread takes it over.
const DATAGRAMS_MAX: u32 = 10_000;

/// How the kernel delivers the records of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryOptions {
    /// Number of bytes to copy of each packet.
    pub(crate) copy_bytes: u32,
    /// Time for which records may accumulate.
    pub(crate) latency: Duration,
    /// Size of each group's receive buffer in bytes.
    pub(crate) buffer_bytes: u32,
    /// True if records contain their packet's connection-tracking entry; requires that [`sends_entries`] is true.
    pub(crate) entries: bool,
}

/// A socket to which the kernel sends the records of one group.
///
/// Each group has a separate socket, so that a flood in one group does not push out records of another.
#[derive(Debug)]
pub(crate) struct GroupSocket {
    pub(crate) netlink: NetlinkSocket,
    pub(crate) group: u16,
    /// Inode of its namespace.
    pub(crate) netns_id: u64,
    /// The last time, in ns since 1970, at which the reader found this socket empty. Everything received after that
    /// check arrived later.
    pub(crate) empty_ns: AtomicU64,
    /// Number of datagrams that the kernel had dropped when the socket was taken over.
    drops_before: u32,
    /// The last number of bytes per packet that was requested from the kernel.
    copied: AtomicU32,
}

impl GroupSocket {
    /// Takes over a socket to which an earlier process has bound the group, and configures it. Data waiting in it is
    /// appended to `early`. The error is a sentence about the socket. Needs CAP_NET_ADMIN.
    pub(crate) fn adopt(
        inherited: InheritedGroup,
        netns_id: u64,
        delivery: DeliveryOptions,
        early: &mut Vec<Vec<u8>>,
    ) -> Result<GroupSocket, String> {
        let group = inherited.group;
        let netlink = NetlinkSocket::adopt(inherited.file, NETLINK_NETFILTER, netns_id)?;
        let drops_before = netlink.drops().map_err(|error| error.to_string())?;
        netlink.make_room(i32::try_from(delivery.buffer_bytes).unwrap_or(i32::MAX));
        netlink.report_no_losses().map_err(|error| error.to_string())?;
        let (empty_ns, copied) = (AtomicU64::new(0), delivery.copy_bytes.into());
        let socket = GroupSocket { netlink, group, netns_id, empty_ns, drops_before, copied };
        // A request without a command changes settings only if it comes from the socket that has bound the group.
        let mut request = config(group);
        configure(&mut request, delivery);
        match socket.send_and_wait(&request, early).map_err(|error| error.to_string())? {
            Some(Errno(0)) => Ok(socket),
            Some(errno) if errno.is_missing_object() => Err(format!("it has not bound group {group}")),
            Some(Errno::PERM) => Err(format!("another socket has bound group {group}")),
            Some(errno) => Err(format!("the kernel rejects its settings: {errno}")),
            None => Err("the kernel does not answer on it".to_owned()),
        }
    }

    /// Sends a request through a socket that may be full: the kernel drops an answer without room, so the request is
    /// repeated.
    fn send_and_wait(&self, request: &Request, early: &mut Vec<Vec<u8>>) -> Result<Option<Errno>, SysError> {
        let mut place = vec![0; DATAGRAM_BYTES_MAX];
        for _ in 0..QUERIES_MAX {
            self.drain(&mut place, early)?;
            self.send_request(request)?;
            while self.netlink.wait(ANSWER_MS)? {
                if let Some(errno) = self.drain(&mut place, early)? {
                    return Ok(Some(errno));
                }
            }
        }
        Ok(None)
    }

    /// Receives waiting data up to an answer, which it returns; everything else is appended to `early`.
    fn drain(&self, place: &mut [u8], early: &mut Vec<Vec<u8>>) -> Result<Option<Errno>, SysError> {
        for _ in 0..DATAGRAMS_MAX {
            let Some(received) = self.receive(place)? else { return Ok(None) };
            let datagram = place.get(..received.bytes).unwrap_or_default();
            match parse_answer(datagram) {
                Some(errno) => return Ok(Some(errno)),
                None => early.push(datagram.to_vec()),
            }
        }
        Ok(None)
    }

    /// Changes the size of the receive buffer and keeps the data in it.
    pub(crate) fn make_room(&self, bytes: u32) {
        self.netlink.make_room(i32::try_from(bytes).unwrap_or(i32::MAX));
    }

    /// Number of datagrams that the kernel dropped because the buffer was full.
    pub(crate) fn drops(&self) -> Result<u32, SysError> {
        Ok(self.netlink.drops()?.wrapping_sub(self.drops_before))
    }

    /// Opens a socket in the calling thread's namespace `netns_id` and binds the group to it, so that it receives
    /// records from now on. Records before the kernel's answer are appended to `early`. Needs CAP_NET_ADMIN.
    pub(crate) fn bind(
        group: u16,
        netns_id: u64,
        delivery: DeliveryOptions,
        early: &mut Vec<Vec<u8>>,
    ) -> Result<GroupSocket, SysError> {
        let netlink = NetlinkSocket::open(NETLINK_NETFILTER)?;
        netlink.make_room(i32::try_from(delivery.buffer_bytes).unwrap_or(i32::MAX));
        // Otherwise, after a loss, the kernel drops everything until the buffer is empty, and reports only that.
        netlink.report_no_losses()?;
        let (empty_ns, copied) = (clock::wall_ns().into(), delivery.copy_bytes.into());
        let socket = GroupSocket { netlink, group, netns_id, empty_ns, drops_before: 0, copied };
        socket.send_request(&bind_request(group, delivery))?;
        socket.receive_answer(early)?;
        Ok(socket)
    }

    /// Makes the kernel copy this number of bytes of each packet from now on. Its answer arrives among the records and
    /// is not one of them. Sends no request if the number is unchanged.
    pub(crate) fn copy(&self, bytes: u32) -> Result<(), SysError> {
        if self.copied.load(Relaxed) == bytes {
            return Ok(());
        }
        let mut request = config(self.group);
        put_copy(&mut request, bytes);
        self.send_request(&request)?;
        self.copied.store(bytes, Relaxed);
        Ok(())
    }

    /// Unbinds the group: the kernel sends the records that it has collected, and no more after that.
    pub(crate) fn unbind(&self) -> Result<(), SysError> {
        let mut request = config(self.group);
        request.attr(cfg::CMD, &[NFULNL_CFG_CMD_UNBIND]);
        self.send_request(&request)
    }

    fn send_request(&self, request: &Request) -> Result<(), SysError> {
        let bytes = request.bytes().map_err(|_| SysError::new("sendto", "log group", Errno::MSGSIZE))?;
        self.netlink.send(bytes)
    }

    /// Receives data up to the kernel's answer, which is the first datagram unless records arrive before it.
    fn receive_answer(&self, early: &mut Vec<Vec<u8>>) -> Result<(), SysError> {
        let mut place = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let bytes = self.netlink.recv(&mut place)?;
            let datagram = place.get(..bytes).unwrap_or_default();
            match parse_answer(datagram) {
                Some(Errno(0)) => return Ok(()),
                Some(errno) => return Err(SysError::new("bind", "log group", errno)),
                None => early.push(datagram.to_vec()),
            }
        }
    }

    /// Receives waiting data into `place`; `None` if no data waits. One system call.
    pub(crate) fn receive(&self, place: &mut [u8]) -> Result<Option<ReceivedMessage>, SysError> {
        self.netlink.try_recv(place)
    }
}

/// The errno if this datagram is an answer, otherwise `None`.
fn parse_answer(datagram: &[u8]) -> Option<Errno> {
    let answer = Messages::new(datagram).flatten().next().filter(|message| message.kind == NLMSG_ERROR)?;
    let errno = netlink::prefix::i32_at(answer.payload, 0)?;
    Some(Errno(errno.saturating_neg()))
}

fn config(group: u16) -> Request {
    let [high, low] = group.to_be_bytes();
    let mut request = Request::for_one(NFNL_SUBSYS_ULOG << 8 | msg::CONFIG);
    // struct nfgenmsg: AF_UNSPEC, version 0, the group.
    request.append(&[0, 0, high, low]);
    request
}

/// Binds and configures in one message, so that no record is delivered with the kernel's default settings.
fn bind_request(group: u16, delivery: DeliveryOptions) -> Request {
    let mut request = config(group);
    request.attr(cfg::CMD, &[NFULNL_CFG_CMD_BIND]);
    configure(&mut request, delivery);
    request
}

fn configure(request: &mut Request, delivery: DeliveryOptions) {
    put_copy(request, delivery.copy_bytes);
    let flush_10ms = u32::try_from(delivery.latency.as_millis().div_ceil(10)).unwrap_or(u32::MAX);
    request.attr(cfg::NLBUFSIZ, &NLBUFSIZ.to_be_bytes()).attr(cfg::QTHRESH, &QTHRESH.to_be_bytes());
    let flags = NFULNL_CFG_F_SEQ | if delivery.entries { NFULNL_CFG_F_CONNTRACK } else { 0 };
    request.attr(cfg::TIMEOUT, &flush_10ms.to_be_bytes()).attr(cfg::FLAGS, &flags.to_be_bytes());
}

/// Groups to query the kernel about, one after the other, until one is unused.
const UNUSED_GROUPS: [u16; 3] = [65_535, 65_173, 64_811];

/// Whether this kernel sends connection-tracking entries with records. Binds no group: the kernel checks the flag
/// before it looks up the group, and refuses an unsupported flag with EOPNOTSUPP (`nfulnl_recv_config` in
/// net/netfilter/nfnetlink_log.c); before that it tries to load nf_conntrack_netlink. Needs CAP_NET_ADMIN.
pub(crate) fn sends_entries() -> Result<bool, SysError> {
    let netlink = NetlinkSocket::open(NETLINK_NETFILTER)?;
    let mut place = vec![0; ANSWER_BYTES_MAX];
    for group in UNUSED_GROUPS {
        let mut request = config(group);
        request.attr(cfg::FLAGS, &NFULNL_CFG_F_CONNTRACK.to_be_bytes());
        let bytes = request.bytes().map_err(|_| SysError::new("sendto", "log group", Errno::MSGSIZE))?;
        netlink.send(bytes)?;
        let bytes = netlink.recv(&mut place)?;
        match parse_answer(place.get(..bytes).unwrap_or_default()) {
            // Another program has bound it.
            Some(Errno::PERM) => {}
            // The flag is supported, but no such group is bound.
            Some(Errno::NODEV) => return Ok(true),
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// Buffer size for the answer to a request.
const ANSWER_BYTES_MAX: usize = 4 << 10;

fn put_copy(request: &mut Request, bytes: u32) {
    // struct nfulnl_msg_config_mode: copy_range be32, copy_mode u8, padding.
    let [a, b, c, d] = bytes.to_be_bytes();
    request.attr(cfg::MODE, &[a, b, c, d, NFULNL_COPY_PACKET, 0]);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use netlink::Attrs;

    #[test]
    fn entries_are_asked_for_by_a_flag() {
        let flags = |entries| {
            let latency = LATENCY;
            let request = bind_request(5, DeliveryOptions { copy_bytes: 1, latency, buffer_bytes: 1, entries });
            let attrs = request.bytes().unwrap()[16 + 4..].to_vec();
            let flags = Attrs::new(&attrs).map(Result::unwrap).find(|attr| attr.kind == cfg::FLAGS);
            flags.unwrap().be16().unwrap()
        };
        assert_eq!((flags(false), flags(true)), (1, 5));
    }

    /// The answer about the flag agrees with the kernel's behaviour when a group is bound.
    #[test]
    fn root_the_kernel_says_whether_it_sends_entries() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("logglue");
        lab.run_inside(|| {
            let sends = sends_entries().unwrap();
            let delivery = DeliveryOptions { copy_bytes: 64, latency: LATENCY, buffer_bytes: 1 << 16, entries: true };
            let bound = GroupSocket::bind(65_535, 0, delivery, &mut Vec::new());
            match bound {
                Ok(_) => assert!(sends),
                Err(error) => assert!(!sends && error.errno == Errno::OPNOTSUPP, "{error}"),
            }
        });
    }
}
