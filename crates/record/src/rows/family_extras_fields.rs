//! Fields that few sockets have: packet, netlink, MPTCP, raw; upper layers, keys and options of TCP.

use super::family_extras::{
    FANOUT_NAMES, MptcpPart, NetlinkPart, NetlinkProtocol, PacketPart, PacketRing, PacketType, UlpPart,
};
use super::nested;
use super::{Socket, Sockets, need};
use crate::{Addr, Field, Kind, Show, Value};

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

fn written(text: &[u8]) -> Value<'_> {
    if text.is_empty() { Value::Null } else { Value::Bytes(text) }
}

fn ring<'r>(row: &Socket<'_>, send: bool, part: fn(&PacketRing) -> u32) -> Value<'r> {
    let ring = packet(row).and_then(|p| if send { p.tx_ring } else { p.rx_ring });
    Value::number(ring.as_ref().map(part))
}

fn option<'r>(row: &Socket<'_>, bit: u32) -> Value<'r> {
    row.sockopt.map_or(Value::Null, |bytes| Value::Bool(u16::from_le_bytes(bytes) >> bit & 1 == 1))
}

/// One key, include/uapi/linux/tcp.h `struct tcp_diag_md5sig`: family, prefix length, key length, address, key.
const MD5_LEN: usize = 100;

/// The peer of the first key. The key itself is nobody's column.
fn md5_addr<'r>(keys: Option<&[u8]>) -> Value<'r> {
    let octets = keys.and_then(|keys| keys.get(4..20)?.first_chunk::<16>().copied());
    match (keys.and_then(|keys| keys.first()), octets) {
        (Some(10), Some(octets)) => Value::Addr(Addr::V6(octets)),
        (Some(_), Some([a, b, c, d, ..])) => Value::Addr(Addr::V4([a, b, c, d])),
        _ => Value::Null,
    }
}

/// SK_DIAG_BPF_STORAGE, and in it SK_DIAG_BPF_STORAGE_MAP_ID (include/uapi/linux/inet_diag.h).
const STORAGE: u16 = 1;
const STORAGE_MAP_ID: u16 = 2;

fn storages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    nested::each(bytes).filter(|(kind, _)| *kind == STORAGE).map(|(_, payload)| payload)
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
    "rx_blocks" false Count blocks "Blocks of a packet socket's ring of received packets.";
    "rx_block_size" false Bytes block_size "Size of a block of that ring.";
    "rx_frames" false Count frames "Frames of that ring.";
    "rx_frame_size" false Bytes frame_size "Size of a frame of that ring.";
    "rx_retire_ms" false DurationMs retire_ms "Time after which a block that is not full is given out.";
    "tx_blocks" true Count blocks "Blocks of a packet socket's ring of packets to be sent.";
    "tx_block_size" true Bytes block_size "Size of a block of that ring.";
    "tx_frames" true Count frames "Frames of that ring.";
    "tx_frame_size" true Bytes frame_size "Size of a frame of that ring.";
};

/// Options of an IP socket, bit by bit from the lowest (include/uapi/linux/inet_diag.h, `struct inet_diag_sockopt`).
pub(super) const OPTIONS: &[Field<Sockets>] = &option_fields! {
    "recverr" 0 "IP_RECVERR: errors are queued for the program.";
    "is_icsk" 1 "True of a socket that can hold connections.";
    "freebind" 2 "IP_FREEBIND: may be bound to an address that is not there.";
    "hdrincl" 3 "IP_HDRINCL: the program writes the IP header itself.";
    "mc_loop" 4 "IP_MULTICAST_LOOP: own multicast comes back.";
    "transparent" 5 "IP_TRANSPARENT: may use foreign addresses.";
    "mc_all" 6 "IP_MULTICAST_ALL: takes every group that the host joined.";
    "nodefrag" 7 "IP_NODEFRAG: fragments are not put together on output.";
    "bind_address_no_port" 8 "IP_BIND_ADDRESS_NO_PORT: the port is chosen only at connect.";
    "recverr_rfc4884" 9 "IP_RECVERR_RFC4884: errors with the extension of RFC 4884.";
    "defer_connect" 10 "TCP_FASTOPEN_CONNECT: the connection waits for the first write.";
};

/// The rest.
pub(super) const RARE: &[Field<Sockets>] = &[
    F::own("ip_protocol", Kind::Id, |row| Value::number(row.extras.and_then(|r| r.ip_protocol)))
        .kernel("inet_num")
        .doc("IP protocol of a raw socket: 1 ICMP, 58 ICMPv6, 255 any.")
        .show(Show::Wide),
    F::own("packet_type", Kind::Name(PacketType::NAMES), |row| name(packet(row).map(|p| p.kind.name())))
        .kernel("pdiag_type")
        .doc("Type of a packet socket: raw with the link layer's header, dgram without.")
        .show(Show::Wide),
    F::own("ethertype", Kind::Hex, |row| Value::number(packet(row).map(|p| p.ethertype)))
        .kernel("pdiag_num")
        .doc("Protocol of the frames that a packet socket takes; 0x3 is every one.")
        .show(Show::Wide),
    F::own("packet_version", Kind::Count, |row| {
        Value::number(packet(row).and_then(|p| p.version).map(|v| v.saturating_add(1)))
    })
    .needs(need::PACKET)
    .kernel("pdi_version")
    .doc("TPACKET version of a packet socket: 1, 2, 3."),
    F::own("running", Kind::Bool, |row| flag(packet(row).and_then(|p| p.flags), 1))
        .needs(need::PACKET)
        .kernel("PDI_RUNNING")
        .doc("True if a packet socket takes packets now."),
    F::own("packet_flags", Kind::Hex, |row| Value::number(packet(row).and_then(|p| p.flags)))
        .needs(need::PACKET)
        .kernel("pdi_flags")
        .doc("Flags of a packet socket: 1 running, 2 auxdata, 4 origdev, 8 vnethdr, 0x10 loss."),
    F::own("memberships", Kind::Count, |row| Value::number(packet(row).and_then(PacketPart::memberships)))
        .needs(need::PACKET)
        .kernel("PACKET_DIAG_MCLIST")
        .doc("Memberships of a packet socket: addresses and modes (promiscuous) that it asked of interfaces."),
    F::own("fanout_id", Kind::Id, |row| Value::number(packet(row).and_then(PacketPart::fanout_id)))
        .needs(need::PACKET)
        .kernel("PACKET_DIAG_FANOUT")
        .doc("Group of packet sockets among which packets are spread."),
    F::own("fanout_type", Kind::Name(FANOUT_NAMES), |row| name(packet(row).and_then(PacketPart::fanout_type)))
        .needs(need::PACKET)
        .kernel("PACKET_DIAG_FANOUT")
        .doc("How that group's packets are spread."),
    F::own("filter_len", Kind::Count, |row| Value::number(packet(row).and_then(PacketPart::filter_len)))
        .needs(need::FILTER)
        .kernel("PACKET_DIAG_FILTER")
        .doc("Instructions of a packet socket's classic BPF filter (needs CAP_NET_ADMIN)."),
    F::own("filter", Kind::Text, |row| packet(row).map_or(Value::Null, |p| written(p.filter_text)))
        .needs(need::FILTER)
        .kernel("PACKET_DIAG_FILTER")
        .doc("That filter: code, jumps and constant of each instruction."),
    F::own("netlink_protocol", Kind::Name(NetlinkProtocol::NAMES), |row| name(netlink(row).map(|n| n.protocol.name())))
        .kernel("ndiag_protocol")
        .doc("Which of the kernel's parts a netlink socket speaks to.")
        .show(Show::Wide),
    F::own("portid", Kind::Id, |row| Value::number(netlink(row).map(|n| n.portid)))
        .kernel("ndiag_portid")
        .doc("Address of a netlink socket, often its process's pid; 0 is the kernel's own.")
        .show(Show::Wide),
    F::own("dst_portid", Kind::Id, |row| Value::number(netlink(row).map(|n| n.dst_portid)))
        .kernel("ndiag_dst_portid")
        .doc("Address that a netlink socket is connected to."),
    F::own("dst_group", Kind::Id, |row| Value::number(netlink(row).map(|n| n.dst_group)))
        .kernel("ndiag_dst_group")
        .doc("Group that a netlink socket sends to; 0 is none."),
    F::own("groups", Kind::Text, |row| netlink(row).map_or(Value::Null, |n| written(n.groups_text)))
        .needs(need::NETLINK)
        .kernel("NETLINK_DIAG_GROUPS")
        .doc("Numbers of the groups that a netlink socket listens to."),
    F::own("dump_running", Kind::Bool, |row| flag(netlink(row).and_then(|n| n.flags), 1))
        .needs(need::NETLINK)
        .kernel("NDIAG_FLAG_CB_RUNNING")
        .doc("True if a dump to a netlink socket is under way."),
    F::own("mptcp_token", Kind::Hex, |row| {
        Value::number(mptcp(row).and_then(|m| m.token()).or_else(|| ulp(row)?.subflow(2)))
    })
    .needs(need::ULP)
    .kernel("mptcpi_token")
    .doc("Token of an MPTCP connection; the same in the TCP sockets that are its subflows."),
    F::own("mptcp_subflows", Kind::Count, |row| Value::number(mptcp(row).and_then(|m| m.subflows())))
        .needs(need::ULP)
        .kernel("mptcpi_subflows")
        .doc("Subflows of an MPTCP connection beside its first."),
    F::own("mptcp_flags", Kind::Hex, |row| {
        Value::number(mptcp(row).and_then(|m| m.flags()).or_else(|| ulp(row)?.subflow(8)))
    })
    .needs(need::ULP)
    .kernel("mptcpi_flags")
    .doc("Flags of an MPTCP connection (1 fallen back to TCP, 2 remote key received) or of a subflow."),
    F::own("mptcp_local_id", Kind::Id, |row| Value::number(ulp(row).and_then(|u| u.subflow(10))))
        .needs(need::ULP)
        .kernel("MPTCP_SUBFLOW_ATTR_ID_LOC")
        .doc("Number of our address in an MPTCP subflow."),
    F::own("mptcp_remote_id", Kind::Id, |row| Value::number(ulp(row).and_then(|u| u.subflow(9))))
        .needs(need::ULP)
        .kernel("MPTCP_SUBFLOW_ATTR_ID_REM")
        .doc("Number of the peer's address in an MPTCP subflow."),
    F::own("ulp", Kind::Text, |row| Value::text(ulp(row).and_then(|u| u.name())))
        .needs(need::ULP)
        .kernel("INET_ULP_INFO_NAME")
        .doc("Upper layer protocol of a TCP socket: tls, mptcp."),
    F::own("tls_version", Kind::Name(UlpPart::TLS_VERSIONS), |row| name(ulp(row).and_then(|u| u.tls_version())))
        .needs(need::ULP)
        .kernel("TLS_INFO_VERSION")
        .doc("Version of kernel TLS."),
    F::own("tls_cipher", Kind::Name(UlpPart::TLS_CIPHERS), |row| name(ulp(row).and_then(|u| u.tls_cipher())))
        .needs(need::ULP)
        .kernel("TLS_INFO_CIPHER")
        .doc("Cipher of kernel TLS."),
    F::own("tls_rx", Kind::Name(UlpPart::TLS_CONFS), |row| name(ulp(row).and_then(|u| u.tls_conf(false))))
        .needs(need::ULP)
        .kernel("TLS_INFO_RXCONF")
        .doc("Who decrypts for kernel TLS: none, the kernel (sw), the interface (hw)."),
    F::own("tls_tx", Kind::Name(UlpPart::TLS_CONFS), |row| name(ulp(row).and_then(|u| u.tls_conf(true))))
        .needs(need::ULP)
        .kernel("TLS_INFO_TXCONF")
        .doc("Who encrypts for kernel TLS."),
    F::own("tls_zerocopy", Kind::Bool, |row| ulp(row).and_then(|u| u.tls_zerocopy()).map_or(Value::Null, Value::Bool))
        .needs(need::ULP)
        .kernel("TLS_INFO_ZC_RO_TX")
        .doc("True if kernel TLS sends files without a copy."),
    F::own("md5_keys", Kind::Count, |row| Value::number(row.md5sig.map(|keys| (keys.len() / MD5_LEN) as u64)))
        .needs(need::ULP)
        .kernel("INET_DIAG_MD5SIG")
        .doc("Keys for TCP MD5 signatures (RFC 2385; needs CAP_NET_ADMIN)."),
    F::own("md5_peer", Kind::Addr, |row| md5_addr(row.md5sig))
        .needs(need::ULP)
        .kernel("INET_DIAG_MD5SIG")
        .doc("Peer of such a key, the first one of several. The keys themselves are never shown."),
    F::own("bpf_storages", Kind::Count, |row| Value::number(row.storages.map(|s| storages(s).count() as u64)))
        .needs(need::STORAGES)
        .kernel("INET_DIAG_SK_BPF_STORAGES")
        .doc("BPF maps that keep something with the socket (needs CAP_NET_ADMIN)."),
    F::own("bpf_map_id", Kind::Id, |row| {
        Value::number(
            row.storages.and_then(|s| storages(s).find_map(|storage| nested::number(storage, STORAGE_MAP_ID))),
        )
    })
    .needs(need::STORAGES)
    .kernel("SK_DIAG_BPF_STORAGE_MAP_ID")
    .doc("Number of such a map, the first one of several."),
];
