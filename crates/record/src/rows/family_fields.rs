//! Fields of SCTP, vsock, TIPC and AF_XDP sockets, and of two congestion control algorithms.

use super::nested::{u16_at, u32_at};
use super::{SctpNumbers, SctpPart, SctpState, SockType, TipcPart, VsockPart, XdpPart, XdpStats, XdpUmem};
use super::{Socket, Sockets, need};
use crate::table::fields;
use crate::{Field, Kind, Value};

type F = Field<Sockets>;

fn sctp<'r, 'b>(row: &'r Socket<'b>) -> Option<&'r SctpPart<'b>> {
    row.extras?.sctp.as_ref()
}

// In the row of the socket itself, the association numbers are meaningless zeros.
fn association<'r>(row: &Socket<'_>, number: fn(&SctpNumbers<'_>) -> Option<u64>) -> Value<'r> {
    let part = sctp(row).filter(|part| part.state.is_some());
    Value::number(part.and_then(|part| part.numbers.as_ref()).and_then(number))
}

fn vsock(row: &Socket<'_>) -> Option<VsockPart> {
    row.extras?.vsock
}

fn tipc(row: &Socket<'_>) -> Option<TipcPart> {
    row.extras?.tipc
}

fn xdp(row: &Socket<'_>) -> Option<XdpPart> {
    row.extras?.xdp
}

// VMADDR_CID_ANY, VMADDR_PORT_ANY (include/uapi/linux/vm_sockets.h).
fn not_any<'r>(n: Option<u32>) -> Value<'r> {
    Value::number(n.filter(|n| *n != u32::MAX))
}

fn umem<'r, N: Into<u64>>(row: &Socket<'_>, part: fn(&XdpUmem) -> N) -> Value<'r> {
    Value::number(xdp(row).and_then(|x| x.umem).map(|umem| part(&umem).into()))
}

fn stats<'r>(row: &Socket<'_>, part: fn(&XdpStats) -> u64) -> Value<'r> {
    Value::number(xdp(row).and_then(|x| x.stats).map(|stats| part(&stats)))
}

// include/uapi/linux/inet_diag.h, `struct tcp_dctcp_info`: enabled u16, ce_state u16, alpha, ab_ecn, ab_tot.
fn dctcp<'r>(row: &Socket<'_>, at: usize) -> Value<'r> {
    Value::number(row.dctcp.filter(|bytes| u16_at(bytes, 0) != Some(0)).and_then(|bytes| u32_at(bytes, at)))
}

// The same header, `struct tcpvegas_info`: enabled, rttcnt, rtt, minrtt. The value 0x7fffffff means not measured yet.
fn vegas<'r>(row: &Socket<'_>, at: usize) -> Value<'r> {
    let enabled = row.vegas.filter(|bytes| u32_at(bytes, 0) != Some(0));
    Value::number(enabled.and_then(|bytes| u32_at(bytes, at)).filter(|n| *n != 0x7fff_ffff))
}

macro_rules! associations {
    ($($name:literal $kind:ident $member:ident $kernel:literal $doc:literal;)*) => {
        [$(F::own($name, Kind::$kind, |row| association(row, |n| n.$member()))
            .needs(need::SCTP)
            .kernel($kernel)
            .doc($doc)),*]
    };
}

macro_rules! statistics {
    ($($name:literal $member:ident $kernel:literal $doc:literal;)*) => {
        [$(F::own($name, Kind::Count, |row| stats(row, |s| s.$member))
            .needs(need::XDP)
            .kernel($kernel)
            .doc($doc)),*]
    };
}

/// Numbers of SCTP associations.
pub(super) const SCTP: &[Field<Sockets>] = &associations! {
    "sctp_tag" Hex tag "sctpi_tag" "Verification tag that the peer of an SCTP association writes.";
    "sctp_peer_tag" Hex peer_tag "sctpi_peer_tag" "Verification tag that we write.";
    "sctp_rwnd" Bytes rwnd "sctpi_rwnd" "Receive window of an SCTP association.";
    "sctp_peer_rwnd" Bytes peer_rwnd "sctpi_peer_rwnd" "The peer's receive window.";
    "sctp_streams_in" Count instrms "sctpi_instrms" "Streams of an SCTP association to us.";
    "sctp_streams_out" Count outstrms "sctpi_outstrms" "Streams of an SCTP association to the peer.";
    "sctp_unacked" Count unackdata "sctpi_unackdata" "Chunks that the peer has not acknowledged.";
    "sctp_pending" Count penddata "sctpi_penddata" "Chunks that the program has not read.";
    "sctp_in_queue" Count inqueue "sctpi_inqueue" "Chunks in the receive queue.";
    "sctp_out_queue" Count outqueue "sctpi_outqueue" "Chunks in the send queue.";
    "sctp_errors" Count overall_error "sctpi_overall_error" "Errors since the peer was last heard of.";
    "sctp_max_burst" Count max_burst "sctpi_max_burst" "Most packets of an SCTP association in a burst.";
    "sctp_max_segment" Bytes maxseg "sctpi_maxseg" "Largest segment of an SCTP association.";
    "sctp_packets_in" Count ipackets "sctpi_ipackets" "Packets received in an SCTP association.";
    "sctp_packets_out" Count opackets "sctpi_opackets" "Packets sent in an SCTP association.";
    "sctp_rtx_chunks" Count rtxchunks "sctpi_rtxchunks" "Chunks of an SCTP association sent again.";
    "sctp_cwnd" Bytes primary_cwnd "sctpi_p_cwnd" "Congestion window of an SCTP association's primary path.";
    "sctp_srtt_ms" DurationMs primary_srtt "sctpi_p_srtt" "Smoothed round trip on that path.";
    "sctp_rto_ms" DurationMs primary_rto "sctpi_p_rto" "Timeout on that path.";
};

/// Counters of AF_XDP sockets.
pub(super) const XDP_STATS: &[Field<Sockets>] = &statistics! {
    "xdp_rx_dropped" rx_dropped "n_rx_dropped" "Packets dropped at an AF_XDP socket for want of room.";
    "xdp_rx_invalid" rx_invalid "n_rx_invalid" "Descriptors of its fill ring that made no sense.";
    "xdp_rx_full" rx_full "n_rx_full" "Packets dropped because its receive ring was full.";
    "xdp_fill_empty" fill_empty "n_fill_ring_empty" "Times that its fill ring was empty.";
    "xdp_tx_invalid" tx_invalid "n_tx_invalid" "Descriptors of its send ring that made no sense.";
    "xdp_tx_empty" tx_empty "n_tx_ring_empty" "Times that its send ring was empty.";
};

/// All other fields.
pub(super) const FAMILIES: &[F] = fields! { F:
    /// DCTCP: 1 if the latest packet was marked; null if it fell back to another congestion control.
    dctcp_ce_state: Count = own(|row| {
        Value::number(row.dctcp.filter(|bytes| u16_at(bytes, 0) != Some(0)).and_then(|bytes| u16_at(bytes, 2)))
    }), kernel "dctcp_ce_state", needs need::CONG_INFO;
    /// DCTCP: estimate of the share of marked packets, in 1/1024.
    dctcp_alpha: Count = own(|row| dctcp(row, 4)), kernel "dctcp_alpha", needs need::CONG_INFO;
    /// DCTCP: bytes of this window acknowledged with a mark.
    dctcp_marked_bytes: Bytes = own(|row| dctcp(row, 8)), kernel "dctcp_ab_ecn", needs need::CONG_INFO;
    /// DCTCP: bytes of this window acknowledged.
    dctcp_acked_bytes: Bytes = own(|row| dctcp(row, 12)), kernel "dctcp_ab_tot", needs need::CONG_INFO;
    /// TCP Vegas: round trips measured in this window.
    vegas_rtts: Count = own(|row| vegas(row, 4)), kernel "tcpv_rttcnt", needs need::CONG_INFO;
    /// TCP Vegas: round trip of this window.
    vegas_rtt_us: DurationUs = own(|row| vegas(row, 8)), kernel "tcpv_rtt", needs need::CONG_INFO;
    /// TCP Vegas: shortest round trip of this window.
    vegas_rtt_min_us: DurationUs = own(|row| vegas(row, 12)), kernel "tcpv_minrtt", needs need::CONG_INFO;
    /// State of an SCTP association in its own words; null for the socket itself.
    sctp_state: Name(SctpState::NAMES) = own(|row| {
        sctp(row).and_then(|part| part.state).map_or(Value::Null, |state| Value::Name(state.name()))
    }), kernel "idiag_state";
    /// Every local address of an SCTP socket or association.
    sctp_local_addrs: Text = own(|row| sctp(row).map_or(Value::Null, |part| Value::nonempty(part.locals_text))),
        kernel "INET_DIAG_LOCALS";
    /// Every address of an SCTP association's peer.
    sctp_peer_addrs: Text = own(|row| sctp(row).map_or(Value::Null, |part| Value::nonempty(part.peers_text))),
        kernel "INET_DIAG_PEERS";
    /// Type of a vsock socket.
    vsock_type: Name(SockType::NAMES) = own(|row| {
        vsock(row).map_or(Value::Null, |part| Value::Name(part.kind.name()))
    }), kernel "vdiag_type";
    /// Number of our machine: 1 is this one, 2 the host; null for any.
    vsock_cid: Id = own(|row| not_any(vsock(row).map(|part| part.local.0))), kernel "vdiag_src_cid";
    /// Our port of a vsock socket.
    vsock_port: Id = own(|row| not_any(vsock(row).map(|part| part.local.1))), kernel "vdiag_src_port";
    /// Number of the machine at the other end.
    vsock_peer_cid: Id = own(|row| not_any(vsock(row).map(|part| part.peer.0))), kernel "vdiag_dst_cid";
    /// Port at the other end of a vsock socket.
    vsock_peer_port: Id = own(|row| not_any(vsock(row).map(|part| part.peer.1))), kernel "vdiag_dst_port";
    /// Type of a TIPC socket.
    tipc_type: Name(SockType::NAMES) = own(|row| {
        tipc(row).map_or(Value::Null, |part| Value::Name(part.kind.name()))
    }), kernel "TIPC_NLA_SOCK_TYPE";
    /// Number of our TIPC node; 0 without a network.
    tipc_node: Id = own(|row| Value::number(tipc(row).map(|part| part.node))), kernel "TIPC_NLA_SOCK_ADDR";
    /// Our port of a TIPC socket.
    tipc_port: Id = own(|row| Value::number(tipc(row).map(|part| part.port))), kernel "TIPC_NLA_SOCK_REF";
    /// Node at the other end of a TIPC connection.
    tipc_peer_node: Id = own(|row| Value::number(tipc(row).and_then(|p| p.connection).map(|c| c.node))),
        kernel "TIPC_NLA_CON_NODE";
    /// Port at the other end of a TIPC connection.
    tipc_peer_port: Id = own(|row| Value::number(tipc(row).and_then(|p| p.connection).map(|c| c.port))),
        kernel "TIPC_NLA_CON_SOCK";
    /// Service type that a TIPC connection was asked for by.
    tipc_service: Id = own(|row| {
        Value::number(tipc(row).and_then(|p| p.connection).and_then(|c| c.service).map(|(service, _)| service))
    }), kernel "TIPC_NLA_CON_TYPE";
    /// Instance of that service.
    tipc_instance: Id = own(|row| {
        Value::number(tipc(row).and_then(|p| p.connection).and_then(|c| c.service).map(|(_, instance)| instance))
    }), kernel "TIPC_NLA_CON_INST";
    /// True if a TIPC socket is bound to a service.
    tipc_published: Bool = own(|row| tipc(row).map_or(Value::Null, |p| Value::Bool(p.published))),
        kernel "TIPC_NLA_SOCK_HAS_PUBL";
    /// What a TIPC socket waits for.
    tipc_congested: Name(TipcPart::CONGESTED) = own(|row| {
        tipc(row).map_or(Value::Null, |part| Value::Name(part.congested()))
    }), kernel "TIPC_NLA_SOCK_STAT";
    /// Messages dropped at a TIPC socket.
    tipc_drops: Count = own(|row| Value::number(tipc(row).and_then(|part| part.drops))),
        kernel "TIPC_NLA_SOCK_STAT_DROP";
    /// Group that a TIPC socket joined.
    tipc_group: Id = own(|row| Value::number(tipc(row).and_then(|part| part.group))), kernel "TIPC_NLA_SOCK_GROUP_ID";
    /// Queue of the interface that an AF_XDP socket is bound to.
    xdp_queue: Id = own(|row| {
        Value::number(if row.ifindex == 0 { None } else { xdp(row).and_then(|part| part.queue) })
    }), kernel "xdp_diag_info.queue_id", needs need::XDP | need::IFACE_MARK;
    /// Places in the receive ring of an AF_XDP socket.
    xdp_rx_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.rx_ring))),
        kernel "XDP_DIAG_RX_RING", needs need::XDP;
    /// Places in its send ring.
    xdp_tx_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.tx_ring))),
        kernel "XDP_DIAG_TX_RING", needs need::XDP;
    /// Places in its ring of chunks for the kernel.
    xdp_fill_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.fill_ring))),
        kernel "XDP_DIAG_UMEM_FILL_RING", needs need::XDP;
    /// Places in its ring of chunks that come back.
    xdp_completion_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.completion_ring))),
        kernel "XDP_DIAG_UMEM_COMPLETION_RING", needs need::XDP;
    /// Number of the memory that an AF_XDP socket shares with the kernel.
    xdp_umem: Id = own(|row| umem(row, |u| u.id)), kernel "xdp_diag_umem.id", needs need::XDP;
    /// Size of that memory.
    xdp_umem_bytes: Bytes = own(|row| umem(row, |u| u.size)), kernel "xdp_diag_umem.size", needs need::XDP;
    /// Pages of that memory.
    xdp_umem_pages: Count = own(|row| umem(row, |u| u.pages)), kernel "xdp_diag_umem.num_pages", needs need::XDP;
    /// Size of its chunks, one a packet.
    xdp_chunk_size: Bytes = own(|row| umem(row, |u| u.chunk_size)), kernel "xdp_diag_umem.chunk_size", needs need::XDP;
    /// Bytes left free before each packet.
    xdp_headroom: Bytes = own(|row| umem(row, |u| u.headroom)), kernel "xdp_diag_umem.headroom", needs need::XDP;
    /// True if packets are not copied into that memory.
    xdp_zerocopy: Bool = own(|row| {
        xdp(row).and_then(|part| part.umem).map_or(Value::Null, |umem| Value::Bool(umem.flags & 1 != 0))
    }), kernel "XDP_DU_F_ZEROCOPY", needs need::XDP;
    /// Sockets that share that memory.
    xdp_umem_refs: Count = own(|row| umem(row, |u| u.refs)), kernel "xdp_diag_umem.refs", needs need::XDP;
};
