//! Neighbours that do not answer requests for their hardware address.

use doctor::seen::{NeighbourSeen, Sample};
use host::neighbours::{self, NEIGHBOURS_MAX, SilentNeighbour};
use record::Accounting;
use std::collections::BTreeMap;

use crate::probe::{InNetns, ProbeReader, note_error};

/// Reads neighbours that do not answer within the window.
#[derive(Default)]
pub(crate) struct NeighbourReader {
    /// Neighbours without a reply at the first reading, by namespace.
    before: BTreeMap<u64, Vec<SilentNeighbour>>,
}

impl ProbeReader for NeighbourReader {
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        self.before.insert(netns.netns_id, read_silent(netns, stats));
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let before = self.before.remove(&netns.netns_id).unwrap_or_default();
        let window_s = u32::try_from(sample.window_ns.div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
        let was_silent = |one: &SilentNeighbour| {
            before.iter().any(|old| (old.ifindex, old.addr) == (one.ifindex, one.addr) && window_s > 0)
        };
        let silent = read_silent(netns, stats).into_iter().filter(|one| match one.is_given_up {
            true => one.used_s.is_none_or(|used_s| used_s <= window_s),
            // A neighbour queried for less than a second may still reply.
            false => was_silent(one) || one.since_s.is_none_or(|since_s| since_s >= 1),
        });
        sample.around.neighbours = silent.map(|one| NeighbourSeen { addr: one.addr, ifindex: one.ifindex }).collect();
    }
}

/// Reads neighbours without a reply.
fn read_silent(netns: &InNetns<'_>, stats: &mut Accounting) -> Vec<SilentNeighbour> {
    let read = neighbours::silent(netns.host(), netns.netns_id, None);
    let (silent, over) = note_error(read, stats).unwrap_or_default();
    if over > 0 {
        let text = format!("unanswering neighbours after the first {NEIGHBOURS_MAX} are not checked");
        stats.incomplete(over, text);
    }
    silent
}
