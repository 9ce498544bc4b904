//! `struct tcp_info` as the kernel sent it: a prefix of any length, read field by field.
//!
//! The struct grows with every few kernels. A field beyond the end is absent (`None`), not zero; bytes beyond the
//! fields known here are ignored. Layout: include/uapi/linux/tcp.h (6.18 sends 280 bytes).

use super::Socket;
use crate::rows::{Sockets, need};
use crate::{Field, Kind, Value};

type F = Field<Sockets>;

/// A borrowed `tcp_info`. Reading a field is one bounds check and one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo<'b>(&'b [u8]);

impl<'b> TcpInfo<'b> {
    /// Wraps the payload of INET_DIAG_INFO.
    pub fn new(bytes: &'b [u8]) -> TcpInfo<'b> {
        TcpInfo(bytes)
    }

    /// The bytes as sent.
    pub fn as_bytes(&self) -> &'b [u8] {
        self.0
    }

    fn u8_at(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        self.0.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        self.0.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        self.0.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    /// Window scale the peer announced (`tcpi_snd_wscale`, low 4 bits of byte 6).
    pub fn snd_wscale(&self) -> Option<u8> {
        self.u8_at(6).map(|b| b & 0x0f)
    }

    /// Window scale we announced (`tcpi_rcv_wscale`).
    pub fn rcv_wscale(&self) -> Option<u8> {
        self.u8_at(6).map(|b| b >> 4)
    }

    /// The last delivery rate sample was limited by the application (bit 0 of byte 7).
    pub fn delivery_rate_app_limited(&self) -> Option<bool> {
        self.u8_at(7).map(|b| b & 1 != 0)
    }

    /// Why TCP Fast Open failed at the client (bits 1–2 of byte 7).
    pub fn fastopen_client_fail(&self) -> Option<u8> {
        self.u8_at(7).map(|b| b >> 1 & 3)
    }
}

impl Socket<'_> {
    fn info<R>(&self, read: impl FnOnce(&TcpInfo<'_>) -> Option<R>) -> Option<R> {
        self.tcp_info.as_ref().and_then(read)
    }
}

/// One line a member of the struct: accessor, width, offset, field name, kind, kernel name, sentence.
macro_rules! members {
    ($($get:ident $width:ident @ $at:literal $(* $times:literal)? as $name:literal, $kind:expr, $kernel:literal, $doc:literal;)*) => {
        impl TcpInfo<'_> {
            $(
                #[doc = $doc]
                #[doc = concat!(" (`", $kernel, "`; as the kernel has it: rates in bytes per second)")]
                #[inline]
                pub fn $get(&self) -> Option<members!(@type $width)> {
                    self.$width($at)
                }
            )*
        }
        /// The plain members of `tcp_info` as fields of the sockets' table.
        pub(super) const MEMBERS: &[Field<Sockets>] = &[
            $(
                F::own($name, $kind, |row| Value::number(row.info(|i| i.$get())$(.map(|n| n.saturating_mul($times)))?))
                    .needs(need::TCP_INFO).kernel($kernel).doc($doc),
            )*
            F::own("snd_wscale", Kind::Count, |row| Value::number(row.info(|i| i.snd_wscale())))
                .needs(need::TCP_INFO).kernel("tcpi_snd_wscale").doc("Window scale that the peer announced."),
            F::own("rcv_wscale", Kind::Count, |row| Value::number(row.info(|i| i.rcv_wscale())))
                .needs(need::TCP_INFO).kernel("tcpi_rcv_wscale").doc("Window scale that we announced."),
            F::own("app_limited", Kind::Bool, |row| {
                row.info(|i| i.delivery_rate_app_limited()).map_or(Value::Null, Value::Bool)
            })
            .needs(need::TCP_INFO)
            .kernel("tcpi_delivery_rate_app_limited")
            .doc("The last delivery rate sample was limited by the application, not the network."),
            F::own("fastopen_client_fail", Kind::Count, |row| {
                Value::number(row.info(|i| i.fastopen_client_fail()))
            })
            .needs(need::TCP_INFO)
            .kernel("tcpi_fastopen_client_fail")
            .doc("Why TCP Fast Open failed at the client: 0 not, 1 no cookie, 2 data not acked, 3 SYN retransmitted."),
        ];
    };
    (@type u8_at) => { u8 };
    (@type u16_at) => { u16 };
    (@type u32_at) => { u32 };
    (@type u64_at) => { u64 };
}

members! {
    ca_state u8_at @ 1 as "ca_state", Kind::Count, "tcpi_ca_state", "State of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.";
    retransmits u8_at @ 2 as "rto_retransmits", Kind::Count, "tcpi_retransmits", "Timeouts in a row without an acknowledgement.";
    probes u8_at @ 3 as "probes", Kind::Count, "tcpi_probes", "Window or keepalive probes that are unanswered.";
    backoff u8_at @ 4 as "backoff", Kind::Count, "tcpi_backoff", "Doublings of the retransmission timeout.";
    options u8_at @ 5 as "tcp_options", Kind::Hex, "tcpi_options", "Bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 SYN data, 64 microsecond timestamps.";
    rto_us u32_at @ 8 as "rto_us", Kind::DurationUs, "tcpi_rto", "Retransmission timeout.";
    ato_us u32_at @ 12 as "ato_us", Kind::DurationUs, "tcpi_ato", "Delayed-acknowledgement timeout.";
    snd_mss u32_at @ 16 as "mss", Kind::Bytes, "tcpi_snd_mss", "Largest segment that is sent.";
    rcv_mss u32_at @ 20 as "rcv_mss", Kind::Bytes, "tcpi_rcv_mss", "Largest segment that was received.";
    unacked u32_at @ 24 as "unacked", Kind::Count, "tcpi_unacked", "Segments sent and not yet acknowledged; at a listener the connections waiting for accept.";
    sacked u32_at @ 28 as "sacked", Kind::Count, "tcpi_sacked", "Segments acknowledged selectively; at a listener the backlog limit.";
    lost u32_at @ 32 as "lost_segments", Kind::Count, "tcpi_lost", "Segments believed lost.";
    retrans u32_at @ 36 as "retrans", Kind::Count, "tcpi_retrans", "Retransmitted segments that are in flight.";
    fackets u32_at @ 40 as "fackets", Kind::Count, "tcpi_fackets", "Forward acknowledged segments (always 0 since 4.15).";
    last_data_sent_ms u32_at @ 44 as "last_data_sent_ms", Kind::DurationMs, "tcpi_last_data_sent", "Time since data were last sent.";
    last_ack_sent_ms u32_at @ 48 as "last_ack_sent_ms", Kind::DurationMs, "tcpi_last_ack_sent", "Not kept by the kernel: always 0.";
    last_data_recv_ms u32_at @ 52 as "last_data_recv_ms", Kind::DurationMs, "tcpi_last_data_recv", "Time since data last arrived.";
    last_ack_recv_ms u32_at @ 56 as "last_ack_recv_ms", Kind::DurationMs, "tcpi_last_ack_recv", "Time since an acknowledgement last arrived.";
    pmtu u32_at @ 60 as "pmtu", Kind::Bytes, "tcpi_pmtu", "Path MTU.";
    rcv_ssthresh u32_at @ 64 as "rcv_ssthresh", Kind::Bytes, "tcpi_rcv_ssthresh", "Clamp of the receive window.";
    rtt_us u32_at @ 68 as "rtt_us", Kind::DurationUs, "tcpi_rtt", "Smoothed round-trip time.";
    rtt_var_us u32_at @ 72 as "rtt_var_us", Kind::DurationUs, "tcpi_rttvar", "Mean deviation of the round-trip time.";
    snd_ssthresh u32_at @ 76 as "ssthresh", Kind::Count, "tcpi_snd_ssthresh", "Slow-start threshold in segments.";
    snd_cwnd u32_at @ 80 as "cwnd", Kind::Count, "tcpi_snd_cwnd", "Congestion window in segments.";
    advmss u32_at @ 84 as "advmss", Kind::Bytes, "tcpi_advmss", "Segment size that we announced.";
    reordering u32_at @ 88 as "reordering", Kind::Count, "tcpi_reordering", "Segments of reordering that are tolerated.";
    rcv_rtt_us u32_at @ 92 as "rcv_rtt_us", Kind::DurationUs, "tcpi_rcv_rtt", "Round-trip time as the receiver estimates it.";
    rcv_space u32_at @ 96 as "rcv_space", Kind::Bytes, "tcpi_rcv_space", "Space for receiving that auto-tuning aims at.";
    total_retrans u32_at @ 100 as "retrans_total", Kind::Count, "tcpi_total_retrans", "Segments retransmitted since the socket was opened.";
    pacing_rate u64_at @ 104 * 8 as "pacing_bps", Kind::BitsPerSecond, "tcpi_pacing_rate", "Pacing rate.";
    max_pacing_rate u64_at @ 112 * 8 as "max_pacing_bps", Kind::BitsPerSecond, "tcpi_max_pacing_rate", "Upper limit of the pacing rate; the largest number: none.";
    bytes_acked u64_at @ 120 as "bytes_acked", Kind::Bytes, "tcpi_bytes_acked", "Bytes sent and acknowledged.";
    bytes_received u64_at @ 128 as "bytes_in", Kind::Bytes, "tcpi_bytes_received", "Bytes received in order.";
    segs_out u32_at @ 136 as "segs_out", Kind::Count, "tcpi_segs_out", "Segments sent, acknowledgements included.";
    segs_in u32_at @ 140 as "segs_in", Kind::Count, "tcpi_segs_in", "Segments received.";
    notsent_bytes u32_at @ 144 as "notsent_bytes", Kind::Bytes, "tcpi_notsent_bytes", "Bytes in the queue that were not sent yet.";
    min_rtt_us u32_at @ 148 as "min_rtt_us", Kind::DurationUs, "tcpi_min_rtt", "Smallest round-trip time seen.";
    data_segs_in u32_at @ 152 as "data_segs_in", Kind::Count, "tcpi_data_segs_in", "Segments received that carried data.";
    data_segs_out u32_at @ 156 as "data_segs_out", Kind::Count, "tcpi_data_segs_out", "Segments sent that carried data.";
    delivery_rate u64_at @ 160 * 8 as "delivery_bps", Kind::BitsPerSecond, "tcpi_delivery_rate", "Latest goodput.";
    busy_us u64_at @ 168 as "busy_us", Kind::DurationUs, "tcpi_busy_time", "Time with data in flight.";
    rwnd_limited_us u64_at @ 176 as "rwnd_limited_us", Kind::DurationUs, "tcpi_rwnd_limited", "Time limited by the peer's receive window.";
    sndbuf_limited_us u64_at @ 184 as "sndbuf_limited_us", Kind::DurationUs, "tcpi_sndbuf_limited", "Time limited by our send buffer.";
    delivered u32_at @ 192 as "delivered", Kind::Count, "tcpi_delivered", "Data segments delivered, retransmitted ones included.";
    delivered_ce u32_at @ 196 as "delivered_ce", Kind::Count, "tcpi_delivered_ce", "Data segments delivered with congestion marks.";
    bytes_sent u64_at @ 200 as "bytes_out", Kind::Bytes, "tcpi_bytes_sent", "Bytes sent, retransmitted ones included.";
    bytes_retrans u64_at @ 208 as "bytes_retrans", Kind::Bytes, "tcpi_bytes_retrans", "Bytes retransmitted.";
    dsack_dups u32_at @ 216 as "dsack_dups", Kind::Count, "tcpi_dsack_dups", "Duplicates that the peer reported.";
    reord_seen u32_at @ 220 as "reord_seen", Kind::Count, "tcpi_reord_seen", "Times that reordering was seen.";
    rcv_ooopack u32_at @ 224 as "rcv_ooopack", Kind::Count, "tcpi_rcv_ooopack", "Packets received out of order.";
    snd_wnd u32_at @ 228 as "snd_wnd", Kind::Bytes, "tcpi_snd_wnd", "Window that the peer offers.";
    rcv_wnd u32_at @ 232 as "rcv_wnd", Kind::Bytes, "tcpi_rcv_wnd", "Window that we offer.";
    rehash u32_at @ 236 as "rehash", Kind::Count, "tcpi_rehash", "Changes of the transmit hash after timeouts or path trouble.";
    total_rto u16_at @ 240 as "rto_total", Kind::Count, "tcpi_total_rto", "Retransmission timeouts since the socket was opened.";
    total_rto_recoveries u16_at @ 242 as "rto_recoveries", Kind::Count, "tcpi_total_rto_recoveries", "Recoveries from timeouts.";
    total_rto_time_ms u32_at @ 244 as "rto_time_ms", Kind::DurationMs, "tcpi_total_rto_time", "Time spent in recoveries from timeouts.";
    received_ce u32_at @ 248 as "received_ce", Kind::Count, "tcpi_received_ce", "Packets received with congestion marks (AccECN).";
    delivered_e1_bytes u32_at @ 252 as "delivered_e1_bytes", Kind::Bytes, "tcpi_delivered_e1_bytes", "Bytes delivered with ECT(1) (AccECN).";
    delivered_e0_bytes u32_at @ 256 as "delivered_e0_bytes", Kind::Bytes, "tcpi_delivered_e0_bytes", "Bytes delivered with ECT(0) (AccECN).";
    delivered_ce_bytes u32_at @ 260 as "delivered_ce_bytes", Kind::Bytes, "tcpi_delivered_ce_bytes", "Bytes delivered with congestion marks (AccECN).";
    received_e1_bytes u32_at @ 264 as "received_e1_bytes", Kind::Bytes, "tcpi_received_e1_bytes", "Bytes received with ECT(1) (AccECN).";
    received_e0_bytes u32_at @ 268 as "received_e0_bytes", Kind::Bytes, "tcpi_received_e0_bytes", "Bytes received with ECT(0) (AccECN).";
    received_ce_bytes u32_at @ 272 as "received_ce_bytes", Kind::Bytes, "tcpi_received_ce_bytes", "Bytes received with congestion marks (AccECN).";
    accecn_fail_mode u16_at @ 276 as "accecn_fail_mode", Kind::Hex, "tcpi_accecn_fail_mode", "Why AccECN fell back.";
    accecn_opt_seen u16_at @ 278 as "accecn_opt_seen", Kind::Count, "tcpi_accecn_opt_seen", "AccECN options seen.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_struct_has_absent_fields() {
        let bytes = [0u8; 104];
        let info = TcpInfo::new(&bytes);
        assert_eq!(info.total_retrans(), Some(0));
        assert_eq!(info.pacing_rate(), None);
        assert_eq!(TcpInfo::new(&bytes[..102]).total_retrans(), None);
        assert_eq!(TcpInfo::new(&[]).snd_wscale(), None);
    }
}
