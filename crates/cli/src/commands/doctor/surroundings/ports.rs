//! Counts the source ports in use where connections were refused for lack of a free port.

use super::Samples;
use super::entries::EntriesPass;
use crate::commands::nat::SnatRules;
use doctor::checks::Sample;
use doctor::nat::PortCensus;
use lookups::session::Session;
use record::Accounting;
use record::rows::{Conntrack, CounterSource};
use std::collections::BTreeMap;

/// The pass over entries with source NAT.
const ENTRIES: EntriesPass = EntriesPass {
    fields: &["proto", "state", "status", "reply_src", "reply_sport", "reply_dst", "reply_dport", "zone", "expired"],
    filter: "nat in (snat, both)",
    lack: "source ports in use are not counted",
};

/// Adds the use of source ports to the namespaces where entries could not be inserted. Reads no table and lists no
/// rules in other namespaces.
pub(super) fn add(session: &Session, samples: &mut Samples, stats: &mut Accounting) {
    let is_refused = |sample: &Sample| sample.grown(CounterSource::Conntrack, "insert_failed") > 0;
    let wanted: Vec<u64> =
        samples.values().filter(|sample| is_refused(sample)).filter_map(|sample| sample.netns_id).collect();
    if wanted.is_empty() {
        return;
    }
    let mut censuses: BTreeMap<u64, PortCensus> = wanted.iter().map(|id| (*id, PortCensus::default())).collect();
    let add = |sample: &mut Sample, row: &Conntrack<'_>| {
        if let Some(census) = sample.netns_id.and_then(|id| censuses.get_mut(&id)) {
            census.add(row);
        }
    };
    let is_read = ENTRIES.run(session, samples, is_refused, add, stats);
    let rules = SnatRules::new();
    session.in_each_namespace(&mut |netns_id| {
        let (Some(census), Some(sample)) = (censuses.get(&netns_id), samples.get_mut(&Some(netns_id))) else { return };
        let refused = sample.grown(CounterSource::Conntrack, "insert_failed");
        let listed = rules.read(session.host(), netns_id).unwrap_or_default();
        sample.around.snat_ports = is_read.then(|| census.judge(&listed, refused));
    });
}
