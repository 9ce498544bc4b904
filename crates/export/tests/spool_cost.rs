//! The cost of storing a message: `SPOOL_MESSAGES=20000000 cargo test --release -p export --test spool_cost --
//! --nocapture`, with `SPOOL_DIR` for another file system. Without SPOOL_MESSAGES, the test makes one small run.
#![allow(clippy::unwrap_used, clippy::panic)]

use export::{Batch, Ledger, MemoryStore, PushOutcome, Spool, SpoolOptions, Store, SyncWhen, WhenFull};
use std::path::PathBuf;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A batch of 1,000 messages of 250 bytes each.
fn batch() -> Batch {
    let mut batch = Batch::new();
    for _ in 0..1000 {
        batch.bytes_mut().extend_from_slice(&[b'm'; 250]);
        batch.end_message();
    }
    batch
}

/// Measures nanoseconds of CPU per message while the receiver keeps up (`keeps_up`) or is away.
fn cost(mut store: Box<dyn Store>, messages: u64, keeps_up: bool) -> u64 {
    let mut ledger = Ledger::default();
    let begin = sys::clock::thread_cpu_ns();
    for _ in 0..messages / 1000 {
        ledger.seen += 1000;
        assert!(matches!(store.push(batch(), WhenFull::DropOldest, ledger.delivered), PushOutcome::Kept { .. }));
        store.checkpoint(&ledger).unwrap();
        if keeps_up {
            let batch = store.get(ledger.delivered).unwrap().unwrap();
            ledger.delivered = batch.end();
            store.release(ledger.delivered).unwrap();
            store.checkpoint(&ledger).unwrap();
        }
    }
    (sys::clock::thread_cpu_ns() - begin) / messages
}

#[test]
fn what_a_message_costs() {
    let messages = variable("SPOOL_MESSAGES").map_or(10_000, |count| count.parse().unwrap());
    let tmp = tempfile::tempdir().unwrap();
    let dir = variable("SPOOL_DIR").map_or(tmp.path().to_owned(), |dir| PathBuf::from(dir).join("spool-cost"));
    for sync in [SyncWhen::Never, SyncWhen::EverySecond] {
        for keeps_up in [true, false] {
            let options = SpoolOptions { sync, ..SpoolOptions::new(1 << 30) };
            let (spool, _) = Spool::open(&dir, &format!("json:/{sync:?}-{keeps_up}"), options).unwrap();
            let disk = cost(Box::new(spool), messages, keeps_up);
            let memory = cost(Box::new(MemoryStore::new(1 << 30)), messages, keeps_up);
            println!("sync {sync:?}, receiver keeps up {keeps_up}: {disk} ns a message, in memory {memory} ns");
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}
