//! Fields that few sockets have: packet, netlink, MPTCP, raw; upper layers, keys and options of TCP.

use super::family_extras::{
    FANOUT_NAMES, MptcpPart, NetlinkPart, NetlinkProtocol, PacketPart, PacketRing, PacketType, UlpPart,
};
use super::nested;
use super::{Socket, Sockets, need};
use crate::table::fields;
use crate::{Addr, Field, Key, Kind, LookupId, Show, Value};

type F = Field<Sockets>;

fn packet<'r, 'b>(row: &'r Socket<'b>) -> Option<&'r PacketPart<'b>> {
    row.extras?.packet.as_ref()
}

fn netlink<'r, 'b>(row: &'r Socket<'b>) -> Option<&'r NetlinkPart<'b>> {
    row.extras?.netlink.as_ref()
}

fn mptcp<'b>(row: &Socket<'b>) -> Option<MptcpPart<'b>> {
    row.extras?.mptcp
}

fn ulp<'b>(row: &Socket<'b>) -> Option<UlpPart<'b>> {
    row.ulp.map(UlpPart::new)
}

fn name<'r>(word: Option<&'static str>) -> Value<'r> {
    word.map_or(Value::Null, Value::Name)
}

fn flag<'r>(bits: Option<u32>, bit: u32) -> Value<'r> {
    bits.map_or(Value::Null, |bits| Value::Bool(bits & bit != 0))
}

/// The key of a measured delay; only packet sockets have delays.
fn delay_key(row: &Socket<'_>, figure: u32) -> Key {
    packet(row).filter(|_| row.cookie != 0).map_or(Key::None, |_| Key::Pair(row.cookie, figure))
}

fn ring<'r>(row: &Socket<'_>, send: bool, part: fn(&PacketRing) -> u32) -> Value<'r> {
    let ring = packet(row).and_then(|p| if send { p.tx_ring } else { p.rx_ring });
    Value::number(ring.as_ref().map(part))
}

fn option<'r>(row: &Socket<'_>, bit: u32) -> Value<'r> {
    row.sockopt.map_or(Value::Null, |bytes| Value::Bool(u16::from_le_bytes(bytes) >> bit & 1 == 1))
}

/// Size of one key, `struct tcp_diag_md5sig` in include/uapi/linux/tcp.h: family, prefix length, key length, address,
/// key.
const MD5_LEN: usize = 100;

/// The peer of the first key. No column shows the key itself.
fn md5_addr<'r>(keys: Option<&[u8]>) -> Value<'r> {
    let octets = keys.and_then(|keys| keys.get(4..20)?.first_chunk::<16>().copied());
    match (keys.and_then(|keys| keys.first()), octets) {
        (Some(10), Some(octets)) => Value::Addr(Addr::V6(octets)),
        (Some(_), Some([a, b, c, d, ..])) => Value::Addr(Addr::V4([a, b, c, d])),
        _ => Value::Null,
    }
}

/// SK_DIAG_BPF_STORAGE, and SK_DIAG_BPF_STORAGE_MAP_ID inside it (include/uapi/linux/inet_diag.h).
const STORAGE: u16 = 1;
const STORAGE_MAP_ID: u16 = 2;

fn storages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    nested::attributes(bytes).filter(|(kind, _)| *kind == STORAGE).map(|(_, payload)| payload)
}

macro_rules! ring_fields {
    ($($name:literal $send:literal $kind:ident $member:ident $doc:literal;)*) => {
        [$(F::own($name, Kind::$kind, |row| ring(row, $send, |r| r.$member))
            .needs(need::PACKET)
            .kernel(concat!("packet_diag_ring.", stringify!($member)))
            .doc($doc)),*]
    };
}

macro_rules! option_fields {
    ($($name:literal $bit:literal $doc:literal;)*) => {
        [$(F::own($name, Kind::Bool, |row| option(row, $bit))
            .needs(need::SOCKOPT)
            .kernel("INET_DIAG_SOCKOPT")
            .doc($doc)),*]
    };
}

/// Rings of packet sockets.
pub(super) const RINGS: &[Field<Sockets>] = &ring_fields! {
    "rx_blocks" false Count blocks "Blocks in the receive ring of a packet socket.";
    "rx_block_size" false Bytes block_size "Size of a block in that ring.";
    "rx_frames" false Count frames "Frames in that ring.";
    "rx_frame_size" false Bytes frame_size "Size of a frame in that ring.";
    "rx_retire_ms" false DurationMs retire_ms "Retire timeout: time after which a block is delivered although it is \
        not full.";
    "tx_blocks" true Count blocks "Blocks in the transmit ring of a packet socket.";
    "tx_block_size" true Bytes block_size "Size of a block in that ring.";
    "tx_frames" true Count frames "Frames in that ring.";
    "tx_frame_size" true Bytes frame_size "Size of a frame in that ring.";
};

/// Options of an IP socket, one bit each, lowest bit first (include/uapi/linux/inet_diag.h, `struct
/// inet_diag_sockopt`).
pub(super) const OPTIONS: &[Field<Sockets>] = &option_fields! {
    "recverr" 0 "IP_RECVERR: errors are queued for the program.";
    "is_icsk" 1 "True if the socket's protocol is connection-oriented.";
    "freebind" 2 "IP_FREEBIND: the socket may be bound to an address that does not exist.";
    "hdrincl" 3 "IP_HDRINCL: the program writes the IP header itself.";
    "mc_loop" 4 "IP_MULTICAST_LOOP: multicast that this host sends is looped back to it.";
    "transparent" 5 "IP_TRANSPARENT: the socket may use addresses of other hosts.";
    "mc_all" 6 "IP_MULTICAST_ALL: the socket receives from every group that the host joined.";
    "nodefrag" 7 "IP_NODEFRAG: outgoing fragments are not reassembled.";
    "bind_address_no_port" 8 "IP_BIND_ADDRESS_NO_PORT: the port is chosen at connect(), not at bind().";
    "recverr_rfc4884" 9 "IP_RECVERR_RFC4884: queued errors include the extension of RFC 4884.";
    "defer_connect" 10 "TCP_FASTOPEN_CONNECT: the connection waits for the first write.";
};

/// All other fields.
pub(super) const RARE: &[F] = fields! { F:
    /// IP protocol of a raw socket: 1 ICMP, 58 ICMPv6, 255 any.
    ip_protocol: Id = own(|row| Value::number(row.extras.and_then(|r| r.ip_protocol))),
        kernel "inet_num", show Show::Wide;
    /// Type of a packet socket: raw (with the link-layer header) or dgram (without it).
    packet_type: Name(PacketType::NAMES) = own(|row| name(packet(row).map(|p| p.kind.name()))),
        kernel "pdiag_type", show Show::Wide;
    /// EtherType of the frames that a packet socket receives; 0x3 means all.
    ethertype: Hex = own(|row| Value::number(packet(row).map(|p| p.ethertype))), kernel "pdiag_num", show Show::Wide;
    /// TPACKET version of a packet socket: 1, 2 or 3.
    packet_version: Count = own(|row| {
        Value::number(packet(row).and_then(|p| p.version).map(|v| v.saturating_add(1)))
    }), kernel "pdi_version", needs need::PACKET;
    /// True if a packet socket is receiving packets.
    running: Bool = own(|row| flag(packet(row).and_then(|p| p.flags), 1)), kernel "PDI_RUNNING", needs need::PACKET;
    /// Longest delay in a packet socket's ring when packets are few, as configured (not measured): the retire time of
    /// TPACKET_V3, otherwise 0. The reading program may add to it.
    late_ms: DurationMs = own(|row| Value::number(packet(row).and_then(PacketPart::late_ms))),
        kernel "packet_diag_ring.pdr_retire_tmo", needs need::PACKET;
    /// Why a packet socket delivers packets late or at once, and what to do about it.
    late_why: Text = own(|row| {
        packet(row).and_then(PacketPart::late_why).map_or(Value::Null, |why| Value::nonempty(why.as_bytes()))
    }), kernel "pdi_version", needs need::PACKET;
    /// Wake-ups of a packet socket's reader during the measurement: two seconds, or `--for` of `netwren capture
    /// latency`.
    wakeups: Count = joined(LookupId::PacketDelays, |row| delay_key(row, 0)), kernel "sk_data_ready",
        needs need::COOKIE;
    /// Median delay of a packet socket during the measurement: from the timestamp of the oldest waiting packet to the
    /// wake-up of the socket's reader (accurate to 25 %).
    delay_us: DurationUs = joined(LookupId::PacketDelays, |row| delay_key(row, 1)), kernel "sk_data_ready",
        needs need::COOKIE;
    /// Longest such delay.
    delay_max_us: DurationUs = joined(LookupId::PacketDelays, |row| delay_key(row, 2)), kernel "sk_data_ready",
        needs need::COOKIE;
    /// Flags of a packet socket: 1 running, 2 auxdata, 4 origdev, 8 vnethdr, 0x10 loss.
    packet_flags: Hex = own(|row| Value::number(packet(row).and_then(|p| p.flags))),
        kernel "pdi_flags", needs need::PACKET;
    /// Memberships of a packet socket: addresses and modes (such as promiscuous) that it requested from interfaces.
    memberships: Count = own(|row| Value::number(packet(row).and_then(PacketPart::memberships))),
        kernel "PACKET_DIAG_MCLIST", needs need::PACKET;
    /// ID of the fanout group among whose packet sockets packets are distributed.
    fanout_id: Id = own(|row| Value::number(packet(row).and_then(PacketPart::fanout_id))),
        kernel "PACKET_DIAG_FANOUT", needs need::PACKET;
    /// How the packets of that group are distributed.
    fanout_type: Name(FANOUT_NAMES) = own(|row| name(packet(row).and_then(PacketPart::fanout_type))),
        kernel "PACKET_DIAG_FANOUT", needs need::PACKET;
    /// Instructions of a packet socket's classic BPF filter (needs CAP_NET_ADMIN).
    filter_len: Count = own(|row| Value::number(packet(row).and_then(PacketPart::filter_len))),
        kernel "PACKET_DIAG_FILTER", needs need::FILTER;
    /// Classic BPF filter of a packet socket: code, jumps and constant of each instruction.
    filter: Text = own(|row| packet(row).map_or(Value::Null, |p| Value::nonempty(p.filter_text))),
        kernel "PACKET_DIAG_FILTER", needs need::FILTER;
    /// Netlink protocol: the part of the kernel with which a netlink socket communicates.
    netlink_protocol: Name(NetlinkProtocol::NAMES) = own(|row| name(netlink(row).map(|n| n.protocol.name()))),
        kernel "ndiag_protocol", show Show::Wide;
    /// Port ID of a netlink socket, often the PID of its process; 0 is the kernel.
    portid: Id = own(|row| Value::number(netlink(row).map(|n| n.portid))), kernel "ndiag_portid", show Show::Wide;
    /// Port ID to which a netlink socket is connected.
    dst_portid: Id = own(|row| Value::number(netlink(row).map(|n| n.dst_portid))), kernel "ndiag_dst_portid";
    /// Multicast group to which a netlink socket sends; 0 means no group.
    dst_group: Id = own(|row| Value::number(netlink(row).map(|n| n.dst_group))), kernel "ndiag_dst_group";
    /// Numbers of the multicast groups that a netlink socket joined.
    groups: Text = own(|row| netlink(row).map_or(Value::Null, |n| Value::nonempty(n.groups_text))),
        kernel "NETLINK_DIAG_GROUPS", needs need::NETLINK;
    /// True if a dump to a netlink socket is in progress.
    dump_running: Bool = own(|row| flag(netlink(row).and_then(|n| n.flags), 1)),
        kernel "NDIAG_FLAG_CB_RUNNING", needs need::NETLINK;
    /// Token of an MPTCP connection; its subflows (TCP sockets) have the same token.
    mptcp_token: Hex = own(|row| {
        Value::number(mptcp(row).and_then(|m| m.token()).or_else(|| ulp(row)?.subflow(2)))
    }), kernel "mptcpi_token", needs need::ULP;
    /// Additional subflows of an MPTCP connection (without the first).
    mptcp_subflows: Count = own(|row| Value::number(mptcp(row).and_then(|m| m.subflows()))),
        kernel "mptcpi_subflows", needs need::ULP;
    /// Flags of an MPTCP connection (1 fallback to TCP, 2 remote key received) or of a subflow.
    mptcp_flags: Hex = own(|row| {
        Value::number(mptcp(row).and_then(|m| m.flags()).or_else(|| ulp(row)?.subflow(8)))
    }), kernel "mptcpi_flags", needs need::ULP;
    /// ID of the local address in an MPTCP subflow.
    mptcp_local_id: Id = own(|row| Value::number(ulp(row).and_then(|u| u.subflow(10)))),
        kernel "MPTCP_SUBFLOW_ATTR_ID_LOC", needs need::ULP;
    /// ID of the peer's address in an MPTCP subflow.
    mptcp_remote_id: Id = own(|row| Value::number(ulp(row).and_then(|u| u.subflow(9)))),
        kernel "MPTCP_SUBFLOW_ATTR_ID_REM", needs need::ULP;
    /// Upper-layer protocol of a TCP socket: tls or mptcp.
    ulp: Text = own(|row| Value::text(ulp(row).and_then(|u| u.name()))), kernel "INET_ULP_INFO_NAME", needs need::ULP;
    /// Version of kernel TLS.
    tls_version: Name(UlpPart::TLS_VERSIONS) = own(|row| name(ulp(row).and_then(|u| u.tls_version()))),
        kernel "TLS_INFO_VERSION", needs need::ULP;
    /// Cipher of kernel TLS.
    tls_cipher: Name(UlpPart::TLS_CIPHERS) = own(|row| name(ulp(row).and_then(|u| u.tls_cipher()))),
        kernel "TLS_INFO_CIPHER", needs need::ULP;
    /// Where kernel TLS decrypts: none, sw (the kernel) or hw (the network card).
    tls_rx: Name(UlpPart::TLS_CONFS) = own(|row| name(ulp(row).and_then(|u| u.tls_conf(false)))),
        kernel "TLS_INFO_RXCONF", needs need::ULP;
    /// Where kernel TLS encrypts: none, sw (the kernel) or hw (the network card).
    tls_tx: Name(UlpPart::TLS_CONFS) = own(|row| name(ulp(row).and_then(|u| u.tls_conf(true)))),
        kernel "TLS_INFO_TXCONF", needs need::ULP;
    /// True if kernel TLS sends files without copying them.
    tls_zerocopy: Bool = own(|row| ulp(row).and_then(|u| u.tls_zerocopy()).map_or(Value::Null, Value::Bool)),
        kernel "TLS_INFO_ZC_RO_TX", needs need::ULP;
    /// Number of keys for TCP MD5 signatures (RFC 2385; needs CAP_NET_ADMIN).
    md5_keys: Count = own(|row| Value::number(row.md5sig.map(|keys| (keys.len() / MD5_LEN) as u64))),
        kernel "INET_DIAG_MD5SIG", needs need::ULP;
    /// Peer address of the first MD5 key. The keys themselves are never shown.
    md5_peer: Addr = own(|row| md5_addr(row.md5sig)), kernel "INET_DIAG_MD5SIG", needs need::ULP;
    /// BPF maps that store data with the socket (needs CAP_NET_ADMIN).
    bpf_storages: Count = own(|row| Value::number(row.storages.map(|s| storages(s).count() as u64))),
        kernel "INET_DIAG_SK_BPF_STORAGES", needs need::STORAGES;
    /// ID of the first such map.
    bpf_map_id: Id = own(|row| {
        Value::number(
            row.storages.and_then(|s| storages(s).find_map(|storage| nested::number(storage, STORAGE_MAP_ID))),
        )
    }), kernel "SK_DIAG_BPF_STORAGE_MAP_ID", needs need::STORAGES;
};
