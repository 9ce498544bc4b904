//! Compares the backends with each other and with `conntrack -L -o extended,id`, on the same table of over a thousand
//! entries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;

use conntrack::{ConntrackSource, NETLINK_LACKS, Options, PROC_LACKS, Via, parse_proc_line};
use record::rows::{Conntrack, CtState, CtTuple, Nat, NatKind, nat_need};
use record::{Accounting, Addr, Demand, Expr, Next, Op, Operand, Source, Table, Test, field_index};
use sys::Host;
use testkit::conntrack::{Entry, mixed_entries};
use testkit::netns::Lab;

/// The fields in which any two backends, or a backend and the tool, can be compared; by original direction and zone.
type Entries = BTreeMap<(u8, [u64; 5], Option<u16>), Kept>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    family: u8,
    orig: CtTuple,
    reply: CtTuple,
    state: Option<CtState>,
    nat: Option<NatKind>,
    backend: Option<(Addr, Option<u16>)>,
    mark: Option<u32>,
    zone: Option<u16>,
    timeout_s: Option<u32>,
    /// /proc does not show it.
    id: Option<u32>,
    /// While /proc is read, the reader holds a reference itself.
    uses: Option<u32>,
}

fn key(row: &Conntrack<'_>) -> (u8, [u64; 5], Option<u16>) {
    let halves = |addr: Addr| {
        let mut wide = [0; 16];
        wide[..addr.octets().len()].copy_from_slice(addr.octets());
        let all = u128::from_be_bytes(wide);
        [(all >> 64) as u64, all as u64]
    };
    let ([a, b], [c, d]) = (halves(row.orig.src), halves(row.orig.dst));
    let parts = u64::from(row.orig.src_part) << 16 | u64::from(row.orig.dst_part);
    (row.orig.proto, [a, b, c, d, parts], row.any_zone())
}

fn keep(entries: &mut Entries, row: &Conntrack<'_>) {
    let kept = Kept {
        family: row.family,
        orig: row.orig,
        reply: row.reply,
        state: row.state,
        nat: row.nat(),
        backend: row.backend(),
        mark: row.mark,
        zone: row.zone,
        timeout_s: row.timeout_s,
        id: row.id,
        uses: row.uses,
    };
    assert!(entries.insert(key(row), kept).is_none(), "twice: {row:?}");
}

fn read(lab: &Lab, via: Option<Via>, demand: &Demand<Nat>) -> (Entries, Accounting) {
    lab.run_inside(|| {
        let host = Host::live();
        let options = Options { via, ..Options::new(sys::netns::current_inode().unwrap()) };
        let mut entries = Entries::new();
        let stats = ConntrackSource::new(&host, options).run(demand, &mut |row| {
            keep(&mut entries, row);
            Next::More
        });
        (entries, stats.unwrap())
    })
}

fn everything() -> Demand<Nat> {
    Demand::new(&[], Vec::new())
}

/// The output of `conntrack -L` has the words of /proc, and an id at the end.
fn by_tool(lab: &Lab) -> Entries {
    let mut entries = Entries::new();
    for line in lab.output("conntrack", &["-L", "-o", "extended,id"]).lines() {
        let (line, id) = line.rsplit_once(" id=").expect("an id was asked for");
        let row = parse_proc_line(line.as_bytes(), 0, None).unwrap();
        keep(&mut entries, &Conntrack { id: Some(id.parse().unwrap()), ..row });
    }
    entries
}

/// Removes the fields that one of the two lacks or counts differently.
fn comparable(entries: &Entries, ids: bool) -> Entries {
    let mut entries = entries.clone();
    for kept in entries.values_mut() {
        (kept.timeout_s, kept.uses) = (None, None);
        if !ids {
            kept.id = None;
        }
    }
    entries
}

fn assert_same(one: &Entries, other: &Entries, ids: bool) {
    let (a, b) = (comparable(one, ids), comparable(other, ids));
    let differ = a.iter().filter(|(key, kept)| b.get(key) != Some(kept)).take(3).collect::<Vec<_>>();
    let others = differ.iter().map(|(key, _)| b.get(key)).collect::<Vec<_>>();
    assert!(differ.is_empty() && a.len() == b.len(), "{} and {} rows; {differ:#?} {others:#?}", a.len(), b.len());
    for (key, kept) in one {
        let left = |kept: &Kept| i64::from(kept.timeout_s.unwrap());
        assert!((left(kept) - left(&other[key])).abs() <= 5, "timeouts of {key:?}");
    }
}

/// More than a thousand rows: every protocol, state and kind, both families, zones, marks.
#[test]
fn root_every_backend_tells_the_same() {
    testkit::require_root!();
    let lab = Lab::new("backends");
    assert_eq!(lab.track(mixed_entries(2_500)), 2_500);
    let (netlink, stats) = read(&lab, Some(Via::Netlink), &everything());
    assert_eq!((netlink.len(), stats.seen, &stats.via[..]), (2_500, 2_500, &["netlink"][..]));
    assert!(!stats.is_partial() && stats.why.is_empty(), "{stats:?}");
    let states = netlink.values().filter_map(|kept| kept.state).map(CtState::name);
    assert!(states.collect::<std::collections::BTreeSet<_>>().len() >= 14);
    for nat in [NatKind::None, NatKind::Snat, NatKind::Dnat, NatKind::Both] {
        assert!(netlink.values().filter(|kept| kept.nat == Some(nat)).count() > 20, "{nat:?}");
    }
    let (proc, stats) = read(&lab, Some(Via::Proc), &everything());
    assert_eq!(stats.via, ["proc"]);
    assert_same(&netlink, &proc, false);
    let tool = by_tool(&lab);
    assert_same(&netlink, &tool, true);
    let uses = |entries: &Entries| entries.values().map(|kept| kept.uses).collect::<Vec<_>>();
    assert!(uses(&netlink) == uses(&proc), "the line's own reference is not counted");
    // The entries do not appear in another namespace, although it shares the hash table.
    let (other, _) = read(&Lab::new("doors2"), Some(Via::Netlink), &everything());
    assert!(other.is_empty());
}

/// Decides independently whether an entry passes a filter.
type Passes = Box<dyn Fn(&Kept) -> bool>;

fn is(name: &str, operand: Operand) -> Expr {
    Expr::Test(Test { field: field_index::<Nat>(name).unwrap(), op: Op::Eq, operand })
}

fn word(name: &str, word: &str) -> Expr {
    is(name, Operand::Words(vec![word.as_bytes().into()]))
}

/// The kernel's filter keeps every entry that should pass, and excludes some of the others.
#[test]
fn root_the_kernel_leaves_out_nothing_that_is_wanted() {
    testkit::require_root!();
    let lab = Lab::new("doorsfilter");
    lab.track(mixed_entries(2_000));
    let (all, _) = read(&lab, Some(Via::Netlink), &everything());
    let client = all.values().find(|kept| kept.orig.proto == 6 && kept.family == 2).unwrap().orig;
    let backend = all.values().find(|kept| kept.nat == Some(NatKind::Dnat)).unwrap().reply;
    let end = |addr, port: Option<u16>| {
        let ports = port.map(|port| (port, port));
        Operand::Endpoints(vec![record::EndpointTest { prefix: Some(record::Prefix::host(addr)), ports }])
    };
    let cases: Vec<(Vec<Expr>, Passes)> = vec![
        (vec![word("nat", "dnat")], Box::new(|kept| kept.nat == Some(NatKind::Dnat))),
        (vec![word("family", "inet6")], Box::new(|kept| kept.family == 10)),
        (vec![is("zone", Operand::Number(2))], Box::new(|kept| kept.zone == Some(2))),
        (vec![is("mark", Operand::Number(3))], Box::new(|kept| kept.mark == Some(3))),
        (vec![is("client", end(client.src, None))], Box::new(move |kept| kept.orig.src == client.src)),
        (
            vec![word("proto", "tcp"), is("client", end(client.src, None)), is("orig_dport", Operand::Number(443))],
            Box::new(move |kept| kept.orig.proto == 6 && kept.orig.src == client.src && kept.orig.dport() == Some(443)),
        ),
        (
            vec![word("proto", "tcp"), is("backend", end(backend.src, None)), word("nat", "dnat")],
            Box::new(move |kept| {
                kept.orig.proto == 6 && kept.reply.src == backend.src && kept.nat == Some(NatKind::Dnat)
            }),
        ),
    ];
    for (filter, passes) in cases {
        let demand = Demand::new(&[], filter);
        let (read, stats) = read(&lab, Some(Via::Netlink), &demand);
        let wanted: Vec<_> = all.iter().filter(|(_, kept)| passes(kept)).collect();
        assert!(!wanted.is_empty() && read.len() < all.len() && stats.why.is_empty(), "{:?}", demand.conjuncts);
        assert!(wanted.iter().all(|(key, _)| read.contains_key(key)), "{:?}", demand.conjuncts);
    }
}

/// Checks which backend is chosen by default, and that the masks are true.
#[test]
fn root_a_small_table_is_read_by_proc_and_fields_decide() {
    testkit::require_root!();
    let lab = Lab::new("doorschoose");
    let nothing = read(&lab, None, &everything());
    assert_eq!((nothing.0.len(), nothing.1.seen), (0, 0));
    lab.track(mixed_entries(50));
    assert_eq!(read(&lab, None, &everything()).1.via, ["proc"]);
    let wants = |need| {
        let mut demand = everything();
        demand.need |= need;
        read(&lab, None, &demand)
    };
    let (by_id, stats) = wants(nat_need::ID);
    assert_eq!(stats.via, ["netlink"]);
    assert!(by_id.values().all(|kept| kept.id.is_some()));
    assert_eq!(PROC_LACKS & nat_need::ID, nat_need::ID);
    assert_eq!(NETLINK_LACKS, nat_need::EXPIRED);
    // If loading is permitted, the walk is cheaper than visiting every bucket.
    assert!(matches!(&*wants(nat_need::STATUS).1.via, ["netlink" | "bpf"]));
}

/// Labels appear by name if the file exists, otherwise by number with a single note.
#[test]
fn root_labels_have_names_or_numbers() {
    testkit::require_root!();
    let lab = Lab::new("doorslabels");
    lab.use_conntrack_labels();
    let udp = |port: u16| Entry::udp(([10, 0, 0, 1].into(), port), ([10, 0, 0, 2].into(), 53));
    lab.track([udp(1).label_bits(&[0, 5]), udp(2).label_bits(&[5]), udp(3)]);
    let etc = lab.dir().join("etc");
    std::fs::create_dir_all(etc.join("xtables")).unwrap();
    let labels = || {
        lab.run_inside(|| {
            let host = Host::with_roots("/proc".into(), "/sys".into(), etc.clone());
            let options = Options::new(sys::netns::current_inode().unwrap());
            let demand = Demand::<Nat>::new(&[field_index::<Nat>("label").unwrap()], Vec::new());
            let mut told = Vec::new();
            let stats = ConntrackSource::new(&host, options).run(&demand, &mut |row| {
                told.push(row.label_words.map(|words| String::from_utf8(words.to_vec()).unwrap()));
                Next::More
            });
            told.sort();
            (told, stats.unwrap())
        })
    };
    let (told, stats) = labels();
    assert_eq!(told, [None, Some("0,5".into()), Some("5".into())]);
    assert_eq!(stats.why.len(), 1);
    assert!(stats.why[0].text.contains("connlabel.conf") && !stats.is_partial());
    std::fs::write(etc.join("xtables/connlabel.conf"), "0 audit\n5 web\n").unwrap();
    let (told, stats) = labels();
    assert_eq!(told, [None, Some("audit,web".into()), Some("web".into())]);
    assert!(stats.why.is_empty());
}

/// An expectation has the expected tuple, and the connection that announced it.
#[test]
fn root_expectations_have_their_master() {
    testkit::require_root!();
    let lab = Lab::new("doorsexpect");
    let [client, server] = [[10, 0, 0, 1], [10, 0, 0, 2]];
    lab.track([Entry::tcp((client.into(), 40_000), (server.into(), 21), 3).helper("ftp")]);
    let tuple = |src: ([u8; 4], u16), dst: ([u8; 4], u16)| CtTuple {
        src: Addr::V4(src.0),
        dst: Addr::V4(dst.0),
        proto: 6,
        src_part: src.1,
        dst_part: dst.1,
        zone: None,
    };
    let master = tuple((client, 40_000), (server, 21));
    let (expected, mask) = (tuple((server, 0), (client, 40_001)), tuple(([255; 4], 0), ([255; 4], 0xffff)));
    let rows = lab.run_inside(|| {
        let (host, netns_id) = (Host::live(), sys::netns::current_inode().unwrap());
        let given = conntrack::change::ExpectationAttrs {
            tuple: Some(expected),
            mask: Some(mask),
            master: Some(master),
            timeout_s: Some(300),
        };
        conntrack::change::Changes::new(&host, conntrack::NetnsRef { netns: None, netns_id })
            .create_expectation(&given)
            .unwrap();
        let options = Options { table: conntrack::CtTable::Expect, ..Options::new(netns_id) };
        let mut rows = Vec::new();
        let stats = ConntrackSource::new(&host, options).run(&everything(), &mut |row| {
            rows.push((row.orig, row.master.copied(), row.backend(), row.timeout_s.is_some()));
            Next::More
        });
        assert_eq!(stats.unwrap().via, ["netlink"]);
        rows
    });
    assert_eq!(rows, [(expected, Some(master), None, true)]);
    // The expectation's helper is the helper of its master connection.
    let helper = Demand::new(
        &[field_index::<Nat>("helper").unwrap()],
        vec![is("helper", Operand::Words(vec![b"ftp"[..].into()]))],
    );
    assert!(matches!(&*read(&lab, None, &helper).1.via, ["netlink" | "bpf"]));
}

/// The masks name existing fields.
#[test]
fn every_need_bit_is_some_fields() {
    for bit in (0..64).map(|n| 1u64 << n).filter(|bit| (PROC_LACKS | NETLINK_LACKS) & bit != 0) {
        assert!(Nat::FIELDS.iter().any(|field| field.need & bit != 0), "{bit:#x}");
    }
}
