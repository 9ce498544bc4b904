//! The members of `struct tcp_info` (include/uapi/linux/tcp.h): an accessor and a field of the socket table for each.

use super::{Socket, Sockets, TcpInfo, need};
use crate::{Field, Kind, Value};

type F = Field<Sockets>;

impl Socket<'_> {
    fn info<R>(&self, read: impl FnOnce(&TcpInfo<'_>) -> Option<R>) -> Option<R> {
        self.tcp_info.as_ref().and_then(read)
    }
}

/// Each member of the struct: accessor, type, offset (times a factor), column, kind, kernel name without `tcpi_`,
/// sentence.
macro_rules! members {
    ($($get:ident $width:ident @ $at:literal $(* $times:literal)?
        $name:literal $kind:ident $kernel:literal $doc:literal;)*) => {
        impl TcpInfo<'_> {
            $(
                #[doc = $doc]
                #[doc = concat!(" (`tcpi_", $kernel, "`; as the kernel has it: rates in bytes per second)")]
                #[inline]
                pub fn $get(&self) -> Option<$width> {
                    members!(@read self $width $at)
                }
            )*
        }
        /// The plain members of `tcp_info` as fields of the socket table.
        pub(super) const MEMBERS: &[Field<Sockets>] = &[
            $(
                F::own($name, Kind::$kind, |row| {
                    Value::number(row.info(|i| i.$get())$(.map(|n| n.saturating_mul($times)))?)
                })
                    .needs(need::TCP_INFO).kernel(concat!("tcpi_", $kernel)).doc($doc),
            )*
            F::own("snd_wscale", Kind::Count, |row| Value::number(row.info(|i| i.snd_wscale())))
                .needs(need::TCP_INFO).kernel("tcpi_snd_wscale").doc("Window scale announced by the peer."),
            F::own("rcv_wscale", Kind::Count, |row| Value::number(row.info(|i| i.rcv_wscale())))
                .needs(need::TCP_INFO).kernel("tcpi_rcv_wscale").doc("Window scale announced to the peer."),
            F::own("app_limited", Kind::Bool, |row| {
                row.info(|i| i.delivery_rate_app_limited()).map_or(Value::Null, Value::Bool)
            })
            .needs(need::TCP_INFO)
            .kernel("tcpi_delivery_rate_app_limited")
            .doc("True if the application, not the network, limited the last delivery rate sample."),
            F::own("fastopen_client_fail", Kind::Count, |row| {
                Value::number(row.info(|i| i.fastopen_client_fail()))
            })
            .needs(need::TCP_INFO)
            .kernel("tcpi_fastopen_client_fail")
            .doc("Why TCP Fast Open failed at the client: 0 it did not, 1 no cookie, 2 data not acknowledged, 3 SYN \
                retransmitted."),
        ];
    };
    (@read $info:ident u8 $at:literal) => { $info.u8_at($at) };
    (@read $info:ident u16 $at:literal) => { $info.u16_at($at) };
    (@read $info:ident u32 $at:literal) => { $info.u32_at($at) };
    (@read $info:ident u64 $at:literal) => { $info.u64_at($at) };
}

members! {
    ca_state u8 @ 1 "ca_state" Count "ca_state"
        "Congestion control state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.";
    retransmits u8 @ 2 "rto_retransmits" Count "retransmits" "Consecutive retransmission timeouts without an \
        acknowledgement.";
    probes u8 @ 3 "probes" Count "probes" "Unanswered window or keepalive probes.";
    backoff u8 @ 4 "backoff" Count "backoff" "Number of times that the retransmission timeout was doubled.";
    options u8 @ 5 "tcp_options" Hex "options"
        "TCP options in use, as bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 SYN data, 64 \
        microsecond timestamps.";
    rto_us u32 @ 8 "rto_us" DurationUs "rto" "Retransmission timeout.";
    ato_us u32 @ 12 "ato_us" DurationUs "ato" "Delayed-acknowledgement timeout.";
    snd_mss u32 @ 16 "mss" Bytes "snd_mss" "Maximum segment size for sending.";
    rcv_mss u32 @ 20 "rcv_mss" Bytes "rcv_mss" "Estimated segment size of the peer.";
    unacked u32 @ 24 "unacked" Count "unacked"
        "Segments sent and not yet acknowledged; for a listener, connections in the accept queue.";
    sacked u32 @ 28 "sacked" Count "sacked" "Segments acknowledged selectively; for a listener, the limit of the \
        accept queue.";
    lost u32 @ 32 "lost_segments" Count "lost" "Segments considered lost.";
    retrans u32 @ 36 "retrans" Count "retrans" "Retransmitted segments in flight.";
    fackets u32 @ 40 "fackets" Count "fackets" "Forward-acknowledged segments (always 0 since Linux 4.15).";
    last_data_sent_ms u32 @ 44 "last_data_sent_ms" DurationMs "last_data_sent" "Time since data were last sent.";
    last_ack_sent_ms u32 @ 48 "last_ack_sent_ms" DurationMs "last_ack_sent" "Always 0: the kernel does not record it.";
    last_data_recv_ms u32 @ 52 "last_data_recv_ms" DurationMs "last_data_recv" "Time since data last arrived.";
    last_ack_recv_ms u32 @ 56 "last_ack_recv_ms" DurationMs "last_ack_recv"
        "Time since an acknowledgement last arrived.";
    pmtu u32 @ 60 "pmtu" Bytes "pmtu" "Path MTU.";
    rcv_ssthresh u32 @ 64 "rcv_ssthresh" Bytes "rcv_ssthresh" "Current limit of the receive window.";
    rtt_us u32 @ 68 "rtt_us" DurationUs "rtt" "Smoothed round-trip time.";
    rtt_var_us u32 @ 72 "rtt_var_us" DurationUs "rttvar" "Mean deviation of the round-trip time.";
    snd_ssthresh u32 @ 76 "ssthresh" Count "snd_ssthresh" "Slow-start threshold in segments.";
    snd_cwnd u32 @ 80 "cwnd" Count "snd_cwnd" "Congestion window in segments.";
    advmss u32 @ 84 "advmss" Bytes "advmss" "Maximum segment size announced to the peer.";
    reordering u32 @ 88 "reordering" Count "reordering" "Tolerated reordering, in segments.";
    rcv_rtt_us u32 @ 92 "rcv_rtt_us" DurationUs "rcv_rtt" "Round-trip time estimated by the receiver.";
    rcv_space u32 @ 96 "rcv_space" Bytes "rcv_space" "Receive buffer space that auto-tuning aims for.";
    total_retrans u32 @ 100 "retrans_total" Count "total_retrans" "Segments retransmitted since the socket was opened.";
    pacing_rate u64 @ 104 * 8 "pacing_bps" BitsPerSecond "pacing_rate" "Pacing rate.";
    max_pacing_rate u64 @ 112 * 8 "max_pacing_bps" BitsPerSecond "max_pacing_rate"
        "Upper limit of the pacing rate; the largest number means no limit.";
    bytes_acked u64 @ 120 "bytes_acked" Bytes "bytes_acked" "Bytes sent and acknowledged.";
    bytes_received u64 @ 128 "bytes_in" Bytes "bytes_received" "Bytes received in order.";
    segs_out u32 @ 136 "segs_out" Count "segs_out" "Segments sent, acknowledgements included.";
    segs_in u32 @ 140 "segs_in" Count "segs_in" "Segments received.";
    notsent_bytes u32 @ 144 "notsent_bytes" Bytes "notsent_bytes" "Bytes queued but not sent yet.";
    min_rtt_us u32 @ 148 "min_rtt_us" DurationUs "min_rtt" "Smallest round-trip time measured.";
    data_segs_in u32 @ 152 "data_segs_in" Count "data_segs_in" "Segments received that carried data.";
    data_segs_out u32 @ 156 "data_segs_out" Count "data_segs_out" "Segments sent that carried data.";
    delivery_rate u64 @ 160 * 8 "delivery_bps" BitsPerSecond "delivery_rate" "Most recent delivery rate (goodput).";
    busy_us u64 @ 168 "busy_us" DurationUs "busy_time" "Time with data in flight.";
    rwnd_limited_us u64 @ 176 "rwnd_limited_us" DurationUs "rwnd_limited" "Time limited by the peer's receive window.";
    sndbuf_limited_us u64 @ 184 "sndbuf_limited_us" DurationUs "sndbuf_limited" "Time limited by the local send \
        buffer.";
    delivered u32 @ 192 "delivered" Count "delivered" "Data segments delivered, retransmitted ones included.";
    delivered_ce u32 @ 196 "delivered_ce" Count "delivered_ce" "Data segments delivered with congestion marks (ECN).";
    bytes_sent u64 @ 200 "bytes_out" Bytes "bytes_sent" "Bytes sent, retransmitted ones included.";
    bytes_retrans u64 @ 208 "bytes_retrans" Bytes "bytes_retrans" "Bytes retransmitted.";
    dsack_dups u32 @ 216 "dsack_dups" Count "dsack_dups" "Duplicate segments reported by the peer (DSACK).";
    reord_seen u32 @ 220 "reord_seen" Count "reord_seen" "Number of reordering events.";
    rcv_ooopack u32 @ 224 "rcv_ooopack" Count "rcv_ooopack" "Packets received out of order.";
    snd_wnd u32 @ 228 "snd_wnd" Bytes "snd_wnd" "Send window offered by the peer.";
    rcv_wnd u32 @ 232 "rcv_wnd" Bytes "rcv_wnd" "Receive window offered to the peer.";
    rehash u32 @ 236 "rehash" Count "rehash" "Changes of the transmit hash after timeouts or path problems.";
    total_rto u16 @ 240 "rto_total" Count "total_rto" "Retransmission timeouts since the socket was opened.";
    total_rto_recoveries u16 @ 242 "rto_recoveries" Count "total_rto_recoveries" "Recoveries from timeouts.";
    total_rto_time_ms u32 @ 244 "rto_time_ms" DurationMs "total_rto_time" "Time spent in recoveries from timeouts.";
    received_ce u32 @ 248 "received_ce" Count "received_ce" "Packets received with congestion marks (AccECN).";
    delivered_e1_bytes u32 @ 252 "delivered_e1_bytes" Bytes "delivered_e1_bytes"
        "Bytes delivered with ECT(1) (AccECN).";
    delivered_e0_bytes u32 @ 256 "delivered_e0_bytes" Bytes "delivered_e0_bytes"
        "Bytes delivered with ECT(0) (AccECN).";
    delivered_ce_bytes u32 @ 260 "delivered_ce_bytes" Bytes "delivered_ce_bytes"
        "Bytes delivered with congestion marks (AccECN).";
    received_e1_bytes u32 @ 264 "received_e1_bytes" Bytes "received_e1_bytes" "Bytes received with ECT(1) (AccECN).";
    received_e0_bytes u32 @ 268 "received_e0_bytes" Bytes "received_e0_bytes" "Bytes received with ECT(0) (AccECN).";
    received_ce_bytes u32 @ 272 "received_ce_bytes" Bytes "received_ce_bytes"
        "Bytes received with congestion marks (AccECN).";
    accecn_fail_mode u16 @ 276 "accecn_fail_mode" Hex "accecn_fail_mode" "Why AccECN was disabled, as bits.";
    accecn_opt_seen u16 @ 278 "accecn_opt_seen" Count "accecn_opt_seen" "AccECN options seen.";
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
