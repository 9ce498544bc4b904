//! `netwren drops`: drops caused on purpose in the test's own namespaces, counted exactly.

use crate::going::Going;
use crate::run::{Ran, clean, command_for_anyone, netwren, netwren_in};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use sys::Errno;
use sys::caps::Cap;
use testkit::HostKnob;
use testkit::conntrack::Entry;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

/// The command `netwren drops ARGS` in a lab.
pub(crate) fn command(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).arg("drops").args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

/// False if the program was built without BPF; checks its message and prints it.
pub(crate) fn counts_drops() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let tried = netwren(&["drops", "--for", "0.1", "--via", "bpf"]);
        let is_without = tried.stderr.contains("netwren was built without BPF");
        if is_without {
            assert_eq!((tried.code, &*tried.stdout), (4, ""), "{}", tried.stderr);
            eprintln!("skipped: {}", tried.stderr);
        }
        !is_without
    })
}

/// Returns from the test if drops cannot be counted.
macro_rules! require_drops {
    () => {
        testkit::require_root!();
        if !counts_drops() {
            return;
        }
    };
}

pub(crate) fn parse(line: String) -> Value {
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Starts counting in a lab; returns after the first round.
pub(crate) fn counting(lab: &Lab, args: &[&str]) -> Going<Value> {
    let mut going = Going::spawn(command(lab, &[&["--watch=0.05", "-o", "json"], args].concat()), parse);
    going.read_until("the first round", |read| !read.is_empty());
    going
}

pub(crate) fn is_of(row: &Value, reason: &str) -> bool {
    row["reason"] == reason
}

pub(crate) fn sum<'v>(rows: impl IntoIterator<Item = &'v Value>, reason: &str) -> u64 {
    rows.into_iter().filter(|row| is_of(row, reason)).map(|row| row["count"].as_u64().unwrap()).sum()
}

/// True if no drop is missing. In a chroot the runtime of a container's cgroup is unknown; netwren then says so and
/// exits with 3.
fn is_whole(ran: &Ran) -> bool {
    let is_known = |line: &str| {
        let words = [
            "containers, pods and units are not shown",
            "a routine drop is not shown",
            "places are shown as addresses",
        ];
        line.is_empty() || words.iter().any(|words| line.contains(words))
    };
    ran.code == 0 || ran.code == 3 && ran.stderr.lines().all(is_known)
}

/// The rows of a reason after `count` packets; checks that the final count has not grown further.
#[track_caller]
fn rows_of(mut going: Going<Value>, reason: &str, count: u64) -> Vec<Value> {
    going.read_until(&format!("{count} {reason}"), |read| sum(read, reason) >= count);
    let (read, ran) = going.end();
    assert_eq!((is_whole(&ran), sum(&read, reason)), (true, count), "{}\n{read:?}", ran.stderr);
    read.into_iter().filter(|row| is_of(row, reason)).collect()
}

/// Sends datagrams from `from` to `to`, ignoring errors for datagrams rejected by a rule.
pub(crate) fn send(lab: &Lab, from: &str, to: (Ipv4Addr, u16), count: u32) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind(from).unwrap();
        for _ in 0..count {
            // Some calls return the ICMP error caused by the previous datagram.
            if socket.send_to(b"0123456789", to).is_err() {
                let _ = socket.send_to(b"0123456789", to);
            }
        }
    });
}

/// Like `send`, for targets that do not answer: each datagram is sent once.
pub(crate) fn send_once(lab: &Lab, from: &str, to: (Ipv4Addr, u16), count: u32) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind(from).unwrap();
        (0..count).for_each(|_| drop(socket.send_to(b"0123456789", to)));
    });
}

/// A counter of /proc/net/snmp or /proc/net/netstat in the lab.
pub(crate) fn counter(lab: &Lab, file: &str, table: &str, name: &str) -> u64 {
    let text = lab.run_inside(|| std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{table}: ")));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|found| found == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

pub(crate) const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[test]
fn root_datagrams_to_a_closed_port() {
    require_drops!();
    let lab = Lab::new("dropsport");
    let going =
        counting(&lab, &["--columns", "count,per_s,reason,place,proto,iface,src,dst,dport,meaning,benign,total"]);
    send(&lab, "127.0.0.1:0", (LOOPBACK, 9), 500);
    let rows = rows_of(going, "NO_SOCKET", 500);
    let row = &rows[0];
    assert_eq!(
        (&row["proto"], &row["iface"], &row["dst"], &row["dport"]),
        (&"udp".into(), &"lo".into(), &"127.0.0.1".into(), &9.into())
    );
    assert!(row["place"].as_str().unwrap().contains("udp") && row["per_s"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["meaning"].as_str().unwrap().starts_with("no socket listens") && row["benign"] == false, "{row}");
    assert_eq!(rows.last().unwrap()["total"], 500);
}

#[test]
fn root_rules_by_hook_as_nft_counts() {
    require_drops!();
    testkit::require_tool!("nft");
    let lab = Lab::new("dropsnft");
    lab.nft(
        "table inet t {\n chain i {\n type filter hook input priority 0;\n udp dport 7 counter drop\n }\n\
         chain o {\n type filter hook output priority 0;\n udp dport 8 counter drop\n }\n}\n",
    );
    let going = counting(&lab, &[]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 300);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 8), 100);
    let rows = rows_of(going, "NETFILTER_DROP", 400);
    let listed = lab.output("nft", &["list", "ruleset"]);
    assert!(listed.contains("packets 300") && listed.contains("packets 100"), "{listed}");
    for (hook, count) in [("input", 300), ("output", 100)] {
        let of_hook: Vec<&Value> = rows.iter().filter(|row| row["hook"] == hook).collect();
        assert_eq!(sum(of_hook.iter().copied(), "NETFILTER_DROP"), count, "{rows:?}");
        assert!(of_hook.iter().all(|row| row["meaning"].as_str().unwrap().contains("nftables")), "{rows:?}");
    }
    if sys::Kernel::read_running().version() >= (6, 12) {
        assert!(rows.iter().all(|row| row["place"] == "nft_do_chain"), "{rows:?}");
        for (hook, chain, text) in
            [("input", "i", "udp dport 7 counter drop"), ("output", "o", "udp dport 8 counter drop")]
        {
            let row = rows.iter().find(|row| row["hook"] == hook).unwrap();
            let rule = row["rule"].as_str().unwrap();
            let is_it = rule.starts_with(&format!("inet t {chain} handle ")) && rule.ends_with(&format!(": {text}"));
            assert!(is_it && row["rule_basis"] == "certain", "{row}");
        }
    }
}

/// If the source ports of an SNAT rule are exhausted, connection tracking drops the packets, not a rule.
#[test]
fn root_connection_tracking_is_distinguished_from_rules() {
    require_drops!();
    testkit::require_tool!("nft");
    let lab = Lab::new("dropsct");
    lab.nft(
        "table ip t {\n chain p {\n type nat hook postrouting priority 100;\n\
         udp dport 7 snat to 127.0.0.9:5000-5009\n }\n}\n",
    );
    // The socket never answers, so the connections differ only in their source ports.
    let _there = lab.run_inside(|| UdpSocket::bind("127.0.0.1:7").unwrap());
    let going = counting(&lab, &[]);
    lab.run_inside(|| {
        // All sockets are open at the same time, because a reused port would match an existing entry.
        let sockets: Vec<UdpSocket> = (0..50).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        sockets.iter().for_each(|socket| drop(socket.send_to(b"x", (LOOPBACK, 7))));
    });
    let rows = rows_of(going, "NETFILTER_DROP", 40);
    let stats = netwren_in(&lab, &["nat", "stats", "-o", "json", "--columns", "drop"]).ok();
    assert_eq!(parse(stats)["drop"], 40);
    let row = &rows[0];
    assert_eq!((&row["place"], &row["hook"]), (&"nf_hook_slow".into(), &"postrouting".into()));
    assert!(row["meaning"].as_str().unwrap().starts_with("dropped by connection tracking"), "{row}");
}

/// The table is full of entries that may not be evicted, so every new connection is dropped, as ctnetlink also counts.
#[test]
fn root_a_full_table_of_connection_tracking() {
    require_drops!();
    testkit::require_tool!("nft");
    // The limit applies to the whole machine; the lock keeps other tests from using the table.
    let _size = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_max", "1000");
    let lab = Lab::new("dropsfull");
    lab.use_conntrack();
    let (client, server) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    const ESTABLISHED: u8 = 3;
    lab.track((0..1000).map(|n| Entry::tcp((client, 1000 + n), (server, 80), ESTABLISHED)));
    let going = counting(&lab, &[]);
    for _ in 0..50 {
        send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 1);
    }
    let rows = rows_of(going, "NETFILTER_DROP", 50);
    let stats = netwren_in(&lab, &["nat", "stats", "-o", "json", "--columns", "drop"]).ok();
    assert_eq!(parse(stats)["drop"], 50);
    let row = &rows[0];
    assert_eq!((&row["place"], &row["hook"]), (&"nf_hook_slow".into(), &"output".into()));
    assert!(row["meaning"].as_str().unwrap().starts_with("dropped by connection tracking"), "{row}");
}

#[test]
fn root_reverse_path_and_hop_limit() {
    require_drops!();
    let lan = Routed::new("dropsway");
    let set =
        |file: &str| lan.router.run_inside(|| std::fs::write(format!("/proc/sys/net/ipv4/conf/{file}/rp_filter"), "1"));
    set("all").unwrap();
    set("c1").unwrap();
    // The same filter would drop ARP requests from the wrong address. Resolve the router's address first; its answer
    // is an ICMP error.
    lan.client.run_inside(|| {
        let socket = UdpSocket::bind("192.0.2.10:0").unwrap();
        socket.connect("192.0.2.1:7").unwrap();
        socket.send(b"x").unwrap();
        assert!(socket.recv(&mut [0]).is_err());
    });
    // An address that the router would reach through its other interface.
    lan.client.ip(&["addr", "add", "172.17.0.99/32", "dev", "c0"]);
    let going = counting(&lan.router, &[]);
    send_once(&lan.client, "172.17.0.99:0", (Ipv4Addr::new(192, 0, 2, 1), 7), 50);
    let rows = rows_of(going, "IP_RPFILTER", 50);
    assert_eq!(counter(&lan.router, "netstat", "TcpExt", "IPReversePathFilter"), 50);
    assert_eq!((&rows[0]["iface"], &rows[0]["src"]), (&"c1".into(), &"172.17.0.99".into()));

    let going = counting(&lan.router, &[]);
    let errors = counter(&lan.router, "snmp", "Ip", "InHdrErrors");
    lan.client.run_inside(|| {
        let socket = UdpSocket::bind("192.0.2.10:0").unwrap();
        socket.set_ttl(1).unwrap();
        // Some calls return the ICMP error caused by the previous datagram.
        let mut sent = 0;
        while sent < 60 {
            sent += u32::from(socket.send_to(b"x", "172.17.0.2:7").is_ok());
        }
    });
    let name = if going.read.is_empty() { "" } else { "IP_INHDR" };
    let reason = if sys::Kernel::read_running().version() > (6, 18) { "IP_TTL_EXCEEDED" } else { name };
    let rows = rows_of(going, reason, 60);
    assert_eq!(counter(&lan.router, "snmp", "Ip", "InHdrErrors") - errors, 60);
    assert!(rows[0]["meaning"].as_str().unwrap().contains("hop limit"), "{rows:?}");
}

#[test]
fn root_a_socket_without_a_reader() {
    require_drops!();
    let lab = Lab::new("dropsrcv");
    let there = lab.run_inside(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = (LOOPBACK, there.local_addr().unwrap().port());
    let mut going = counting(&lab, &[]);
    send_once(&lab, "127.0.0.1:0", to, 2000);
    let lost = counter(&lab, "snmp", "Udp", "RcvbufErrors");
    assert!(lost > 100, "{lost}");
    going.read_until("as many as the kernel counts", |read| sum(read, "SOCKET_RCVBUFF") >= lost);
    // Closing the socket frees its unread packets, which is routine and belongs to no interface.
    drop(there);
    let (read, ran) = going.end();
    assert_eq!((is_whole(&ran), sum(&read, "SOCKET_RCVBUFF")), (true, lost), "{}", ran.stderr);
    let row = read.iter().find(|row| is_of(row, "SOCKET_RCVBUFF")).unwrap();
    assert_eq!((&row["iface"], &row["dport"]), (&"lo".into(), &to.1.into()), "{row}");
    // The receiving socket is reported since Linux 6.11, together with its namespace, which is how the row got here.
    assert_eq!(row["pid"], std::process::id(), "{row}");
    assert_eq!(sum(&read, "NOT_SPECIFIED"), 0, "{read:?}");
}

/// Ports are not part of any key, so a port scan results in one row.
#[test]
fn root_a_storm_of_random_ports_is_one_row() {
    require_drops!();
    let lab = Lab::new("dropsstorm");
    let going = counting(&lab, &["--columns", "count,reason,place,proto,total"]);
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = socket.local_addr().unwrap().port();
        let mut port = 1_u16;
        let mut sent = 0;
        while sent < 20_000 {
            port = port.wrapping_mul(31).wrapping_add(7);
            if port != 0 && port != own && socket.send_to(b"x", (Ipv4Addr::LOCALHOST, port)).is_ok() {
                sent += 1;
            }
        }
    });
    let rows = rows_of(going, "NO_SOCKET", 20_000);
    let rounds_with = rows.len();
    assert!(rows.iter().all(|row| row["proto"] == "udp") && rounds_with < 2_000, "{rounds_with}");
    assert_eq!(rows.last().unwrap()["total"], 20_000);
}

/// One table at the end, limited to one namespace, with groups; and the content of a recording.
#[test]
fn root_one_table_of_one_namespace_and_its_recording() {
    require_drops!();
    let (lab, other) = (Lab::new("dropsone"), Lab::new("dropstwo"));
    let tape = lab.dir().join("drops.tape");
    let tape = tape.to_str().unwrap();
    let args = ["--by", "reason,proto", "-o", "json", "--record", tape, "reason = NO_SOCKET"];
    let going: Going<Value> = Going::spawn(command(&lab, &args), parse);
    // Wait until the process has a program attached.
    let pid = going.child.id();
    testkit::wait_until("the program is attached", || program_of(pid).is_some());
    send(&other, "127.0.0.1:0", (LOOPBACK, 9), 70);
    send(&lab, "127.0.0.1:0", (LOOPBACK, 9), 30);
    let (read, ran) = going.end();
    assert_eq!((ran.code, read.len()), (0, 1), "{}", ran.stderr);
    assert_eq!((&read[0]["sum_count"], &read[0]["proto"]), (&30.into(), &"udp".into()), "{read:?}");
    let replayed = netwren_in(&lab, &["drops", "--replay", tape, "--columns", "count,reason,place", "-H"]).ok();
    assert!(replayed.starts_with("30\tNO_SOCKET\t__udp") && replayed.lines().count() == 1, "{replayed}");
}

/// The ID of the BPF program that a process has attached.
pub(crate) fn program_of(pid: u32) -> Option<u32> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?;
    let texts = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    // Only a link shows that a program is attached.
    let links = texts.filter(|text| text.contains("link_type"));
    let number = |text: String| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    links.filter_map(number).next()
}

#[test]
fn root_kill_leaves_nothing_on_the_host() {
    require_drops!();
    let lab = Lab::new("dropskill");
    let going = counting(&lab, &[]);
    let program = program_of(going.child.id()).expect("it is attached");
    let is_there = || sys::bpf::loaded_programs().unwrap().iter().any(|loaded| loaded.id == program);
    assert!(is_there());
    going.signal("-KILL");
    testkit::wait_until("the program is gone", || !is_there());
}

/// Covers the kernel's trace, which most hosts have mounted, with this empty directory.
fn without_trace(empty: &Path) -> Vec<Limit> {
    let places =
        ["/sys/kernel/tracing", "/sys/kernel/debug"].map(PathBuf::from).into_iter().filter(|place| place.is_dir());
    places.map(|place| Limit::Cover { with: empty.into(), place }).collect()
}

/// Runs `netwren drops` with these limits, and without the kernel's trace.
pub(crate) fn limited(lab: &Lab, args: &[&str], limits: &[Limit]) -> Ran {
    let mut child = command_for_anyone(&[&["drops"], args].concat());
    let empty = tempfile::tempdir().unwrap();
    confine(&mut child, &[&without_trace(empty.path())[..], &[Limit::Network(lab.path())], limits].concat()).unwrap();
    Ran::of(child.output().unwrap())
}

#[test]
fn root_missing_data_is_reported() {
    require_drops!();
    let lab = Lab::new("dropsbad");
    let without = |caps: &[Cap]| Limit::WithoutCaps(caps.to_vec());
    let run = |limit: Limit| limited(&lab, &["--for", "0.1"], &[limit]);
    const ALONE: &str = "dropped packets are not counted individually: only the kernel's drop counters are shown";
    run(without(&[Cap::Bpf, Cap::SysAdmin])).says(3, &[ALONE, "CAP_BPF and CAP_PERFMON"]);
    run(without(&[Cap::Perfmon, Cap::SysAdmin])).says(3, &[ALONE, "CAP_BPF and CAP_PERFMON"]);
    run(Limit::User { uid: 65_534, gid: 65_534 }).says(3, &[ALONE, "CAP_BPF and CAP_PERFMON"]);
    run(Limit::NoBpf(Errno::PERM)).says(3, &[ALONE, "operation not permitted"]);
    run(Limit::NoBpf(Errno::NOSYS)).says(3, &[ALONE, "not implemented"]);
    let empty = tempfile::tempdir().unwrap();
    let cover = Limit::Cover { with: empty.path().into(), place: "/sys/kernel/btf".into() };
    run(cover).says(3, &[ALONE, "CONFIG_DEBUG_INFO_BTF"]);
    limited(&lab, &["--for", "0.1", "--via", "bpf"], &[without(&[Cap::Bpf, Cap::SysAdmin])])
        .says(4, &["dropped packets", "CAP_BPF and CAP_PERFMON", "netwren support"]);
    let support = |limit: Limit| {
        let mut child = command_for_anyone(&["support"]);
        confine(&mut child, &[without_trace(empty.path()), vec![limit]].concat()).unwrap();
        let text = Ran::of(child.output().unwrap()).stdout;
        text.lines().find(|line| line.starts_with("counting drops")).unwrap_or_default().to_owned()
    };
    let line = support(without(&[Cap::Bpf, Cap::SysAdmin]));
    assert!(line.contains("no\t") && line.contains("CAP_BPF and CAP_PERFMON"), "{line}");
    let line = support(without(&[Cap::Syslog, Cap::SysAdmin]));
    assert!(line.contains("yes\t") && line.contains("reasons and by address (names need CAP_SYSLOG)"), "{line}");
    // These two capabilities are sufficient.
    assert_eq!(run(without(&[Cap::SysAdmin, Cap::NetAdmin])).code, 0);
    limited(&lab, &["--for", "0.1", "--via", "bpf"], &[Limit::NoBpf(Errno::PERM)])
        .says(4, &["operation not permitted"]);
}

/// Without function names the address and the reason are shown, and the hook is derived from the packet's route.
#[test]
fn root_hidden_names_of_functions() {
    require_drops!();
    testkit::require_tool!("nft");
    let lab = Lab::new("dropshide");
    lab.nft("table inet t {\n chain i {\n type filter hook input priority 0;\n udp dport 7 drop\n }\n}\n");
    let mut child = command_for_anyone(&["drops", "--watch=0.05", "-o", "json"]);
    // The kernel shows every address as 0 to processes without these capabilities.
    let limits = [Limit::Network(lab.path()), Limit::WithoutCaps(vec![Cap::Syslog, Cap::SysAdmin])];
    confine(&mut child, &limits).unwrap();
    let mut going: Going<Value> = Going::spawn(child, parse);
    going.read_until("the first round", |read| !read.is_empty());
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 20);
    going.read_until("20 drops", |read| sum(read, "NETFILTER_DROP") >= 20);
    let (read, ran) = going.end();
    assert_eq!((is_whole(&ran), sum(&read, "NETFILTER_DROP")), (true, 20), "{}", ran.stderr);
    let row = read.iter().find(|row| is_of(row, "NETFILTER_DROP")).unwrap();
    assert!(row["place"].as_str().unwrap().starts_with("0xffff") && row["hook"] == "input", "{row}");
    assert!(ran.stderr.contains("CAP_SYSLOG"), "{}", ran.stderr);
}

/// Follows drops in a lab; returns once the program is attached.
pub(crate) fn following(lab: &Lab, args: &[&str]) -> Going<Value> {
    let going = Going::spawn(command(lab, &[&["--events", "-o", "json"], args].concat()), parse);
    testkit::wait_until("the program is attached", || program_of(going.child.id()).is_some());
    going
}

#[test]
fn root_events_are_single_packets() {
    require_drops!();
    let lab = Lab::new("dropsev");
    let tape = lab.dir().join("events.tape");
    let tape = tape.to_str().unwrap();
    let mut going = following(&lab, &["--stack", "--record", tape, "dport in (9, 10)"]);
    for port in [9, 10, 11] {
        send(&lab, "127.0.0.1:0", (LOOPBACK, port), 10);
    }
    going.read_until("20 packets", |read| read.len() >= 20);
    let (read, ran) = going.end();
    assert_eq!((ran.code, read.len()), (0, 20), "{}", ran.stderr);
    for (row, port) in read.iter().zip([9; 10].iter().chain(&[10; 10])) {
        assert_eq!((&row["reason"], &row["dport"]), (&"NO_SOCKET".into(), &(*port).into()), "{row}");
        assert_eq!((&row["iface"], &row["proto"], &row["len"]), (&"lo".into(), &"udp".into(), &18.into()), "{row}");
        let stack = row["stack"].as_array().unwrap();
        assert!(stack[0] == row["place"] && stack.iter().any(|name| name == "udp_sendmsg"), "{row}");
    }
    let times: Vec<&str> = read.iter().map(|row| row["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let args = ["drops", "--events", "--replay", tape, "--columns", "reason,dport", "-H", "dport = 10"];
    assert_eq!(netwren_in(&lab, &args).ok(), "NO_SOCKET\t10\n".repeat(10));
    let groups = netwren_in(&lab, &["drops", "--events", "--replay", tape, "--by", "dport", "-H"]).ok();
    assert_eq!(groups, "9\t10\n10\t10\n11\t10\n", "a recording holds what the filter left out");
}

/// An event has the process of the socket that the kernel reports, or of the socket that a rule kept the packet from.
#[test]
fn root_events_have_their_process() {
    require_drops!();
    testkit::require_tool!("nft");
    let lab = Lab::new("dropsown");
    lab.nft("table inet t {\n chain i {\n type filter hook input priority 0;\n udp dport 7 drop\n }\n}\n");
    let (slow, kept) = lab.run_inside(|| {
        let slow = sys::socket::open(2, 2, 0).unwrap();
        sys::socket::set_number(&slow, 1, 8, 2304).unwrap();
        sys::socket::bind(&slow, &SocketAddr::from((LOOPBACK, 9))).unwrap();
        (slow, UdpSocket::bind((LOOPBACK, 7)).unwrap())
    });
    let mut going = following(&lab, &["-c", "reason,dport,process,pid", "dport in (7, 9)"]);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 20);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 5);
    let count = |read: &[Value], port: u64| read.iter().filter(|row| row["dport"] == port).count();
    going.read_until("both", |read| count(read, 9) >= 5 && count(read, 7) >= 5);
    let (read, ran) = going.end();
    drop((slow, kept));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for row in &read {
        let reason = if row["dport"] == 7 { "NETFILTER_DROP" } else { "SOCKET_RCVBUFF" };
        assert_eq!((&row["reason"], &row["pid"]), (&reason.into(), &std::process::id().into()), "{row}");
        assert!(row["process"].is_string(), "{row}");
    }
}

#[test]
fn root_events_end_after_so_many() {
    require_drops!();
    let lab = Lab::new("dropsend");
    let mut going = following(&lab, &["--exit-after", "3"]);
    send(&lab, "127.0.0.1:0", (LOOPBACK, 9), 10);
    let mut stderr = String::new();
    going.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    going.read.extend(going.lines.iter().map(parse));
    let code = going.child.wait().unwrap().code();
    assert_eq!((going.read.len(), code), (3, Some(0)), "{stderr}");
    netwren_in(&lab, &["drops", "--exit-after", "3"]).says(2, &["--exit-after needs --events"]);
    netwren_in(&lab, &["drops", "--events", "--watch"]).says(2, &["it needs --by"]);
}

/// A reader that is stopped loses packets, and netwren reports the exact number.
#[test]
fn root_events_that_find_the_ring_full_are_counted() {
    require_drops!();
    let lab = Lab::new("dropslost");
    let going = following(&lab, &["--by", "reason", "--stats", "reason = NO_SOCKET"]);
    send(&lab, "127.0.0.1:0", (LOOPBACK, 9), 10);
    going.signal("-STOP");
    send(&lab, "127.0.0.1:0", (LOOPBACK, 9), 60_000);
    going.signal("-CONT");
    let (read, ran) = going.end();
    let shown = read.iter().filter_map(|row| row["count"].as_u64()).sum::<u64>();
    let lost = read.iter().filter_map(|row| row["accounting"]["lost"].as_u64()).sum::<u64>();
    assert!(lost > 1000, "{read:?}");
    // Drops without a namespace, for example of the host's netlink sockets, are also lost.
    assert!((60_010..60_100).contains(&(shown + lost)), "{read:?} {}", ran.stderr);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("a drop is not shown: they occurred faster"), "{}", ran.stderr);
}

/// Connections and datagrams that are delivered over IPv4 and IPv6 show nothing: the kernel frees their packets in a
/// routine way.
#[test]
fn root_normal_work_shows_nothing() {
    require_drops!();
    let lab = Lab::new("dropsidle");
    let going = counting(&lab, &[]);
    lab.run_inside(|| {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            for _ in 0..20 {
                let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (mut server, _) = listener.accept().unwrap();
                client.write_all(b"question").unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let mut text = Vec::new();
                server.read_to_end(&mut text).unwrap();
                server.write_all(&text).unwrap();
                drop(server);
                client.read_to_end(&mut text).unwrap();
                assert_eq!(text, b"questionquestion");
            }
            let (one, other) = (UdpSocket::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
            one.send_to(b"x", other.local_addr().unwrap()).unwrap();
            other.recv(&mut [0]).unwrap();
            // The socket is closed with unread data.
            one.send_to(b"x", other.local_addr().unwrap()).unwrap();
        }
    });
    let (read, ran) = going.end();
    let rows: Vec<&Value> = read.iter().filter(|row| row["count"].is_u64()).collect();
    assert!(rows.is_empty() && is_whole(&ran), "{rows:?} {}", ran.stderr);
}

/// Looking up the owners of sockets reads every process of the host; netwren does not do that if nothing was dropped.
#[test]
fn root_rounds_without_drops_look_for_no_process() {
    require_drops!();
    let lab = Lab::new("dropsquiet");
    let calls = |args: &[&str]| {
        let ran = netwren_in(&lab, &[&["drops", "--for", "0.05", "--cost"], args].concat());
        let before = ran.stderr.split(" system calls").next().unwrap_or_default().to_owned();
        before
            .rsplit(' ')
            .next()
            .and_then(|count| count.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{}", ran.stderr))
    };
    // Drops without a namespace may happen at any time and appear in the first comparison, so try again.
    testkit::wait_until("a round without drops", || calls(&[]) <= calls(&["--no-owner"]));
}

/// In a pipe the complete table is printed at the end, also when the run is interrupted.
#[test]
fn root_an_interruption_shows_all_that_was_counted() {
    require_drops!();
    let lab = Lab::new("dropsint");
    let going: Going<String> =
        Going::spawn(command(&lab, &["-H", "--columns", "reason,proto,count,ethertype"]), |line| line);
    let attached = format!("/proc/{}/fdinfo", going.child.id());
    testkit::wait_until("the program counts", || {
        let files = std::fs::read_dir(&attached).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).any(|text| text.contains("link_type:"))
    });
    lab.run_inside(|| {
        let to: [SocketAddr; 2] = [(LOOPBACK, 7).into(), (Ipv6Addr::LOCALHOST, 7).into()];
        for to in to {
            let any = if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            UdpSocket::bind(any).unwrap().send_to(b"x", to).unwrap();
        }
    });
    let (rows, ran) = going.end();
    assert!(is_whole(&ran), "{}", ran.stderr);
    assert_eq!(rows.iter().filter(|row| row.starts_with("NO_SOCKET\tudp\t1\t")).count(), 2, "{rows:?}");
}
