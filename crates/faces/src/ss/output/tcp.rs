//! The items of `-i`: congestion control, round trips, windows, rates.
//!
//! Order and conditions equal ss's: an item is omitted if its number is 0, and absent members of `tcp_info` count as
//! 0.

use super::float::{put_general, put_rate, put_tenths, put_thousandths};
use super::item::Item;
use super::options::{Layout, Options, show};
use crate::pieces::{Outside, Put, put, when};
use record::State;
use record::rows::{Socket, TcpInfo};

/// Bits of `tcpi_options` (include/uapi/linux/tcp.h, `TCPI_OPT_*`).
const WSCALE: u8 = 4;
/// Unknown to 6.1.
const USEC_TS: u8 = 64;
/// The words for these bits in ss's order.
const OPTIONS: [(u8, &str); 6] =
    [(1, " ts"), (USEC_TS, " usec_ts"), (2, " sack"), (8, " ecn"), (16, " ecnseen"), (32, " fastopen")];
/// The initial timeout of a new connection, which is not printed.
const RTO_INITIAL_US: u32 = 3_000_000;
/// The kernel's assumption before it has seen reordering, which is not printed.
const REORDERING_USUAL: u32 = 3;
/// Every bit set: no limit.
const UNLIMITED: u64 = u64::MAX;

/// Appends all items of `info` and of the congestion control.
pub(super) fn put(out: &mut Vec<u8>, row: &Socket<'_>, info: &TcpInfo<'_>, options: &Options) {
    put_negotiated(out, row, info, options);
    put_path(out, info);
    put_volume(out, info);
    put_congestion(out, row, options.has(show::NUMERIC));
    put_rates(out, row, info, options.has(show::NUMERIC));
    put_limits(out, info);
    put_losses(out, row, info);
    put_receiver(out, info, options.layout);
}

/// Words and microseconds as milliseconds; nothing without a number, or if it is 0.
struct Milliseconds(&'static str, Option<u32>);

impl Put<Vec<u8>> for Milliseconds {
    fn put(&self, out: &mut Vec<u8>) {
        if let Some(us @ 1..) = self.1 {
            put!(out, self.0);
            put_thousandths(out, us);
        }
    }
}

fn put_negotiated(out: &mut Vec<u8>, row: &Socket<'_>, info: &TcpInfo<'_>, options: &Options) {
    let bits = info.options().unwrap_or(0);
    let shown = OPTIONS.iter().filter(|(bit, _)| *bit != USEC_TS || options.layout == Layout::V6_15);
    for (_, word) in shown.filter(|(bit, _)| options.has(show::TIMERS | show::DETAILS) && bits & bit != 0) {
        put!(out, *word);
    }
    if let Some(name) = row.cong.filter(|name| !name.is_empty()) {
        put!(out, " ", Outside(name.get(..15).unwrap_or(name), options.bug_compatible));
    }
    if bits & WSCALE != 0 {
        put!(out, " wscale:", info.snd_wscale().unwrap_or(0), ",", info.rcv_wscale().unwrap_or(0));
    }
    put!(out, Milliseconds(" rto:", info.rto_us().filter(|&us| us != RTO_INITIAL_US)));
    put!(out, Item(" backoff:", info.backoff()));
    if let Some(rtt) = info.rtt_us().filter(|&us| us != 0) {
        put!(out, Milliseconds(" rtt:", Some(rtt)), "/");
        put_thousandths(out, info.rtt_var_us().unwrap_or(0));
    }
    put!(out, Milliseconds(" ato:", info.ato_us()));
}

fn put_path(out: &mut Vec<u8>, info: &TcpInfo<'_>) {
    put!(out, Item(" mss:", info.snd_mss()), Item(" pmtu:", info.pmtu()), Item(" rcvmss:", info.rcv_mss()));
    put!(out, Item(" advmss:", info.advmss()), Item(" cwnd:", info.snd_cwnd()));
    // 0xffff and above mean infinite.
    put!(out, Item(" ssthresh:", info.snd_ssthresh().filter(|&n| n < 0xffff)));
}

fn put_volume(out: &mut Vec<u8>, info: &TcpInfo<'_>) {
    put!(out, Item(" bytes_sent:", info.bytes_sent()), Item(" bytes_retrans:", info.bytes_retrans()));
    put!(out, Item(" bytes_acked:", info.bytes_acked()), Item(" bytes_received:", info.bytes_received()));
    put!(out, Item(" segs_out:", info.segs_out()), Item(" segs_in:", info.segs_in()));
    put!(out, Item(" data_segs_out:", info.data_segs_out()), Item(" data_segs_in:", info.data_segs_in()));
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// Appends the items of dctcp and bbr (include/uapi/linux/inet_diag.h, `tcp_dctcp_info`, `tcp_bbr_info`).
fn put_congestion(out: &mut Vec<u8>, row: &Socket<'_>, numeric: bool) {
    if let Some(dctcp) = row.dctcp {
        if u16_at(dctcp, 0) == 0 {
            put!(out, " dctcp:fallback_mode");
        } else {
            put!(out, " dctcp:(ce_state:", u16_at(dctcp, 2), ",alpha:", u32_at(dctcp, 4), ",ab_ecn:", u32_at(dctcp, 8));
            put!(out, ",ab_tot:", u32_at(dctcp, 12), ")");
        }
    }
    if let Some(bbr) = row.bbr {
        let bytes_per_s = u64::from(u32_at(bbr, 4)) << 32 | u64::from(u32_at(bbr, 0));
        put!(out, " bbr:(bw:");
        put_rate(out, bytes_per_s as f64 * 8.0, numeric);
        put!(out, "bps,mrtt:");
        put_thousandths(out, u32_at(bbr, 8));
        // Gains are in units of 1/256.
        for (words, gain) in [(",pacing_gain:", u32_at(bbr, 12)), (",cwnd_gain:", u32_at(bbr, 16))] {
            if gain != 0 {
                put!(out, words);
                put_general(out, f64::from(gain) / 256.0);
            }
        }
        put!(out, ")");
    }
}

/// Returns the round-trip time for the send rate: vegas' own if vegas is enabled.
fn rtt_for_rate(row: &Socket<'_>, info: &TcpInfo<'_>) -> u32 {
    const UNSET: u32 = 0x7fff_ffff;
    let vegas = row.vegas.filter(|v| u32_at(v, 0) != 0).map(|v| u32_at(v, 8));
    vegas.filter(|&us| us != 0 && us != UNSET).or(info.rtt_us()).unwrap_or(0)
}

fn put_rates(out: &mut Vec<u8>, row: &Socket<'_>, info: &TcpInfo<'_>, numeric: bool) {
    let rate = |out: &mut Vec<u8>, words: &str, bits: f64| {
        put!(out, words);
        put_rate(out, bits, numeric);
        put!(out, "bps");
    };
    let (rtt, mss, cwnd) = (rtt_for_rate(row, info), info.snd_mss().unwrap_or(0), info.snd_cwnd().unwrap_or(0));
    if rtt > 0 && mss > 0 && cwnd > 0 {
        rate(out, " send ", f64::from(cwnd) * f64::from(mss) * 8_000_000.0 / f64::from(rtt));
    }
    put!(out, Item(" lastsnd:", info.last_data_sent_ms()), Item(" lastrcv:", info.last_data_recv_ms()));
    put!(out, Item(" lastack:", info.last_ack_recv_ms()));
    let known = |n: Option<u64>| n.filter(|&n| n != 0 && n != UNLIMITED);
    if let Some(pacing) = known(info.pacing_rate()) {
        rate(out, " pacing_rate ", pacing as f64 * 8.0);
        if let Some(max) = known(info.max_pacing_rate()) {
            rate(out, "/", max as f64 * 8.0);
        }
    }
    if let Some(delivery) = info.delivery_rate().filter(|&n| n != 0) {
        rate(out, " delivery_rate ", delivery as f64 * 8.0);
    }
    put!(out, Item(" delivered:", info.delivered()), Item(" delivered_ce:", info.delivered_ce()));
    put!(out, when(info.delivery_rate_app_limited() == Some(true), " app_limited"));
}

fn put_limits(out: &mut Vec<u8>, info: &TcpInfo<'_>) {
    let Some(busy) = info.busy_us().filter(|&us| us != 0) else { return };
    put!(out, " busy:", busy / 1000, "ms");
    for (words, us) in [(" rwnd_limited:", info.rwnd_limited_us()), (" sndbuf_limited:", info.sndbuf_limited_us())] {
        let Some(us) = us.filter(|&us| us != 0) else { continue };
        put!(out, words, us / 1000, "ms(");
        put_tenths(out, 100.0 * us as f64 / busy as f64);
        put!(out, "%)");
    }
}

fn put_losses(out: &mut Vec<u8>, row: &Socket<'_>, info: &TcpInfo<'_>) {
    put!(out, Item(" unacked:", info.unacked()));
    let (now, total) = (info.retrans().unwrap_or(0), info.total_retrans().unwrap_or(0));
    if now != 0 || total != 0 {
        put!(out, " retrans:", now, "/", total);
    }
    put!(out, Item(" lost:", info.lost()));
    // For a listener this is the limit of its queue, which Send-Q shows.
    put!(out, Item(" sacked:", info.sacked().filter(|_| row.state != State::LISTEN)));
    put!(out, Item(" dsack_dups:", info.dsack_dups()), Item(" fackets:", info.fackets()));
    let reordering = info.reordering().unwrap_or(0);
    if reordering != REORDERING_USUAL {
        put!(out, " reordering:", reordering);
    }
    put!(out, Item(" reord_seen:", info.reord_seen()));
}

fn put_receiver(out: &mut Vec<u8>, info: &TcpInfo<'_>, layout: Layout) {
    put!(out, Milliseconds(" rcv_rtt:", info.rcv_rtt_us()), Item(" rcv_space:", info.rcv_space()));
    put!(out, Item(" rcv_ssthresh:", info.rcv_ssthresh()), Item(" notsent:", info.notsent_bytes()));
    put!(out, Milliseconds(" minrtt:", info.min_rtt_us().filter(|&us| us != u32::MAX)));
    put!(out, Item(" rcv_ooopack:", info.rcv_ooopack()), Item(" snd_wnd:", info.snd_wnd()));
    if layout == Layout::V6_15 {
        put!(out, Item(" rcv_wnd:", info.rcv_wnd()), Item(" rehash:", info.rehash()));
    }
}
