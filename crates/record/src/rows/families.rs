//! What only vsock, TIPC and AF_XDP sockets have.

/// Type of a socket (SOCK_STREAM and so on, the kernel's numbers): vsock and TIPC.
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
    /// Native words by number.
    pub const NAMES: &'static [&'static str] = &["unknown", "stream", "dgram", "raw", "rdm", "seqpacket"];

    /// The native word.
    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("unknown")
    }
}

/// What only vsock sockets have: between a virtual machine and its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VsockPart {
    /// Stream, datagram, seqpacket.
    pub kind: SockType,
    /// Our machine and port; all ones is any.
    pub local: (u32, u32),
    /// The other end; all ones is none.
    pub peer: (u32, u32),
}

/// The other end of a TIPC connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TipcConnection {
    /// Number of its node.
    pub node: u32,
    /// Its port.
    pub port: u32,
    /// The service that was asked for by name: type and instance. Only who connected knows it.
    pub service: Option<(u32, u32)>,
}

/// What only TIPC sockets have (include/uapi/linux/tipc_netlink.h, `TIPC_NLA_SOCK_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TipcPart {
    /// Stream, datagram, rdm, seqpacket.
    pub kind: SockType,
    /// Our node; 0 for one without a network.
    pub node: u32,
    /// Our port.
    pub port: u32,
    /// The other end.
    pub connection: Option<TipcConnection>,
    /// Bound to a service.
    pub published: bool,
    /// Waits because a link is full.
    pub link_congested: bool,
    /// Waits because the connection's peer is slow.
    pub connection_congested: bool,
    /// Messages dropped.
    pub drops: Option<u32>,
    /// Number of the group that it joined.
    pub group: Option<u32>,
}

impl TipcPart {
    /// Words of [`TipcPart::congested`].
    pub const CONGESTED: &'static [&'static str] = &["none", "link", "connection"];

    /// What it waits for.
    pub fn congested(&self) -> &'static str {
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
    /// Bytes.
    pub size: u64,
    /// Its number on this host.
    pub id: u32,
    /// Pages.
    pub pages: u32,
    /// Bytes of a chunk, which holds a packet.
    pub chunk_size: u32,
    /// Bytes left free before each packet.
    pub headroom: u32,
    /// Interface of the socket that it was made for.
    pub ifindex: u32,
    /// Queue of that socket.
    pub queue: u32,
    /// Flags: 1 without copying.
    pub flags: u32,
    /// Sockets that share it.
    pub refs: u32,
}

/// Counters of an AF_XDP socket (`struct xdp_diag_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpStats {
    /// Packets dropped for want of room.
    pub rx_dropped: u64,
    /// Descriptors of the fill ring that made no sense.
    pub rx_invalid: u64,
    /// Packets dropped because the receive ring was full.
    pub rx_full: u64,
    /// Times that the fill ring was empty.
    pub fill_empty: u64,
    /// Descriptors of the send ring that made no sense.
    pub tx_invalid: u64,
    /// Times that the send ring was empty.
    pub tx_empty: u64,
}

/// What only AF_XDP sockets have. Of a ring the number of its places is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XdpPart {
    /// The interface's queue; `None` if the kernel was not asked. Means something only with an interface.
    pub queue: Option<u32>,
    /// Ring of received packets.
    pub rx_ring: Option<u32>,
    /// Ring of packets to be sent.
    pub tx_ring: Option<u32>,
    /// Memory of the packets.
    pub umem: Option<XdpUmem>,
    /// Ring of chunks given to the kernel.
    pub fill_ring: Option<u32>,
    /// Ring of chunks given back.
    pub completion_ring: Option<u32>,
    /// Counters.
    pub stats: Option<XdpStats>,
}
