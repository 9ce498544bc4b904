//! The previous reading, and the matching of counters between two readings.

use std::collections::{BTreeMap, HashMap, HashSet};

use record::rows::CounterSource;

use crate::reading::{CounterReading, CounterValue, Object};

/// The previous reading, by namespace.
#[derive(Debug, Default)]
pub struct CounterMemory {
    before: BTreeMap<Option<u64>, CounterReading>,
    /// Its start on the clock of the recording.
    at_ns: Option<u64>,
}

impl CounterMemory {
    /// Start of the previous reading; `None` if there was no previous reading.
    pub(crate) fn at_ns(&self) -> Option<u64> {
        self.at_ns
    }

    /// The previous reading of a namespace, or of the host.
    pub(crate) fn previous_reading(&self, netns_id: Option<u64>) -> Option<&CounterReading> {
        self.before.get(&netns_id)
    }

    /// Replaces the previous reading with a new one.
    pub(crate) fn replace(&mut self, at_ns: Option<u64>, readings: BTreeMap<Option<u64>, CounterReading>) {
        (self.at_ns, self.before) = (at_ns, readings);
    }
}

/// The identity of a counter in its namespace.
type CounterKey<'b> = (CounterSource, Option<&'b Object>, &'b str);

/// Finds the counters of one reading in the previous one. Both have the kernel's order, so a counter usually comes
/// right after the last one found; otherwise an index is built.
pub(crate) struct Matches<'b> {
    before: &'b CounterReading,
    /// Index after the last counter found.
    at: usize,
    index: Option<HashMap<CounterKey<'b>, usize>>,
    /// Sources and objects with counters in the previous reading; built at the first counter that it lacks.
    counted: Option<HashSet<(CounterSource, Option<&'b Object>)>>,
}

impl<'b> Matches<'b> {
    pub(crate) fn new(before: &'b CounterReading) -> Matches<'b> {
        Matches { before, at: 0, index: None, counted: None }
    }

    /// The previous value of a counter of `reading`; `None` if the counter did not exist.
    pub(crate) fn value(&mut self, reading: &CounterReading, counted: &CounterValue) -> Option<i128> {
        let wanted = key(reading, counted);
        let found = match self.before.values().get(self.at) {
            Some(next) if key(self.before, next) == wanted => self.at,
            _ => *self.index.get_or_insert_with(|| index(self.before)).get(&wanted)?,
        };
        self.at = found + 1;
        self.before.values().get(found).map(|one| one.value)
    }

    /// True if the previous reading has other counters of the same source and object. A counter missing among them was
    /// 0, because the kernel only lists it once it has occurred (`IcmpMsgInType8`). False for an interface, a queueing
    /// discipline or a CPU that appeared since then: its previous count is unknown.
    pub(crate) fn knew_object(&mut self, reading: &'b CounterReading, counted: &CounterValue) -> bool {
        let before = self.before;
        let known = self
            .counted
            .get_or_insert_with(|| before.values().iter().map(|one| (one.source, before.object(one))).collect());
        known.contains(&(counted.source, reading.object(counted)))
    }
}

fn key<'r>(reading: &'r CounterReading, counted: &'r CounterValue) -> CounterKey<'r> {
    (counted.source, reading.object(counted), counted.name.text())
}

fn index(reading: &CounterReading) -> HashMap<CounterKey<'_>, usize> {
    reading.values().iter().enumerate().map(|(at, one)| (key(reading, one), at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Width;

    fn reading(ifaces: &[(u32, &str, i128)]) -> CounterReading {
        let mut reading = CounterReading::default();
        for (index, name, value) in ifaces {
            let object = reading.add_object(Object::iface(*index, name.as_bytes()));
            for (name, value) in [("rx_packets", *value), ("tx_packets", *value + 1)] {
                reading.add(CounterSource::Iface, name, Some(object), value, Width::Bits64);
            }
        }
        reading
    }

    #[test]
    fn interfaces_that_came_went_or_took_a_name() {
        let before = reading(&[(1, "lo", 10), (2, "va", 20), (3, "vb", 30)]);
        let now = reading(&[(3, "vb", 31), (4, "va", 0), (1, "lo", 11)]);
        let mut matches = Matches::new(&before);
        let values: Vec<Option<i128>> = now.values().iter().map(|one| matches.value(&now, one)).collect();
        assert_eq!(values, [Some(30), Some(31), None, None, Some(10), Some(11)]);
    }

    #[test]
    fn a_counter_that_appears_was_zero_if_its_object_was_there() {
        let before = reading(&[(1, "lo", 10)]);
        let mut now = reading(&[(1, "lo", 10), (2, "va", 5)]);
        let object = now.add_object(Object::iface(1, b"lo"));
        now.add(CounterSource::Iface, "rx_dropped", Some(object), 3, Width::Bits64);
        now.add(CounterSource::Snmp, "IcmpMsgInType8", None, 1, Width::Bits64);
        let mut matches = Matches::new(&before);
        let new = now.values().iter().filter(|one| matches.value(&now, one).is_none()).collect::<Vec<_>>();
        let known: Vec<(&str, bool)> =
            new.iter().map(|one| (one.name.text(), matches.knew_object(&now, one))).collect();
        let expected = [("rx_packets", false), ("tx_packets", false), ("rx_dropped", true), ("IcmpMsgInType8", false)];
        assert_eq!(known, expected, "nothing of snmp was read before");
    }
}
