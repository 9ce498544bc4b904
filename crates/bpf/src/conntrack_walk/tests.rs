#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::context::Context;
use super::position::TablePosition;
use super::rows::{ADDRESSES_AT, HEAD_BYTES, identifying_bytes, rows};
use super::table::CONCURRENCY;
use super::wanted::{ANSWER, STATES};
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::Blocks;

#[test]
fn a_tuple_is_value_and_mask() {
    assert!(TupleCondition::ANY.is_any());
    let is = TupleCondition::ANY.proto(6).dport(443).src(&[10, 1, 2, 3], 12);
    assert_eq!((is.value[38], is.mask[38]), (6, 0xff));
    assert_eq!((&is.value[36..38], &is.mask[36..38]), (&[1, 187][..], &[0xff; 2][..]));
    assert_eq!((&is.value[..5], &is.mask[..5]), (&[10, 0, 0, 0, 0][..], &[0xff, 0xf0, 0, 0, 0][..]));
    assert_eq!(u16::from_ne_bytes([is.value[18], is.value[19]]), 2, "an address has a family");
    let v6 = TupleCondition::ANY.dst(&[0xff; 16], 128);
    assert_eq!((&v6.mask[20..36], v6.value[18]), (&[0xff; 16][..], 10));
    assert!(TupleCondition::ANY.dst(&[1; 16], 0).mask[20..36].iter().all(|bits| *bits == 0));
}

#[test]
fn conditions_match_the_filter() {
    let some = WantedEntries { states: Some(2), reply: TupleCondition::ANY.proto(6), ..WantedEntries::LIVE };
    assert_eq!((WantedEntries::LIVE.conditions(), some.conditions()), (0, ANSWER | STATES));
    let context = Context::new(&WantedEntries { all: true, ..some }, [8, 16, 1, 5], CONCURRENCY, 77);
    assert_eq!((context.get(0), context.get(4), context.get(8), context.get(12)), (8, 16, 1, 5));
    assert_eq!((context.word(56), context.word(Context::NET)), (2, 77));
    assert_eq!(context.0[Context::TUPLES + 80 + 38], 6);
}

#[test]
fn a_share_is_one_of_any_size() {
    let third = TablePosition { bucket: 1000, of: 3000 };
    assert!(!third.is_before(TablePosition { bucket: 1, of: 3 }) && TablePosition::NOTHING.is_before(third));
    assert!(TablePosition { bucket: 999, of: 3000 }.is_before(third));
    assert_eq!((third.in_table(600), third.in_table(601), third.in_table(u32::MAX)), (200, 200, 0x5555_5555));
}

#[test]
fn crooked_blocks_are_cut() {
    let mut block = vec![0; HEAD_BYTES];
    block[ADDRESSES_AT..ADDRESSES_AT + 4].copy_from_slice(&32u32.to_ne_bytes());
    for words in [10, 10, 0, 10] {
        block.push(words);
        block.extend_from_slice(&[2; 39]);
    }
    let found: Vec<_> = rows(&block).collect();
    assert_eq!((found.len(), found[0].1), (2, 32));
    assert_eq!(identifying_bytes(found[0].0, found[0].1).len(), 2 + 7 + 4 + 8);
    assert!(identifying_bytes(&[], 1000).is_empty() && rows(&[]).next().is_none());
    block.truncate(HEAD_BYTES + 41);
    assert_eq!(rows(&block).count(), 1);
}

#[test]
fn root_an_empty_namespace() {
    testkit::require_root!();
    let lab = testkit::netns::Lab::new("walkempty");
    lab.run_inside(|| {
        let host = Host::live();
        let walk = CtWalk::load(&host, 1, &WantedEntries::LIVE).unwrap();
        assert!(walk.covers(1, &WantedEntries::LIVE) && !walk.covers(2, &WantedEntries::LIVE));
        assert!(!walk.covers(1, &WantedEntries { mark: Some((1, 1)), ..WantedEntries::LIVE }));
        for _ in 0..3 {
            let mut walking = walk.read(&host, WantedEntries::LIVE).unwrap();
            assert!(walking.next().unwrap().is_none());
            assert!(walking.buckets() >= 512 && walking.buckets() % 512 == 0);
        }
    });
}

const BUCKETS: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";

/// Sets the size even from inside a namespace that may not: the file is opened in the initial namespace.
fn resizer() -> impl Fn(&str) + Sync {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(BUCKETS).unwrap();
    move |buckets| assert_eq!(file.write_at(buckets.as_bytes(), 0).unwrap(), buckets.len())
}

fn counts_of(walk: &CtWalk, host: &Host) -> Counts {
    let mut walking = walk.read(host, WantedEntries::LIVE).unwrap();
    while walking.next().unwrap().is_some() {}
    walk.complete_counts().expect("nobody resizes the table meanwhile")
}

/// Nodes of each group of eight buckets, and of all, computed from the number of steps regardless of their depth.
fn nodes_by_eight(walk: &CtWalk, host: &Host) -> (Vec<u32>, u64) {
    let walking = walk.read(host, WantedEntries::LIVE).unwrap();
    let eight = |start| walking.run(start, start + 8).unwrap().get(Context::NODES);
    let nodes: Vec<u32> = (0..walking.buckets()).step_by(8).map(eight).collect();
    let all = nodes.iter().map(|nodes| u64::from(*nodes)).sum();
    (nodes, all)
}

/// A bucket of a table corresponds to eight buckets of a table eight times as large: the nodes in these make up its
/// chain.
#[test]
fn root_the_longest_chain_is_as_long_as_counted_in_a_larger_table() {
    testkit::require_root!();
    let knob = testkit::HostKnob::set(BUCKETS, "65536");
    let resize = resizer();
    let lab = testkit::netns::Lab::new("walkdepth");
    lab.run_inside(|| {
        let host = Host::live();
        let walk = CtWalk::load(&host, 1, &WantedEntries::LIVE).unwrap();
        // A mean of a few nodes, and one that needs many rounds and more than one call.
        for (made, count) in [(0, 300), (300, 12_000)] {
            // Inserted into a large table, because the kernel refuses entries if chains are long.
            resize("65536");
            testkit::conntrack::insert(testkit::conntrack::mixed_entries(count).skip(made));
            testkit::wait_until("two readings of the same chains", || {
                resize("4096");
                let (nodes, all) = nodes_by_eight(&walk, &host);
                assert!(nodes.len() == 512 && all >= 2 * u64::from(count), "{all}");
                let of_larger = counts_of(&walk, &host);
                resize("512");
                let counts = counts_of(&walk, &host);
                // The host's own entries are also counted, and they come and go.
                let is_still = [counts.nodes, of_larger.nodes, nodes_by_eight(&walk, &host).1] == [all; 3];
                let longest = nodes.iter().max().copied().unwrap();
                if is_still {
                    assert_eq!(counts.longest, longest, "of {all} nodes");
                    assert!(of_larger.longest <= longest && u64::from(of_larger.longest) >= all.div_ceil(4096));
                }
                is_still
            });
        }
    });
    drop(knob);
}

/// Creates and removes entries until `stop` is set.
fn come_and_go(lab: &testkit::netns::Lab, at_once: u16, stop: &AtomicBool) {
    let _inside = lab.enter();
    for round in 0u16.. {
        let [high, low] = round.to_be_bytes();
        let entry = |n: u16| {
            let source = ([10, 30, high, low].into(), 1024 + n);
            testkit::conntrack::Entry::udp(source, ([10, 40, 0, 1].into(), 53))
        };
        testkit::conntrack::insert((0..at_once).map(entry));
        testkit::conntrack::remove((0..at_once).map(entry));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

#[test]
fn root_a_turn_that_is_read_again_counts_once() {
    testkit::require_root!();
    let knob = testkit::HostKnob::set(BUCKETS, "65536");
    let resize = resizer();
    let (lab, stop) = (testkit::netns::Lab::new("walkagain"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let read = || {
            let host = Host::live();
            let walk = CtWalk::load(&host, 1, &WantedEntries::LIVE).unwrap();
            testkit::conntrack::insert(testkit::conntrack::mixed_entries(10_000));
            // Twenty nodes per bucket, including entries of others: many per round, and none is refused.
            let buckets = counts_of(&walk, &host).nodes / 20;
            resize(&buckets.next_multiple_of(512).to_string());
            let quiet = counts_of(&walk, &host);
            scope.spawn(|| come_and_go(&lab, 256, &stop));
            // A round has about 900 nodes; 512 nodes (both directions) come and go.
            testkit::wait_until("a reading that began again and again", || {
                let counts = counts_of(&walk, &host);
                assert!(counts.nodes < quiet.nodes + 1_200, "{counts:?}, before {quiet:?}");
                assert!(counts.longest < quiet.longest + 12, "{counts:?}, before {quiet:?}");
                counts.restarts >= 4
            });
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lab.run_inside(read)));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    drop(knob);
}

#[test]
fn root_what_two_tables_have_is_no_length_of_either() {
    testkit::require_root!();
    let knob = testkit::HostKnob::set(BUCKETS, "65536");
    let resize = resizer();
    let lab = testkit::netns::Lab::new("walkmixed");
    lab.track(testkit::conntrack::mixed_entries(30_000));
    lab.run_inside(|| {
        let host = Host::live();
        let walk = CtWalk::load(&host, 1, &WantedEntries::LIVE).unwrap();
        let mut walking = walk.read(&host, WantedEntries::LIVE).unwrap();
        assert!(walking.next().unwrap().is_some() && walk.complete_counts().is_none(), "not before its end");
        resize("131072");
        while walking.next().unwrap().is_some() {}
        assert_eq!((walking.counts().resizes, walk.complete_counts()), (1, None));
    });
    drop(knob);
}

/// The identifying bytes of each entry of a reading, in order.
fn entries(walk: &CtWalk, host: &Host) -> (Vec<Vec<u8>>, Option<Counts>) {
    let mut walking = walk.read(host, WantedEntries::LIVE).unwrap();
    let mut found = Vec::new();
    while let Some(block) = walking.next().unwrap() {
        found.extend(rows(block).map(|(row, at)| identifying_bytes(row, at)));
    }
    found.sort_unstable();
    (found, walk.complete_counts())
}

/// Rows have all parts, so that few fit; eight buckets then contain more than a region can hold.
#[test]
fn root_issue_10_chains_that_do_not_fit_are_read_in_portions() {
    testkit::require_root!();
    const ALL_PARTS: u32 = 127;
    const ENTRIES: u32 = 150_000;
    let knob = testkit::HostKnob::set(BUCKETS, "262144");
    let resize = resizer();
    let lab = testkit::netns::Lab::new("walklong");
    lab.run_inside(|| {
        let host = Host::live();
        let walk = CtWalk::load(&host, ALL_PARTS, &WantedEntries::LIVE).unwrap();
        testkit::conntrack::insert(testkit::conntrack::mixed_entries(ENTRIES));
        testkit::wait_until("two readings of the same chains", || {
            resize("262144");
            let (expected, of_larger) = entries(&walk, &host);
            resize("512");
            let (found, counts) = entries(&walk, &host);
            assert!(found.len() == ENTRIES as usize && expected == found, "{} and {}", expected.len(), found.len());
            let nodes = [of_larger, counts].map(|counts| counts.expect("nobody resizes the table meanwhile").nodes);
            // The host's own entries are also counted, and they come and go.
            nodes[0] == nodes[1]
        });
        assert!(walk.portioned.get().is_some(), "all chains fitted into the region");
        // The table is resized in the middle of the reading.
        let mut walking = walk.read(&host, WantedEntries::LIVE).unwrap();
        let mut found = Vec::new();
        for block in 0.. {
            let Some(bytes) = walking.next().unwrap() else { break };
            found.extend(rows(bytes).map(|(row, at)| identifying_bytes(row, at)));
            match block {
                20 => resize("1024"),
                60 => resize("512"),
                _ => {}
            }
        }
        let resizes = walking.counts().resizes;
        let all = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!((found.len(), all, resizes), (ENTRIES as usize, ENTRIES as usize, 2));
    });
    drop(knob);
}

#[test]
fn without_the_file_there_is_no_table() {
    testkit::require_root!();
    let walk = CtWalk::load(&Host::live(), 1, &WantedEntries::LIVE).unwrap();
    let elsewhere = Host::with_roots("/nonexistent/proc".into(), "/sys".into(), "/etc".into());
    let error = walk.read(&elsewhere, WantedEntries::LIVE).map(drop).unwrap_err();
    assert!(error.to_string().contains("nf_conntrack"), "{error}");
}

/// After two resizes the kernel may have reused the memory of the first table.
#[test]
fn root_issue_10_a_table_of_the_same_size_is_another() {
    testkit::require_root!();
    let knob = testkit::HostKnob::set(BUCKETS, "65536");
    let resize = resizer();
    let lab = testkit::netns::Lab::new("walksame");
    lab.track(testkit::conntrack::mixed_entries(30_000));
    lab.run_inside(|| {
        let live = Host::live();
        let walk = CtWalk::load(&live, 1, &WantedEntries::LIVE).unwrap();
        let (all, _) = entries(&walk, &live);
        let mut walking = walk.read(&live, WantedEntries::LIVE).unwrap();
        let mut found: Vec<_> =
            walking.next().unwrap().into_iter().flat_map(rows).map(|row| identifying_bytes(row.0, row.1)).collect();
        ["4096", "65536"].into_iter().for_each(&resize);
        while let Some(block) = walking.next().unwrap() {
            found.extend(rows(block).map(|(row, at)| identifying_bytes(row, at)));
        }
        found.sort_unstable();
        assert!(found == all, "{} of {}", found.len(), all.len());
        assert_eq!((walking.counts().resizes, walk.complete_counts()), (1, None));
        // Without the kernel's variables, the table can only be found through its file.
        let elsewhere = Host::with_roots("/proc".into(), "/nonexistent/sys".into(), "/etc".into());
        assert!(entries(&walk, &elsewhere).0 == all);
    });
    drop(knob);
}
