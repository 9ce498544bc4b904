//! The parts of a connection that become part of its flow.

use record::rows::{Endpoint, Rate, Socket};
use record::{Proto, State};

/// Counters of one connection in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ConnectionCounters {
    /// Bytes received, bytes sent, segments retransmitted, and with `--watch` bytes received and sent per second;
    /// `None` if unknown.
    pub(crate) sums: [Option<u64>; 5],
    /// Smoothed round-trip time in microseconds; 0 before the first sample.
    pub(crate) rtt_us: u32,
    /// Smallest round-trip time in microseconds; `u32::MAX` before the first sample.
    pub(crate) min_rtt_us: u32,
}

/// One end of a connection, with unmapped addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Connection {
    pub(crate) netns_id: u64,
    /// Interface that it is bound to; 0 is none.
    pub(crate) ifindex: u32,
    pub(crate) proto: Proto,
    pub(crate) state: State,
    pub(crate) local: Endpoint,
    pub(crate) peer: Endpoint,
    pub(crate) recv_q: u32,
    pub(crate) send_q: u32,
    pub(crate) counters: Option<ConnectionCounters>,
}

impl Connection {
    #[inline]
    pub(crate) fn of(row: &Socket<'_>) -> Connection {
        let unmapped = |end: Endpoint| Endpoint { addr: end.addr.unmapped(), port: end.port };
        let rate = row.diff.and_then(|diff| diff.rate.as_ref());
        let counters = |info: &record::rows::TcpInfo<'_>| {
            let sums = [info.bytes_received(), info.bytes_sent(), info.total_retrans().map(u64::from)];
            let rates = [rate.and_then(Rate::bytes_in_per_s), rate.and_then(Rate::bytes_out_per_s)];
            let ([bytes_in, bytes_out, retrans], [in_per_s, out_per_s]) = (sums, rates);
            ConnectionCounters {
                sums: [bytes_in, bytes_out, retrans, in_per_s, out_per_s],
                rtt_us: info.rtt_us().unwrap_or(0),
                min_rtt_us: info.min_rtt_us().unwrap_or(u32::MAX),
            }
        };
        Connection {
            netns_id: row.netns_id,
            ifindex: row.ifindex,
            proto: row.proto,
            state: row.state,
            local: unmapped(row.local),
            peer: unmapped(row.peer),
            recv_q: row.rqueue,
            send_q: row.wqueue.unwrap_or(0),
            counters: row.tcp_info.as_ref().map(counters),
        }
    }
}
