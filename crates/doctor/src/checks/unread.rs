//! Connections whose data are not read, by port.

use std::collections::BTreeMap;

use super::Sample;
use crate::seen::UnreadData;

/// Connections with unread data, by local port.
pub(super) struct UnreadOf {
    ports: BTreeMap<u16, UnreadAt>,
}

/// Numbers of connections of a port.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UnreadAt {
    /// Connections with unread data at the second reading.
    pub(super) all: u32,
    /// Connections that also had it at the first reading, on which the program neither read nor sent anything, and
    /// whose peer has not closed its direction.
    pub(super) stale: u32,
    /// Connections with unread data at the first reading that were read since, or have ended.
    pub(super) read: u32,
}

impl UnreadOf {
    pub(super) fn new(sample: &Sample) -> UnreadOf {
        let (before, after) = (&sample.before.waiting.unread, &sample.after.waiting.unread);
        let now: BTreeMap<u64, &UnreadData> = after.iter().map(|one| (one.identity, one)).collect();
        let mut ports: BTreeMap<u16, UnreadAt> = BTreeMap::new();
        after.iter().for_each(|one| ports.entry(one.port).or_default().all += 1);
        let is_same = |now: &UnreadData, old: &UnreadData| {
            now.unread >= old.unread && now.read.is_some() && now.read == old.read && now.sent == old.sent
        };
        for old in before {
            let of = ports.entry(old.port).or_default();
            match now.get(&old.identity) {
                Some(now) if is_same(now, old) => of.stale += u32::from(now.is_open),
                _ => of.read += 1,
            }
        }
        UnreadOf { ports }
    }

    /// The ports with their numbers.
    pub(super) fn into_ports(self) -> impl Iterator<Item = (u16, UnreadAt)> {
        self.ports.into_iter()
    }

    /// Numbers of a port.
    pub(super) fn of_port(&self, port: u16) -> UnreadAt {
        self.ports.get(&port).copied().unwrap_or_default()
    }
}
