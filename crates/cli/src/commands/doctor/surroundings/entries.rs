//! One pass over the conntrack table, shared by several checks.

use super::Samples;
use crate::commands::lacks::note;
use conntrack::{AllNetnsConntrack, ConntrackSource, Options};
use doctor::checks::Sample;
use lookups::session::Session;
use record::rows::{Conntrack, CounterSource, Nat};
use record::{Accounting, Demand, Next, Schema, Source, field_index};

/// A pass over the table.
pub(super) struct EntriesPass {
    /// The required fields.
    pub(super) fields: &'static [&'static str],
    /// A filter for the required entries.
    pub(super) filter: &'static str,
    /// The message if the pass fails: `tracked flows are not checked`.
    pub(super) lack: &'static str,
}

impl EntriesPass {
    /// Hands the entries of the wanted, non-empty namespaces to `add`; reads no table if there are none. Returns false
    /// if the pass failed.
    pub(super) fn run(
        &self,
        session: &Session,
        samples: &mut Samples,
        is_wanted: impl Fn(&Sample) -> bool,
        mut add: impl FnMut(&mut Sample, &Conntrack<'_>),
        stats: &mut Accounting,
    ) -> bool {
        let has_entries = |sample: &Sample| {
            let entries = sample.counter(CounterSource::Conntrack, "entries");
            entries.is_some_and(|entries| entries.after > 0)
        };
        let wanted = samples.values().filter(|sample| has_entries(sample) && is_wanted(sample));
        let wanted: Vec<u64> = wanted.filter_map(|sample| sample.netns_id).collect();
        if wanted.is_empty() {
            return true;
        }
        let fields: Vec<usize> = self.fields.iter().filter_map(|name| field_index::<Nat>(name)).collect();
        let filter = engine::filter::conjuncts(Schema::of::<Nat>(), self.filter).unwrap_or_default();
        let demand = Demand::new(&fields, filter);
        let options = Options::new(session.netns_id());
        let namespaces = session.namespaces();
        let mut each = |row: &Conntrack<'_>| {
            let sample = samples.get_mut(&Some(row.netns_id)).filter(|_| wanted.contains(&row.netns_id));
            if let Some(sample) = sample {
                add(sample, row);
            }
            Next::More
        };
        let read = match namespaces.as_deref() {
            None => {
                let source = ConntrackSource::new(session.host(), options).with_cache(session.cache());
                source.run(&demand, &mut each)
            }
            Some(namespaces) => {
                let mut ways = session.ways(Some(namespaces));
                ways.retain(|way| wanted.contains(&way.netns_id));
                let source = AllNetnsConntrack::new(session.host(), options, ways).with_cache(session.cache());
                source.run(&demand, &mut each)
            }
        };
        match &read {
            Ok(read) => note(stats, read),
            Err(error) => {
                stats.incomplete(1, format!("{}: {error}", self.lack));
            }
        }
        read.is_ok()
    }
}
