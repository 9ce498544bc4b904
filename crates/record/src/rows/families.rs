//! Fields that only vsock, TIPC and AF_XDP sockets have.

/// Type of a vsock or TIPC socket (SOCK_STREAM and so on, the kernel's numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SockType(pub u8);

impl SockType {
    /// SOCK_STREAM
    pub const STREAM: SockType = SockType(1);
    /// SOCK_DGRAM
    pub const DGRAM: SockType = SockType(2);
    /// SOCK_RDM
    pub const RDM: SockType = SockType(4);
    /// SOCK_SEQPACKET
    pub const SEQPACKET: SockType = SockType(5);
    /// Our words by number.
    pub const NAMES: &'static [&'static str] = &["unknown", "stream", "dgram", "raw", "rdm", "seqpacket"];

    /// Our word for the type.
    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("unknown")
    }
}

/// Fields of vsock sockets, which connect a virtual machine with its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VsockPart {
    /// Stream, datagram, seqpacket.
    pub kind: SockType,
    /// CID and port of the local end; all ones means any.
    pub local: (u32, u32),
    /// CID and port of the peer; all ones means unconnected.
    pub peer: (u32, u32),
}

/// The peer of a TIPC connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TipcConnection {
    /// Number of its node.
    pub node: u32,
    /// Its port.
    pub port: u32,
    /// The service that was requested by name: type and instance.
    pub service: Option<(u32, u32)>,
}

/// Fields of TIPC sockets (include/uapi/linux/tipc_netlink.h, `TIPC_NLA_SOCK_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TipcPart {
    /// Stream, datagram, rdm, seqpacket.
    pub kind: SockType,
    /// The local node; 0 if it has no network.
    pub node: u32,
    /// The local port.
    pub port: u32,
    /// The connection, if there is one.
    pub connection: Option<TipcConnection>,
    /// True if bound to a service.
    pub published: bool,
    /// True if it waits because a link is congested.
    pub link_congested: bool,
    /// True if it waits because the connection's peer is slow.
    pub connection_congested: bool,
    /// Messages dropped.
    pub drops: Option<u32>,
    /// Number of the joined group.
    pub group: Option<u32>,
}

impl TipcPart {
    /// Words of [`TipcPart::congested_part`].
    pub const CONGESTED: &'static [&'static str] = &["none", "link", "connection"];

    /// The congested part that it waits for.
    pub fn congested_part(&self) -> &'static str {
        match (self.link_congested, self.connection_congested) {
            (true, _) => "link",
            (_, true) => "connection",
            _ => "none",
        }
    }
}

/// Memory that an AF_XDP socket shares with the kernel (include/uapi/linux/xdp_diag.h, `struct xdp_diag_umem`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpUmem {
    /// Size in bytes.
    pub size: u64,
    /// Its id on this host.
    pub id: u32,
    /// Number of pages.
    pub pages: u32,
    /// Bytes per chunk; a chunk holds one packet.
    pub chunk_size: u32,
    /// Bytes reserved before each packet.
    pub headroom: u32,
    /// Interface of the socket for which it was created.
    pub ifindex: u32,
    /// Queue of that socket.
    pub queue: u32,
    /// Flags: 1 means zero-copy.
    pub flags: u32,
    /// Number of sockets that share it.
    pub refs: u32,
}

/// Counters of an AF_XDP socket (`struct xdp_diag_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpStats {
    /// Packets dropped for lack of space.
    pub rx_dropped: u64,
    /// Invalid descriptors in the fill ring.
    pub rx_invalid: u64,
    /// Packets dropped because the receive ring was full.
    pub rx_full: u64,
    /// Number of times the fill ring was empty.
    pub fill_empty: u64,
    /// Invalid descriptors in the transmit ring.
    pub tx_invalid: u64,
    /// Number of times the transmit ring was empty.
    pub tx_empty: u64,
}

/// Fields of AF_XDP sockets. For each ring the number of entries is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpPart {
    /// The interface's queue; `None` if not requested from the kernel. Meaningful only together with an interface.
    pub queue: Option<u32>,
    /// Ring of received packets.
    pub rx_ring: Option<u32>,
    /// Ring of packets to send.
    pub tx_ring: Option<u32>,
    /// Memory of the packets.
    pub umem: Option<XdpUmem>,
    /// Ring of chunks passed to the kernel.
    pub fill_ring: Option<u32>,
    /// Ring of chunks returned by the kernel.
    pub completion_ring: Option<u32>,
    /// Counters.
    pub stats: Option<XdpStats>,
}
