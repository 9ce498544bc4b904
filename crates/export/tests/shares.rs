//! A full queue: for any pushes, deliveries and drops, each message is in exactly one count, and the order is kept.
#![allow(clippy::unwrap_used, clippy::panic)]

use export::{Batch, MemoryStore, PushOutcome, Store, WhenFull};
use proptest::prelude::*;

fn batch(classes: &[u16]) -> Batch {
    let mut batch = Batch::new();
    for class in classes {
        batch.set_class(*class);
        batch.bytes_mut().extend_from_slice(&[b'x'; 100]);
        batch.end_message();
    }
    batch
}

/// Number of messages that wait from `number` on.
fn waiting(store: &mut MemoryStore, mut number: u64) -> u64 {
    let mut messages = 0;
    while let Some(batch) = store.get(number).unwrap() {
        assert!(batch.end() > number && batch.end() <= store.end());
        messages += batch.end() - batch.first_number().max(number);
        number = batch.end();
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn each_message_is_in_one_count(
        steps in proptest::collection::vec((proptest::collection::vec(0..4u16, 1..60), 0..3usize, any::<bool>()), 1..80)
    ) {
        let mut store = MemoryStore::new(20_000);
        let (mut pushed, mut dropped, mut delivered, mut held) = (0, 0, 0, 0);
        for (classes, when_full, delivers) in steps {
            let when_full = [WhenFull::DropOldest, WhenFull::DropNewest, WhenFull::Block][when_full];
            pushed += classes.len() as u64;
            match store.push(batch(&classes), when_full, held) {
                PushOutcome::Kept { dropped: now } => dropped += now,
                PushOutcome::Full { batch, dropped: now } => dropped += batch.len() + now,
            }
            if delivers {
                let next = store.get(held).unwrap();
                if let Some(next) = next {
                    delivered += next.end() - next.first_number().max(held);
                    held = next.end();
                    store.release(held).unwrap();
                }
            }
            prop_assert_eq!(pushed, delivered + dropped + waiting(&mut store, held));
        }
    }
}
