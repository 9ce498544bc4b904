//! The kernel's range of local ports is nearly used up towards one destination.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Fewest ports in use for a finding, and for a critical one, in percent of the range.
const MANY_PERCENT: i64 = 80;
const ALL_PERCENT: i64 = 98;
/// The widest range that a remedy sets: services have few ports in it.
const FIRST: i64 = 10_240;
const LAST: i64 = 65_535;

pub(super) const CHECK: Check = Check {
    id: "port-exhaustion",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "The ephemeral ports for one destination are nearly exhausted.",
    rule: "Connections from one local address to one address and port have at least 80 % of ip_local_port_range. \
           Those in TIME_WAIT do not count if tcp_tw_reuse is 1.",
    sources: "the socket table; net.ipv4.ip_local_port_range, net.ipv4.tcp_tw_reuse",
    refuted_by: "connections whose programs chose their ports themselves: `netwren sockets 'autobound = false'`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let name = "ipv4/ip_local_port_range";
    let (Some(first), Some(last)) = (sample.setting(name, 0), sample.setting(name, 1)) else { return };
    let range = last.saturating_sub(first).saturating_add(1);
    for ((local, peer, port), ports) in &sample.after.destinations {
        // The kernel then gives a port in TIME_WAIT to the next connection after a second.
        let is_reused = sample.setting("ipv4/tcp_tw_reuse", 0) == Some(1);
        let free = if is_reused { ports.time_wait } else { 0 };
        let used = i64::from(ports.used.saturating_sub(free));
        if range <= 0 || used.saturating_mul(100) < range.saturating_mul(MANY_PERCENT) {
            continue;
        }
        let is_waiting = ports.time_wait.saturating_mul(2) > ports.used && free == 0;
        let reuse = is_waiting.then_some((
            "sysctl -w net.ipv4.tcp_tw_reuse=1",
            "uses ports in TIME_WAIT again after a second",
            "",
        ));
        let wider = (first > FIRST || last < LAST).then(|| {
            let range = format!("{} {}", first.min(FIRST), last.max(LAST));
            let risk = "a service may find its port taken by a connection";
            (format!("sysctl -w net.ipv4.ip_local_port_range=\"{range}\""), "allows more ports", risk)
        });
        let is_all = used.saturating_mul(100) >= range.saturating_mul(ALL_PERCENT);
        let severity = if is_all { Severity::Critical } else { Severity::Warning };
        let title =
            format!("the ephemeral ports of {local} for {peer} port {port} are nearly exhausted: {used} of {range}");
        found
            .add(severity, Confidence::Certain, title)
            .object(format!("{local} to {peer} port {port}"))
            .proof([
                state("local ports in use", used, Some(range)),
                state("of these in TIME_WAIT", i64::from(ports.time_wait), None),
            ])
            .cost("connect() gets slow, then fails with EADDRNOTAVAIL")
            .remedy("", "keep connections open and reuse them", "")
            .remedies(reuse)
            .remedies(wider);
    }
}
