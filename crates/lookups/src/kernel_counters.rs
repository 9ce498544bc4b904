//! Reads the kernel's counters of a session, of all pillars.

use crate::session::Session;
use conntrack::stats::{Stats, StatsError};
use counters::{CounterReader, CounterReading, Width};
use host::Namespaces;
use record::RowStats;
use record::rows::{CounterSource, StatCounter};
use sys::{Errno, Host};

/// A reader for all counters of these namespaces; with `drivers` also for the drivers' own counters.
pub fn counter_reader<'s>(
    session: &'s Session,
    namespaces: Option<&'s Namespaces>,
    drivers: bool,
) -> CounterReader<'s> {
    let reader = CounterReader::new(session.host(), session.targets(namespaces), &add_conntrack);
    if drivers { reader.with_drivers() } else { reader }
}

/// Adds the conntrack counters, summed over all CPUs; adds nothing if conntrack is not loaded.
fn add_conntrack(host: &Host, netns_id: u64, reading: &mut CounterReading, stats: &mut RowStats) {
    match conntrack::stats::read(host, netns_id, 0, None) {
        Ok(found) => {
            if let Some(via) = found.via {
                stats.add_backend(via.name());
            }
            if let Some(why) = &found.without {
                stats.incomplete(1, format!("conntrack counters are not available: {why}"));
            }
            add_stats(reading, &found);
        }
        Err(StatsError::Absent) => {}
        Err(StatsError::Unreadable(error)) if error.errno == Errno::NOT_RECORDED => {
            stats.add_unanswered("the recording does not hold the counters of connection tracking");
        }
        Err(error) => stats.incomplete(1, format!("conntrack counters are not available: {error}")),
    }
}

fn add_stats(reading: &mut CounterReading, found: &Stats) {
    let mut add = |name, value: Option<u64>| {
        let Some(value) = value else { return };
        // A sum of 32-bit counters: if one of them wraps around, the sum decreases, and no difference is shown.
        reading.add(CounterSource::Conntrack, name, None, value.into(), Width::Bits64);
    };
    add("entries", found.entries);
    add("max", found.max);
    let sum = found.sum();
    StatCounter::ALL.into_iter().for_each(|counter| add(counter.name(), sum.get(counter)));
}
