//! Listeners that accepted nothing within the window.

use record::rows::CounterSource::Snmp;

use super::Sample;
use crate::seen::{Queue, SocketCensus};
use std::collections::BTreeSet;

/// The shortest window, in nanoseconds, in which a program that runs takes something from its queues.
const LONG_NS: u64 = 900_000_000;

/// True if the window is long enough to say that nothing moved in it.
pub(super) fn is_long(sample: &Sample) -> bool {
    sample.window_ns >= LONG_NS
}

/// A listener that accepted nothing within the window, although connections waited.
pub(super) struct Idle<'s> {
    /// The listener at the second reading.
    pub(super) listener: &'s Queue,
    /// The connections that waited at the first reading.
    pub(super) before: u32,
}

/// Returns the listeners that accepted nothing: their queue was not empty at either reading and did not shrink, and the
/// connections that waited at the first reading still wait at the second, or were reset and are still in the queue.
pub(super) fn idle_listeners(sample: &Sample) -> Vec<Idle<'_>> {
    let (before, after) = (&sample.before, &sample.after);
    let old = |one: &Queue| before.listeners.iter().find(|old| old.cookie == one.cookie && one.cookie != 0);
    let mut all: Vec<Idle<'_>> = after
        .listeners
        .iter()
        .filter_map(|listener| Some(Idle { listener, before: old(listener)?.queue }))
        .filter(|one| one.before > 0 && one.listener.queue >= one.before)
        .collect();
    if all.is_empty() || !is_long(sample) {
        return Vec::new();
    }
    // The kernel does not show which listener of a port a connection waits for: the longest queues come first.
    all.sort_by_key(|one| std::cmp::Reverse(one.before));
    let still: BTreeSet<u64> = after.waiting.unaccepted.iter().map(|one| one.cookie).collect();
    let ports: BTreeSet<u16> = all.iter().map(|one| one.listener.port).collect();
    let idle: Vec<BTreeSet<u64>> = ports.iter().map(|port| idle_cookies(*port, &all, sample, &still)).collect();
    all.retain(|one| idle.iter().any(|cookies| cookies.contains(&one.listener.cookie)));
    all
}

/// Returns the cookies of the listeners at a port that accepted nothing. `all` is sorted by queue, the longest first;
/// `still` are the connections that wait at the second reading.
fn idle_cookies(port: u16, all: &[Idle<'_>], sample: &Sample, still: &BTreeSet<u64>) -> BTreeSet<u64> {
    let at_port: Vec<&Idle<'_>> = all.iter().filter(|one| one.listener.port == port).collect();
    let of = |census: &SocketCensus| census.waiting.unaccepted.iter().filter(|one| one.port == port).count();
    let (waited, wait) = (of(&sample.before), of(&sample.after));
    let waiting = sample.before.waiting.unaccepted.iter().filter(|one| one.port == port);
    let kept = waiting.filter(|one| still.contains(&one.cookie)).count();
    let cookies = |count: usize| at_port.iter().take(count).map(|one| one.listener.cookie).collect();
    let has_reset = || at_port.iter().all(|one| keeps_reset(sample, one, [waited, wait, kept]));
    if kept > 0 && kept == waited || waited > 0 && has_reset() {
        return cookies(at_port.len());
    }
    // Others of the port accepted what waited for them. Those that remain must be whole queues: a program that accepts
    // slowly leaves a part of its queue.
    let mut sum = 0;
    for (place, one) in at_port.iter().enumerate() {
        sum += one.before as usize;
        // Connections may arrive while the kernel lists the sockets.
        if kept >= sum && kept - sum <= 2 + sum / 20 {
            return cookies(place + 1);
        }
    }
    BTreeSet::new()
}

/// True if the connections that no longer wait were reset by their clients: they keep their place in the queue until
/// they are accepted. `waited`, `wait` and `kept` are the connections at the first reading, at the second, and at both.
fn keeps_reset(sample: &Sample, one: &Idle<'_>, [waited, wait, kept]: [usize; 3]) -> bool {
    let (listener, before) = (one.listener, one.before);
    let reset = |queue: u32, waits: usize| (queue as usize).saturating_sub(waits);
    let is_single = sample.after.waiting.listeners.get(&listener.port) == Some(&1);
    // At a busy server the queue changes between the listing of listeners and the listing of connections.
    let opened = sample.grown(Snmp, "TcpPassiveOpens");
    is_single
        && opened <= u64::from(listener.queue - before) + 2
        && reset(listener.queue, wait) >= reset(before, waited) + (waited - kept)
}
