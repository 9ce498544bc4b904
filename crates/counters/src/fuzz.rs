//! Entry point for the fuzzer: every parser of kernel bytes in this crate.
use record::rows::CounterSource;

use crate::reading::CounterReading;
use crate::reading::Object;
use crate::{drivers, links, qdiscs, texts, traps};

/// Parses any bytes as each of the files and messages that are read. None of these may panic or loop forever.
pub fn fuzz_counters(data: &[u8]) {
    let mut reading = CounterReading::default();
    texts::add_pairs(&mut reading, CounterSource::Sockstat, data);
    texts::add_two_lines(&mut reading, CounterSource::Netstat, data);
    texts::add_single(&mut reading, CounterSource::Snmp6, data);
    texts::add_softnet(&mut reading, data);
    texts::add_neigh(&mut reading, "arp", data);
    let of_texts = reading.values().len();
    assert!(of_texts <= 5 * data.len(), "each value has a byte");
    let _ = (links::add(&mut reading, data), qdiscs::add(&mut reading, data, &[]));
    let _ = traps::add(&mut reading, data);
    let _ = drivers::add(&mut reading, &Object::iface(1, b"va"), data);
    assert!(reading.values().iter().all(|one| one.object.is_none() || reading.object(one).is_some()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            fuzz_counters(&bytes);
        }

        #[test]
        fn any_attributes(
            head in 16usize..21,
            kind in 0u16..50,
            payload in prop::collection::vec(any::<u8>(), 0..220),
        ) {
            let mut message = vec![0; head];
            for (kind, payload) in [(1, &b"tbf\0"[..]), (3, b"va\0\0"), (kind, &payload)] {
                message.extend_from_slice(&((payload.len() + 4) as u16).to_ne_bytes());
                message.extend_from_slice(&kind.to_ne_bytes());
                message.extend_from_slice(payload);
            }
            fuzz_counters(&message);
        }
    }
}
