//! Finds the filters that a recording was made with.
use record::Demand;
use record::rows::Nat;

use crate::backends::bpf::cache::key as walk_key;
use crate::backends::netlink::dump::key;
use crate::backends::read::{ReadTarget, filter_note};
use crate::kernel_filter::KernelFilter;
use crate::pushdown::split;

/// Filters that the recording was made with and that leave out entries of `demand`: all except those that this demand
/// would also push to the kernel.
pub(crate) fn narrower_filters<'h>(target: &ReadTarget<'h>, demand: &Demand<Nat>) -> Vec<&'h str> {
    let wanted = [true, false].map(|worth| split(&demand.conjuncts, || worth).filter);
    let families = |filter: KernelFilter| [0, 2, 10].map(|family| filter_note(&filter.of_family(family)));
    let own: Vec<String> = wanted.into_iter().flat_map(families).collect();
    recorded_filters(target).into_iter().filter(|note| !own.iter().any(|own| own == note)).collect()
}

/// The filters that the streams of this table were recorded with, from their notes.
pub(crate) fn recorded_filters<'h>(target: &ReadTarget<'h>) -> Vec<&'h str> {
    let keys = [0, 2, 10].map(|family| key(target.options.table, target.options.netns_id, family));
    let walk = walk_key(target.options.netns_id, target.all);
    let ours = |of: &str| keys.iter().any(|key| **key == *of) || *walk == *of;
    let notes = target.host.notes().iter().filter(|(of, note)| ours(of) && !note.is_empty());
    let mut notes: Vec<&str> = notes.map(|(_, note)| &**note).collect();
    notes.dedup();
    notes
}
