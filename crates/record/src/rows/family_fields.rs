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
    "sctp_tag" Hex tag "sctpi_tag" "Verification tag in packets from an SCTP association's peer.";
    "sctp_peer_tag" Hex peer_tag "sctpi_peer_tag" "Verification tag in packets to an SCTP association's peer.";
    "sctp_rwnd" Bytes rwnd "sctpi_rwnd" "Receive window of an SCTP association.";
    "sctp_peer_rwnd" Bytes peer_rwnd "sctpi_peer_rwnd" "The peer's receive window.";
    "sctp_streams_in" Count instrms "sctpi_instrms" "Incoming streams of an SCTP association.";
    "sctp_streams_out" Count outstrms "sctpi_outstrms" "Outgoing streams of an SCTP association.";
    "sctp_unacked" Count unackdata "sctpi_unackdata" "Data chunks sent that the peer has not acknowledged.";
    "sctp_pending" Count penddata "sctpi_penddata" "Data chunks from the peer that are still missing, below the \
        highest one received.";
    "sctp_in_queue" Count inqueue "sctpi_inqueue" "Chunks in the receive queue.";
    "sctp_out_queue" Count outqueue "sctpi_outqueue" "Chunks in the send queue.";
    "sctp_errors" Count overall_error "sctpi_overall_error" "Consecutive errors since the peer last answered.";
    "sctp_max_burst" Count max_burst "sctpi_max_burst" "Maximum number of packets in a burst of an SCTP association.";
    "sctp_max_segment" Bytes maxseg "sctpi_maxseg" "Largest segment of an SCTP association.";
    "sctp_packets_in" Count ipackets "sctpi_ipackets" "Packets received in an SCTP association.";
    "sctp_packets_out" Count opackets "sctpi_opackets" "Packets sent in an SCTP association.";
    "sctp_rtx_chunks" Count rtxchunks "sctpi_rtxchunks" "Data chunks of an SCTP association that were retransmitted.";
    "sctp_cwnd" Bytes primary_cwnd "sctpi_p_cwnd" "Congestion window of an SCTP association's primary path.";
    "sctp_srtt_ms" DurationMs primary_srtt "sctpi_p_srtt" "Smoothed round-trip time on that path.";
    "sctp_rto_ms" DurationMs primary_rto "sctpi_p_rto" "Retransmission timeout on that path.";
};

/// Counters of AF_XDP sockets.
pub(super) const XDP_STATS: &[Field<Sockets>] = &statistics! {
    "xdp_rx_dropped" rx_dropped "n_rx_dropped" "Packets dropped at an AF_XDP socket because no chunk was free or the \
        packet was larger than a chunk.";
    "xdp_rx_invalid" rx_invalid "n_rx_invalid" "Invalid descriptors in the fill ring of an AF_XDP socket.";
    "xdp_rx_full" rx_full "n_rx_full" "Packets dropped because the RX ring of an AF_XDP socket was full.";
    "xdp_fill_empty" fill_empty "n_fill_ring_empty" "Number of times that the fill ring of an AF_XDP socket was empty \
        when a chunk was needed.";
    "xdp_tx_invalid" tx_invalid "n_tx_invalid" "Invalid descriptors in the TX ring of an AF_XDP socket.";
    "xdp_tx_empty" tx_empty "n_tx_ring_empty" "Number of times that the TX ring of an AF_XDP socket was empty when the \
        kernel polled it.";
};

/// All other fields.
pub(super) const FAMILIES: &[F] = fields! { F:
    /// DCTCP: 1 if the latest packet was marked; null if the connection fell back to another congestion control.
    dctcp_ce_state: Count = own(|row| {
        Value::number(row.dctcp.filter(|bytes| u16_at(bytes, 0) != Some(0)).and_then(|bytes| u16_at(bytes, 2)))
    }), kernel "dctcp_ce_state", needs need::CONG_INFO;
    /// DCTCP: estimated share of marked packets, in 1/1024.
    dctcp_alpha: Count = own(|row| dctcp(row, 4)), kernel "dctcp_alpha", needs need::CONG_INFO;
    /// DCTCP: bytes acknowledged with a mark in the current window.
    dctcp_marked_bytes: Bytes = own(|row| dctcp(row, 8)), kernel "dctcp_ab_ecn", needs need::CONG_INFO;
    /// DCTCP: bytes acknowledged in the current window.
    dctcp_acked_bytes: Bytes = own(|row| dctcp(row, 12)), kernel "dctcp_ab_tot", needs need::CONG_INFO;
    /// TCP Vegas: round trips measured in the current window.
    vegas_rtts: Count = own(|row| vegas(row, 4)), kernel "tcpv_rttcnt", needs need::CONG_INFO;
    /// TCP Vegas: round-trip time in the current window.
    vegas_rtt_us: DurationUs = own(|row| vegas(row, 8)), kernel "tcpv_rtt", needs need::CONG_INFO;
    /// TCP Vegas: shortest round-trip time in the current window.
    vegas_rtt_min_us: DurationUs = own(|row| vegas(row, 12)), kernel "tcpv_minrtt", needs need::CONG_INFO;
    /// State of an SCTP association, by SCTP's names; null for the socket itself.
    sctp_state: Name(SctpState::NAMES) = own(|row| {
        sctp(row).and_then(|part| part.state).map_or(Value::Null, |state| Value::Name(state.name()))
    }), kernel "idiag_state";
    /// All local addresses of an SCTP socket or association.
    sctp_local_addrs: Text = own(|row| sctp(row).map_or(Value::Null, |part| Value::nonempty(part.locals_text))),
        kernel "INET_DIAG_LOCALS";
    /// All peer addresses of an SCTP association.
    sctp_peer_addrs: Text = own(|row| sctp(row).map_or(Value::Null, |part| Value::nonempty(part.peers_text))),
        kernel "INET_DIAG_PEERS";
    /// Type of a vsock socket.
    vsock_type: Name(SockType::NAMES) = own(|row| {
        vsock(row).map_or(Value::Null, |part| Value::Name(part.kind.name()))
    }), kernel "vdiag_type";
    /// Local context ID (CID) of a vsock socket: 1 is this machine, 2 the host; null for any.
    vsock_cid: Id = own(|row| not_any(vsock(row).map(|part| part.local.0))), kernel "vdiag_src_cid";
    /// Local port of a vsock socket.
    vsock_port: Id = own(|row| not_any(vsock(row).map(|part| part.local.1))), kernel "vdiag_src_port";
    /// Peer's context ID (CID).
    vsock_peer_cid: Id = own(|row| not_any(vsock(row).map(|part| part.peer.0))), kernel "vdiag_dst_cid";
    /// Peer's port of a vsock socket.
    vsock_peer_port: Id = own(|row| not_any(vsock(row).map(|part| part.peer.1))), kernel "vdiag_dst_port";
    /// Type of a TIPC socket.
    tipc_type: Name(SockType::NAMES) = own(|row| {
        tipc(row).map_or(Value::Null, |part| Value::Name(part.kind.name()))
    }), kernel "TIPC_NLA_SOCK_TYPE";
    /// Number of the local TIPC node; 0 if TIPC has no network.
    tipc_node: Id = own(|row| Value::number(tipc(row).map(|part| part.node))), kernel "TIPC_NLA_SOCK_ADDR";
    /// Local port of a TIPC socket.
    tipc_port: Id = own(|row| Value::number(tipc(row).map(|part| part.port))), kernel "TIPC_NLA_SOCK_REF";
    /// Peer's node of a TIPC connection.
    tipc_peer_node: Id = own(|row| Value::number(tipc(row).and_then(|p| p.connection).map(|c| c.node))),
        kernel "TIPC_NLA_CON_NODE";
    /// Peer's port of a TIPC connection.
    tipc_peer_port: Id = own(|row| Value::number(tipc(row).and_then(|p| p.connection).map(|c| c.port))),
        kernel "TIPC_NLA_CON_SOCK";
    /// Service type that a TIPC connection was opened to.
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
    /// Congestion that a TIPC socket is waiting for: none, link or connection.
    tipc_congested: Name(TipcPart::CONGESTED) = own(|row| {
        tipc(row).map_or(Value::Null, |part| Value::Name(part.congested_part()))
    }), kernel "TIPC_NLA_SOCK_STAT";
    /// Messages dropped at a TIPC socket.
    tipc_drops: Count = own(|row| Value::number(tipc(row).and_then(|part| part.drops))),
        kernel "TIPC_NLA_SOCK_STAT_DROP";
    /// Communication group that a TIPC socket joined.
    tipc_group: Id = own(|row| Value::number(tipc(row).and_then(|part| part.group))), kernel "TIPC_NLA_SOCK_GROUP_ID";
    /// Interface queue that an AF_XDP socket is bound to.
    xdp_queue: Id = own(|row| {
        Value::number(if row.ifindex == 0 { None } else { xdp(row).and_then(|part| part.queue) })
    }), kernel "xdp_diag_info.queue_id", needs need::XDP | need::IFACE_MARK;
    /// Size of the RX ring of an AF_XDP socket, in entries.
    xdp_rx_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.rx_ring))),
        kernel "XDP_DIAG_RX_RING", needs need::XDP;
    /// Size of the TX ring of an AF_XDP socket, in entries.
    xdp_tx_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.tx_ring))),
        kernel "XDP_DIAG_TX_RING", needs need::XDP;
    /// Size of the fill ring of an AF_XDP socket, in entries.
    xdp_fill_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.fill_ring))),
        kernel "XDP_DIAG_UMEM_FILL_RING", needs need::XDP;
    /// Size of the completion ring of an AF_XDP socket, in entries.
    xdp_completion_ring: Count = own(|row| Value::number(xdp(row).and_then(|part| part.completion_ring))),
        kernel "XDP_DIAG_UMEM_COMPLETION_RING", needs need::XDP;
    /// ID of the UMEM (packet memory) of an AF_XDP socket.
    xdp_umem: Id = own(|row| umem(row, |u| u.id)), kernel "xdp_diag_umem.id", needs need::XDP;
    /// Size of the UMEM.
    xdp_umem_bytes: Bytes = own(|row| umem(row, |u| u.size)), kernel "xdp_diag_umem.size", needs need::XDP;
    /// Number of pages in the UMEM.
    xdp_umem_pages: Count = own(|row| umem(row, |u| u.pages)), kernel "xdp_diag_umem.num_pages", needs need::XDP;
    /// Size of a UMEM chunk, which holds one packet.
    xdp_chunk_size: Bytes = own(|row| umem(row, |u| u.chunk_size)), kernel "xdp_diag_umem.chunk_size", needs need::XDP;
    /// Bytes reserved before each packet.
    xdp_headroom: Bytes = own(|row| umem(row, |u| u.headroom)), kernel "xdp_diag_umem.headroom", needs need::XDP;
    /// True if packets reach the UMEM without being copied.
    xdp_zerocopy: Bool = own(|row| {
        xdp(row).and_then(|part| part.umem).map_or(Value::Null, |umem| Value::Bool(umem.flags & 1 != 0))
    }), kernel "XDP_DU_F_ZEROCOPY", needs need::XDP;
    /// Number of sockets that share the UMEM.
    xdp_umem_refs: Count = own(|row| umem(row, |u| u.refs)), kernel "xdp_diag_umem.refs", needs need::XDP;
};
