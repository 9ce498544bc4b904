//! Sockets as rows.

use super::{FamilyExtras, RowDiff, SkMem, TcpInfo};
use crate::{Addr, Proto, State, Timer};

/// The table of sockets; its fields are in `socket_fields.rs`.
#[derive(Clone, Copy, Debug)]
pub enum Sockets {}

/// Bits that make the source fetch a value (`Field::need`). Values without a bit are always available.
pub mod need {
    /// `tcp_info` (INET_DIAG_INFO): costs 230 ns per row in the kernel.
    pub const TCP_INFO: u64 = 1 << 0;
    /// Name of the congestion control (INET_DIAG_CONG).
    pub const CONG: u64 = 1 << 1;
    /// Details of the congestion control (INET_DIAG_VEGASINFO, DCTCPINFO, BBRINFO).
    pub const CONG_INFO: u64 = 1 << 2;
    /// Socket memory, nine numbers (INET_DIAG_SKMEMINFO).
    pub const SKMEM: u64 = 1 << 3;
    /// ToS, traffic class, class id or priority (INET_DIAG_TOS, INET_DIAG_TCLASS).
    pub const TOS: u64 = 1 << 4;
    /// Path of a unix socket (UDIAG_SHOW_NAME).
    pub const UNIX_NAME: u64 = 1 << 5;
    /// Peer of a unix socket (UDIAG_SHOW_PEER).
    pub const UNIX_PEER: u64 = 1 << 6;
    /// Send and receive queue, where reading them has a cost: unix sockets (UDIAG_SHOW_RQLEN), TCP via BPF.
    pub const QUEUES: u64 = 1 << 7;
    /// Device and inode of a unix socket's file (UDIAG_SHOW_VFS).
    pub const UNIX_VFS: u64 = 1 << 8;
    /// Uid of the owner, where reading it has a cost: unix sockets (UDIAG_SHOW_UID), TCP via BPF.
    pub const UID: u64 = 1 << 9;
    /// The cgroup id (INET_DIAG_CGROUP_ID): netlink always sends it, /proc does not contain it.
    pub const CGROUP: u64 = 1 << 10;
    /// The socket option bytes: netlink always sends them, other backends do not have them.
    pub const SOCKOPT: u64 = 1 << 11;
    /// The cookie: /proc does not contain it.
    pub const COOKIE: u64 = 1 << 12;
    /// Interface and mark: /proc does not contain them.
    pub const IFACE_MARK: u64 = 1 << 13;
    /// Backlog limit of a listener: /proc does not contain it.
    pub const ACCEPT_MAX: u64 = 1 << 14;
    /// Reference count and flags of a unix socket: only /proc contains them, and only the netstat face requests them.
    pub const UNIX_REFS: u64 = 1 << 15;
    /// Shutdown bits (INET_DIAG_SHUTDOWN).
    pub const SHUTDOWN: u64 = 1 << 16;
    /// Bytes, segments and retransmissions so far, from the cheapest source that the backend has; for netlink that is
    /// INET_DIAG_INFO. Only `--watch` requests them.
    pub const COUNTERS: u64 = 1 << 50;
    /// The part of [`COUNTERS`] that concerns retransmitted data: it has an extra cost via BPF.
    pub const RESENT: u64 = 1 << 51;
    /// The number that [`super::Socket::identity`] returns: /proc does not contain it. Only `doctor` requests it.
    pub const IDENTITY: u64 = 1 << 52;
    /// Version, flags, rings, fanout and memberships of a packet socket (PACKET_DIAG_INFO and so on).
    pub const PACKET: u64 = 1 << 32;
    /// The filter of a packet socket (PACKET_DIAG_FILTER).
    pub const FILTER: u64 = 1 << 33;
    /// Groups and flags of a netlink socket (NETLINK_DIAG_GROUPS, NETLINK_DIAG_FLAGS).
    pub const NETLINK: u64 = 1 << 34;
    /// Upper-layer protocol, MD5 keys, MPTCP: they come with INET_DIAG_INFO.
    pub const ULP: u64 = 1 << 35;
    /// BPF maps that store something with the socket (INET_DIAG_REQ_SK_BPF_STORAGES).
    pub const STORAGES: u64 = 1 << 36;
    /// Inodes of the pending connections of a unix listener (UDIAG_SHOW_ICONS): only the ss face requests them.
    pub const UNIX_ICONS: u64 = 1 << 37;
    /// Numbers of an SCTP association (INET_DIAG_INFO).
    pub const SCTP: u64 = 1 << 38;
    /// Queue, rings, memory and counters of an AF_XDP socket (XDP_SHOW_INFO and so on).
    pub const XDP: u64 = 1 << 39;
    /// v6only of a listener (INET_DIAG_SKV6ONLY): /proc does not contain it.
    pub const V6ONLY: u64 = 1 << 40;
    /// The running timer: reading it has a cost via BPF.
    pub const TIMER: u64 = 1 << 41;
    /// The inode, and with it the owners: reading it has a cost via BPF.
    pub const INODE: u64 = 1 << 42;
    /// The mark alone, separate from [`IFACE_MARK`], because reading it has a cost via BPF.
    pub const MARK: u64 = 1 << 43;
    /// Whether the kernel chose the local port: only the kernel's own filter knows (INET_DIAG_BC_AUTO).
    pub const AUTOBOUND: u64 = 1 << 44;
}

/// One end of a connection as the kernel reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoint {
    /// The address as the kernel reported it: IPv4-mapped addresses are still IPv6.
    pub addr: Addr,
    /// The port in host order, or 0.
    pub port: u16,
}

impl Endpoint {
    /// An end that is neither bound nor connected.
    pub const NONE: Endpoint = Endpoint { addr: Addr::ANY4, port: 0 };

    /// True if this end is unset: wildcard address and port 0.
    pub fn is_unset(&self) -> bool {
        self.port == 0 && self.addr.is_unspecified()
    }
}

/// Type of a unix socket (SOCK_STREAM and so on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnixType(pub u8);

impl UnixType {
    /// Our words: index 1 stream, 2 datagram, 5 seqpacket.
    pub const NAMES: &'static [&'static str] = &["unknown", "stream", "dgram", "raw", "rdm", "seqpacket"];

    /// Our word for the type.
    pub fn name(self) -> &'static str {
        Self::NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// Fields of unix sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnixPart<'b> {
    /// Stream, datagram, seqpacket.
    pub kind: UnixType,
    /// The bytes of the bound name; an abstract name starts with NUL. `None` if unnamed. Unescaped.
    pub path: Option<&'b [u8]>,
    /// Inode of the socket at the other end.
    pub peer_inode: Option<u32>,
    /// Device and inode of the socket's file.
    pub vfs: Option<(u32, u32)>,
    /// Reference count (only from /proc/net/unix).
    pub refs: Option<u32>,
    /// Flags (only from /proc/net/unix): 1 << 16 is "accepts connections".
    pub flags: Option<u32>,
    /// Inodes of the connections waiting for accept, a `u32` each.
    pub icons: Option<&'b [u8]>,
}

/// One socket. Borrows the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Socket<'b> {
    /// The table that it comes from.
    pub proto: Proto,
    /// Address family as the kernel reports it: 2 AF_INET, 10 AF_INET6, 1 AF_UNIX, 16 AF_NETLINK, 17 AF_PACKET, 30
    /// AF_TIPC, 40 AF_VSOCK, 44 AF_XDP. Dual-stack sockets are 10.
    pub family: u8,
    /// State, with the kernel's numbers.
    pub state: State,
    /// The local end.
    pub local: Endpoint,
    /// The peer.
    pub peer: Endpoint,
    /// `idiag_rqueue`: bytes waiting to be read; for a listener, connections waiting for accept.
    pub rqueue: u32,
    /// `idiag_wqueue`: unacknowledged bytes; for a listener, the backlog limit. `None` for a listener read from /proc,
    /// and for a unix socket unless the queues are requested.
    pub wqueue: Option<u32>,
    /// Index of the interface it is bound to; 0 if unbound.
    pub ifindex: u32,
    /// Owner's uid; `None` if the backend does not report it (time-wait, unix sockets unless requested).
    pub uid: Option<u32>,
    /// Inode of the socket; 0 if it has no inode (time-wait, orphans, not yet accepted).
    pub inode: u32,
    /// Cookie: unique until the kernel restarts. 0 if the backend does not report it.
    pub cookie: u64,
    /// A hash of its address in the kernel and of its ends, from the BPF walk; 0 otherwise. Use [`Socket::identity`].
    pub address_hash: u64,
    /// Running timer.
    pub timer: Timer,
    /// Milliseconds until the timer expires.
    pub timer_ms: u32,
    /// Retransmissions (`idiag_retrans`).
    pub retrans: u8,
    /// Inode of the network namespace that was read.
    pub netns_id: u64,
    /// SO_MARK (INET_DIAG_MARK; needs CAP_NET_ADMIN).
    pub mark: Option<u32>,
    /// Shutdown bits: 1 receive, 2 send.
    pub shutdown: Option<u8>,
    /// INET_DIAG_SKV6ONLY.
    pub v6only: Option<bool>,
    /// INET_DIAG_SOCKOPT: two bytes of bit fields.
    pub sockopt: Option<[u8; 2]>,
    /// cgroup v2 id.
    pub cgroup_id: Option<u64>,
    /// `tcp_info`.
    pub tcp_info: Option<TcpInfo<'b>>,
    /// Socket memory.
    pub skmem: Option<SkMem<'b>>,
    /// Name of the congestion control, without the NUL.
    pub cong: Option<&'b [u8]>,
    /// INET_DIAG_VEGASINFO payload.
    pub vegas: Option<&'b [u8]>,
    /// INET_DIAG_DCTCPINFO payload.
    pub dctcp: Option<&'b [u8]>,
    /// INET_DIAG_BBRINFO payload.
    pub bbr: Option<&'b [u8]>,
    /// Type of service.
    pub tos: Option<u8>,
    /// Traffic class (IPv6).
    pub tclass: Option<u8>,
    /// Class id or priority (INET_DIAG_CLASS_ID).
    pub class_id: Option<u32>,
    /// INET_DIAG_ULP_INFO payload.
    pub ulp: Option<&'b [u8]>,
    /// INET_DIAG_MD5SIG payload.
    pub md5sig: Option<&'b [u8]>,
    /// INET_DIAG_SK_BPF_STORAGES payload.
    pub storages: Option<&'b [u8]>,
    /// Fields of unix sockets.
    pub unix: Option<UnixPart<'b>>,
    /// The comparison with the previous round; only in rows of `--watch`.
    pub diff: Option<&'b RowDiff>,
    /// Fields of rarer socket families.
    pub extras: Option<&'b FamilyExtras<'b>>,
}

impl Socket<'_> {
    /// A row with all values unset: backends start from it and fill in their values.
    pub const EMPTY: Socket<'static> = Socket {
        proto: Proto::Tcp,
        family: 0,
        state: State(0),
        local: Endpoint::NONE,
        peer: Endpoint::NONE,
        rqueue: 0,
        wqueue: None,
        ifindex: 0,
        uid: None,
        inode: 0,
        cookie: 0,
        address_hash: 0,
        timer: Timer(0),
        timer_ms: 0,
        retrans: 0,
        netns_id: 0,
        mark: None,
        shutdown: None,
        v6only: None,
        sockopt: None,
        cgroup_id: None,
        tcp_info: None,
        skmem: None,
        cong: None,
        vegas: None,
        dctcp: None,
        bbr: None,
        tos: None,
        tclass: None,
        class_id: None,
        ulp: None,
        md5sig: None,
        storages: None,
        unix: None,
        diff: None,
        extras: None,
    };

    /// Identifies the socket in the next reading of the same run and backend; 0 if the backend cannot identify it.
    pub fn identity(&self) -> u64 {
        if self.cookie == 0 { self.address_hash } else { self.cookie }
    }

    /// True if it has IP addresses and ports, unlike unix, packet or netlink sockets.
    pub fn is_inet(&self) -> bool {
        self.proto.is_inet()
    }

    /// True for a listening TCP or unix socket, whose queues count connections.
    pub fn is_listener(&self) -> bool {
        self.state == State::LISTEN
    }
}
