//! Counts the source ports in use where connections were refused for lack of a free port.

use doctor::nat::PortCensus;
use doctor::seen::Sample;
use record::Accounting;
use record::rows::{Conntrack, CounterSource};
use std::collections::BTreeMap;

use crate::counter_window::Samples;
use crate::entries::EntriesPass;
use crate::nat::SnatRules;
use crate::probe::{ProbeReader, Round};

/// The pass over entries with source NAT.
const ENTRIES: EntriesPass = EntriesPass {
    fields: &["proto", "state", "status", "reply_src", "reply_sport", "reply_dst", "reply_dport", "zone", "expired"],
    filter: "nat in (snat, both)",
    lack: "source ports in use are not counted",
};

/// Counts the source ports in use in namespaces where entries could not be inserted.
pub(crate) struct SnatPortReader;

impl ProbeReader for SnatPortReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let refused = |sample: &Sample| sample.grown(CounterSource::Conntrack, "insert_failed");
        let wanted = samples.values().filter(|sample| refused(sample) > 0).filter_map(|sample| sample.netns_id);
        let mut censuses: BTreeMap<u64, PortCensus> = wanted.map(|id| (id, PortCensus::default())).collect();
        if censuses.is_empty() {
            return;
        }
        let add = |sample: &mut Sample, row: &Conntrack<'_>| {
            if let Some(census) = sample.netns_id.and_then(|id| censuses.get_mut(&id)) {
                census.add(row);
            }
        };
        let is_read = ENTRIES.run(round.session, samples, |sample| refused(sample) > 0, add, stats);
        let (session, rules) = (round.session, SnatRules::default());
        session.in_each_namespace(&mut |netns_id| {
            let Some(census) = censuses.get(&netns_id) else { return };
            let Some(sample) = samples.get_mut(&Some(netns_id)) else { return };
            let listed = rules.read(session.host(), netns_id).unwrap_or_default();
            sample.around.snat_ports = is_read.then(|| census.judge(&listed, refused(sample)));
        });
    }
}
