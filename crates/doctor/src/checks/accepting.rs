//! Listeners that accepted nothing within the window.

use record::rows::CounterSource::Snmp;

use super::Sample;
use crate::seen::Queue;
use std::collections::{BTreeMap, BTreeSet};

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

/// Returns the sockets by their identities, without those whose identity is unknown.
pub(super) fn by_identity(all: &[Queue]) -> BTreeMap<u64, &Queue> {
    all.iter().filter(|one| one.identity != 0).map(|one| (one.identity, one)).collect()
}

/// Listeners of a port whose queues did not shrink, and the connections of the port that wait to be accepted.
#[derive(Default)]
struct PortQueues<'a, 's> {
    /// The longest queues come first.
    listeners: Vec<&'a Idle<'s>>,
    /// Connections at the first reading.
    waited: usize,
    /// Connections at the second reading.
    wait: usize,
    /// Connections at both readings.
    kept: usize,
}

/// Returns the listeners that accepted nothing: their queue was not empty at either reading and did not shrink, and the
/// connections that waited at the first reading still wait at the second, or were reset and are still in the queue.
pub(super) fn idle_listeners(sample: &Sample) -> Vec<Idle<'_>> {
    let (before, after) = (&sample.before, &sample.after);
    if !is_long(sample) {
        return Vec::new();
    }
    let old = by_identity(&before.listeners);
    let mut all: Vec<Idle<'_>> = after
        .listeners
        .iter()
        .filter_map(|listener| Some(Idle { listener, before: old.get(&listener.identity)?.queue }))
        .filter(|one| one.before > 0 && one.listener.queue >= one.before)
        .collect();
    // The kernel does not show which listener of a port a connection waits for: the longest queues come first.
    all.sort_by_key(|one| std::cmp::Reverse(one.before));
    let mut ports: BTreeMap<u16, PortQueues<'_, '_>> = BTreeMap::new();
    for one in &all {
        ports.entry(one.listener.port).or_default().listeners.push(one);
    }
    let still: BTreeSet<u64> = after.waiting.unaccepted.iter().map(|one| one.identity).collect();
    for one in &before.waiting.unaccepted {
        if let Some(of) = ports.get_mut(&one.port) {
            of.waited += 1;
            of.kept += usize::from(still.contains(&one.identity));
        }
    }
    for one in &after.waiting.unaccepted {
        if let Some(of) = ports.get_mut(&one.port) {
            of.wait += 1;
        }
    }
    let of_port = |of: &PortQueues<'_, '_>| -> Vec<u64> {
        of.listeners.iter().take(of.count_idle(sample)).map(|one| one.listener.identity).collect()
    };
    let idle: BTreeSet<u64> = ports.values().flat_map(of_port).collect();
    all.retain(|one| idle.contains(&one.listener.identity));
    all
}

impl PortQueues<'_, '_> {
    /// Returns how many of the listeners accepted nothing, from the longest queue on.
    fn count_idle(&self, sample: &Sample) -> usize {
        let has_reset = || self.listeners.iter().all(|one| self.keeps_reset(sample, one));
        if self.kept > 0 && self.kept == self.waited || self.waited > 0 && has_reset() {
            return self.listeners.len();
        }
        // Others of the port accepted what waited for them. Those that remain must be whole queues: a program that
        // accepts slowly leaves a part of its queue.
        let mut sum = 0;
        let is_whole = |one: &Idle<'_>| {
            sum += one.before as usize;
            // Connections may arrive while the kernel lists the sockets.
            self.kept >= sum && self.kept - sum <= 2 + sum / 20
        };
        self.listeners.iter().copied().position(is_whole).map_or(0, |place| place + 1)
    }

    /// True if the connections that no longer wait were reset by their clients: they keep their place in the queue
    /// until they are accepted.
    fn keeps_reset(&self, sample: &Sample, one: &Idle<'_>) -> bool {
        let (listener, before) = (one.listener, one.before);
        let reset = |queue: u32, waits: usize| (queue as usize).saturating_sub(waits);
        let is_single = sample.after.waiting.listeners.get(&listener.port) == Some(&1);
        // At a busy server the queue changes between the listing of listeners and the listing of connections.
        let opened = sample.grown(Snmp, "TcpPassiveOpens");
        is_single
            && opened <= u64::from(listener.queue - before) + 2
            && reset(listener.queue, self.wait) >= reset(before, self.waited) + (self.waited - self.kept)
    }
}
