//! `nat stats` and `nat advise` on real tables, compared with the original tool and with the kernel's memory use.

use crate::run::{Ran, command, command_for_anyone, netwren, netwren_in};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::HostKnob;
use testkit::conntrack::Entry;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::tables::ExclusiveUse;

const SETTINGS: &str = "/proc/sys/net/netfilter";
const NF_CONNTRACK_MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// Makes the kernel track outgoing packets.
const TRACKED: &str = "table ip t {\nchain o {\ntype filter hook output priority 0\nct state new counter\n}\n}\n";
const DNAT: &str = "table ip t {\nchain o {\ntype nat hook output priority -100\nudp dport 9 dnat to :10\n}\n}\n";
const SNAT: &str = "table ip t {\nchain p {\ntype nat hook postrouting priority 100\noif out0 snat to 10.9.0.1\n}\n}\n";
pub(crate) const MASQUERADE: &str =
    "table ip t {\nchain p {\ntype nat hook postrouting priority 100\noif out0 masquerade\n}\n}\n";

/// Drops packets at the other end of the pair of interfaces, where they return, before they create entries.
const NOBODY: &str = "table ip n {\nchain r {\ntype filter hook prerouting priority -300\niif in0 drop\n}\n}\n";

fn rules(lab: &Lab, text: &str) {
    let file = lab.dir().join("rules.nft");
    std::fs::write(&file, format!("{NOBODY}{text}")).unwrap();
    lab.output("nft", &["-f", file.to_str().unwrap()]);
}

/// A namespace whose packets leave through an interface where nothing answers.
pub(crate) fn with_way_out(purpose: &str, text: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.shares_conntrack();
    lab.ip(&["link", "add", "out0", "type", "veth", "peer", "name", "in0"]);
    lab.ip(&["link", "set", "in0", "up"]);
    lab.ip(&["address", "add", "10.9.0.1/24", "dev", "out0"]);
    lab.ip(&["link", "set", "out0", "up", "arp", "off"]);
    lab.ip(&["address", "add", &format!("{INSIDE}/32"), "dev", "lo"]);
    lab.ip(&["route", "add", "default", "dev", "out0"]);
    rules(&lab, text);
    // The timeout is long enough for the slowest machine, so that no entry expires while they are counted.
    set(&lab, "nf_conntrack_udp_timeout", "600");
    lab
}

fn set(lab: &Lab, name: &str, value: &str) {
    lab.run_inside(|| std::fs::write(Path::new(SETTINGS).join(name), value)).unwrap();
}

/// The source address of packets. It differs from the outgoing interface's address, so that masquerading rewrites it.
const INSIDE: &str = "10.8.0.1";

/// Sends a UDP packet to each of `flows` addresses, which creates an entry for each.
pub(crate) fn send(lab: &Lab, flows: u32) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind((INSIDE, 0)).unwrap();
        for n in 0..flows {
            let [_, b, c, d] = n.to_be_bytes();
            socket.send_to(b"x", (std::net::Ipv4Addr::new(11, b, c, d), 9)).unwrap();
        }
    });
}

/// The namespace of the command, as a value of `--netns`.
const HERE: &str = "/proc/self/ns/net";

/// Runs `nat advise` for the lab alone.
fn advise_in(lab: &Lab, args: &[&str]) -> Ran {
    netwren_in(lab, &[&["nat", "advise", "--netns", HERE], args].concat())
}

/// The output of `nat advise` as one JSON object.
#[track_caller]
fn advice(ran: Ran) -> Value {
    let text = ran.ok();
    let said: Value = serde_json::from_str(text.trim_end()).unwrap();
    for key in said.as_object().unwrap().keys() {
        assert_eq!(text.matches(&format!("\"{key}\":")).count(), 1, "{key} of {text}");
    }
    said
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// Bytes in use of a slab cache: its objects, each with its share of a slab.
fn in_use(cache: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap();
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(cache)).unwrap();
    let numbers: Vec<u64> = line.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    numbers[0] * (numbers[4] * 4096 / numbers[3])
}

/// The measured bytes per entry, the bytes that `nat advise` reports, and its whole output.
fn grown_and_advised(purpose: &str, text: &str, setting: &str) -> (u64, u64, Value) {
    const FLOWS: u32 = 60_000;
    let lab = with_way_out(purpose, text);
    // With the value 2, a listener to events in any namespace of the host would make all entries larger.
    set(&lab, "nf_conntrack_events", "0");
    if let Some((name, value)) = setting.split_once('=') {
        set(&lab, name, value);
    }
    let of_all = || in_use("nf_conntrack") + in_use("kmalloc-128");
    let (before, entries_before) = (of_all(), in_use("nf_conntrack"));
    if text.is_empty() {
        let entry =
            |n: u32| Entry::udp((std::net::Ipv4Addr::from(0x0a40_0000 + n).into(), 5000), ([10, 9, 0, 9].into(), 53));
        lab.track((0..FLOWS).map(entry));
    } else {
        send(&lab, FLOWS);
    }
    let grown = of_all().saturating_sub(before);
    let entries = lab.conntrack_count();
    assert_eq!(entries, u64::from(FLOWS));
    let said = advice(advise_in(&lab, &["--samples", "1", "-o", "json"]));
    assert_eq!(number(&said["entries"]), entries);
    // The kernel removes namespaces in the background; the next measurement must wait until this one's memory is
    // freed.
    drop(lab);
    let most = entries_before + grown / 50;
    testkit::wait_until("the entries are given back", || in_use("nf_conntrack") <= most);
    (grown / entries, number(&said["bytes_per_entry"]), said)
}

/// True if the BPF walk is available. Without it `snat` and `masquerade` look the same.
fn sees_extensions() -> bool {
    let told = netwren(&["support"]).stdout;
    let line = told.lines().find(|line| line.starts_with("connection tracking via bpf\t")).unwrap();
    let has = line.contains("\tyes\t");
    if !has {
        eprintln!("skipped: no walk by bpf here: {line}");
    }
    has
}

/// Without the walk, the larger of two sizes is assumed and reported, and the number of expired entries is unknown.
#[test]
fn root_without_bpf_the_advice_says_what_it_does_not_know() {
    testkit::require_root!();
    let lab = with_way_out("advisenobpf", SNAT);
    send(&lab, 100);
    let without = || {
        let mut child = command(&["nat", "advise", "--netns", HERE, "--samples", "1", "-o", "json"]);
        confine(&mut child, &[Limit::Network(lab.path()), Limit::NoBpf(sys::Errno::PERM)]).unwrap();
        advice(Ran::of(child.output().unwrap()))
    };
    let said = without();
    assert_eq!((number(&said["entries"]), number(&said["nat_entries"])), (100, 100));
    assert!(said["expired"].is_null(), "{said}");
    assert_eq!(said["bytes_per_entry"], said["bytes_per_entry_nat"]);
    let reasons = texts(&said["reasons"]);
    for word in ["counted as masqueraded", "only the walk via BPF"] {
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}: {reasons:?}");
    }
    if sees_extensions() {
        let said = advice(advise_in(&lab, &["--samples", "1", "-o", "json"]));
        assert_eq!(said["expired"], 0, "{said}");
        assert!(!texts(&said["reasons"]).iter().any(|reason| reason.contains("counted as masqueraded")), "{said}");
    }
}

/// Expired entries count until the kernel removes them: the walk counts them without removing them.
#[test]
fn root_expired_entries_are_counted() {
    testkit::require_root!();
    if !sees_extensions() {
        return;
    }
    // Every dump of a table removes expired entries, in every namespace.
    let _alone = ExclusiveUse::take();
    let lab = with_way_out("adviseexpired", TRACKED);
    set(&lab, "nf_conntrack_udp_timeout", "1");
    // To find the table, the walk first reads entries in a way that removes expired ones, up to the first live entry.
    lab.track(testkit::conntrack::mixed_entries(20));
    testkit::wait_until("expired entries that still count", || {
        // Send again in each attempt, because the kernel may have just removed the previous entries.
        if lab.conntrack_count() <= 20 {
            send(&lab, 200);
        }
        let said = advice(advise_in(&lab, &["--samples", "1", "-o", "json"]));
        let expired = said["expired"].as_u64().unwrap_or(0);
        assert!(expired <= 200, "{said}");
        expired > 0 && texts(&said["reasons"]).iter().any(|reason| reason.contains("have expired and still count"))
    });
}

/// Other programs also use the general slab caches: their noise is handled by retries, while a wrong figure stays
/// wrong.
#[test]
fn root_bytes_of_an_entry_are_what_the_slabs_grow_by() {
    testkit::require_root!();
    if !sees_extensions() {
        return;
    }
    // Slab caches belong to the whole machine.
    let _alone = ExclusiveUse::take();
    for (purpose, text, setting, bytes) in [
        ("slabplain", TRACKED, "", 256),
        ("slabdnat", DNAT, "", 256),
        ("slabsnat", SNAT, "", 256),
        ("slabmasq", MASQUERADE, "", 384),
        ("slabacct", TRACKED, "nf_conntrack_acct=1", 384),
        ("slabevents", TRACKED, "nf_conntrack_events=1", 384),
        // Entries created through ctnetlink always have extensions.
        ("slabmade", "", "", 384),
    ] {
        let mut seen = Vec::new();
        let fits = (0..6).any(|_| {
            let (measured, advised, said) = grown_and_advised(purpose, text, setting);
            let is_nat = ["slabdnat", "slabsnat", "slabmasq"].contains(&purpose);
            assert_eq!(number(&said["nat_entries"]) > 0, is_nat, "{said}");
            seen.push((measured, advised));
            measured.abs_diff(advised) * 100 <= measured * 5
        });
        assert!(fits, "{purpose}: measured and advised bytes: {seen:?}");
        // Sizes may differ on other kernels; there, only the measurement counts.
        if sys::Kernel::read_running().version() == (6, 18) {
            assert_eq!(seen.last().map(|(_, advised)| *advised), Some(bytes), "{purpose}");
        }
        eprintln!("{purpose}: bytes of an entry, measured and advised: {seen:?}");
    }
}

#[test]
fn root_stats_are_those_of_the_real_tool() {
    testkit::require_root!();
    let lab = with_way_out("statstool", TRACKED);
    send(&lab, 300);
    lab.track((0..50).map(|n| Entry::tcp(([10, 0, 0, 1].into(), 1000 + n), ([10, 0, 0, 2].into(), 80), 3)));
    let row: Value = serde_json::from_str(&netwren_in(&lab, &["nat", "stats", "-o", "json"]).ok()).unwrap();
    let count: u64 = lab.output("conntrack", &["-C"]).trim().parse().unwrap();
    assert_eq!((number(&row["entries"]), count), (350, 350));
    let rows = netwren_in(&lab, &["nat", "stats", "--per-cpu", "-o", "json", "--columns", "all"]).ok();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tool = lab.output("conntrack", &["-S"]);
    assert_eq!(rows.len(), tool.lines().count());
    for (row, line) in rows.iter().zip(tool.lines()) {
        for (name, value) in line.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
            assert_eq!(row[name].as_u64(), value.parse().ok(), "{name} of {line}");
        }
        assert!(row["entries"].is_null() && row["max"].is_null(), "{row}");
    }
    let inserted: u64 = rows.iter().map(|row| number(&row["insert"])).sum();
    assert_eq!(inserted, 50, "of ctnetlink alone");
    // Values without a meaning are shown only on request.
    assert!(row.get("insert").is_none() && row.get("found").is_none());
    let text = netwren_in(&lab, &["nat", "stats", "--columns", "entries,udp_timeout_s"]).ok();
    assert_eq!(text, "entries\tudp_timeout_s\n350\t600\n");
}

/// Every backend gives the same numbers, and reading them needs no privileges.
#[test]
fn root_without_rights_counters_come_from_proc() {
    testkit::require_root!();
    let lab = with_way_out("statsproc", TRACKED);
    send(&lab, 20);
    let args = ["nat", "stats", "-o", "json", "--stats"];
    let as_nobody = |args: &[&str]| {
        let mut child = command_for_anyone(args);
        confine(&mut child, &[Limit::Network(lab.path()), Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
        Ran::of(child.output().unwrap())
    };
    let rows = |text: &str| text.lines().next().unwrap().to_owned();
    let whole = netwren_in(&lab, &args).ok();
    let without = as_nobody(&args).ok();
    // The name of the namespace is not visible to every user.
    let tail = |line: &str| line.split_once(",\"cpu\"").unwrap().1.to_owned();
    assert_eq!(tail(&rows(&whole)), tail(&rows(&without)));
    assert!(whole.contains("\"netlink\"") && without.contains("\"proc\""), "{whole}{without}");
    let by_proc = netwren_in(&lab, &["nat", "stats", "-o", "json", "--via", "proc"]).ok();
    assert_eq!(rows(&whole), rows(&by_proc));
    let ran = as_nobody(&["nat", "advise", "--samples", "1", "-o", "json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let said: Value = serde_json::from_str(ran.stdout.trim_end()).unwrap();
    assert_eq!(number(&said["entries"]), 20);
    assert!(said["bytes_per_entry"].is_null() && said["memory_bytes"].is_null(), "{said}");
    assert!(said["longest_chain"].is_null(), "{said}");
    // Either permissions are missing or the program was built without BPF.
    assert_eq!(
        ran.stderr.matches("not read via BPF, which also shows expired entries and hash").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("permitted") || ran.stderr.contains("permission denied"), "{}", ran.stderr);
}

#[test]
fn root_one_namespace_out_of_reach_costs_its_row_and_a_word() {
    testkit::require_root!();
    let (own, other) = (with_way_out("statsown", TRACKED), Lab::new("statsother"));
    send(&own, 5);
    let filter = format!("netns in (\"{}\", \"{}\")", own.name(), other.name());
    let args = ["nat", "stats", "--all-netns", "-H", "--columns", "netns,entries", &filter];
    let mut lines: Vec<String> = netwren(&args).stdout.lines().map(str::to_owned).collect();
    lines.sort();
    let mut expected = vec![format!("{}\t5", own.name()), format!("{}\t0", other.name())];
    expected.sort();
    assert_eq!(lines, expected);
    let mut child = command_for_anyone(&args);
    let caps = vec![sys::caps::Cap::SysAdmin, sys::caps::Cap::Bpf];
    confine(&mut child, &[Limit::Network(own.path()), Limit::WithoutCaps(caps)]).unwrap();
    let ran = Ran::of(child.output().unwrap());
    assert_eq!(ran.stdout, format!("{}\t5\n", own.name()));
    ran.says(3, &["not read", "CAP_SYS_ADMIN"]);
}

/// Sends into a full table until `stop` is set.
fn press(lab: &Lab, stop: &AtomicBool) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind((INSIDE, 0)).unwrap();
        for n in (0u32..).take_while(|_| !stop.load(Ordering::Relaxed)) {
            let [_, b, c, d] = n.to_be_bytes();
            // A packet without room for its entry is rejected with EPERM; the kernel counts it.
            let _ = socket.send_to(b"x", (std::net::Ipv4Addr::new(11, b, c, d), 9));
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    });
}

/// The number of entries that the kernel reports for a limit of 1000: a packet without room is counted while the
/// kernel searches for room.
const FULL: std::ops::RangeInclusive<u64> = 1000..=1001;

/// For a full table under load, netwren shows the losses and suggests a limit with its memory use; the test then
/// applies it from the initial namespace.
#[test]
fn root_a_full_table_is_reported_and_remedied() {
    testkit::require_root!();
    let _knob = HostKnob::set(NF_CONNTRACK_MAX, "1000");
    let lab = with_way_out("advisefull", TRACKED);
    // Assured and established entries, so that the kernel evicts none of them and the table stays full. (Above 95 %,
    // gc_worker() in nf_conntrack_core.c also evicts assured TCP entries if their connection is closing.)
    lab.track((0..1000).map(|n| Entry::tcp(([10, 0, 0, 1].into(), 1000 + n), ([10, 0, 0, 2].into(), 80), 3)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| press(&lab, &stop));
        let result = std::panic::catch_unwind(|| {
            check_full_table(&lab);
            full_table_is_mended(&lab);
        });
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn check_full_table(lab: &Lab) {
    let said = advice(advise_in(lab, &["-o", "json"]));
    assert_eq!((said["verdict"].as_str(), number(&said["max"])), (Some("full"), 1000));
    assert!(FULL.contains(&number(&said["peak"])), "{said}");
    assert!(number(&said["drop_delta"]) > 0 && number(&said["interval_ms"]) >= 1000, "{said}");
    let (max, bytes) = (number(&said["advised_max"]), number(&said["bytes_per_entry"]));
    assert!(max >= 2000, "{said}");
    assert!(number(&said["memory_bytes"]) >= max * bytes);
    assert!(said["full_in_s"].is_null() || number(&said["full_in_s"]) == 0, "nothing is left to fill: {said}");
    let timeout = (said["timeout"].as_str(), number(&said["timeout_entries"]));
    assert_eq!(timeout, (Some(ESTABLISHED), 1000));
    let reasons = texts(&said["reasons"]);
    for word in [
        "packets were dropped",
        "the table is full: 100",
        " of 1000",
        "only in its first network namespace",
        "the limit should be",
    ] {
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}: {reasons:?}");
    }
    assert!(reasons.iter().any(|reason| reason.contains("is unknown, because the limit is 1000")), "{reasons:?}");
    let text = advise_in(lab, &[]).ok();
    let lines = text.lines().filter_map(|line| line.strip_prefix("  sysctl -w "));
    // Lines with a comment after the value are timeouts of a namespace.
    let lines: Vec<&str> = lines.filter(|line| !line.contains(" # ")).collect();
    assert_eq!((lines.len(), lines), (1, texts(&said["sysctl"])), "{text}");
    // The advice never exceeds the memory that the user allows.
    let capped = advice(advise_in(lab, &["--memory", "1MiB", "-o", "json"]));
    assert_eq!((number(&capped["advised_max"]), capped["is_capped"].as_bool()), (1000, Some(true)), "{capped}");
    assert_eq!((number(&capped["memory_bytes_max"]), texts(&capped["sysctl"]).len()), (1 << 20, 0));
    let ran = advise_in(lab, &["--apply", "--yes", "--samples", "1"]);
    ran.says(4, &["cannot be set from here", "nothing was changed"]);
    let rows = netwren_in(lab, &["nat", "stats", "-H", "--columns", "fill_percent", "drop > 0"]).ok();
    assert_eq!(rows, "100\n");
}

fn full_table_is_mended(lab: &Lab) {
    let etc = lab.dir().join("sysctl.d");
    std::fs::create_dir_all(&etc).unwrap();
    std::fs::create_dir_all("/etc/sysctl.d").unwrap();
    let cover = Limit::Cover { with: etc.clone(), place: "/etc/sysctl.d".into() };
    let apply = |more: &[&str]| {
        let mut child = command(&[&["nat", "advise", "--all-netns", "--samples", "1", "--apply"], more].concat());
        confine(&mut child, std::slice::from_ref(&cover)).unwrap();
        Ran::of(child.output().unwrap())
    };
    let limit = || std::fs::read_to_string(NF_CONNTRACK_MAX).unwrap();
    let preview = apply(&[]);
    assert!(preview.stderr.contains("would set net.netfilter.nf_conntrack_max="), "{}", preview.stderr);
    assert!(preview.stderr.contains("nothing was changed"), "{}", preview.stderr);
    assert_eq!((limit().trim(), std::fs::read_dir(&etc).unwrap().count()), ("1000", 0));
    let ran = apply(&["--yes"]);
    let now: u64 = limit().trim().parse().unwrap();
    assert!(now >= 2000, "{now}: {}", ran.stderr);
    let kept = std::fs::read_to_string(etc.join("90-netwren-conntrack.conf")).unwrap();
    assert!(kept.contains(&format!("net.netfilter.nf_conntrack_max={now}\n")), "{kept}");
    let undo = ran.stderr.lines().find(|line| line.contains("undo: ")).unwrap();
    assert!(undo.contains("sysctl -w net.netfilter.nf_conntrack_max=1000 && rm /etc/sysctl.d/"), "{undo}");
    testkit::wait_until("new flows come in again", || lab.conntrack_count() > 1000);
}

const TEN_PORTS: &str =
    "table ip t {\nchain p {\ntype nat hook postrouting priority 100\nudp dport 9 snat to 10.9.0.1:20000-20009\n}\n}\n";

/// Runs a command; until it ends, new sockets send to one destination, each from its own port.
fn while_ports_run_out(lab: &Lab, args: &[&str]) -> Ran {
    let mut child = command(args);
    confine(&mut child, &[Limit::Network(lab.path())]).unwrap();
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut sockets = Vec::new();
    lab.run_inside(|| {
        while child.try_wait().unwrap().is_none() {
            let socket = UdpSocket::bind((INSIDE, 0)).unwrap();
            // From the eleventh socket on, the kernel has no free port and rejects the packet with EPERM.
            let _ = socket.send_to(b"x", (std::net::Ipv4Addr::new(11, 0, 0, 9), 9));
            // No answer arrives; the timeout only limits the rate.
            socket.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
            let _ = socket.recv(&mut [0]);
            sockets.push(socket);
        }
    });
    Ran::of(child.wait_with_output().unwrap())
}

/// Ten ports for more than ten connections: packets are lost although the table has room.
#[test]
fn root_issue_10_exhausted_source_ports_are_reported() {
    testkit::require_root!();
    let lab = with_way_out("adviseports", TEN_PORTS);
    let args = ["nat", "advise", "--netns", HERE, "-o", "json"];
    let said = advice(while_ports_run_out(&lab, &args));
    assert_eq!((number(&said["entries"]), said["verdict"].as_str()), (10, Some("refusing")), "{said}");
    assert!(number(&said["drop_delta"]) > 0 && said["drop_delta"] == said["insert_failed_delta"], "{said}");
    let reasons = texts(&said["reasons"]);
    let words = "source ports of 10.9.0.1 for connections to 11.0.0.9:9 are exhausted (10 of 10): udp, the rule allows \
                 20000 to 20009";
    assert_eq!(reasons[0], words);
    assert!(reasons[1].contains("packets were dropped although there was room"), "{reasons:?}");
    assert_eq!(texts(&said["sysctl"]), [""; 0], "a larger table has no more ports");
    let used = &said["ports_used_up"][0];
    assert_eq!(
        (number(&used["used"]), number(&used["ports"]), number(&used["first_port"])),
        (10, 10, 20_000),
        "{used}"
    );
    // A recording also contains the rules, and one sample is enough to show the used-up ports.
    let tape = lab.dir().join("ports.tape");
    let tape = tape.to_str().unwrap();
    let ran = advise_in(&lab, &["--samples", "1", "--record", tape]).ok();
    assert!(ran.contains(": refusing\n") && ran.contains(words), "{ran}");
    assert_eq!(netwren(&["nat", "advise", "--samples", "1", "--replay", tape]).ok(), ran);
}

/// BPF reports entries before they enter the table; entries that are then refused are counted.
#[test]
fn root_issue_10_entries_refused_after_bpf_reported_them_are_counted() {
    testkit::require_root!();
    if !sees_extensions() {
        return;
    }
    let lab = with_way_out("eventsrefused", TEN_PORTS);
    let ran = while_ports_run_out(&lab, &["nat", "events", "--event", "new", "--limit", "15"]);
    ran.says(0, &["an entry was rejected after BPF had reported it", "15 new entries"]);
}

/// The used and the available ports, the most used first.
#[test]
fn root_issue_10_ports_in_use_are_counted_by_address_and_destination() {
    testkit::require_root!();
    let lab = with_way_out("topports", TEN_PORTS);
    let out: std::net::IpAddr = [10, 9, 0, 1].into();
    let entry = |to: u8, n: u16, port| {
        Entry::udp(([10, 8, 0, 7].into(), 1000 + n), ([11, 0, 0, to].into(), 53)).snat(out, port).timeout_s(600)
    };
    lab.track((0..5).map(|n| entry(1, n, 20_001 + n)).chain((0..30).map(|n| entry(2, n, 30_000 + n))));
    lab.track([Entry::udp(([10, 8, 0, 7].into(), 1), ([11, 0, 0, 3].into(), 53)), Entry::ping(out, out, 7)]);
    let rows = netwren_in(&lab, &["nat", "top", "snat_port_use", "--no-owner"]).ok();
    let wanted = "proto\treply_dst\tbackend\tcount\tports\tused_percent\n\
                  udp\t10.9.0.1\t11.0.0.1:53\t5\t10\t50\nudp\t10.9.0.1\t11.0.0.2:53\t30\t-\t-\n";
    assert_eq!(rows, wanted);
    let one = netwren_in(&lab, &["nat", "top", "snat_port_use", "-H", "--sort", "count:desc", "--limit", "1"]);
    assert_eq!(one.stdout, "udp\t10.9.0.1\t11.0.0.2:53\t30\t-\t-\n");
    assert!(one.stderr.contains("1 more groups are not shown"), "{}", one.stderr);
    let filter = format!("netns = \"{}\" and backend = 11.0.0.1:53", lab.name());
    let all = netwren(&["nat", "top", "snat_port_use", "-o", "json", "--all-netns", &filter]);
    let row: Value = serde_json::from_str(all.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((row["netns"].as_str(), number(&row["used_percent"])), (Some(lab.name()), 50), "{row}");
    netwren_in(&lab, &["nat", "top", "snat_port_use", "nonsense = 1"]).says(2, &["unknown field `nonsense`"]);
}

/// With `--watch` there is a forecast of when the range will be used up.
#[test]
fn root_issue_10_ports_in_use_have_a_forecast() {
    testkit::require_root!();
    let lab = with_way_out("watchports", TEN_PORTS);
    let entry = |n: u16| {
        Entry::udp(([10, 8, 0, 7].into(), n), ([11, 0, 0, 1].into(), 53)).snat([10, 9, 0, 1].into(), 20_000 + n)
    };
    lab.track((0..3).map(|n| entry(n).timeout_s(600)));
    let file = lab.dir().join("rows");
    let mut child = command(&["nat", "top", "snat_port_use", "--watch=0.2", "-o", "json"]);
    confine(&mut child, &[Limit::Network(lab.path())]).unwrap();
    let mut child = child.stdout(std::fs::File::create(&file).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let row = |holds: &dyn Fn(&Value) -> bool| rounds_in(&file).into_iter().flatten().find(|row| holds(row));
    testkit::wait_until("a round", || row(&|row| row["count"] == 3 && row["full_in_s"].is_null()).is_some());
    lab.track((3..7).map(|n| entry(n).timeout_s(600)));
    // All four appear in one round, or some of them: at the same rate, three remaining ports are used up soon.
    testkit::wait_until("a forecast", || row(&|row| row["full_in_s"].is_u64()).is_some());
    let said = row(&|row| row["full_in_s"].is_u64()).unwrap();
    assert!(number(&said["count"]) > 3 && number(&said["full_in_s"]) < 60, "{said}");
    testkit::wait_until("no more growth", || row(&|row| row["count"] == 7 && row["full_in_s"].is_null()).is_some());
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
}

/// All namespaces share one hash table: if one namespace fills the chains, entries of all namespaces are refused.
#[test]
fn root_issue_10_refused_entries_crowd_the_whole_host() {
    testkit::require_root!();
    let _knob = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_buckets", "65536");
    let (fills, looks) = (with_way_out("advisefills", TRACKED), with_way_out("adviselooks", TRACKED));
    send(&looks, 1);
    fills.track(
        (0..18_000u32)
            .map(|n| Entry::udp((std::net::Ipv4Addr::from(0x0a40_0000 + n).into(), 5000), ([10, 9, 0, 9].into(), 53))),
    );
    // More than 60 nodes per chain; the kernel refuses entries at 50 to 80.
    std::fs::write("/proc/sys/net/netfilter/nf_conntrack_buckets", "512").unwrap();
    let (stop, tape) = (AtomicBool::new(false), looks.dir().join("all.tape"));
    let tape = tape.to_str().unwrap();
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| press(&fills, &stop));
        let ran = std::panic::catch_unwind(|| {
            netwren_in(&looks, &["nat", "advise", "--all-netns", "-o", "json", "--record", tape])
        });
        stop.store(true, Ordering::Relaxed);
        ran.unwrap()
    });
    // Other namespaces may disappear during the run.
    let all: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |lab: &Lab| all.iter().find(|one| one["netns"] == lab.name()).unwrap_or_else(|| panic!("{}", ran.stderr));
    let said = of(&looks);
    assert_eq!((said["verdict"].as_str(), number(&said["chaintoolong_delta"])), (Some("crowded"), 0), "{said}");
    let words = "entries of other network namespaces were rejected because their hash chain was too long";
    assert!(texts(&said["reasons"]).iter().any(|reason| reason.contains(words)), "{said}");
    assert!(number(&of(&fills)["chaintoolong_delta"]) > 0, "{}", of(&fills));
    // The single pass over all namespaces counts separately for each.
    assert_eq!(
        (number(&said["timeout_entries"]), said["timeout"].as_str()),
        (1, Some("nf_conntrack_udp_timeout")),
        "{said}"
    );
    assert!(number(&of(&fills)["timeout_entries"]) >= 18_000, "{}", of(&fills));
    let again = netwren(&["nat", "advise", "-o", "json", "--replay", tape]).stdout;
    let again: Vec<Value> = again.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen = |all: &[Value]| -> Vec<Value> { all.iter().map(|one| one["timeout_entries"].clone()).collect() };
    assert_eq!(seen(&again), seen(&all), "a replay reads the same");
    let first = all.iter().find(|one| one["netns_id"] == 4_026_531_840u64 || !texts(&one["sysctl"]).is_empty());
    assert!(first.is_some_and(|first| first["verdict"] != "roomy"), "{first:?}");
}

/// A lab with entries that have been idle for days, and a timeout that keeps them.
fn with_silent_connections(purpose: &str) -> Lab {
    let lab = with_way_out(purpose, TRACKED);
    set(&lab, ESTABLISHED, "432000");
    let entry = |n: u16| Entry::tcp(([10, 0, 0, 1].into(), 1000 + n), ([10, 0, 0, 2].into(), 80), 3).timeout_s(10_000);
    lab.track((0..50).map(entry));
    lab
}

const ESTABLISHED: &str = "nf_conntrack_tcp_timeout_established";

fn established(lab: &Lab) -> u64 {
    let text = lab.run_inside(|| std::fs::read_to_string(Path::new(SETTINGS).join(ESTABLISHED))).unwrap();
    text.trim().parse().unwrap()
}

/// Runs `nat advise --apply` in the lab, with the lab's own folder for stored settings. With `starts`, process 1 is
/// also in the lab, so settings are stored for the lab, as in a container.
fn apply_in(lab: &Lab, starts: bool, more: &[&str]) -> Ran {
    let (etc, first) = (lab.dir().join("sysctl.d"), lab.dir().join("first"));
    std::fs::create_dir_all(&etc).unwrap();
    std::fs::create_dir_all("/etc/sysctl.d").unwrap();
    if std::fs::create_dir_all(first.join("ns")).is_ok() && !first.join("ns/net").is_symlink() {
        std::os::unix::fs::symlink("/proc/self/ns/net", first.join("ns/net")).unwrap();
    }
    let mut limits = vec![Limit::Network(lab.path()), Limit::Cover { with: etc, place: "/etc/sysctl.d".into() }];
    limits.extend(starts.then(|| Limit::Cover { with: first, place: "/proc/1".into() }));
    let mut child = command(&[&["nat", "advise", "--netns", HERE, "--samples", "1", "--apply"], more].concat());
    confine(&mut child, &limits).unwrap();
    Ran::of(child.output().unwrap())
}

/// A timeout is listed, not changed without `--timeouts`, shown with it, set and stored with `--yes`; after that
/// nothing remains to be done.
#[test]
fn root_a_timeout_is_set_if_asked_for() {
    testkit::require_root!();
    // Half of the limit is in use. Entries in other namespaces would require more buckets.
    let _knob = HostKnob::set(NF_CONNTRACK_MAX, "100");
    let lab = with_silent_connections("advisetimeout");
    let line = format!("net.netfilter.{ESTABLISHED}=7440");
    let said = advice(advise_in(&lab, &["--samples", "1", "-o", "json"]));
    assert_eq!((number(&said["timeout_frees"]), texts(&said["sysctl_timeouts"])), (50, vec![line.as_str()]));
    let kept = lab.dir().join("sysctl.d/90-netwren-conntrack.conf");

    let ran = apply_in(&lab, true, &["--yes"]);
    assert!(ran.stdout.contains("--apply --timeouts") && ran.stdout.contains(&line), "{}", ran.stdout);
    ran.says(0, &["nothing to set", &format!("{line} (is 432000) is also recommended: --timeouts sets it")]);
    let ran = apply_in(&lab, true, &["--timeouts"]);
    ran.says(0, &[&format!("would set {line} (is 432000)"), "would write /etc/sysctl.d/90-", "nothing was changed"]);
    assert!(established(&lab) == 432_000 && !kept.exists());

    let ran = apply_in(&lab, true, &["--timeouts", "--yes"]);
    let undo = format!("undo: sysctl -w net.netfilter.{ESTABLISHED}=432000 && rm /etc/sysctl.d/90-");
    ran.says(0, &[&format!("set {line}"), "wrote /etc/sysctl.d/90-", &undo, "keep the old timeout"]);
    assert_eq!(established(&lab), 7440);
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.ends_with(&format!("\n{line}\n")) && !text.contains("nf_conntrack_max"), "{text}");
    apply_in(&lab, true, &["--timeouts", "--yes"]).says(0, &["limit, buckets and timeouts are already as recommended"]);
}

/// Stored settings are applied to the namespace of process 1 at boot, so another namespace's timeouts do not belong
/// there.
#[test]
fn root_timeouts_of_a_passing_namespace_are_not_kept() {
    testkit::require_root!();
    let _knob = HostKnob::set(NF_CONNTRACK_MAX, "100");
    let lab = with_silent_connections("advisepassing");
    let ran = apply_in(&lab, false, &["--timeouts", "--yes"]);
    assert!(established(&lab) == 7440 && !ran.stderr.contains("wrote"), "{}", ran.stderr);
    ran.says(0, &["set net.netfilter.nf_conntrack_tcp", "lost at the next boot: 1"]);
    assert_eq!(std::fs::read_dir(lab.dir().join("sysctl.d")).unwrap().count(), 0);
    // From outside, with all namespaces: the timeout is shown with its namespace, but not set.
    set(&lab, ESTABLISHED, "432000");
    let ran = netwren(&["nat", "advise", "--all-netns", "--samples", "1", "--apply", "--timeouts"]);
    let place = format!("{ESTABLISHED}=7440 in network namespace {} (is 432000)", lab.name());
    assert!(ran.stderr.contains(&place) && established(&lab) == 432_000, "{}", ran.stderr);
}

/// A container gets advice for its own table. Long-lived entries cost nothing while there is plenty of room.
#[test]
fn root_advice_is_of_the_namespace_it_is_asked_in() {
    testkit::require_root!();
    let _alone = ExclusiveUse::take();
    let lab = with_silent_connections("advisehere");
    let said = advice(netwren_in(&lab, &["nat", "advise", "--samples", "1", "-o", "json"]));
    assert_eq!((said["netns"].as_str(), number(&said["entries"])), (Some(lab.name()), 50));
    assert_eq!((texts(&said["sysctl_timeouts"]), texts(&said["sysctl"])), (vec![], vec![]), "{said}");
    let words = netwren_in(&lab, &["nat", "advise", "--samples", "1"]).ok();
    assert!(words.starts_with(&format!("{}: plenty of room\n", lab.name())), "{words}");
    assert!(!words.contains("sysctl -w"), "{words}");
    let all = netwren_in(&lab, &["nat", "advise", "--samples", "1", "--all-netns"]).stdout;
    assert!(all.contains("network namespaces\n") && all.contains(lab.name()), "{all}");
}

/// The longest chain of a table with so few buckets that its chains are long; without the walk it is unknown.
#[test]
fn root_the_longest_chain_is_reported() {
    testkit::require_root!();
    if !sees_extensions() {
        return;
    }
    let _knob = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_buckets", "65536");
    let lab = with_way_out("advisechain", TRACKED);
    lab.track(testkit::conntrack::mixed_entries(8_000));
    std::fs::write("/proc/sys/net/netfilter/nf_conntrack_buckets", "512").unwrap();
    let said = advice(advise_in(&lab, &["--samples", "1", "-o", "json"]));
    let (longest, mean) = (number(&said["longest_chain"]), said["mean_chain"].as_f64().unwrap());
    assert!(mean >= 31.25, "{said}");
    // The longest chain is above the mean, but by less than eight standard deviations.
    assert!(longest as f64 > mean + 5.0 && (longest as f64) < mean + 8.0 * mean.sqrt(), "{said}");
    assert_eq!(said["verdict"], "crowded");
    let words = advise_in(&lab, &["--samples", "1"]).ok();
    for word in [
        "the longest hash chain has ",
        "nodes, the mean is ",
        "too few buckets; the kernel rejects entries from 50 to 80 nodes on",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    let mut child = command(&["nat", "advise", "--netns", HERE, "--samples", "1", "-o", "json"]);
    confine(&mut child, &[Limit::Network(lab.path()), Limit::NoBpf(sys::Errno::PERM)]).unwrap();
    let said = advice(Ran::of(child.output().unwrap()));
    assert!(said["longest_chain"].is_null() && said["mean_chain"].as_f64().unwrap() > 31.0, "{said}");
    let unknown = texts(&said["reasons"]).iter().filter(|reason| reason.contains("longest hash chain")).count();
    assert_eq!(unknown, 1, "{said}");
}

/// A recording contains the samples with their times, so a replay gives the same advice.
#[test]
fn root_a_replay_advises_the_same() {
    testkit::require_root!();
    let lab = with_way_out("advisetape", MASQUERADE);
    send(&lab, 100);
    let tape = lab.dir().join("tape");
    let tape = tape.to_str().unwrap();
    let live = advise_in(&lab, &["-o", "json", "--record", tape]).ok();
    let again = netwren(&["nat", "advise", "-o", "json", "--replay", tape]).ok();
    let but_times = |text: &str| {
        let mut said: Value = serde_json::from_str(text.trim_end()).unwrap();
        // The times in a recording are wall-clock times.
        assert!(number(&said["interval_ms"]) >= 900, "{said}");
        assert!(!sees_extensions() || number(&said["longest_chain"]) >= 1, "{said}");
        said["interval_ms"] = Value::Null;
        said
    };
    assert_eq!(but_times(&live), but_times(&again));
}

/// The rows of `nat stats --watch -o json` by rounds, as far as they have been written.
fn rounds_in(file: &Path) -> Vec<Vec<Value>> {
    let mut rounds = Vec::new();
    let text = std::fs::read_to_string(file).unwrap();
    for line in text.lines().map_while(|line| serde_json::from_str::<Value>(line).ok()) {
        match line.get("round") {
            Some(_) => rounds.push(Vec::new()),
            // The accounting is about other tests' namespaces that disappeared while they were read.
            None if line.get("accounting").is_some() => {}
            None => rounds.last_mut().unwrap().push(line),
        }
    }
    rounds
}

/// Rounds are compared: increases of counters, a new namespace, a removed namespace. A replay has the same rounds.
#[test]
fn root_rounds_tell_growth_and_namespaces_that_go() {
    testkit::require_root!();
    let (lab, goes) = (with_way_out("statswatch", TRACKED), Lab::new("statsgoes"));
    let ids = [&lab, &goes].map(|lab| lab.run_inside(|| sys::netns::current_inode().unwrap()));
    let (file, tape) = (lab.dir().join("rows"), lab.dir().join("tape"));
    let filter = format!("netns_id in ({}, {})", ids[0], ids[1]);
    let columns = "change,netns_id,entries,insert,drop,drop_delta,invalid_delta";
    let table = ["nat", "stats", "--all-netns", "-o", "json", "--columns", columns, &filter];
    let mut child = command(&[&table[..], &["--watch=0.1", "--record", tape.to_str().unwrap()]].concat());
    let mut child =
        child.stdout(std::fs::File::create(&file).unwrap()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let wait = |what: &str, holds: &dyn Fn(&[Value]) -> bool| {
        testkit::wait_until(what, || rounds_in(&file).last().is_some_and(|rows| holds(rows)));
    };
    wait("two rounds with both", &|rows| rows.len() == 2 && rows.iter().all(|row| row["change"] == "kept"));
    assert!(rounds_in(&file)[0].iter().all(|row| row["change"].is_null() && row["drop_delta"].is_null()));
    send(&lab, 30);
    wait("the entries", &|rows| rows.iter().any(|row| row["entries"] == 30 && row["drop_delta"] == 0));
    drop(goes);
    testkit::wait_until("the row of what is gone", || {
        let rounds = rounds_in(&file);
        let gone: Vec<&Value> = rounds.iter().flatten().filter(|row| row["change"] == "gone").collect();
        assert!(gone.iter().all(|row| row["netns_id"] == ids[1] && row["entries"].is_null()), "{gone:?}");
        gone.len() == 1
    });
    wait("only one is left", &|rows| rows.len() == 1);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
    let live = rounds_in(&file);
    let again = lab.dir().join("again");
    let mut replay = command(&[&table[..], &["--watch=0.1", "--replay", tape.to_str().unwrap()]].concat());
    replay.stdout(std::fs::File::create(&again).unwrap()).stderr(std::process::Stdio::null()).status().unwrap();
    let again = rounds_in(&again);
    assert_eq!(live, again[..live.len().min(again.len())]);
    assert!(again.len() >= live.len());
}
