//! Neighbours that do not answer requests for their hardware address, and those that are never asked for it.

use doctor::seen::{NeighbourSeen, PermanentSeen, Sample};
use host::neighbours::{self, NEIGHBOURS_MAX, Neighbours, SilentNeighbour};
use record::Accounting;
use std::collections::BTreeMap;

use crate::probe::{InNetns, ProbeReader, note_error};

/// Reads neighbours that do not answer within the window, and permanent ones.
#[derive(Default)]
pub(crate) struct NeighbourReader {
    /// Neighbours without a reply at the first reading, by namespace.
    before: BTreeMap<u64, Vec<SilentNeighbour>>,
}

impl ProbeReader for NeighbourReader {
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        self.before.insert(netns.netns_id, read_all(netns, stats).silent);
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let before = self.before.remove(&netns.netns_id).unwrap_or_default();
        let window_s = u32::try_from(sample.window_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
        let was_silent = |one: &SilentNeighbour| {
            before.iter().any(|old| (old.ifindex, old.addr) == (one.ifindex, one.addr) && window_s > 0)
        };
        let Neighbours { silent, permanent, .. } = read_all(netns, stats);
        let silent = silent.into_iter().filter(|one| match one.is_given_up {
            true => one.used_s.is_none_or(|used_s| used_s <= window_s),
            // A neighbour queried for less than a second may still reply.
            false => was_silent(one) || one.since_s.is_none_or(|since_s| since_s >= 1),
        });
        sample.around.neighbours = silent.map(|one| NeighbourSeen { addr: one.addr, ifindex: one.ifindex }).collect();
        let seen = permanent.into_iter().map(|one| {
            let host::neighbours::PermanentNeighbour { ifindex, addr, hardware } = one;
            PermanentSeen { addr, ifindex, hardware }
        });
        sample.around.permanent = seen.collect();
    }
}

/// Reads neighbours without a reply, and permanent ones.
fn read_all(netns: &InNetns<'_>, stats: &mut Accounting) -> Neighbours {
    let found = note_error(neighbours::read(netns.host(), netns.netns_id, None), stats).unwrap_or_default();
    if found.over > 0 {
        let text = format!("unanswering and permanent neighbours after the first {NEIGHBOURS_MAX} are not checked");
        stats.incomplete(found.over, text);
    }
    found
}
