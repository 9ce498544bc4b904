//! Send buffers that are too small for a long path.

use record::rows::{Confidence, Severity};

use super::pace::{FAST, TransferRate, add_each, and_further, kib, ms, paces, rate};
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::LONG_US;

pub(super) const CHECK: Check = Check {
    id: "send-buffer",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "A connection is slow because its send buffer is smaller than the path holds in one round trip.",
    rule: "A connection with a round trip of at least 5 ms waited for space in its send buffer during a tenth of the \
           time with data in flight, and the peer's window limited it less. From 100 Mb/s on it is a hint.",
    sources: "tcp_info via sock_diag: sndbuf_limited, rwnd_limited, busy_time, min_rtt, bytes_acked; SK_MEMINFO_SNDBUF",
    refuted_by: "a program that writes faster with the same `sndbuf` in `netwren sockets -o wide`.",
    run,
};

/// True if a send buffer limits the connection: a congestion window or a receive window that is full does not count.
fn is_limited(one: &TransferRate<'_>) -> bool {
    let wait = one.grown.sndbuf_limited_us;
    one.now.min_rtt_us >= LONG_US && one.is_much(wait) && wait >= one.grown.rwnd_limited_us
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut all: Vec<_> = paces(sample).filter(is_limited).collect();
    all.sort_by_key(TransferRate::sent_per_s);
    add_each(&all, found, add);
}

fn add(one: &TransferRate<'_>, further: usize, found: &mut Findings<'_>) {
    let (now, speed) = (one.now, one.sent_per_s());
    let max = found.sample.setting("ipv4/tcp_wmem", 2);
    let title = format!(
        "{} sends slowly to {}: its send buffer of {} is too small for a round trip of {}",
        now.owner,
        now.peer,
        kib(now.sndbuf.into()),
        ms(now.min_rtt_us.into())
    );
    let severity = if speed < FAST { Severity::Warning } else { Severity::Hint };
    let draft = found
        .add(severity, Confidence::Certain, title)
        .object(&*now.name)
        .holder(&now.owner)
        .proof([
            one.evidence("microseconds limited by the send buffer", |all| all.sndbuf_limited_us),
            one.evidence("microseconds with data in flight", |all| all.busy_us),
            one.evidence("bytes acknowledged", |all| all.acked),
            state(format!("send buffer of {}", now.name), now.sndbuf, max),
        ])
        .cost(format!("{} instead of what the path carries{}", rate(speed), and_further(further)));
    // For 100 Mb/s; half of the buffer holds data, the rest is the kernel's overhead.
    let wanted = (FAST.saturating_mul(now.min_rtt_us.into()) / 500_000).max(4 << 20);
    if max.is_some_and(|max| i64::from(now.sndbuf) >= max) {
        draft.remedy(
            format!("sysctl -w net.ipv4.tcp_wmem='4096 16384 {wanted}'"),
            "lets the kernel enlarge send buffers as far as a fast long path needs",
            "each busy connection may use that much memory",
        );
    } else {
        draft.remedy(
            "",
            "let the program not set SO_SNDBUF: the kernel then enlarges the buffer as needed, up to \
             net.ipv4.tcp_wmem; a buffer that is set stays as it is",
            "",
        );
    }
}
