//! `capture` shows the connection tracking entry of each packet, compared with conntrack(8).

use crate::capture::{command, rings};
use crate::going::Going;
use crate::log_entries::{CLIENT, ROUTER, SERVER, connections, is_listed, listed};
use crate::packet_tools::{is_read_by, said_by};
use crate::run::{clean, netwren};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

/// Every column of the entry, and the columns that identify a packet.
const COLUMNS: &str = "iface,proto,src,sport,dst,dport,ct_state,ct_direction,ct_status,ct_mark,ct_id,nat,client,\
                       published,backend,orig_src,orig_sport,orig_dst,orig_dport,reply_src,reply_sport,reply_dst,\
                       reply_dport";

/// The rules of a router that rewrites the packets it forwards.
const REWRITES: &str = "table ip n {
   chain pre { type nat hook prerouting priority -100; tcp dport 8080 ct mark set 42 dnat to 172.17.0.2:80; }
   chain post { type nat hook postrouting priority 100; ip protocol { udp, icmp } oifname s1 masquerade; }
 }
 table inet t { chain f { type filter hook forward priority 0; ct state new counter; }
 }";

fn capture(lab: &Lab, columns: &str, args: &[&str]) -> Going<Value> {
    let words = [&["--columns", columns, "-o", "json"], args].concat();
    let going = Going::spawn(command(lab, &words), |line| serde_json::from_str(&line).unwrap());
    testkit::wait_until("the ring is there", || rings(lab) == 1);
    going
}

/// The child processes of a capture.
fn helpers(pid: u32) -> Vec<u32> {
    let of = |entry: std::fs::DirEntry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let word = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        (word("PPid:")? == pid.to_string() && word("Name:")? == "netwren-entries")
            .then(|| word("Pid:")?.parse().ok())?
    };
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.unwrap())).collect()
}

/// On both sides of a router and in both directions, a packet shows the entry that conntrack lists.
#[test]
fn root_capture_has_the_entry_that_conntrack_lists() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("conntrack");
    let routed = Routed::new("capct");
    routed.router.nft(REWRITES);
    routed.router.set_conntrack("nf_conntrack_checksum", "0");
    let mut going =
        capture(&routed.router, COLUMNS, &["proto in (tcp, udp, icmp, sctp) or icmp_type in (1, 128, 129)"]);
    let open = connections(&routed);
    let wanted = |rows: &[Value]| {
        let has = |words: &[(&str, &str)]| rows.iter().any(|row| words.iter().all(|(name, word)| row[*name] == *word));
        let [both_ways, both_sides] = [["original", "reply"], ["c1", "s1"]];
        ["tcp", "udp", "icmp", "icmpv6"].iter().all(|proto| {
            both_ways.iter().all(|way| {
                both_sides.iter().all(|iface| has(&[("proto", proto), ("ct_direction", way), ("iface", iface)]))
            })
        }) && ["icmp", "icmpv6"].iter().all(|proto| has(&[("proto", proto), ("ct_state", "related"), ("iface", "c1")]))
            && has(&[("proto", "sctp"), ("iface", "s1")])
    };
    going.read_until("packets of each kind", wanted);
    // The helper process has only the capability that queries need, and the process that parses packets has none.
    let pid = going.child.id();
    let [helper] = helpers(pid)[..] else { panic!("no process asks") };
    let rights = |pid: u32| crate::capture_rights::of_threads(pid, &["CapEff", "CapPrm", "Seccomp"]).remove(0);
    let admin = format!("{:016x}", 1u64 << Cap::NetAdmin as u8);
    assert_eq!(rights(helper), [admin.as_str(), &admin, "2"]);
    assert_eq!(rights(pid), ["0".repeat(16), "0".repeat(16), "2".to_owned()]);
    let (rows, ran) = going.end();
    let entries = listed(&routed.router);
    drop(open);
    for row in &rows {
        is_listed(row, &entries);
        let (proto, src) = (row["proto"].as_str().unwrap(), row["src"].as_str().unwrap());
        let rewritten = match proto {
            "tcp" => "dnat",
            "udp" | "icmp" if !src.contains(':') => "snat",
            _ => "none",
        };
        // ICMP errors refer to packets of other protocols.
        assert!(row["nat"] == rewritten || row["ct_state"] == "related", "{row}");
    }
    let tcp = |iface| rows.iter().find(|row| row["proto"] == "tcp" && row["iface"] == iface).unwrap();
    let port = tcp("c1")["orig_sport"].as_u64().unwrap();
    let expected = [format!("{CLIENT}:{port}"), format!("{ROUTER}:8080"), format!("{SERVER}:80")];
    for iface in ["c1", "s1"] {
        let told = ["client", "published", "backend"].map(|name| tcp(iface)[name].as_str().unwrap().to_owned());
        assert_eq!((told, &tcp(iface)["ct_mark"]), (expected.clone(), &42.into()));
    }
    assert_eq!(["c1", "s1"].map(|iface| tcp(iface)["dst"].as_str()), [Some("192.0.2.1"), Some("172.17.0.2")]);
    assert!(std::fs::metadata(format!("/proc/{helper}")).is_err() || helpers(pid).is_empty());
    ran.ok();
}

/// Filters and groups can use the addresses after NAT; packets without a connection are counted.
#[test]
fn root_capture_filters_by_what_nat_makes_of_packets() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("capnat");
    routed.router.nft(&format!(
        "{REWRITES}\n table ip raw {{ chain r {{ type filter hook prerouting priority -300; \
         udp dport 7010 notrack; }}\n}}"
    ));
    let words = ["ip", "and", "nat = dnat"];
    let mut going = capture(&routed.router, "iface,dst,dport,backend", &words);
    let listener = routed.server.run_inside(|| TcpListener::bind((SERVER, 80)).unwrap());
    let mut stream = routed.client.run_inside(|| {
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..3 {
            udp.send_to(b"x", (SERVER, 7010)).unwrap();
        }
        TcpStream::connect((ROUTER, 8080)).unwrap()
    });
    stream.write_all(b"request").unwrap();
    listener.accept().unwrap().0.read_exact(&mut [0; 7]).unwrap();
    // SYN, SYN-ACK, ACK, data, ACK, on both sides.
    going.read_until("the connection", |rows| rows.len() >= 10);
    let (rows, ran) = going.end();
    assert!(rows.iter().all(|row| row["backend"] == "172.17.0.2:80"), "{rows:?}");
    let missing = ran.stderr.lines().find(|line| line.contains("packets without a conntrack entry"));
    assert!(missing.is_some(), "{}", ran.stderr);
    ran.ok();
}

/// During a flood of connections each packet is shown and counted.
#[test]
fn root_capture_bounds_what_a_flood_makes_it_ask() {
    const FLOOD: u32 = 12_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("capctflood");
    lab.use_conntrack();
    lab.nft("table inet t { chain o { type filter hook input priority -1; udp dport 9 drop; }\n}");
    let mut going = capture(&lab, "dst,ct_id", &["-i", "lo", "udp dst port 9", "--buffer", "64MiB"]);
    lab.run_inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        (0..FLOOD).for_each(|n| _ = socket.send_to(b"x", (Ipv4Addr::from(0x7f01_0000 + n), 9)));
    });
    going.read_until("every packet", |rows| rows.len() >= FLOOD as usize);
    let (rows, ran) = going.end();
    let found = rows.iter().filter(|row| !row["ct_id"].is_null()).count();
    let counted = |words: &str| {
        let line = ran.stderr.lines().find(|line| line.contains(words))?;
        line.rsplit_once('(')?.1.split(' ').next()?.parse::<usize>().ok()
    };
    let unknown = ["without a conntrack entry", "connections are looked up per second"].map(counted);
    assert_eq!(found + unknown.into_iter().flatten().sum::<usize>(), FLOOD as usize, "{}", ran.stderr);
    assert_eq!((rows.len(), ran.code), (FLOOD as usize, 0), "{}", ran.stderr);
}

/// If entries cannot be queried, netwren says so and does not leave the cells empty.
#[test]
fn root_capture_says_why_it_knows_no_connections() {
    testkit::require_root!();
    let lab = Lab::new("capctno");
    let mut unable = Command::new(testkit::program::netwren());
    clean(&mut unable).args(["capture", "-i", "lo", "-H", "-c", "dport,nat", "--limit", "1", "udp dst port 7123"]);
    confine(&mut unable, &[Limit::Network(lab.path()), Limit::WithoutCaps(vec![Cap::NetAdmin])]).unwrap();
    let mut going: Going<String> = Going::spawn(unable, |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    lab.run_inside(|| {
        let _ = UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", (Ipv4Addr::LOCALHOST, 7123));
    });
    let code = going.child.wait().unwrap().code();
    let mut said = String::new();
    going.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    going.read_until("the packet", |lines| lines == ["7123\t-"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("connections of packets cannot be looked up: "), "{said}");
    netwren(&["capture", "-r", "/dev/null", "-c", "nat"]).says(2, &["connections are looked up on this host now"]);
    netwren(&["capture", "udp or nat = dnat"])
        .says(2, &["`nat` can be combined with pcap-filter expressions only by `and`"]);
}

/// The non-empty packet comments that tshark finds in a file; `None` without tshark. Also checks that capinfos accepts
/// the file.
fn comments(path: &Path) -> Option<Vec<String>> {
    is_read_by("capinfos", &[], path);
    let said = said_by("tshark", &["-T", "fields", "-e", "frame.comment", "-r"], path)?;
    Some(said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Number of custom options in a file that contain this text.
pub(crate) fn custom_options(path: &Path, text: &str) -> usize {
    // opt_custom_utf8 with its length, the private enterprise number for examples, and the text.
    let length = 4 + text.len() as u8;
    let option = [&[0xac, 0x0b, length, 0, 0xd9, 0x7e, 0, 0], text.as_bytes()].concat();
    std::fs::read(path).unwrap().windows(option.len()).filter(|part| *part == option).count()
}

/// Files of captured packets and of logged packets contain the NAT of each connection once, readable for people and
/// for programs.
#[test]
fn root_files_say_what_nat_makes_of_packets() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let routed = Routed::new("capnotes");
    let router = &routed.router;
    router.nft(&format!(
        "{REWRITES}\n table inet l {{ chain f {{ type filter hook forward priority 0
           tcp dport 80 ct state new log prefix \"first: \" group 5
         }}\n}}"
    ));
    let file = |name: &str| router.dir().join(name);
    let (written, shipped, logged) = (file("written.pcapng"), file("shipped.pcapng"), file("logged.pcapng"));
    let [to_shipped, to_logged] = [&shipped, &logged].map(|path| format!("pcapng:{}", path.display()));
    let fields = "nat,client,published,backend,netns";
    let filter = "tcp port 80 or tcp port 8080";
    let begin = |words: &[&str]| -> Going<String> { Going::spawn(command(router, words), |line| line) };
    let writing = begin(&["-w", written.to_str().unwrap(), "--comment", fields, filter]);
    let shipping = begin(&["--to", &to_shipped, "--comment", fields, filter]);
    let words = ["--group", "5", "--latency", "10ms", "--to", &to_logged, "--comment", "ct_state,nat,client"];
    let logging: Going<String> = Going::spawn(crate::log::command(router, &words), |line| line);
    testkit::wait_until("all are there", || rings(router) == 2 && router.log_groups().len() == 1);
    let listener = routed.server.run_inside(|| TcpListener::bind((SERVER, 80)).unwrap());
    let mut stream = routed.client.run_inside(|| TcpStream::connect((ROUTER, 8080)).unwrap());
    stream.write_all(b"request").unwrap();
    listener.accept().unwrap().0.read_exact(&mut [0; 7]).unwrap();
    let port = stream.local_addr().unwrap().port();
    let is_logged = || custom_options(&logged, &format!("client={CLIENT}:{port}")) == 1;
    testkit::wait_until("the record is there", || logged.exists() && is_logged());
    for going in [writing, shipping, logging] {
        let (_, ran) = going.end();
        ran.ok();
    }
    let client = format!("client={CLIENT}:{port}");
    let netns = format!("netns={}", router.name());
    let comment = format!("nat=dnat {client} published={ROUTER}:8080 backend={SERVER}:80 {netns}");
    for path in [&written, &shipped] {
        let noted = custom_options(path, &client);
        // There is one on each side of the router; shipped files repeat it in each batch.
        assert!(if path == &written { noted == 2 } else { noted >= 2 }, "{noted}");
        for text in ["nat=dnat", &format!("backend={SERVER}:80"), &netns] {
            assert_eq!(custom_options(path, text), noted, "{text}");
        }
        if let Some(comments) = comments(path) {
            assert_eq!(comments, vec![comment.clone(); noted]);
        }
    }
    if let Some(comments) = comments(&logged) {
        // The state at the time of the lookup is either of them.
        let is_expected = ["new", "established"]
            .map(|state| format!("first: ,ct_state={state} nat=dnat {client}"))
            .contains(&comments[0]);
        assert!(is_expected && comments.len() == 1, "{comments:?}");
    }
}
