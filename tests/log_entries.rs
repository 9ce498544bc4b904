//! `log` shows the connection tracking entry of each packet, compared with conntrack(8).

use crate::going::Going;
use crate::log::{command, send, to_five};
use crate::run::netwren;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use sys::socket::{AF_INET, AF_INET6, SOCK_RAW, open};
use testkit::conntrack::Entry;
use testkit::netns::Lab;
use testkit::routed::Routed;

/// Every column of the entry, and the columns that identify a packet.
const COLUMNS: &str = "prefix,proto,src,sport,dst,dport,ct_state,ct_direction,ct_status,ct_mark,ct_zone,ct_id,\
                       ct_source,nat,client,published,backend,orig_src,orig_sport,orig_dst,orig_dport,reply_src,\
                       reply_sport,reply_dst,reply_dport";

/// Starts `log` for group 5 in `lab`, with JSON output unless it is shipped.
fn log(lab: &Lab, args: &[&str]) -> Going<Value> {
    log_of(lab, COLUMNS, args)
}

fn log_of(lab: &Lab, columns: &str, args: &[&str]) -> Going<Value> {
    let format: &[&str] = if args.contains(&"--to") { &[] } else { &["-o", "json"] };
    let latency: &[&str] = if args.contains(&"--latency") { &[] } else { &["--latency", "10ms"] };
    let words = [&["--columns", columns, "--group", "5"], format, latency, args].concat();
    let going = Going::spawn(command(lab, &words), |line| serde_json::from_str(&line).unwrap());
    testkit::wait_until("the group is bound", || lab.log_groups().len() == 1);
    going
}

/// The entries that conntrack lists in `lab`, by ID: the text of each line.
pub(crate) fn listed(lab: &Lab) -> HashMap<u64, String> {
    let list =
        lab.output("conntrack", &["-L", "-o", "id"]) + &lab.output("conntrack", &["-L", "-f", "ipv6", "-o", "id"]);
    let id = |line: &str| line.rsplit_once(" id=")?.1.split(' ').next()?.parse().ok();
    list.lines().filter_map(|line| Some((id(line)?, line.to_owned()))).collect()
}

/// The two tuples, built from the cells in conntrack's format.
fn cells_of(row: &Value) -> [String; 2] {
    ["orig", "reply"].map(|side| {
        let cell = |name: &str| match &row[format!("{side}_{name}")] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let ports = match row["proto"].as_str().unwrap() {
            "icmp" | "icmpv6" => String::new(),
            _ => format!(" sport={} dport={}", cell("sport"), cell("dport")),
        };
        format!("src={} dst={}{ports}", cell("src"), cell("dst"))
    })
}

/// Checks that the cells of `row` match the entry that conntrack lists with the same ID.
#[track_caller]
pub(crate) fn is_listed(row: &Value, entries: &HashMap<u64, String>) {
    let line = row["ct_id"].as_u64().and_then(|id| entries.get(&id)).unwrap_or_else(|| panic!("{row}"));
    let [orig, reply] = cells_of(row);
    let (first, second) = line.split_at(line.rfind("src=").unwrap());
    assert!(first.contains(&orig) && second.contains(&reply), "{row}\n{line}");
    let mark = line.split_once("mark=").unwrap().1.split(' ').next().unwrap();
    assert_eq!(row["ct_mark"].as_u64(), mark.parse().ok(), "{row}\n{line}");
    let has = |word: &str| row["ct_status"].as_array().unwrap().contains(&word.into());
    // An answer may have arrived in the meantime.
    assert!(!has("seen_reply") || !line.contains("[UNREPLIED]"), "{row}\n{line}");
    assert!(!has("assured") || line.contains("[ASSURED]"), "{row}\n{line}");
}

/// Sends a packet through a raw socket: the kernel writes the IP header and the checksum of ICMPv6.
fn send_raw(to: IpAddr, proto: i32, packet: &[u8]) {
    let socket = open(if to.is_ipv4() { AF_INET } else { AF_INET6 }, SOCK_RAW, proto).unwrap();
    UdpSocket::from(OwnedFd::from(socket)).send_to(packet, (to, 0)).unwrap();
}

/// Sends an echo request with identifier 77.
fn ping(to: IpAddr) {
    match to {
        // Type and code, checksum, identifier, sequence number.
        IpAddr::V4(_) => send_raw(to, 1, &[8, 0, !8, !78, 0, 77, 0, 1]),
        IpAddr::V6(_) => send_raw(to, 58, &[128, 0, 0, 0, 0, 77, 0, 1]),
    }
}

/// An SCTP INIT from port 4000 to 7000 with a wrong checksum.
const INIT: [u8; 32] = [
    0x0f, 0xa0, 0x1b, 0x58, 0, 0, 0, 0, 1, 2, 3, 4, // common header
    1, 0, 0, 20, 0, 0, 0, 9, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, // INIT
];

/// The rules of a router that rewrites the packets it forwards and logs them before and after.
const REWRITES: &str = "table ip n {
   chain pre { type nat hook prerouting priority -100; tcp dport 8080 ct mark set 42 dnat to 172.17.0.2:80; }
   chain post { type nat hook postrouting priority 100; ip protocol { udp, icmp } oifname s1 masquerade; }
 }
 table inet t {
   chain r { type filter hook prerouting priority -300
     meta l4proto { tcp, udp, icmp, sctp } log prefix \"raw\" group 5
     icmpv6 type { 1, 128, 129 } log prefix \"raw\" group 5
   }
   chain f { type filter hook forward priority 0; ct state new counter
     log prefix \"fwd\" group 5
   }
 }";

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(crate) const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 2);
const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd17, 0, 0, 0, 0, 0, 0, 2);

/// Connections of each protocol from the client to the server through the router; they stay open while the result
/// lives.
pub(crate) fn connections(of: &Routed) -> Vec<Box<dyn std::any::Any + Send>> {
    let listener = of.server.run_inside(|| TcpListener::bind((SERVER, 80)).unwrap());
    let (echo, echo6) = of.server.run_inside(|| (UdpSocket::bind((SERVER, 53)), UdpSocket::bind((SERVER6, 53))));
    let mut stream = of.client.run_inside(|| TcpStream::connect((ROUTER, 8080)).unwrap());
    let (mut accepted, _) = listener.accept().unwrap();
    stream.write_all(b"request").unwrap();
    accepted.read_exact(&mut [0; 7]).unwrap();
    let mut open: Vec<Box<dyn std::any::Any + Send>> = vec![Box::new(stream), Box::new(accepted)];
    for (echo, to) in [(echo, IpAddr::from(SERVER)), (echo6, IpAddr::from(SERVER6))] {
        let (echo, any) = (echo.unwrap(), if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" });
        let socket = of.client.run_inside(|| UdpSocket::bind(any).unwrap());
        socket.send_to(b"question", (to, 53)).unwrap();
        let (_, from) = echo.recv_from(&mut [0; 9]).unwrap();
        echo.send_to(b"answer", from).unwrap();
        socket.recv_from(&mut [0; 9]).unwrap();
        // The port is closed, so an ICMP error is returned.
        socket.send_to(b"question", (to, 99)).unwrap();
        open.push(Box::new((socket, echo)));
        of.client.run_inside(|| ping(to));
    }
    of.client.run_inside(|| send_raw(SERVER.into(), 132, &INIT));
    open
}

/// Before and after NAT, and in both directions, a packet shows the entry that conntrack lists.
#[test]
fn root_log_has_the_entry_that_conntrack_lists() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("conntrack");
    let routed = Routed::new("logct");
    routed.router.nft(REWRITES);
    routed.router.set_conntrack("nf_conntrack_checksum", "0");
    let mut log = log(&routed.router, &[]);
    let open = connections(&routed);
    let wanted = |rows: &[Value]| {
        let has = |words: &[(&str, &str)]| rows.iter().any(|row| words.iter().all(|(name, word)| row[*name] == *word));
        let both_ways = ["original", "reply"];
        let protos = ["tcp", "udp", "icmp", "icmpv6"];
        protos.iter().all(|proto| {
            both_ways.iter().all(|way| {
                ["raw", "fwd"].iter().all(|prefix| has(&[("proto", proto), ("ct_direction", way), ("prefix", prefix)]))
            })
        }) && has(&[("proto", "icmp"), ("ct_state", "related"), ("prefix", "fwd")])
            && has(&[("proto", "icmpv6"), ("ct_state", "related"), ("prefix", "fwd")])
            && has(&[("proto", "sctp"), ("prefix", "fwd")])
    };
    log.read_until("packets of each kind", wanted);
    let (rows, ran) = log.end();
    let entries = listed(&routed.router);
    drop(open);
    for row in &rows {
        is_listed(row, &entries);
        let (proto, src) = (row["proto"].as_str().unwrap(), row["src"].as_str().unwrap());
        let is_of_client = src == "192.0.2.10" || src == "2001:db8::10";
        assert_eq!(row["ct_direction"], if is_of_client { "original" } else { "reply" }, "{row}");
        let rewritten = match proto {
            "tcp" => "dnat",
            "udp" | "icmp" if !src.contains(':') => "snat",
            _ => "none",
        };
        // ICMP errors refer to packets of other protocols.
        assert!(row["nat"] == rewritten || row["ct_state"] == "related", "{row}");
        assert_eq!((&row["ct_source"], &row["ct_zone"]), (&"lookup".into(), &Value::Null), "{row}");
    }
    let tcp = rows.iter().find(|row| row["proto"] == "tcp").unwrap();
    let port = tcp["orig_sport"].as_u64().unwrap();
    let expected = [format!("{CLIENT}:{port}"), format!("{ROUTER}:8080"), format!("{SERVER}:80")];
    assert_eq!(["client", "published", "backend"].map(|name| tcp[name].as_str().unwrap().to_owned()), expected);
    assert_eq!(tcp["ct_mark"], 42);
    ran.ok();
}

/// The first packet of a connection never gets an entry if a rule drops it; nor does an untracked packet.
#[test]
fn root_log_shows_no_entry_where_there_is_none() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("lognoct");
    lab.nft(
        "table inet t {
           chain r { type filter hook output priority -300; udp dport 7010 notrack; }
           chain o { type filter hook output priority 0
             udp dport 7009 ct state new log prefix \"new\" group 5 drop
             udp dport 7010 ct state untracked log prefix \"untracked\" group 5
           }
         }",
    );
    let file = lab.dir().join("shipped").display().to_string();
    let mut log = log(&lab, &["--to", &format!("json:{file}"), "--stats"]);
    send(&lab, to_five(), 3);
    send(&lab, (Ipv4Addr::LOCALHOST, 7010).into(), 2);
    log.read_until("five records", |_| std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() >= 5));
    let (_, ran) = log.end();
    for line in std::fs::read_to_string(&file).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let nulls = ["ct_state", "ct_id", "nat", "client", "orig_src", "reply_dport", "ct_source"];
        assert!(nulls.iter().all(|name| row.get(name).is_none_or(Value::is_null)), "{row}");
    }
    ran.says(0, &["without a conntrack entry", "(5 times)"]);
}

/// An entry that was looked up after the packet is not shown if its ports belong to a different connection by then.
#[test]
fn root_log_shows_no_other_connection_with_the_same_ports() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("conntrack");
    let lab = Lab::new("logctreuse");
    lab.nft(
        "table inet t { chain i { type filter hook input priority 0
           udp dport 7009 ct state new,established log prefix \"x\" group 5
         }
         }",
    );
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    let mut log = log(&lab, &["--latency", "1s"]);
    let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (there, here) = lab.run_inside(|| (UdpSocket::bind(at(7009)).unwrap(), UdpSocket::bind(at(7008)).unwrap()));
    here.send_to(b"first", at(7009)).unwrap();
    lab.output("conntrack", &["-F"]);
    // The start of an entry is compared with the packet's time with a tolerance of some milliseconds.
    let begun = std::time::Instant::now();
    testkit::wait_until("some time is over", || begun.elapsed().as_millis() > 30);
    lab.track([Entry::udp((at(0).ip(), 7008), (at(0).ip(), 7009)).mark(0x77)]);
    here.send_to(b"second", at(7009)).unwrap();
    log.read_until("two records", |rows| rows.len() >= 2);
    let (rows, ran) = log.end();
    assert_eq!((&rows[0]["ct_id"], &rows[0]["orig_sport"]), (&Value::Null, &Value::Null), "{rows:?}");
    assert_eq!((&rows[1]["ct_mark"], &rows[1]["orig_sport"]), (&0x77.into(), &7008.into()), "{rows:?}");
    ran.says(0, &["another connection uses its ports by now"]);
    drop(there);
}

/// In a flood of connections each record is shown and counted, and the records of the other rule have their entry.
#[test]
fn root_log_bounds_what_a_flood_makes_it_ask() {
    const FLOOD: u32 = 12_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logctflood");
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           ip daddr 127.0.0.1 udp dport 7009 ct state new,established log prefix \"quiet\" group 5
           ip daddr != 127.0.0.1 udp dport 1-65535 ct state new log prefix \"flood\" group 5 drop
         }
         }",
    );
    let mut log = log_of(&lab, "prefix,ct_id,ct_state,orig_dport", &["--latency", "500ms", "--buffer", "256MiB"]);
    lab.run_inside(|| {
        let [quiet, flood] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        for n in 0..FLOOD {
            if n % (FLOOD / 10) == 0 {
                quiet.send_to(b"x", to_five()).unwrap();
            }
            // The rule rejects this packet.
            let _ = flood.send_to(b"x", (Ipv4Addr::from(0x7f01_0000 + n), 9));
        }
    });
    log.read_until("every record", |rows| rows.len() >= FLOOD as usize + 10);
    let (rows, ran) = log.end();
    let (quiet, flood): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["prefix"] == "quiet");
    assert_eq!((quiet.len(), flood.len()), (10, FLOOD as usize));
    assert!(flood.iter().all(|row| row["ct_id"].is_null()));
    let counted = |words: &str| {
        let line = ran.stderr.lines().find(|line| line.contains(words))?;
        line.rsplit_once('(')?.1.split(' ').next()?.parse::<usize>().ok()
    };
    // A machine that is busy for that long looks at some records too late.
    let late = counted("more than 10 s after the packet").unwrap_or(0);
    let known = quiet.iter().filter(|row| row["ct_state"] == "new" && row["orig_dport"] == 7009).count();
    assert_eq!(known + late, 10, "{}", ran.stderr);
    let unknown = ["without a conntrack entry", "connections are looked up per second"].map(counted);
    assert_eq!(unknown.into_iter().flatten().sum::<usize>(), FLOOD as usize, "{}", ran.stderr);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A recording contains the entries that were looked up; if it contains none, a message says so.
#[test]
fn root_log_replays_entries() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logcttape");
    lab.use_conntrack();
    lab.nft("table inet t { chain i { type filter hook input priority 0; udp dport 7009 log group 5; }\n}");
    let columns = "dport,ct_state,ct_id,client";
    let words = |tape: &str, columns: &str| {
        ["--group", "5", "--latency", "10ms", "--columns", columns, "--record", tape].map(str::to_owned)
    };
    let receiver = lab.run_inside(|| UdpSocket::bind(to_five()).unwrap());
    for (columns, has_entries) in [(columns, true), ("dport", false)] {
        let tape = lab.dir().join(if has_entries { "with" } else { "without" }).display().to_string();
        let words = words(&tape, columns);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut live: Going<String> = Going::past_header(command(&lab, &words), columns, |line| line);
        for n in 1..=3 {
            send(&lab, to_five(), 1);
            live.read_until("a record", |lines| lines.len() >= n);
        }
        let (lines, ran) = live.end();
        ran.ok();
        let all = "dport,ct_state,ct_id,client";
        let replayed = netwren(&["log", "--group", "5", "-H", "--columns", all, "--replay", &tape]);
        if has_entries {
            assert!(lines.iter().all(|line| line.starts_with("7009\tnew\t")), "{lines:?}");
            assert_eq!(replayed.ok().lines().collect::<Vec<_>>(), lines);
        } else {
            assert_eq!(replayed.stdout.lines().collect::<Vec<_>>(), ["7009\t-\t-\t-"; 3]);
            replayed.says(3, &["connections of log records cannot be looked up"]);
        }
    }
    drop(receiver);
}
