//! Resizes the hash table during a read: no entry may be missing or repeated without a report.
//!
//! The number of buckets belongs to the whole machine, so this takes the machine-wide lock. It is a separate file
//! because the other tests of this crate read tables at the same time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use conntrack::{ConntrackSource, KernelFilter, Options, Via};
use record::rows::Nat;
use record::{Accounting, Demand, Next, Source};
use sys::Host;
use testkit::HostKnob;
use testkit::conntrack::mixed_entries;
use testkit::netns::Lab;

const BUCKETS: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";
const ENTRIES: usize = 5_000;

/// Resizes on demand, outside of the lab: inside it the number is read-only.
struct Resizer {
    ask: SyncSender<u64>,
    done: Receiver<()>,
}

impl Resizer {
    fn resize(&self, buckets: u64) {
        self.ask.send(buckets).unwrap();
        self.done.recv().unwrap();
    }
}

/// Reads the table while it is resized at each of these rows: the number of distinct rows, and the row counts.
fn read(via: Via, resizer: &Resizer, at: impl Fn(usize) -> Option<u64>) -> (usize, Accounting) {
    let host = Host::live();
    let options = Options { via: Some(via), ..Options::new(sys::netns::current_inode().unwrap()) };
    let (mut seen, mut rows) = (HashSet::new(), 0);
    let stats = ConntrackSource::new(&host, options).run(&Demand::<Nat>::new(&[], Vec::new()), &mut |row| {
        assert!(seen.insert((row.orig, row.zone)), "twice: {row:?}");
        rows += 1;
        if let Some(buckets) = at(rows) {
            resizer.resize(buckets);
        }
        Next::More
    });
    (seen.len(), stats.unwrap())
}

#[test]
fn root_a_resize_under_the_reading_loses_and_doubles_nothing() {
    testkit::require_root!();
    let _knob = HostKnob::set(BUCKETS, "65536");
    let lab = Lab::new("resize");
    assert_eq!(lab.track(mixed_entries(ENTRIES as u32)), ENTRIES);
    let (ask, asked) = sync_channel::<u64>(0);
    let (tell, done) = sync_channel(0);
    // Ends when the sender is dropped, even if this test panics.
    let thread = std::thread::spawn(move || {
        for buckets in asked {
            std::fs::write(BUCKETS, buckets.to_string()).unwrap();
            let _ = tell.send(());
        }
    });
    let resizer = Resizer { ask, done };
    // The guard brings this thread back when it is dropped.
    let inside = lab.enter();
    let mut size = 16_384;
    for via in [Via::Netlink, Via::Proc] {
        for at in [1, ENTRIES / 3, ENTRIES - 1, ENTRIES] {
            size = if size == 16_384 { 131_072 } else { 16_384 };
            let (rows, stats) = read(via, &resizer, |row| (row == at).then_some(size));
            assert_eq!((rows, stats.is_partial()), (ENTRIES, false), "{} at {at}: {stats:?}", via.name());
            assert!(stats.duplicates > 0 && stats.seen == ENTRIES as u64 + stats.duplicates, "{stats:?}");
        }
    }
    // With endless resizes the result is reported as incomplete, and still no row is repeated.
    let sizes = std::cell::Cell::new(0);
    let (rows, stats) = read(Via::Netlink, &resizer, |_| {
        sizes.set(sizes.get() + 1);
        (sizes.get() % 500 == 0).then(|| 16_384 + sizes.get() % 7 * 8_192)
    });
    assert!(rows <= ENTRIES && (rows == ENTRIES || stats.is_partial()), "{rows}: {stats:?}");
    // A raw dump is not read again: it reports that the table changed.
    let host = Host::live();
    let options = Options::new(sys::netns::current_inode().unwrap());
    let source = ConntrackSource::new(&host, options).as_dump(KernelFilter::default());
    for at in [0, 1, ENTRIES / 3] {
        let mut rows = 0;
        let dumped = source.run(&Demand::<Nat>::new(&[], Vec::new()), &mut |_| {
            rows += 1;
            if rows == at {
                resizer.resize(if at == 1 { 131_072 } else { 16_384 });
            }
            Next::More
        });
        let stats = dumped.unwrap();
        assert_eq!((stats.is_partial(), stats.seen), (at > 0, rows as u64), "at {at}: {stats:?}");
        assert!(at == 0 || stats.why[0].text.contains("resized while it was read"), "{stats:?}");
    }
    drop(inside);
    drop(resizer);
    thread.join().unwrap();
}
