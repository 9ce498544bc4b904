//! Fields that only packet, netlink and MPTCP sockets and rarer families have. They are stored outside the row, so
//! that the row of a TCP socket stays small.

use super::nested::{self, u32_at, u64_at};
use super::{SctpPart, TipcPart, VsockPart, XdpPart};

/// The part of a row that few sockets have. It is on the decoder's stack; the row points to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FamilyExtras<'b> {
    /// IP protocol of a raw socket, which takes the place of a local port.
    pub ip_protocol: Option<u8>,
    /// A packet socket.
    pub packet: Option<PacketPart<'b>>,
    /// A netlink socket.
    pub netlink: Option<NetlinkPart<'b>>,
    /// An MPTCP socket (not its subflows).
    pub mptcp: Option<MptcpPart<'b>>,
    /// An SCTP socket or one of its associations.
    pub sctp: Option<SctpPart<'b>>,
    /// A vsock socket.
    pub vsock: Option<VsockPart>,
    /// A TIPC socket.
    pub tipc: Option<TipcPart>,
    /// An AF_XDP socket.
    pub xdp: Option<XdpPart>,
}

impl FamilyExtras<'_> {
    /// All values unset.
    pub const EMPTY: FamilyExtras<'static> = FamilyExtras {
        ip_protocol: None,
        packet: None,
        netlink: None,
        mptcp: None,
        sctp: None,
        vsock: None,
        tipc: None,
        xdp: None,
    };
}

/// Type of a packet socket (SOCK_RAW and so on, the kernel's numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketType(pub u8);

impl PacketType {
    /// SOCK_DGRAM: without the link-layer header.
    pub const DGRAM: PacketType = PacketType(2);
    /// SOCK_RAW: with the link-layer header.
    pub const RAW: PacketType = PacketType(3);
    /// Our words for the types.
    pub const NAMES: &'static [&'static str] = &["dgram", "raw", "packet", "unknown"];

    /// Our word for the type.
    pub fn name(self) -> &'static str {
        match self.0 {
            2 => "dgram",
            3 => "raw",
            10 => "packet",
            _ => "unknown",
        }
    }
}

/// A ring of a packet socket (include/uapi/linux/packet_diag.h, `struct packet_diag_ring`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketRing {
    /// Bytes per block.
    pub block_size: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Bytes per frame; TPACKET_V3 uses it only for accounting.
    pub frame_size: u32,
    /// Number of frames.
    pub frames: u32,
    /// Milliseconds after which a partly filled block is delivered (TPACKET_V3).
    pub retire_ms: u32,
    /// Bytes in each block that are reserved for the program.
    pub private_size: u32,
    /// Feature bits.
    pub features: u32,
}

/// How the packets of a fanout group are distributed, `PACKET_FANOUT_*` of include/uapi/linux/if_packet.h.
pub(super) const FANOUT_NAMES: &[&str] = &["hash", "lb", "cpu", "rollover", "rnd", "qm", "cbpf", "ebpf", "unknown"];

/// Fields of packet sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketPart<'b> {
    /// Raw or datagram.
    pub kind: PacketType,
    /// Protocol of the frames it receives, in host order: 3 means all, 0 none.
    pub ethertype: u16,
    /// TPACKET version of the ring: 0, 1, 2 are TPACKET_V1, V2, V3.
    pub version: Option<u32>,
    /// Bytes reserved before each packet of a ring.
    pub reserve: Option<u32>,
    /// Length of the longest packet that is also copied to the queue.
    pub copy_thresh: Option<u32>,
    /// Kind of time stamps.
    pub timestamp: Option<u32>,
    /// `PDI_*` flags: 1 running, 2 auxdata, 4 origdev, 8 vnethdr, 16 loss.
    pub flags: Option<u32>,
    /// Ring of received packets.
    pub rx_ring: Option<PacketRing>,
    /// Ring of packets to send.
    pub tx_ring: Option<PacketRing>,
    /// Fanout group: id in the lower half, type in the upper half.
    pub fanout: Option<u32>,
    /// Memberships: an array of `struct packet_diag_mclist`.
    pub members: Option<&'b [u8]>,
    /// The classic BPF program: eight bytes per instruction.
    pub filter: Option<&'b [u8]>,
    /// `filter` as text.
    pub filter_text: &'b [u8],
}

/// Size of a `struct packet_diag_mclist` in bytes.
const MEMBER: usize = 44;

/// TPACKET_V3, include/uapi/linux/if_packet.h.
const BY_BLOCK: u32 = 2;
/// PDI_RUNNING, include/uapi/linux/packet_diag.h.
const RUNNING: u32 = 1;

impl<'b> PacketPart<'b> {
    /// A socket for which only the type and the protocol are known.
    pub fn new(kind: PacketType, ethertype: u16) -> PacketPart<'b> {
        PacketPart {
            kind,
            ethertype,
            version: None,
            reserve: None,
            copy_thresh: None,
            timestamp: None,
            flags: None,
            rx_ring: None,
            tx_ring: None,
            fanout: None,
            members: None,
            filter: None,
            filter_text: b"",
        }
    }

    /// Number of memberships (PACKET_ADD_MEMBERSHIP).
    pub fn memberships(&self) -> Option<u64> {
        self.members.map(|members| (members.len() / MEMBER) as u64)
    }

    /// Number of instructions in the filter.
    pub fn filter_len(&self) -> Option<u64> {
        self.filter.map(|filter| (filter.len() / 8) as u64)
    }

    /// The maximum time in milliseconds that the ring holds a packet back when traffic is low; `None` if unknown.
    pub fn late_ms(&self) -> Option<u32> {
        let by_block = self.rx_ring.filter(|_| self.version == Some(BY_BLOCK));
        self.version.map(|_| by_block.map_or(0, |ring| ring.retire_ms))
    }

    /// Why packets are delivered late or immediately, as a sentence.
    pub fn late_why(&self) -> Option<&'static str> {
        let is_running = self.flags? & RUNNING != 0;
        Some(match (self.rx_ring, self.version?) {
            _ if !is_running => "receives no packets: not bound, or its interface is down",
            (None, _) => "at once: no ring, each packet is copied to the socket's queue",
            (Some(_), BY_BLOCK) => {
                "late: TPACKET_V3 delivers a block when it is full or its timeout expires; tcpdump --immediate-mode \
                 delivers each packet at once"
            }
            (Some(_), _) => "at once: each packet in its own slot of the ring; only the reading program can delay it",
        })
    }

    /// Id of the fanout group.
    pub fn fanout_id(&self) -> Option<u16> {
        self.fanout.map(|fanout| fanout as u16)
    }

    /// How the packets of the group are distributed. (The bits above are flags: 0x10 rollover, 0x20 unique id, 0x80
    /// defragment.)
    pub fn fanout_type(&self) -> Option<&'static str> {
        let kind = usize::from((self.fanout? >> 16) as u8 & 0xf);
        FANOUT_NAMES.get(kind).or(FANOUT_NAMES.last()).copied()
    }
}

/// Netlink protocols, include/uapi/linux/netlink.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetlinkProtocol(pub u8);

impl NetlinkProtocol {
    /// Our words by number; the last one is for numbers without a word.
    pub const NAMES: &'static [&'static str] = &[
        "route",
        "unused",
        "usersock",
        "firewall",
        "sock_diag",
        "nflog",
        "xfrm",
        "selinux",
        "iscsi",
        "audit",
        "fib_lookup",
        "connector",
        "netfilter",
        "ip6_fw",
        "dnrtmsg",
        "kobject_uevent",
        "generic",
        "dm",
        "scsitransport",
        "ecryptfs",
        "rdma",
        "crypto",
        "smc",
        "unknown",
    ];

    /// Our word for the protocol.
    pub fn name(self) -> &'static str {
        Self::NAMES.get(usize::from(self.0)).copied().unwrap_or("unknown")
    }
}

/// Fields of netlink sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetlinkPart<'b> {
    /// The kernel subsystem that it communicates with.
    pub protocol: NetlinkProtocol,
    /// Its own port id; 0 is the kernel's.
    pub portid: u32,
    /// The port id that it is connected to.
    pub dst_portid: u32,
    /// The group that it sends to.
    pub dst_group: u32,
    /// The groups that it joined, one bit each; the lowest bit of the first byte is group 1.
    pub groups: Option<&'b [u8]>,
    /// `groups` as text: `1,5,7`.
    pub groups_text: &'b [u8],
    /// `NDIAG_FLAG_*`: 1 a dump is running, 2 packet info, 4 broadcast errors, 8 no ENOBUFS, 16 all namespaces, 32
    /// short acks.
    pub flags: Option<u32>,
    /// Lost messages (only from /proc/net/netlink; the netlink backend reports them as part of the socket memory).
    pub drops: Option<u32>,
}

/// `struct mptcp_info` (include/uapi/linux/mptcp.h) as the kernel sent it, possibly truncated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MptcpPart<'b>(&'b [u8]);

macro_rules! mptcp_members {
    ($($(#[$doc:meta])* $name:ident: $at:literal $width:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> Option<u64> {
            mptcp_members!($width, self.0, $at)
        }
    )*};
    (u8, $bytes:expr, $at:literal) => { $bytes.get($at).map(|&n| n.into()) };
    (u32, $bytes:expr, $at:literal) => { u32_at($bytes, $at).map(u64::from) };
    (u64, $bytes:expr, $at:literal) => { u64_at($bytes, $at) };
}

impl<'b> MptcpPart<'b> {
    /// Wraps the payload of INET_DIAG_INFO of an MPTCP socket.
    pub fn new(bytes: &'b [u8]) -> MptcpPart<'b> {
        MptcpPart(bytes)
    }

    mptcp_members! {
        /// Number of additional subflows.
        subflows: 0 u8;
        /// Number of ADD_ADDR options sent.
        add_addr_signal: 1 u8;
        /// Number of ADD_ADDR options accepted.
        add_addr_accepted: 2 u8;
        /// Maximum number of additional subflows.
        subflows_max: 3 u8;
        /// Maximum number of ADD_ADDR options to send.
        add_addr_signal_max: 4 u8;
        /// Maximum number of ADD_ADDR options to accept.
        add_addr_accepted_max: 5 u8;
        /// 1 fell back to TCP, 2 remote key received.
        flags: 8 u32;
        /// Token, which is the same in the subflows.
        token: 12 u32;
        /// Next sequence number to write.
        write_seq: 16 u64;
        /// First unacknowledged sequence number.
        snd_una: 24 u64;
        /// Next sequence number expected.
        rcv_nxt: 32 u64;
        /// Number of local addresses in use.
        local_addr_used: 40 u8;
        /// Maximum number of local addresses.
        local_addr_max: 41 u8;
        /// Whether checksums are enabled.
        csum_enabled: 42 u8;
        /// Retransmissions at the MPTCP level.
        retransmits: 44 u32;
        /// Bytes retransmitted.
        bytes_retrans: 48 u64;
        /// Bytes sent.
        bytes_sent: 56 u64;
        /// Bytes received.
        bytes_received: 64 u64;
        /// Bytes acknowledged.
        bytes_acked: 72 u64;
        /// Total number of subflows.
        subflows_total: 80 u8;
        /// Maximum number of laminar endpoints (6.18).
        endp_laminar_max: 81 u8;
        /// Milliseconds since data was last sent.
        last_data_sent: 84 u32;
        /// Milliseconds since data was last received.
        last_data_recv: 88 u32;
        /// Milliseconds since an acknowledgement was last received.
        last_ack_recv: 92 u32;
    }
}

/// Information of an upper-layer protocol (ULP) about a TCP socket: payload of INET_DIAG_ULP_INFO
/// (include/uapi/linux/inet_diag.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UlpPart<'b>(&'b [u8]);

impl<'b> UlpPart<'b> {
    /// Words of [`UlpPart::tls_version`].
    pub const TLS_VERSIONS: &'static [&'static str] = &["1.2", "1.3", "unknown"];
    /// Words of [`UlpPart::tls_cipher`].
    pub const TLS_CIPHERS: &'static [&'static str] = &[
        "aes-gcm-128",
        "aes-gcm-256",
        "aes-ccm-128",
        "chacha20-poly1305",
        "sm4-gcm",
        "sm4-ccm",
        "aria-gcm-128",
        "aria-gcm-256",
        "unknown",
    ];
    /// Words of [`UlpPart::tls_conf`].
    pub const TLS_CONFS: &'static [&'static str] = &["none", "sw", "hw", "hw-record", "unknown"];
    /// INET_ULP_INFO_NAME.
    const NAME: u16 = 1;
    /// INET_ULP_INFO_TLS.
    const TLS: u16 = 2;
    /// INET_ULP_INFO_MPTCP.
    const MPTCP: u16 = 3;

    /// Wraps the attribute's payload.
    pub fn new(bytes: &'b [u8]) -> UlpPart<'b> {
        UlpPart(bytes)
    }

    /// Name of the protocol: `tls`, `mptcp`.
    pub fn name(&self) -> Option<&'b [u8]> {
        nested::find(self.0, Self::NAME).map(|name| name.split(|&b| b == 0).next().unwrap_or_default())
    }

    /// An attribute of the subflow (`MPTCP_SUBFLOW_ATTR_*`: 1 token_rem, 2 token_loc, 8 flags, 9 id_rem, 10 id_loc).
    pub fn subflow(&self, kind: u16) -> Option<u64> {
        nested::number(nested::find(self.0, Self::MPTCP)?, kind)
    }

    fn tls(&self, kind: u16) -> Option<u64> {
        nested::number(nested::find(self.0, Self::TLS)?, kind)
    }

    /// TLS_INFO_VERSION.
    pub fn tls_version(&self) -> Option<&'static str> {
        Some(match self.tls(1)? {
            0x0303 => "1.2",
            0x0304 => "1.3",
            _ => "unknown",
        })
    }

    /// TLS_INFO_CIPHER: 51 and above, include/uapi/linux/tls.h.
    pub fn tls_cipher(&self) -> Option<&'static str> {
        let index = usize::try_from(self.tls(2)?.checked_sub(51).unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        Self::TLS_CIPHERS.get(index).or(Self::TLS_CIPHERS.last()).copied()
    }

    /// TLS_INFO_ZC_RO_TX: whether sendfile avoids copying; `None` without information from TLS.
    pub fn tls_zerocopy(&self) -> Option<bool> {
        Some(nested::find(nested::find(self.0, Self::TLS)?, 5).is_some())
    }

    /// TLS_INFO_TXCONF (`send`) or TLS_INFO_RXCONF: whether software or hardware encrypts.
    pub fn tls_conf(&self, send: bool) -> Option<&'static str> {
        let index = usize::try_from(self.tls(if send { 3 } else { 4 })?.checked_sub(1).unwrap_or(u64::MAX));
        Self::TLS_CONFS.get(index.unwrap_or(usize::MAX)).or(Self::TLS_CONFS.last()).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn attr(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((payload.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn lateness_is_that_of_the_ring() {
        let ring = Some(PacketRing { retire_ms: 60, ..PacketRing::default() });
        let unknown = PacketPart::new(PacketType::RAW, 3);
        assert_eq!((unknown.late_ms(), unknown.late_why()), (None, None));
        for (version, rx_ring, flags, ms, why) in [
            (2, ring, 1, 60, "late: "),
            (2, None, 1, 0, "at once: no ring"),
            (1, ring, 1, 0, "at once: each packet in its own slot"),
            (2, ring, 0, 60, "receives no packets"),
        ] {
            let part = PacketPart { version: Some(version), rx_ring, flags: Some(flags), ..unknown };
            assert_eq!(part.late_ms(), Some(ms));
            assert!(part.late_why().is_some_and(|said| said.starts_with(why)), "{why}");
        }
    }

    #[test]
    fn numbers_of_upper_layers() {
        let tls = [
            attr(1, &0x0304u16.to_ne_bytes()),
            attr(2, &52u16.to_ne_bytes()),
            attr(3, &2u16.to_ne_bytes()),
            attr(4, &0u16.to_ne_bytes()),
        ];
        let bytes = [attr(1, b"tls\0"), attr(2 | 0x8000, &tls.concat())].concat();
        let ulp = UlpPart::new(&bytes);
        assert_eq!(ulp.name(), Some(&b"tls"[..]));
        assert_eq!((ulp.tls_version(), ulp.tls_cipher()), (Some("1.3"), Some("aes-gcm-256")));
        assert_eq!((ulp.tls_conf(true), ulp.tls_conf(false)), (Some("sw"), Some("unknown")));
        assert_eq!(ulp.subflow(2), None);
        let bytes = attr(3, &[attr(2, &7u32.to_ne_bytes()), attr(9, &[3])].concat());
        let ulp = UlpPart::new(&bytes);
        assert_eq!((ulp.subflow(2), ulp.subflow(9), ulp.name(), ulp.tls_version()), (Some(7), Some(3), None, None));
        for cipher in [0u16, 50, 59, u16::MAX] {
            let bytes = attr(2, &attr(2, &cipher.to_ne_bytes()));
            assert_eq!(UlpPart::new(&bytes).tls_cipher(), Some("unknown"), "{cipher}");
        }
    }

    #[test]
    fn a_shorter_mptcp_info_knows_less() {
        let mut bytes = [0; 84];
        (bytes[0], bytes[12], bytes[80]) = (2, 9, 3);
        let part = MptcpPart::new(&bytes);
        assert_eq!((part.subflows(), part.token(), part.subflows_total()), (Some(2), Some(9), Some(3)));
        assert_eq!(part.last_data_sent(), None);
        assert_eq!(MptcpPart::new(&bytes[..14]).token(), None);
    }

    #[test]
    fn fanout_in_words() {
        let of = |fanout| PacketPart { fanout, ..PacketPart::new(PacketType::RAW, 3) };
        assert_eq!((of(Some(0x0002_0007)).fanout_id(), of(Some(0x0002_0007)).fanout_type()), (Some(7), Some("cpu")));
        assert_eq!(of(Some(0x1000_0000)).fanout_type(), Some("hash"));
        assert_eq!(of(Some(0x000f_0000)).fanout_type(), Some("unknown"));
        assert_eq!(of(None).fanout_type(), None);
    }
}
