#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use record::rows::{CtSetting, StatCounter};
use sys::caps::Cap;
use testkit::netns::Lab;

fn netns_of(lab: &Lab) -> u64 {
    lab.run_inside(|| sys::netns::current_inode().unwrap())
}

fn by(lab: &Lab, via: Option<StatVia>) -> Stats {
    let need = stat_need::SETTINGS | stat_need::EXPECTATIONS;
    let netns_id = netns_of(lab);
    lab.run_inside(|| read(&Host::live(), netns_id, need, via)).unwrap()
}

/// A namespace with connection tracking and `packets` packets that conntrack classified as invalid.
fn with_invalid_packets(purpose: &str, packets: u16) -> Lab {
    let lab = Lab::new(purpose);
    let rules = "table inet t {\n chain o {\n type filter hook output priority 0\n ct state new counter\n}\n}\n";
    let file = lab.dir().join("rules.nft");
    std::fs::write(&file, rules).unwrap();
    lab.output("nft", &["-f", file.to_str().unwrap()]);
    lab.run_inside(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for port in 1..=packets {
            // The port is closed: the answer is an ICMP error, which the next send reports.
            let _ = socket.send_to(b"x", ("127.0.0.1", port));
        }
    });
    lab
}

#[test]
fn root_both_ways_tell_the_same_and_so_does_the_tool() {
    testkit::require_root!();
    let lab = with_invalid_packets("statdoors", 50);
    let [netlink, proc] = [Some(StatVia::Netlink), Some(StatVia::Proc)].map(|via| by(&lab, via));
    assert_eq!((netlink.via, proc.via), (Some(StatVia::Netlink), Some(StatVia::Proc)));
    assert_eq!(netlink.cpus.len(), proc.cpus.len());
    // Counters that the kernel no longer sends are columns of zeros in the file.
    let gone = [StatCounter::New, StatCounter::Ignore, StatCounter::Delete];
    for (left, right) in netlink.cpus.iter().zip(&proc.cpus) {
        for counter in StatCounter::ALL.into_iter().filter(|counter| !gone.contains(counter)) {
            assert!(left.counts.get(counter).is_some(), "{}", counter.name());
            assert_eq!(left.counts.get(counter), right.counts.get(counter), "{}", counter.name());
        }
    }
    let same = |stats: &Stats| (stats.entries, stats.max, stats.buckets, stats.expect_max, stats.settings);
    assert_eq!(same(&netlink), same(&proc));
    let tool: u64 = lab.output("conntrack", &["-C"]).trim().parse().unwrap();
    assert_eq!(netlink.entries, Some(tool));
    assert!(tool >= 50);
    let per_cpu = lab.output("conntrack", &["-S"]);
    for (line, cpu) in per_cpu.lines().zip(&netlink.cpus) {
        let words = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        for (name, value) in words {
            if name == "cpu" {
                assert_eq!(value.parse(), Ok(cpu.cpu));
                continue;
            }
            let counter = StatCounter::ALL.into_iter().find(|counter| counter.name() == name);
            let ours = counter.and_then(|counter| cpu.counts.get(counter));
            assert_eq!(ours, value.parse().ok(), "{name}");
        }
    }
    assert_eq!(per_cpu.lines().count(), netlink.cpus.len());
}

#[test]
fn root_settings_are_the_namespaces_own() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("statset"), Lab::new("statsetother"));
    let path = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout";
    lab.run_inside(|| std::fs::write(path, "77")).unwrap();
    let udp = |lab: &Lab| by(lab, None).settings.unwrap().get(CtSetting::Udp);
    assert_eq!(udp(&lab), Some(77));
    assert_ne!(udp(&other), Some(77));
    // Every numeric setting of connection tracking has its field.
    let known: Vec<&str> = CtSetting::ALL.into_iter().map(CtSetting::file).collect();
    for file in std::fs::read_dir(SETTINGS_DIR).unwrap().flatten() {
        let name = file.file_name().into_string().unwrap();
        let is_size = ["_max", "_count", "_buckets"].iter().any(|end| name.ends_with(end));
        if name.starts_with("nf_conntrack_") && !is_size && !name.contains("frag6") && !name.contains("dccp") {
            assert!(known.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn root_without_the_right_it_is_proc() {
    testkit::require_root!();
    let lab = with_invalid_packets("statrights", 10);
    let with = by(&lab, None);
    let netns_id = netns_of(&lab);
    let without = lab.run_inside(|| {
        testkit::sandbox::drop_caps(&[Cap::NetAdmin]).unwrap();
        read(&Host::live(), netns_id, 0, None).unwrap()
    });
    assert_eq!((with.via, without.via), (Some(StatVia::Netlink), Some(StatVia::Proc)));
    assert_eq!((with.entries, with.max), (without.entries, without.max));
    assert_eq!(without.without, None);
}

#[test]
fn root_a_recording_holds_it() {
    testkit::require_root!();
    let lab = with_invalid_packets("stattape", 5);
    let tape = lab.dir().join("tape");
    let netns_id = netns_of(&lab);
    let need = stat_need::SETTINGS | stat_need::EXPECTATIONS;
    let live = lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        let stats = read(&host, netns_id, need, None).unwrap();
        host.finish().unwrap();
        stats
    });
    assert_eq!(read(&Host::open_replay(&tape).unwrap(), netns_id, need, None).unwrap(), live);
    assert!(matches!(read(&Host::open_replay(&tape).unwrap(), 7, 0, None), Err(StatsError::Unreadable(_))));
}

#[test]
fn a_kernel_without_it() {
    let tmp = tempfile::tempdir().unwrap();
    let host = Host::with_roots(tmp.path().into(), tmp.path().into(), tmp.path().into());
    let error = read(&host, 1, 0, Some(StatVia::Proc)).unwrap_err();
    assert!(matches!(error, StatsError::Absent), "{error}");
}

const HEAD: &str =
    "entries clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop\n";

/// One round of a source over a synthetic /proc: `drop` and its growth per CPU, and the row counts.
fn round_of(
    drops: [u32; 2],
    per_cpu: bool,
    memory: &std::cell::RefCell<StatMemory>,
) -> (Vec<String>, record::Accounting) {
    let tmp = tempfile::tempdir().unwrap();
    let stat = tmp.path().join("thread-self/net/stat");
    std::fs::create_dir_all(&stat).unwrap();
    let line = |drop: u32| format!("0000000a 0 0 0 0 0 0 0 0 0 {drop:08x} 0\n");
    std::fs::write(stat.join("nf_conntrack"), format!("{HEAD}{}{}", line(drops[0]), line(drops[1]))).unwrap();
    let host = Host::with_roots(tmp.path().into(), tmp.path().into(), tmp.path().into());
    let target = sys::NetnsTarget::current(7);
    let options = StatOptions { via: Some(StatVia::Proc), per_cpu };
    let source = StatSource::new(&host, vec![target], options, Some(memory));
    let mut rows = Vec::new();
    let stats = record::Source::run(&source, &record::Demand::new(&[], Vec::new()), &mut |row| {
        let of = |counts: &StatCounts| counts.get(StatCounter::Drop).map_or("-".to_owned(), |n| n.to_string());
        let change = row.change.map_or("-", record::rows::Change::name);
        rows.push(format!("{change} {} {}", of(&row.counts), of(&row.grown)));
        record::Next::More
    });
    (rows, stats.unwrap())
}

#[test]
fn rounds_with_a_reset_have_no_negative_growth() {
    let memory = std::cell::RefCell::default();
    assert_eq!(round_of([10, 20], false, &memory).0, ["- 30 -"]);
    assert_eq!(round_of([15, 20], false, &memory).0, ["kept 35 5"]);
    let (rows, stats) = round_of([1, 21], false, &memory);
    assert_eq!(rows, ["kept 22 -"]);
    assert_eq!(stats.why[0].text, "a counter decreased: its difference is unknown");
    assert_eq!(round_of([2, 22], false, &memory).0, ["kept 24 2"]);
    let memory = std::cell::RefCell::default();
    assert_eq!(round_of([u32::MAX, 20], true, &memory).0, ["- 4294967295 -", "- 20 -"]);
    assert_eq!(round_of([4, 1], true, &memory).0, ["kept 4 5", "kept 1 -"], "one ran over, one began again");
}

#[test]
fn root_both_files_tell_the_same_sizes() {
    testkit::require_root!();
    let live = SlabSizes::read(&Host::live()).unwrap();
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("slabinfo"), std::fs::read("/proc/slabinfo").unwrap()).unwrap();
    let by_proc = SlabSizes::read(&Host::with_roots(tmp.path().into(), tmp.path().into(), tmp.path().into())).unwrap();
    assert_eq!(SlabSizes { in_use: None, ..live }, SlabSizes { in_use: None, ..by_proc });
    assert!(live.in_use.is_some() && by_proc.in_use.is_some());
}
