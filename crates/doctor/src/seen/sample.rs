//! The sample of a check: two readings of one network namespace, or of the host.

use record::Addr;
use record::rows::{Counter, CounterSource, Evidence};
use std::collections::{BTreeMap, BTreeSet};

use super::descriptors::Descriptors;
use super::moved::Moved;
use super::routes::PATHS_MAX;
use super::sockets::SocketCensus;
use super::surroundings::Surroundings;

/// Two readings of one network namespace or of the host, with its surroundings at the second.
#[derive(Debug, Default)]
pub struct Sample {
    /// Inode of the network namespace; `None` for the host.
    pub netns_id: Option<u64>,
    /// The time between the readings, in nanoseconds.
    pub window_ns: u64,
    counters: BTreeMap<CounterOf, Moved>,
    settings: BTreeMap<&'static str, Vec<i64>>,
    /// File descriptors of processes with waiting connections.
    pub descriptors: Vec<Descriptors>,
    /// Sockets at the first reading.
    pub before: SocketCensus,
    /// Sockets at the second reading.
    pub after: SocketCensus,
    /// Drops, interfaces, neighbours and flows.
    pub around: Surroundings,
}

/// A counter's source, name and object; the object is empty for a counter of the namespace.
type CounterOf = (u8, Box<str>, Box<[u8]>);

impl Sample {
    /// An empty sample of a network namespace, or of the host.
    pub fn new(netns_id: Option<u64>) -> Sample {
        Sample { netns_id, ..Sample::default() }
    }

    /// Adds a counter of the table `counters`. The value before is computed from the difference, also if the counter
    /// wrapped.
    pub fn add_counter(&mut self, row: &Counter<'_>) {
        let number = |n: i128| i64::try_from(n).ok();
        let Some(after) = number(row.value) else { return };
        let before = row.delta.and_then(|delta| number(row.value.checked_sub(delta)?));
        self.window_ns = row.window_ns.unwrap_or(self.window_ns);
        let name = String::from_utf8_lossy(row.name).into();
        self.counters.insert((row.source as u8, name, row.object.into()), Moved { before, after });
    }

    /// Adds a setting: the numbers of a file below /proc/sys/net.
    pub fn add_setting(&mut self, name: &'static str, numbers: Vec<i64>) {
        self.settings.insert(name, numbers);
    }

    /// Returns one number of a setting; `None` if the setting was not read.
    pub fn setting(&self, name: &str, place: usize) -> Option<i64> {
        self.settings.get(name)?.get(place).copied()
    }

    /// Returns every counter with its name and its object; the object is empty for a counter of the namespace or the
    /// host.
    pub fn counters(&self) -> impl Iterator<Item = (CounterSource, &str, &[u8], Moved)> {
        let source = |at: u8| CounterSource::ALL.into_iter().find(|source| *source as u8 == at);
        self.counters
            .iter()
            .filter_map(move |((at, name, object), moved)| Some((source(*at)?, &**name, &**object, *moved)))
    }

    /// Returns the numbers of a setting; `None` if it was not read.
    pub fn numbers(&self, name: &str) -> Option<&[i64]> {
        self.settings.get(name).map(Vec::as_slice)
    }

    /// Returns a counter of the namespace or the host.
    pub fn counter(&self, source: CounterSource, name: &str) -> Option<Moved> {
        self.objects(source, name).find(|(object, _)| object.is_empty()).map(|(_, moved)| moved)
    }

    /// Returns the growth of a counter of the namespace or the host; 0 if the counter is missing.
    pub fn grown(&self, source: CounterSource, name: &str) -> u64 {
        self.counter(source, name).map_or(0, |moved| moved.grown())
    }

    /// Returns the counters with this name of all objects, with the objects.
    pub fn objects<'s>(
        &'s self,
        source: CounterSource,
        name: &str,
    ) -> impl Iterator<Item = (&'s [u8], Moved)> + use<'s> {
        let first = (source as u8, Box::from(name), Box::from(&b""[..]));
        let name: Box<str> = name.into();
        let all = self.counters.range(first..);
        all.take_while(move |((at, known, _), _)| *at == source as u8 && *known == name)
            .map(|((_, _, object), moved)| (&**object, *moved))
    }

    /// Returns a counter as evidence; `None` if it is missing.
    pub fn evidence(&self, source: CounterSource, name: &str, limit: Option<i64>) -> Option<Evidence> {
        let Moved { before, after } = self.counter(source, name)?;
        Some(Evidence { counter: name.to_owned(), before, after, limit })
    }

    /// Returns the length of the window in seconds.
    pub fn seconds(&self) -> f64 {
        self.window_ns as f64 / 1e9
    }
}

/// Fewest packets sent through an interface for a statement about the answers.
const SENT_MIN: u64 = 10;
/// An interface that receives less than an eighth of what it sends gets no answers: other hosts' broadcasts remain.
const ANSWERS: u64 = 8;

impl Sample {
    /// Returns the packets that an interface sent and received within the window, if it received almost none.
    pub fn one_way(&self, iface: &str) -> Option<(u64, u64)> {
        let of = |name| self.objects(CounterSource::Iface, name).find(|(one, _)| *one == iface.as_bytes());
        let (sent, received) = (of("tx_packets")?.1.grown(), of("rx_packets")?.1.grown());
        (sent >= SENT_MIN && received.saturating_mul(ANSWERS) <= sent).then_some((sent, received))
    }

    /// Returns the peers whose way decides whether a permanent neighbour entry is at fault: those that do not answer,
    /// and some that do. Empty if no neighbour is permanent, or all peers answer.
    pub fn peers_in_question(&self) -> Vec<Addr> {
        let silent = self.silent_peers();
        if self.around.permanent.is_empty() || silent.is_empty() {
            return Vec::new();
        }
        let at_ease = self.after.at_ease.keys().map(|peer| peer.addr);
        silent.into_iter().take(PATHS_MAX).chain(at_ease.take(PATHS_MAX)).collect()
    }

    /// Returns the peers whose connections wait for an answer, each once.
    pub(crate) fn silent_peers(&self) -> Vec<Addr> {
        let unanswered = self.after.unanswered.keys().map(|(peer, _)| peer.addr);
        let stuck = self.after.stuck.iter().filter(|one| !one.is_window).map(|one| one.peer.addr);
        let all: BTreeSet<Addr> = unanswered.chain(stuck).collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
impl Sample {
    /// A sample of three seconds with these counters: source, name, object, before, after.
    pub(crate) fn of(counters: &[(CounterSource, &str, &str, i64, i64)]) -> Sample {
        let mut sample = Sample { netns_id: Some(7), window_ns: 3_000_000_000, ..Sample::default() };
        sample.counters_of(counters);
        sample
    }

    /// Adds these counters.
    pub(crate) fn counters_of(&mut self, counters: &[(CounterSource, &str, &str, i64, i64)]) {
        for (source, name, object, before, after) in counters {
            let key = (*source as u8, Box::from(*name), Box::from(object.as_bytes()));
            self.counters.insert(key, Moved { before: Some(*before), after: *after });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::{PeerHost, PermanentSeen};

    #[test]
    fn peers_are_bounded() {
        let mut sample = Sample::of(&[]);
        for n in 0..40u8 {
            let peer = |net| PeerHost { addr: Addr::V4([192, 0, net, n]), iface: String::new() };
            sample.after.unanswered.insert((peer(2), 80), 1);
            sample.after.at_ease.insert(peer(3), 1);
        }
        assert_eq!(sample.peers_in_question(), []);
        let entry = PermanentSeen { addr: Addr::V4([192, 0, 2, 1]), ifindex: 2, hardware: [2, 0, 0, 0, 0, 9] };
        sample.around.permanent.push(entry);
        assert_eq!(sample.peers_in_question().len(), 2 * PATHS_MAX);
        sample.after.unanswered.clear();
        assert_eq!(sample.peers_in_question(), []);
    }
}
