//! One pass over the conntrack table, for probes and for advice.

use conntrack::{AllNetnsConntrack, Chains, ConntrackSource, Options};
use doctor::seen::Sample;
use lookups::session::Session;
use record::rows::{Conntrack, CounterSource, Nat};
use record::{Accounting, Demand, Each, Next, Scan, Schema, SourceError, field_index};

use crate::counter_window::Samples;

/// Reads the entries of the session's namespaces that are `wanted`. The walk also returns the lengths of the hash
/// chains.
pub(crate) fn read_entries(
    session: &Session,
    demand: &Demand<Nat>,
    wanted: &[u64],
    each: &mut Each<'_, Nat>,
) -> (Result<Accounting, SourceError>, Option<Chains>) {
    let (host, options) = (session.host(), Options::new(session.netns_id()));
    match session.namespaces() {
        None => {
            let source = ConntrackSource::new(host, options).with_cache(&session.backends().conntrack);
            let mut scan = source.scan(demand);
            (scan.run(each), scan.chains())
        }
        Some(namespaces) => {
            let mut targets = session.targets(Some(&namespaces));
            targets.retain(|target| wanted.contains(&target.netns_id));
            let source = AllNetnsConntrack::new(host, options, targets).with_cache(&session.backends().conntrack);
            let mut scan = source.scan(demand);
            (scan.run(each), scan.chains())
        }
    }
}

/// A pass over the table.
pub(crate) struct EntriesPass {
    /// The required fields.
    pub(crate) fields: &'static [&'static str],
    /// A filter for the required entries.
    pub(crate) filter: &'static str,
    /// The message if the pass fails: `tracked flows are not checked`.
    pub(crate) lack: &'static str,
}

impl EntriesPass {
    /// Hands the entries of the wanted, non-empty namespaces to `add`; reads no table if there are none. Returns false
    /// if the pass failed.
    pub(crate) fn run(
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
        let filter = engine::filter::conjuncts(Schema::from_table::<Nat>(), self.filter).unwrap_or_default();
        let demand = Demand::new(&fields, filter);
        let mut each = |row: &Conntrack<'_>| {
            let sample = samples.get_mut(&Some(row.netns_id)).filter(|_| wanted.contains(&row.netns_id));
            if let Some(sample) = sample {
                add(sample, row);
            }
            Next::More
        };
        let (read, _) = read_entries(session, &demand, &wanted, &mut each);
        match &read {
            Ok(read) => stats.add_gaps(read),
            Err(error) => {
                stats.incomplete(1, format!("{}: {error}", self.lack));
            }
        }
        read.is_ok()
    }
}
