//! The kernel's range of local ports is nearly used up: towards one destination, or towards all.

use record::rows::{Confidence, Severity};
use record::{Addr, Proto};

use super::words::state;
use super::{Check, Findings, Probe, RESERVED_PORTS, Sample};
use crate::seen::{Holder, PeerHost, PortsInUse, PortsTaken};

/// Fewest ports in use for a finding, and for a critical one, in percent of the range.
const MANY_PERCENT: i64 = 80;
const ALL_PERCENT: i64 = 98;
/// Most sockets that may share a port with others, in percent, if programs choose ports before they connect.
const SHARED_PERCENT: i64 = 2;
/// The range that is proposed.
const WIDE: (i64, i64) = (10_240, 65_535);

pub(super) const CHECK: Check = Check {
    id: "port-exhaustion",
    needs: &[Probe::Sockets],
    area: "tcp",
    about: "The ephemeral ports are nearly exhausted: for one destination, or for all.",
    rule: "At least 80 % of the ports of ip_local_port_range that are not in ip_local_reserved_ports are in use: by \
           TCP connections from one local address to one address and port; by connections from one address to any \
           destination of which hardly two share a port, as with bind() before connect() (a hint below 98 %); or by \
           UDP sockets. Connections in TIME_WAIT do not count if tcp_tw_reuse allows their reuse.",
    sources: "the socket table; net.ipv4.ip_local_port_range, ip_local_reserved_ports, tcp_tw_reuse",
    refuted_by: "connections whose programs chose their ports themselves: `netwren sockets 'autobound = false'`.",
    run,
};

/// The ports that the kernel may choose.
struct Range {
    first: i64,
    last: i64,
    reserved: Vec<(i64, i64)>,
    /// Number of ports in the range that are not reserved.
    usable: i64,
}

impl Range {
    fn of(sample: &Sample) -> Option<Range> {
        let name = "ipv4/ip_local_port_range";
        let (first, last) = (sample.setting(name, 0)?, sample.setting(name, 1)?);
        let is_valid = (0..=65_535).contains(&first) && (first..=65_535).contains(&last);
        let pairs = sample.numbers(RESERVED_PORTS).unwrap_or_default().chunks_exact(2);
        let reserved = pairs.filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect();
        let mut range = Range { first, last, reserved, usable: last - first + 1 };
        if is_valid && !range.reserved.is_empty() {
            range.usable = range.count(|_| true);
        }
        (is_valid && range.usable > 0).then_some(range)
    }

    /// Number of usable ports for which `is_it` is true.
    fn count(&self, is_it: impl Fn(u16) -> bool) -> i64 {
        let is_reserved = |port: i64| self.reserved.iter().any(|(first, last)| (*first..=*last).contains(&port));
        let is_counted = |port: &i64| !is_reserved(*port) && u16::try_from(*port).is_ok_and(&is_it);
        (self.first..=self.last).filter(is_counted).count() as i64
    }

    /// True if `used` of its ports are at least so many percent.
    fn is_full(&self, used: i64, percent: i64) -> bool {
        used.saturating_mul(100) >= self.usable.saturating_mul(percent)
    }

    fn severity(&self, used: i64) -> Severity {
        if self.is_full(used, ALL_PERCENT) { Severity::Critical } else { Severity::Warning }
    }

    /// The remedy that allows more ports: a command and its effect. `None` if there are no more.
    fn wider(&self) -> Option<(String, &'static str)> {
        let all = self.last - self.first + 1;
        if self.usable.saturating_mul(2) < all {
            let command = format!("sysctl net.{}", RESERVED_PORTS.replace('/', "."));
            return Some((command, "shows the reserved ports: most of the range; release those that no service needs"));
        }
        let (first, last) = (WIDE.0.min(self.first), WIDE.1.max(self.last));
        let command = format!("sysctl -w net.ipv4.ip_local_port_range=\"{first} {last}\"");
        (all < last - first + 1).then_some((command, "allows more ports"))
    }
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let Some(range) = Range::of(sample) else { return };
    let mut full = Vec::new();
    for ((port, local, peer), ports) in &sample.after.destinations {
        if find_destination(sample, found, &range, (*local, peer, *port), ports) {
            full.push(*local);
        }
    }
    for ((proto, local), taken) in &sample.after.taken {
        match proto {
            // Counting the ports takes some time.
            _ if !range.is_full(taken.sockets.into(), MANY_PERCENT) => {}
            Proto::Udp => find_udp(found, &range, taken),
            // The destination explains it.
            _ if full.contains(local) => {}
            _ => find_bound(sample, found, &range, *local, taken),
        }
    }
}

/// True if the kernel gives a port in TIME_WAIT to the next connection after a second. By default it does so on
/// loopback only.
fn is_reused(sample: &Sample, local: Addr, peer: Addr) -> bool {
    match sample.setting("ipv4/tcp_tw_reuse", 0) {
        Some(1) => true,
        Some(2) => local.is_loopback() || peer.is_loopback(),
        _ => false,
    }
}

/// Adds a finding about one destination; false if there is none.
fn find_destination(
    sample: &Sample,
    found: &mut Findings<'_>,
    range: &Range,
    (local, peer, port): (Addr, &PeerHost, u16),
    ports: &PortsInUse,
) -> bool {
    let free = if is_reused(sample, local, peer.addr) { ports.time_wait } else { 0 };
    let used = i64::from(ports.used.saturating_sub(free));
    if !range.is_full(used, MANY_PERCENT) {
        return false;
    }
    let usable = range.usable;
    let title =
        format!("the ephemeral ports of {local} for {peer} port {port} are nearly exhausted: {used} of {usable}");
    let draft = found
        .add(range.severity(used), Confidence::Certain, title)
        .object(format!("{local} to {peer} port {port}"))
        .proof([
            state("local ports in use", used, Some(usable)),
            state("of these in TIME_WAIT", i64::from(ports.time_wait), None),
        ])
        .cost("connect() gets slow, then fails with EADDRNOTAVAIL")
        .remedy("", "keep connections open and reuse them", "");
    let is_waiting = ports.time_wait.saturating_mul(2) > ports.used && free == 0;
    let reuse = ("sysctl -w net.ipv4.tcp_tw_reuse=1", "uses ports in TIME_WAIT again after a second", "");
    let risk = "a service may find its port taken by a connection";
    let wider = range.wider().map(|(command, effect)| (command, effect, risk));
    draft.remedies(is_waiting.then_some(reuse)).remedies(wider);
    true
}

/// The ports are used up for all destinations: the programs choose them before the kernel knows the destination.
fn find_bound(sample: &Sample, found: &mut Findings<'_>, range: &Range, local: Addr, taken: &PortsTaken) {
    let (all, sockets) = (range.count(|port| taken.has(port)), i64::from(taken.sockets));
    let free = if is_reused(sample, local, local) { i64::from(taken.time_wait) } else { 0 };
    let used = all.saturating_sub(free);
    // connect() without bind() gives the same port to connections to several destinations.
    let is_shared = (sockets - all).saturating_mul(100) > all.saturating_mul(SHARED_PERCENT);
    if is_shared || !range.is_full(used, MANY_PERCENT) {
        return;
    }
    let severity = if range.is_full(used, ALL_PERCENT) { Severity::Critical } else { Severity::Hint };
    let title = format!(
        "the ephemeral TCP ports of {local} are nearly exhausted for every destination: {used} of {}{}",
        range.usable,
        held_by(taken)
    );
    let draft = found
        .add(severity, Confidence::Likely, title)
        .object(format!("tcp ports of {local}"))
        .holder(most(taken).map(|(holder, _)| holder))
        .proof([
            state(format!("local TCP ports in use at {local}"), used, Some(range.usable)),
            state("connections with these ports", sockets, None),
            state("of these in TIME_WAIT", i64::from(taken.time_wait), None),
        ])
        .cost("bind() fails with EADDRINUSE, connect() with EADDRNOTAVAIL")
        .remedy(
            "",
            "set IP_BIND_ADDRESS_NO_PORT before bind(), or connect without bind(): then connections to different \
             destinations share ports",
            "",
        );
    finish(draft, range, "tcp");
}

fn find_udp(found: &mut Findings<'_>, range: &Range, taken: &PortsTaken) {
    let used = range.count(|port| taken.has(port));
    if !range.is_full(used, MANY_PERCENT) {
        return;
    }
    let title = format!("the ephemeral UDP ports are nearly exhausted: {used} of {}{}", range.usable, held_by(taken));
    let draft = found
        .add(range.severity(used), Confidence::Certain, title)
        .object("udp ports")
        .holder(most(taken).map(|(holder, _)| holder))
        .proof([
            state("local UDP ports in use", used, Some(range.usable)),
            state("sockets with these ports", i64::from(taken.sockets), None),
        ])
        .cost("new UDP sockets get no port: DNS queries and connections fail with EAGAIN or EADDRINUSE")
        .remedy("", "send from one socket to many destinations, and close sockets that are not needed", "");
    finish(draft, range, "udp");
}

/// Adds the remedies that do not depend on the reason.
fn finish(draft: super::FindingBuilder<'_>, range: &Range, proto: &str) {
    let Range { first, last, .. } = range;
    let filter = format!("proto = {proto} and local_port >= {first} and local_port <= {last}");
    let command = format!("netwren sockets '{filter}' --by process --limit 10");
    let draft = draft.remedy(command, "shows the processes that hold the ports", "");
    if let Some((command, effect)) = range.wider() {
        draft.remedy(command, effect, "a service may find its port taken");
    }
}

/// The process with most of the sockets whose owner was looked up, and their number.
fn most(taken: &PortsTaken) -> Option<(&Holder, u32)> {
    let looked_up: u32 = taken.owners.values().sum();
    let (holder, count) = taken.owners.iter().max_by_key(|(_, count)| **count)?;
    (count.saturating_mul(2) >= looked_up).then_some((holder, *count))
}

fn held_by(taken: &PortsTaken) -> String {
    most(taken).map_or(String::new(), |(holder, _)| format!("; {holder} holds most of them"))
}
