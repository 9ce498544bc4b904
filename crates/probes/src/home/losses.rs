//! Drops from the kernel's own counters, if no BPF program can count them.

use super::{LIST_MAX, netns};
use doctor::seen::Sample;
use drops::{LOSSES, LossCounter};
use record::rows::{CounterSource, HomeScreen};
use record::{Lookups, OwnedObject, Value};

/// Returns the counters of losses that increased, the largest increase first.
pub fn losses_of(samples: &[Sample], lookups: &Lookups<'_>) -> Vec<OwnedObject> {
    let mut all: Vec<(u64, OwnedObject)> = Vec::new();
    for sample in samples {
        for LossCounter { source, name, .. } in LOSSES {
            for (object, moved) in sample.objects(*source, name).filter(|(_, moved)| moved.grown() > 0) {
                all.push((moved.grown(), row(sample, (*source, name), object, moved.grown(), lookups)));
            }
        }
    }
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    all.into_iter().map(|(_, object)| object).take(LIST_MAX as usize).collect()
}

fn row(
    sample: &Sample,
    (source, name): (CounterSource, &'static str),
    object: &[u8],
    count: u64,
    lookups: &Lookups<'_>,
) -> OwnedObject {
    let meaning = counters::describe(source, name).map(|meaning| meaning.text.as_bytes());
    let values = [
        Value::U64(count),
        Value::Bytes(name.as_bytes()),
        Value::Name(source.name()),
        netns(sample.netns_id, lookups),
        Value::nonempty(object),
        Value::Null,
        Value::text(meaning),
    ];
    OwnedObject::new(HomeScreen::DROPS, values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::{Counter, CounterKind};

    fn counter(source: CounterSource, name: &'static str, object: &'static str, delta: i128) -> Counter<'static> {
        Counter {
            netns_id: Some(7),
            source,
            name: name.as_bytes(),
            iface: None,
            ifindex: 0,
            is_virtual: false,
            is_drop_trap: false,
            cpu: None,
            qdisc: None,
            object: object.as_bytes(),
            value: 100,
            delta: Some(delta),
            window_ns: Some(1_000_000_000),
            kind: CounterKind::Counter,
            note: None,
            meaning: "",
        }
    }

    #[test]
    fn what_grew_is_shown_with_its_sentence() {
        let mut sample = Sample::new(Some(7));
        for row in [
            counter(CounterSource::Snmp, "UdpNoPorts", "", 3),
            counter(CounterSource::Iface, "rx_dropped", "eth0", 9),
            counter(CounterSource::Iface, "rx_dropped", "eth1", 0),
            counter(CounterSource::Snmp, "UdpInDatagrams", "", 50),
        ] {
            sample.add_counter(&row);
        }
        let found = losses_of(&[sample], &Lookups::empty());
        let shown: Vec<(Value<'_>, Value<'_>, Value<'_>)> =
            found.iter().map(|one| (one.get("count"), one.get("reason"), one.get("iface"))).collect();
        let text = |text: &'static str| Value::Bytes(text.as_bytes());
        assert_eq!(
            shown,
            [(Value::U64(9), text("rx_dropped"), text("eth0")), (Value::U64(3), text("UdpNoPorts"), Value::Null)]
        );
        assert!(found.iter().all(|one| !one.get("meaning").is_null()));
    }

    #[test]
    fn every_counter_of_losses_is_one_that_is_known() {
        for LossCounter { source, name, .. } in LOSSES {
            assert!(counters::describe(*source, name).is_some(), "{name}");
        }
    }
}
