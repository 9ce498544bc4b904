//! Compares the walk of the hash table with netlink, and tests its failures.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use conntrack::{AllNetnsConntrack, BackendCache, ConntrackSource, KernelFilter, Options, TupleFilter, Via};
use record::rows::{Conntrack, CtStatus, Nat, nat_need};
use record::{
    Accounting, Addr, CachedRow, Demand, EndpointTest, Expr, Next, Op, Operand, Prefix, RowBytes, RowCache, Scan,
    Source, Table, Test, Value, field_index,
};
use sys::caps::Cap;
use sys::fault::{Fault, arm, disarm_all};
use sys::{Errno, Host, NetNs, NetnsTarget};
use testkit::conntrack::{Entry, insert, mixed_entries, remove};
use testkit::netns::Lab;
use testkit::tables::{ExclusiveUse, SharedUse};
use testkit::{HostKnob, wait_until};

const BUCKETS: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";

fn demand(fields: &[&str], conjuncts: Vec<Expr>) -> Demand<Nat> {
    let fields: Vec<usize> = fields.iter().map(|name| field_index::<Nat>(name).unwrap()).collect();
    Demand::new(&fields, conjuncts)
}

fn options(via: Option<Via>) -> Options {
    Options { via, ..Options::new(sys::netns::current_inode().unwrap()) }
}

fn read(
    cache: &BackendCache,
    via: Option<Via>,
    demand: &Demand<Nat>,
    mut each: impl FnMut(&Conntrack<'_>),
) -> Accounting {
    let host = Host::live();
    let source = ConntrackSource::new(&host, options(via)).with_cache(cache);
    let read = source.run(demand, &mut |row| {
        each(row);
        Next::More
    });
    read.unwrap()
}

/// All fields that both backends have. The timeout is separate: it shrinks between two reads.
fn comparable(row: &Conntrack<'_>) -> (String, i64) {
    let known = Conntrack {
        id: None,
        timeout_s: None,
        expired: None,
        now_ns: None,
        vtags: None,
        dccp_role: None,
        secctx: None,
        master: None,
        extended: None,
        ..*row
    };
    (format!("{known:?}"), row.timeout_s.map_or(-1, i64::from))
}

fn table(cache: &BackendCache, via: Via, demand: &Demand<Nat>) -> Vec<(String, i64)> {
    let mut rows = Vec::new();
    let stats = read(cache, Some(via), demand, |row| rows.push(comparable(row)));
    assert!(!stats.incomplete, "{stats:?}");
    rows.sort();
    rows
}

const EVERY_FIELD: &[&str] =
    &["status", "timeout_s", "bytes_out", "age_s", "zone", "label", "helper", "uses", "mark", "reply_src", "state"];

#[test]
fn root_every_row_as_netlink_has_it() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkrows");
    lab.use_conntrack_labels();
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    let udp = |host: u8| Entry::udp(([10, 9, 9, host].into(), 99), ([10, 9, 9, 9].into(), 99));
    lab.track(mixed_entries(3_000).chain((1..4).map(|n| udp(n).label_bits(&[n, 64 + n]))));
    lab.run_inside(|| {
        let cache = BackendCache::new();
        let demand = demand(EVERY_FIELD, Vec::new());
        let (walk, netlink) = (table(&cache, Via::Bpf, &demand), table(&cache, Via::Netlink, &demand));
        assert_eq!((walk.len(), netlink.len()), (3_003, 3_003));
        for (ours, theirs) in walk.iter().zip(&netlink) {
            assert_eq!(ours.0, theirs.0);
            assert!((theirs.1 - ours.1).abs() <= 2, "{ours:?} {theirs:?}");
        }
        let has = |what: &str| walk.iter().filter(|(row, _)| row.contains(what)).count();
        assert_eq!(has("counters_orig: Some"), 3_003);
        assert_eq!(has("start_ns: Some"), 3_003);
        assert_eq!(has("labels: Some("), 3);
        let mut extended = 0;
        read(&cache, Some(Via::Bpf), &demand, |row| extended += u32::from(row.extended == Some(true)));
        assert_eq!(extended, 3_003, "counters and times are extensions");
        assert!(has("Sctp(") > 100 && has("Tcp(") > 1_000 && has("V6(") > 300 && has("zone: Some(2)") > 20);
    });
}

/// A caller that tests rows itself gets the same from the walk, if that pays off, as from a netlink dump.
#[test]
fn root_the_walk_in_place_of_a_dump() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkdump");
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.track(mixed_entries(3_000));
    lab.run_inside(|| {
        let (host, cache, refusing) = (Host::live(), BackendCache::new(), BackendCache::without_walk());
        let of = |cache| ConntrackSource::new(&host, options(None)).with_cache(cache);
        let rows = |source: ConntrackSource<'_>, need| {
            let (mut rows, mut demand) = (Vec::new(), demand(&[], Vec::new()));
            demand.need = need;
            let stats = source.run(&demand, &mut |row| {
                rows.push(comparable(row).0);
                Next::More
            });
            rows.sort();
            (rows, stats.unwrap().via)
        };
        let need = nat_need::COUNTERS | nat_need::HELPER | nat_need::ZONE;
        let port = TupleFilter { proto: Some(6), dport: Some(8000), ..TupleFilter::default() };
        let any = KernelFilter::default();
        for filter in [any, KernelFilter { family: 2, orig: port, ..any }, KernelFilter { family: 10, ..any }] {
            let (walked, by_walk) = rows(of(&cache).with_kernel_filter(filter), need);
            let (dumped, by_dump) = rows(of(&cache).as_dump(filter), need);
            assert_eq!((by_walk, by_dump), (vec!["bpf"], vec!["netlink"]), "netlink looks into every bucket");
            assert!(walked.len() > 20 && walked == dumped, "{filter:?}: {} {}", walked.len(), dumped.len());
        }
        assert_eq!(rows(of(&cache).with_kernel_filter(any), nat_need::ID).1, ["netlink"], "the walk lacks that");
        assert_eq!(rows(of(&refusing).with_kernel_filter(any), need).1, ["netlink"]);
        let counted = |(rows, _): (Vec<String>, _)| rows.iter().filter(|row| row.contains("packets: 0,")).count();
        rows(of(&cache).as_dump(KernelFilter { zero_counters: true, ..any }), need);
        assert_eq!(counted(rows(of(&cache).as_dump(any), need)), 3_000);
    });
}

/// Remembers the text of each row by the row's bytes.
#[derive(Default)]
struct Known {
    rows: RefCell<HashMap<Vec<u8>, String>>,
    asked: RefCell<Vec<u8>>,
    again: RefCell<Vec<(String, i64)>>,
    refuses: bool,
}

impl RowCache for Known {
    fn exclude_field(&self, field: usize) -> bool {
        assert_eq!(Nat::FIELDS[field].name, "timeout_s");
        !self.refuses
    }

    fn reuse(&self, row: RowBytes<'_>) -> Option<CachedRow> {
        let Some(told) = self.rows.borrow().get(row.bytes).cloned() else {
            *self.asked.borrow_mut() = row.bytes.to_vec();
            return None;
        };
        let Value::U64(timeout_s) = row.beside else { panic!("{row:?}") };
        self.again.borrow_mut().push((told, timeout_s as i64));
        Some(CachedRow { next: Next::More, tag: 0 })
    }

    fn invalidate(&self) {
        self.asked.borrow_mut().clear();
    }

    fn set_tag(&self, _: Option<u32>) {}
}

/// Rows recognised by their bytes match the table, with the current time left.
#[test]
fn root_rows_are_known_again_but_for_their_time() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkagain");
    lab.track(mixed_entries(2_000));
    lab.run_inside(|| {
        let (host, cache, mut known) = (Host::live(), BackendCache::new(), Known::default());
        let again = |known: &Known, fields: &[&str]| {
            known.again.borrow_mut().clear();
            let mut fresh = Vec::new();
            let source = ConntrackSource::new(&host, options(Some(Via::Bpf))).with_cache(&cache);
            let read = source.prepare(&demand(fields, Vec::new())).run_cached(known, &mut |row| {
                let (text, timeout_s) = comparable(row);
                let bytes = known.asked.take();
                if !bytes.is_empty() {
                    let before = known.rows.borrow_mut().insert(bytes, text.clone());
                    assert!(before.is_none(), "{text}: {before:?}");
                }
                fresh.push((text, timeout_s));
                Next::More
            });
            let stats = read.unwrap();
            let mut all = [known.again.take(), fresh.clone()].concat();
            assert_eq!(stats.seen, all.len() as u64);
            all.sort();
            (all, fresh.len())
        };
        let fields = ["status", "timeout_s", "reply_src", "state", "mark"];
        let same = |walk: &[(String, i64)]| {
            let netlink = table(&cache, Via::Netlink, &demand(&fields, Vec::new()));
            assert_eq!(walk.len(), netlink.len());
            for (ours, theirs) in walk.iter().zip(&netlink) {
                assert!((theirs.1 - ours.1).abs() <= 2, "{ours:?} {theirs:?}");
            }
        };
        let (first, fresh) = again(&known, &fields);
        assert_eq!((first.len(), fresh), (2_000, 2_000));
        let (second, fresh) = again(&known, &fields);
        assert_eq!((second.len(), fresh), (2_000, 0), "nothing is decoded again");
        same(&second);
        // A hundred entries are removed; ten of them come back with a mark.
        remove(mixed_entries(2_000).take(100));
        insert(mixed_entries(2_000).take(10).map(|entry| entry.mark(0x77)));
        let (third, fresh) = again(&known, &fields);
        assert_eq!((third.len(), fresh), (1_910, 10));
        same(&third);
        assert_eq!(third.iter().filter(|(row, _)| row.contains("mark: Some(119)")).count(), 10);
        // Fields that change while the bytes stay the same, and the time of every row.
        for fields in [["age_s"], ["expired"], ["label"], ["uses"]] {
            assert_eq!(again(&known, &fields).1, 1_910, "{fields:?}");
        }
        known.refuses = true;
        assert_eq!(again(&known, &fields).1, 1_910);
    });
}

fn is(name: &str, word: &str) -> Expr {
    test(name, Operand::Words(vec![word.as_bytes().into()]))
}

fn test(name: &str, operand: Operand) -> Expr {
    Expr::Test(Test { field: field_index::<Nat>(name).unwrap(), op: Op::Eq, operand })
}

type Passes = fn(&Conntrack<'_>) -> bool;

fn v4(addr: Addr) -> u32 {
    if let Addr::V4(octets) = addr { u32::from_be_bytes(octets) } else { 0 }
}

/// The walk excludes only rows that would not pass the filter, and it does exclude some.
#[test]
fn root_filters_are_the_walks() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkfilter");
    lab.track(mixed_entries(4_000));
    let net = |a, b, c, d, bits| Prefix::new(Addr::V4([a, b, c, d]), bits).unwrap();
    let end = |prefix, port| Operand::Endpoints(vec![EndpointTest { prefix, ports: Some((port, port)) }]);
    let cases: [(Vec<Expr>, Passes); 11] = [
        (vec![is("family", "inet6")], |row| row.family == 10),
        (vec![is("proto", "udp")], |row| row.orig.proto == 17),
        (vec![is("nat", "dnat")], |row| row.status.unwrap().0 & 0x30 == CtStatus::DST_NAT),
        (vec![is("status", "assured")], |row| row.status.unwrap().contains(CtStatus::ASSURED)),
        (vec![is("state", "established")], |row| row.state.is_some_and(|s| s.name() == "established")),
        (vec![test("mark", Operand::Number(3))], |row| row.mark == Some(3)),
        (vec![test("zone", Operand::Number(2))], |row| row.zone == Some(2)),
        (vec![test("orig_src", Operand::Prefixes(vec![net(10, 0, 0, 0, 29)]))], |row| {
            v4(row.orig.src) & !7 == 0x0a00_0000
        }),
        (vec![test("orig_dport", Operand::Number(443))], |row| row.orig.dport() == Some(443)),
        (vec![test("backend", end(Some(net(172, 17, 0, 0, 24)), 80))], |row| {
            v4(row.reply.src) >> 8 == 0xac1100 && row.reply.sport() == Some(80)
        }),
        (vec![test("reply_dst", Operand::Prefixes(vec![net(203, 0, 113, 0, 28)])), is("proto", "tcp")], |row| {
            v4(row.reply.dst) >> 4 == 0x0cb0_0710 && row.orig.proto == 6
        }),
    ];
    lab.run_inside(|| {
        let cache = BackendCache::new();
        let mut all = Vec::new();
        read(&cache, Some(Via::Netlink), &demand(EVERY_FIELD, Vec::new()), |row| {
            all.push(cases.iter().map(|(_, passes)| passes(row)).collect::<Vec<_>>());
        });
        for (number, (conjuncts, passes)) in cases.iter().enumerate() {
            let (mut came, mut passed) = (0, 0);
            read(&cache, Some(Via::Bpf), &demand(EVERY_FIELD, conjuncts.clone()), |row| {
                came += 1;
                passed += u32::from(passes(row));
            });
            let want = all.iter().filter(|row| row[number]).count() as u32;
            assert_eq!(passed, want, "{conjuncts:?}");
            assert!(want > 0 && came <= want + want / 4 + 8, "{came} came for {want}: {conjuncts:?}");
        }
    });
}

#[test]
fn root_all_namespaces_in_one_pass() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let labs = [Lab::new("walkall"), Lab::new("walkall")];
    for (n, lab) in (1u32..).zip(&labs) {
        lab.track(mixed_entries(100 * n));
    }
    let ids: Vec<u64> = labs.iter().map(|lab| lab.run_inside(|| sys::netns::current_inode().unwrap())).collect();
    let paths: Vec<_> = labs.iter().map(Lab::path).collect();
    let target = |n: usize| NetnsTarget { netns_id: ids[n], is_here: false, path: Some(&paths[n]), pid: None };
    let (host, cache) = (Host::live(), BackendCache::new());
    let mut found: HashMap<u64, u32> = HashMap::new();
    let mut each = |row: &Conntrack<'_>| {
        *found.entry(row.netns_id).or_default() += 1;
        Next::More
    };
    let source = AllNetnsConntrack::new(&host, Options::new(0), vec![target(0), target(1)]).with_cache(&cache);
    let demand = demand(&["orig_src", "netns_id"], Vec::new());
    assert_eq!(source.prepare(&demand).offer().backend, "bpf");
    let stats = source.run(&demand, &mut each).unwrap();
    assert_eq!(stats.via, ["bpf"], "{:?} {:?}", cache.refusal(), stats);
    assert_eq!((found.get(&ids[0]), found.get(&ids[1])), (Some(&100), Some(&200)), "{found:?}");
    // The namespace is not entered: the source's handle is enough.
    let (netns, mut own) = (NetNs::open_path(&paths[1]).unwrap(), 0);
    let options = Options { via: Some(Via::Bpf), ..Options::new(ids[1]) };
    let inside = ConntrackSource::new(&host, options).in_netns(&netns).with_cache(&cache).run(&demand, &mut |row| {
        own += u32::from(row.netns_id == ids[1]);
        Next::More
    });
    assert_eq!((inside.unwrap().via.len(), own), (1, 200));
}

#[test]
fn root_expired_entries_are_marked() {
    testkit::require_root!();
    // A dump of any namespace's table evicts expired entries of every namespace.
    let _alone = ExclusiveUse::take();
    let lab = Lab::new("walkexpired");
    lab.track(mixed_entries(20));
    let short = |n: u16| Entry::udp(([10, 8, 0, 1].into(), n), ([10, 8, 0, 2].into(), 53)).timeout_s(1);
    lab.track((1..=400).map(short));
    lab.run_inside(|| {
        let cache = BackendCache::new();
        let mut seen = 0;
        wait_until("the short ones are over", || {
            let (mut living, mut expired) = (0, 0);
            read(&cache, None, &demand(&["expired"], Vec::new()), |row| match row.expired {
                Some(true) => {
                    expired += 1;
                    assert_eq!((row.timeout_s, row.orig.dport()), (Some(0), Some(53)));
                }
                Some(false) => living += 1,
                None => panic!("the walk knows"),
            });
            seen = seen.max(expired);
            living == 20
        });
        assert!(seen > 0, "collected at once?");
        let mut living = 0;
        read(&cache, Some(Via::Bpf), &demand(&["orig_src"], Vec::new()), |_| living += 1);
        assert_eq!(living, 20, "a list has them no more");
    });
}

/// Entries that stay, by destination, source port and protocol.
type Fixed = HashMap<(Addr, u16, u8), ()>;

/// Number of these entries that are missing, and that came twice; others are ignored.
fn missing_and_double(cache: &BackendCache, fixed: &Fixed) -> (usize, usize) {
    let mut found = HashMap::with_capacity(fixed.len());
    let stats = read(cache, Some(Via::Bpf), &demand(&["orig_src"], Vec::new()), |row| count(&mut found, fixed, row));
    assert!(!stats.incomplete && stats.via == ["bpf"], "{stats:?}");
    (fixed.len() - found.len(), found.values().filter(|count| **count > 1).count())
}

/// The same counts among the entries of all namespaces, read from a namespace that may have no entries.
fn missing_and_double_of_all(cache: &BackendCache, fixed: &Fixed, netns_id: u64) -> (usize, usize) {
    let (host, mut found) = (Host::live(), HashMap::with_capacity(fixed.len()));
    let options = Options { via: Some(Via::Bpf), ..Options::new(0) };
    let target = NetnsTarget { netns_id, is_here: false, path: None, pid: None };
    let source = AllNetnsConntrack::new(&host, options, vec![target]).with_cache(cache);
    let stats = source.run(&demand(&["orig_src"], Vec::new()), &mut |row| {
        if row.netns_id == netns_id {
            count(&mut found, fixed, row);
        }
        Next::More
    });
    assert!(!stats.unwrap().incomplete);
    (fixed.len() - found.len(), found.values().filter(|count| **count > 1).count())
}

fn count(found: &mut HashMap<(Addr, u16, u8), u32>, fixed: &Fixed, row: &Conntrack<'_>) {
    let key = (row.orig.dst, row.orig.src_part, row.orig.proto);
    if fixed.contains_key(&key) {
        *found.entry(key).or_default() += 1;
    }
}

/// `count` entries, distinct by destination and source port.
fn fixed(count: u32) -> Fixed {
    let entry = |n: u32| {
        let server = Ipv4Addr::from(0x0a14_0000 + n / 50_000);
        (server, 1024 + (n % 50_000) as u16)
    };
    let made = insert((0..count).map(|n| {
        let (server, port) = entry(n);
        Entry::tcp(([10, 20, 9, 9].into(), port), (server.into(), 443), 3)
    }));
    assert_eq!(made as u32, count);
    (0..count).map(entry).map(|(server, port)| ((Addr::V4(server.octets()), port, 6), ())).collect()
}

/// Stops the threads even if the reader panics: the scope waits for them.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

// Inserts and removes entries until it is stopped.
fn come_and_go(lab: &Lab, number: u8, stop: &AtomicBool, made: &AtomicU64) {
    let _inside = lab.enter();
    let mut round = 0u16;
    while !stop.load(Ordering::Relaxed) {
        round = round.wrapping_add(1);
        let [high, low] = round.to_be_bytes();
        let entry = |n: u16| Entry::udp(([10, 30 + number, high, low].into(), 1024 + n), ([10, 40, 0, 1].into(), 53));
        made.fetch_add(insert((0..512).map(entry)) as u64, Ordering::Relaxed);
        remove((0..512).map(entry));
    }
}

#[test]
fn root_flows_that_come_and_go_hide_and_double_nothing() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkchurn");
    let fixed = lab.run_inside(|| fixed(20_000));
    let (stop, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for number in 0..2 {
            let (lab, stop, made) = (&lab, &stop, &made);
            scope.spawn(move || come_and_go(lab, number, stop, made));
        }
        let _inside = lab.enter();
        let cache = BackendCache::new();
        for reading in 0..10 {
            let before = made.load(Ordering::Relaxed);
            assert_eq!(missing_and_double(&cache, &fixed), (0, 0), "reading {reading}");
            wait_until("flows come", || made.load(Ordering::Relaxed) > before + 1_000);
        }
    });
    println!("{} flows came and went", made.load(Ordering::Relaxed));
}

/// The machine's hash table shrinks and grows during the read.
#[test]
fn root_a_table_that_is_resized_while_it_is_read() {
    testkit::require_root!();
    let lab = Lab::new("walkresize");
    let _knob = HostKnob::set(BUCKETS, "65536");
    let fixed = lab.run_inside(|| fixed(40_000));
    let (stop, resized) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let (stop, resized) = (&stop, &resized);
        scope.spawn(move || {
            for buckets in [16_384u32, 131_072, 4_096, 65_536, 8_192, 262_144].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                std::fs::write(BUCKETS, buckets.to_string()).unwrap();
                resized.fetch_add(1, Ordering::Relaxed);
            }
        });
        let id = lab.run_inside(|| sys::netns::current_inode().unwrap());
        let cache = BackendCache::new();
        for reading in 0..6 {
            assert_eq!(missing_and_double_of_all(&cache, &fixed, id), (0, 0), "reading {reading} of all");
        }
        let _inside = lab.enter();
        let mut readings = 0;
        while readings < 12 || resized.load(Ordering::Relaxed) < 20 {
            assert_eq!(missing_and_double(&cache, &fixed), (0, 0), "reading {readings}");
            readings += 1;
        }
    });
}

/// Far too few buckets: the chains of one turn do not fit, the chains of eight buckets do.
#[test]
fn root_chains_that_are_too_long() {
    testkit::require_root!();
    let lab = Lab::new("walklong");
    let _knob = HostKnob::set(BUCKETS, "65536");
    let fixed = lab.run_inside(|| fixed(100_000));
    std::fs::write(BUCKETS, "1024").unwrap();
    lab.run_inside(|| assert_eq!(missing_and_double(&BackendCache::new(), &fixed), (0, 0)));
    lab.run_inside(|| {
        let host = Host::live();
        let chains = |via| {
            let source = ConntrackSource::new(&host, options(Some(via)));
            let mut scan = source.scan(&demand(&["orig_src"], Vec::new()));
            assert!(!scan.run(&mut |_| Next::More).unwrap().incomplete);
            scan.chains()
        };
        let walked = chains(Via::Bpf).unwrap();
        // 195 nodes per bucket, plus entries of other namespaces: eight standard deviations above the mean is not an
        // accident.
        let mean = walked.nodes.div_ceil(1024);
        assert!(walked.nodes >= 200_000, "{walked:?}");
        assert!((mean..mean + 8 * mean.isqrt()).contains(&u64::from(walked.longest)), "{walked:?}");
        assert_eq!(chains(Via::Netlink), None);
    });
}

/// A single namespace is read separately; its walk measures the chains of the whole table all the same.
#[test]
fn root_issue_10_chain_lengths_are_reported_if_one_namespace_has_all_entries() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkonly");
    lab.run_inside(|| fixed(100));
    let (host, cache) = (Host::live(), BackendCache::new());
    let netns_id = lab.run_inside(|| sys::netns::current_inode().unwrap());
    let path = lab.path();
    let target = NetnsTarget { netns_id, is_here: false, path: Some(&path), pid: None };
    let source = AllNetnsConntrack::new(&host, Options::new(0), vec![target]).with_cache(&cache);
    // A field that only the walk provides.
    let mut scan = source.scan(&demand(&["expired"], Vec::new()));
    // The table belongs to the host: a resize by anyone else during the walk makes its chains unknown.
    wait_until("the chains of a table that stays as it is", || {
        scan.run(&mut |_| Next::More).unwrap();
        scan.chains().is_some_and(|chains| chains.nodes >= 200)
    });
}

/// Netlink completes a walk that is interrupted, unless the user insisted on the walk: then a note says that entries
/// are missing.
#[test]
fn root_a_walk_that_breaks_off_keeps_what_it_had() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let lab = Lab::new("walkbreaks");
    // More entries than one call of the program can process.
    lab.run_inside(|| fixed(25_000));
    lab.run_inside(|| {
        let (host, cache) = (Host::live(), BackendCache::new());
        read(&cache, Some(Via::Bpf), &demand(&["orig_src"], Vec::new()), |_| {});
        // The program is loaded: the lookup of the table (two calls) and the first call succeed.
        let source = ConntrackSource::new(&host, options(Some(Via::Bpf))).with_cache(&cache);
        let demand = demand(&["orig_src"], Vec::new());
        arm("bpf", 3, 1000, Fault::Fails(Errno::INVAL));
        let stats = source.run(&demand, &mut |_| Next::More).unwrap();
        disarm_all();
        assert!(stats.incomplete && (1..25_000).contains(&stats.seen), "{stats:?}");
        assert!(stats.why.iter().any(|why| why.text.contains("incomplete")), "{stats:?}");
        // Netlink reads the rest without repeating entries, unless the user insisted on the walk.
        for works in [3, 4, 6] {
            let mut entries = std::collections::HashSet::new();
            let source = ConntrackSource::new(&host, options(None)).with_cache(&cache);
            arm("bpf", works, 1000, Fault::Fails(Errno::INVAL));
            let stats = source.run(&demand, &mut |row| {
                assert!(entries.insert((row.orig, row.zone)), "{:?} came twice", row.orig);
                Next::More
            });
            disarm_all();
            let stats = stats.unwrap();
            assert_eq!((entries.len(), stats.incomplete, &stats.via[..]), (25_000, false, &["bpf", "netlink"][..]));
            assert!(stats.duplicates > 0 && stats.seen == 25_000 + stats.duplicates, "{stats:?}");
            assert!(stats.why.iter().any(|why| why.text.starts_with("the rest was read via netlink")), "{stats:?}");
        }
        // Before the first row another backend takes over, unless the user insisted on this one.
        let source = ConntrackSource::new(&host, options(None)).with_cache(&cache);
        arm("bpf", 2, 1000, Fault::Fails(Errno::INVAL));
        let stats = source.run(&demand, &mut |_| Next::More).unwrap();
        disarm_all();
        assert!(!stats.incomplete && stats.seen == 25_000 && stats.via == ["netlink"], "{stats:?}");
        assert!(stats.why.iter().any(|why| why.text.starts_with("read via netlink")), "{stats:?}");
        arm("bpf", 2, 1000, Fault::Fails(Errno::INVAL));
        let error =
            ConntrackSource::new(&host, options(Some(Via::Bpf))).with_cache(&cache).run(&demand, &mut |_| Next::More);
        disarm_all();
        assert!(error.is_err());
    });
}

/// The kernel does not report that its dump skipped entries.
#[test]
fn root_issue_10_a_resize_under_the_rest_of_a_broken_walk_hides_nothing() {
    testkit::require_root!();
    let lab = Lab::new("walkrest");
    let _knob = HostKnob::set(BUCKETS, "65536");
    // Only the initial namespace may open it.
    let file = std::fs::File::options().write(true).open(BUCKETS).unwrap();
    lab.run_inside(|| {
        fixed(25_000);
        let (host, cache) = (Host::live(), BackendCache::new());
        let demand = demand(&["orig_src"], Vec::new());
        read(&cache, Some(Via::Bpf), &demand, |_| {});
        let mut entries = std::collections::HashSet::new();
        let source = ConntrackSource::new(&host, options(None)).with_cache(&cache);
        arm("bpf", 3, 1000, Fault::Fails(Errno::INVAL));
        let stats = source.run(&demand, &mut |row| {
            assert!(entries.insert((row.orig, row.zone)), "{:?} came twice", row.orig);
            if entries.len() == 20_000 {
                assert_eq!(file.write_at(b"16384", 0).unwrap(), 5);
            }
            Next::More
        });
        disarm_all();
        let stats = stats.unwrap();
        assert_eq!((entries.len(), stats.incomplete, &stats.via[..]), (25_000, false, &["bpf", "netlink"][..]));
    });
}

/// An interrupted walk of all namespaces: each is then read separately.
#[test]
fn root_issue_10_a_walk_of_all_that_breaks_off_is_finished_in_each() {
    testkit::require_root!();
    let _shared = SharedUse::share();
    let labs = [Lab::new("restofall"), Lab::new("restofall")];
    labs.iter().for_each(|lab| drop(lab.run_inside(|| fixed(15_000))));
    let ids: Vec<u64> = labs.iter().map(|lab| lab.run_inside(|| sys::netns::current_inode().unwrap())).collect();
    let paths: Vec<_> = labs.iter().map(Lab::path).collect();
    let target = |n: usize| NetnsTarget { netns_id: ids[n], is_here: false, path: Some(&paths[n]), pid: None };
    let (host, cache) = (Host::live(), BackendCache::new());
    let demand = demand(&["orig_src", "netns_id"], Vec::new());
    let read = || {
        let mut entries = std::collections::HashSet::new();
        let source = AllNetnsConntrack::new(&host, Options::new(0), vec![target(0), target(1)]).with_cache(&cache);
        let stats = source.run(&demand, &mut |row| {
            // Other tests' namespaces end, and the next ones get their inodes and the same entries.
            let is_own = ids.contains(&row.netns_id);
            assert!(!is_own || entries.insert((row.netns_id, row.orig)), "{:?} came twice", row.orig);
            Next::More
        });
        let of = |id| entries.iter().filter(|entry| entry.0 == id).count();
        ([of(ids[0]), of(ids[1])], stats.unwrap())
    };
    let (whole, stats) = read();
    assert_eq!((whole, &stats.via[..]), ([15_000, 15_000], &["bpf"][..]), "{stats:?}");
    for works in [3, 4, 5] {
        arm("bpf", works, 1000, Fault::Fails(Errno::INVAL));
        let (found, stats) = read();
        disarm_all();
        assert_eq!((found, &stats.via[..]), (whole, &["bpf", "netlink"][..]), "{stats:?}");
        assert!(stats.duplicates > 0 && stats.incomplete, "{stats:?}");
        assert!(stats.why.iter().any(|why| why.text.contains("that cannot be reached")), "{stats:?}");
    }
}

/// Runs `work` inside without these privileges, on a thread that ends afterwards, because it could not get them back.
fn confined<T: Send>(lab: &Lab, dropped: &[Cap], work: impl FnOnce() -> T + Send) -> T {
    let run = || {
        std::mem::forget(lab.enter());
        testkit::sandbox::drop_caps(dropped).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap()
}

#[test]
fn root_without_the_rights_netlink_takes_over() {
    testkit::require_root!();
    let lab = Lab::new("walkrights");
    lab.track(mixed_entries(300));
    let demand = demand(&["expired", "status"], Vec::new());
    confined(&lab, &[Cap::SysAdmin, Cap::NetAdmin], || {
        let mut rows = 0;
        let stats = read(&BackendCache::new(), Some(Via::Bpf), &demand, |_| rows += 1);
        assert_eq!((rows, stats.incomplete), (300, false), "CAP_BPF and CAP_PERFMON are enough");
    });
    confined(&lab, &[Cap::Bpf, Cap::Perfmon, Cap::SysAdmin], || {
        let (host, cache) = (Host::live(), BackendCache::new());
        let mut rows = 0;
        let stats = read(&cache, None, &demand, |_| rows += 1);
        assert_eq!((rows, &stats.via[..]), (300, &["netlink"][..]));
        let offer = ConntrackSource::new(&host, options(None)).with_cache(&cache).prepare(&demand).offer();
        assert!(offer.explain.iter().any(|line| line.contains("not via BPF")), "{offer:?}");
        let forced = ConntrackSource::new(&host, options(Some(Via::Bpf))).run(&demand, &mut |_| Next::More);
        let error = forced.unwrap_err().to_string();
        assert!(error.contains("CAP_BPF and CAP_PERFMON"), "{error}");
    });
}

#[test]
fn root_a_recorded_walk_is_read_again() {
    testkit::require_root!();
    let lab = Lab::new("walktape");
    lab.track(mixed_entries(500));
    let file = lab.dir().join("walk.tape");
    let of = |host: &Host, id: u64| {
        let mut rows = Vec::new();
        let options = Options { via: Some(Via::Bpf), ..Options::new(id) };
        let mut scan = ConntrackSource::new(host, options).scan(&demand(EVERY_FIELD, vec![is("family", "inet")]));
        let stats = scan.run(&mut |row| {
            rows.push(comparable(row));
            Next::More
        });
        (rows, scan.chains().unwrap(), stats.unwrap())
    };
    let id = lab.run_inside(|| sys::netns::current_inode().unwrap());
    let live = lab.run_inside(|| {
        let host = Host::live().recording(&file).unwrap();
        let (rows, chains, _) = of(&host, id);
        host.finish().unwrap();
        (rows, chains)
    });
    let (again, chains, stats) = of(&Host::open_replay(&file).unwrap(), id);
    assert!(live.0.len() > 300 && live == (again, chains));
    assert!(chains.nodes >= 1000, "entries that did not pass are in the chains, too: {chains:?}");
    assert!(stats.why.iter().any(|why| why.text.contains("filter of the walk: family")), "{stats:?}");
    assert!(Nat::FIELDS.len() > 30);
}
