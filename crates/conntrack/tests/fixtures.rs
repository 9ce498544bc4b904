//! Recorded messages and their expected rows.
//!
//! `fixtures/conntrack/KERNEL/CASE.nl` holds receive buffers, with `.expect` and `.HOW` next to each. To record them
//! again: `NETWREN_RECORD_FIXTURES=1 cargo test -p conntrack root_record`; to rewrite only `.expect`:
//! `NETWREN_EXPECT_ANEW=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use conntrack::{CtDecoder, CtTable, DecodeError, ExpectDecoder, KernelFilter, NetnsRef, dump_entries, key};
use netlink::Messages;
use record::rows::{Conntrack, Nat};
use record::{Lookups, Table, Value};
use sys::Host;
use testkit::conntrack::{Entry, mixed_entries};
use testkit::netns::Lab;
use testkit::program::workspace;

const NETNS: u64 = 4_026_531_840;

fn fixtures() -> Vec<PathBuf> {
    let kernels = std::fs::read_dir(workspace().join("fixtures/conntrack")).unwrap().flatten();
    let files = kernels.flat_map(|kernel| std::fs::read_dir(kernel.path()).unwrap().flatten());
    let mut found: Vec<PathBuf> = files.map(|file| file.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "nl"));
    found.sort();
    assert!(!found.is_empty());
    found
}

fn is_expectations(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with("expect")
}

fn describe_one(path: &Path, payload: &[u8]) -> Result<String, DecodeError> {
    if is_expectations(path) {
        return ExpectDecoder::new(NETNS).decode(payload).map(|row| format!("{row:?}"));
    }
    CtDecoder::new(NETNS).decode(payload).map(|row| cells(&row))
}

// Every non-null field with its value.
fn cells(row: &Conntrack<'_>) -> String {
    let told = Nat::FIELDS.iter().filter_map(|field| match field.cell(row, &Lookups::empty()) {
        Value::Null => None,
        Value::Bits(..) => Some(format!("{}={:?}", field.name, row.status)),
        Value::Endpoint(addr, port) => Some(format!("{}={addr}/{port:?}", field.name)),
        Value::Addr(addr) => Some(format!("{}={addr}", field.name)),
        Value::Name(word) => Some(format!("{}={word}", field.name)),
        other => Some(format!("{}={other:?}", field.name)),
    });
    let rest = format!("start={:?} labels={:?}", row.start_ns, row.labels);
    told.chain([rest]).collect::<Vec<_>>().join(" ")
}

fn describe(path: &Path, bytes: &[u8]) -> String {
    let payloads = Messages::new(bytes).map(|message| message.unwrap()).filter(|message| !message.is_end());
    let mut rows: Vec<String> = payloads.map(|message| describe_one(path, message.payload).unwrap()).collect();
    rows.sort();
    rows.iter().fold(String::new(), |text, row| text + row + "\n")
}

#[test]
fn messages_decode_as_recorded() {
    for path in fixtures() {
        let got = describe(&path, &std::fs::read(&path).unwrap());
        if std::env::var_os("NETWREN_EXPECT_ANEW").is_some() {
            std::fs::write(path.with_extension("expect"), &got).unwrap();
        }
        assert_eq!(got, std::fs::read_to_string(path.with_extension("expect")).unwrap(), "{}", path.display());
    }
}

#[test]
fn cut_anywhere_it_is_an_error_or_less_of_a_row() {
    for path in fixtures() {
        let bytes = std::fs::read(&path).unwrap();
        for message in Messages::new(&bytes).map(|message| message.unwrap()).filter(|message| !message.is_end()) {
            for end in 0..message.payload.len() {
                let error = describe_one(&path, &message.payload[..end]).err();
                assert!(end >= 4 || error.is_some(), "{end} bytes of {}", path.display());
                let told = error.map(|error| error.to_string());
                assert!(told.is_none_or(|told| told.contains("claims") || told.contains("missing")));
            }
        }
    }
}

fn attr(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = 4 + payload.len() as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Attributes of newer kernels are counted, inside a tuple as well; a short attribute is an error that names it.
#[test]
fn newer_and_broken_messages() {
    let path = workspace().join("fixtures/conntrack/6.18/mixed.nl");
    let bytes = std::fs::read(path).unwrap();
    let first = Messages::new(&bytes).next().unwrap().unwrap().payload;
    let plain = CtDecoder::new(NETNS).decode(first).map(|row| cells(&row)).unwrap();
    let newer = [first, &attr(200, &[1]), &attr(201, &[])].concat();
    let mut decoder = CtDecoder::new(NETNS);
    assert_eq!(cells(&decoder.decode(&newer).unwrap()), plain);
    assert_eq!(decoder.unknown_attrs, 2);
    for (kind, payload) in [(3, &[0; 3][..]), (7, &[1]), (18, &[1]), (9, &attr(1, &[0; 4])), (20, &attr(1, &[0; 7]))] {
        let error = decoder.decode(&[first, &attr(kind, payload)].concat()).unwrap_err();
        assert!(matches!(error, DecodeError::Attr { .. }), "{kind}: {error}");
    }
    assert_eq!(decoder.decode(&first[..4]).unwrap_err(), DecodeError::Missing("the original tuple"));
    let tuple = [attr(1, &[attr(1, &[10, 0, 0, 1])].concat()), attr(77, &[9])].concat();
    let unknown = [&first[..4], &attr(1, &tuple), &attr(2, &tuple), &attr(8, &[0, 0, 0, 7])].concat();
    let mut decoder = CtDecoder::new(NETNS);
    assert_eq!(decoder.decode(&unknown).unwrap().mark, Some(7));
    assert_eq!(decoder.unknown_attrs, 2);
}

// The blocks of the table's stream in a recording.
fn blocks(lab: &Lab, table: CtTable) -> Vec<u8> {
    let tape = lab.dir().join("tape");
    let netns_id = lab.run_inside(|| {
        let netns_id = sys::netns::current_inode().unwrap();
        let host = Host::live().recording(&tape).unwrap();
        let place = NetnsRef { netns: None, netns_id };
        let done = dump_entries(&host, place, table, &KernelFilter::default(), "", |_, _| ControlFlow::Continue(()));
        assert!(done.unwrap().rows > 0);
        host.finish().unwrap();
        netns_id
    });
    let host = Host::open_replay(&tape).unwrap();
    let mut stream = host.stream(&key(table, netns_id, 0), "", || unreachable!("a replay opens nothing")).unwrap();
    let mut bytes = Vec::new();
    // A dump is not read beyond its last message, so its stream ends in an error.
    while let Ok(Some(block)) = stream.next() {
        bytes.extend_from_slice(block);
    }
    bytes
}

fn record(lab: &Lab, name: &str, what: &str) {
    let bytes = blocks(lab, CtTable::Conntrack);
    let kernel = sys::Kernel::read_running();
    let (major, minor) = kernel.version();
    let path = workspace().join(format!("fixtures/conntrack/{major}.{minor}/{name}.nl"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    std::fs::write(path.with_extension("expect"), describe(&path, &bytes)).unwrap();
    let how = format!(
        "what    {what}\nwhere   an own network namespace, as root\nkernel  {major}.{minor} {}\n\
         by      NETWREN_RECORD_FIXTURES=1 cargo test -p conntrack root_record_fixtures\n",
        kernel.machine
    );
    std::fs::write(path.with_extension("HOW"), how).unwrap();
}

/// Records the fixtures again, only on request: they are evidence of one kernel.
#[test]
fn root_record_fixtures() {
    if std::env::var_os("NETWREN_RECORD_FIXTURES").is_none() {
        return;
    }
    testkit::require_root!();
    let lab = Lab::new("fixmixed");
    lab.track(mixed_entries(200));
    record(&lab, "mixed", "200 entries of testkit::conntrack::mixed, made by ctnetlink; no accounting, no timestamps");

    let lab = Lab::new("fixfull");
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    lab.use_conntrack_labels();
    let of = |last: u8| IpAddr::from([10, 0, 0, last]);
    let control = Entry::tcp((of(1), 40_000), (of(2), 21), 3);
    let data = Entry::tcp((of(2), 20), (of(1), 40_001), 3).master(&control);
    let labelled = Entry::tcp((of(1), 40_002), (of(2), 80), 7).label_bits(&[0, 5, 127]).mark(42).zone(5);
    lab.track([control, data, labelled]);
    record(&lab, "attributes", "a connection with a master, one with labels, mark and zone; accounting and timestamps");

    let lab = Lab::new("fixtraffic");
    lab.set_conntrack("nf_conntrack_acct", "1");
    let rules = "table inet t {\n chain c {\n type filter hook input priority 0\n ct state new accept\n }\n}\n";
    let file = lab.dir().join("rules.nft");
    std::fs::write(&file, rules).unwrap();
    lab.output("nft", &["-f", file.to_str().unwrap()]);
    let _connections = (lab.connect_v4(2), lab.connect_v6(1));
    record(&lab, "traffic", "connections over 127.0.0.1 and ::1 that the kernel tracked by itself, with accounting");
}

/// Live: a dump returns the inserted entries, also with the kernel's filters.
#[test]
fn root_a_dump_has_every_entry() {
    testkit::require_root!();
    let lab = Lab::new("dump");
    lab.track(mixed_entries(3_000));
    let count = |filter: KernelFilter| {
        lab.run_inside(|| {
            let place = NetnsRef { netns: None, netns_id: sys::netns::current_inode().unwrap() };
            let mut rows = 0;
            for family in filter.families() {
                let filter = filter.of_family(*family);
                let host = Host::live();
                let done =
                    dump_entries(&host, place, CtTable::Conntrack, &filter, "", |_, _| ControlFlow::Continue(()));
                let done = done.unwrap_or_else(|e| panic!("{filter:?}: {e}"));
                assert_eq!((done.malformed, done.unknown_attrs, done.first_error), (0, 0, None));
                rows += done.rows;
            }
            rows
        })
    };
    assert_eq!(count(KernelFilter::default()), 3_000);
    let of_tool = |args: &[&str]| lab.output("conntrack", &[&["-L"], args].concat()).lines().count() as u64;
    let v6 = KernelFilter::default().of_family(10);
    assert_eq!(count(v6), of_tool(&["-f", "ipv6"]));
    let marked = KernelFilter { mark: Some((3, u32::MAX)), ..KernelFilter::default() };
    assert_eq!(count(marked), of_tool(&["-m", "3"]));
    let zoned = KernelFilter { zone: Some(2), ..KernelFilter::default() };
    assert_eq!(count(zoned), of_tool(&["-w", "2"]));
    let source = KernelFilter { status: Some((1 << 4, 1 << 4)), ..KernelFilter::default() };
    assert_eq!(count(source), of_tool(&["--src-nat"]));
    let mut to = KernelFilter::default();
    to.orig.dst = Some(record::Addr::V4([192, 168, 0, 30]));
    assert_eq!(count(to), of_tool(&["-d", "192.168.0.30"]));
    (to.orig.proto, to.orig.dport) = (Some(6), Some(8000));
    let both = of_tool(&["-d", "192.168.0.30", "-p", "tcp", "--dport", "8000"]);
    assert_eq!((count(to), both > 10), (both, true));
}
