//! `--fold` and `--rate`: records that are not shipped are counted in every output.

use crate::going::Going;
use crate::log::{OWN_COLUMNS, command, counted, logging, send, to_five};
use crate::run::netwren;
use serde_json::Value;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use testkit::netns::Lab;

/// Starts `log --group 5` with these arguments; returns once it is bound.
fn shipping(lab: &Lab, args: &[&str]) -> Going<String> {
    let words = [&["--group", "5", "--latency", "10ms", "--stats"], args].concat();
    let going = Going::spawn(command(lab, &words), |line| line);
    testkit::wait_until("the group is bound", || !lab.log_groups().is_empty());
    going
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

fn rows(path: &Path) -> Vec<Value> {
    text(path).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("torn: {line}"))).collect()
}

/// Receives `count` datagrams, one line each.
fn received(socket: &UdpSocket, count: usize) -> String {
    let mut buffer = [0; 4096];
    let mut one = || {
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap() + "\n"
    };
    (0..count).map(|_| one()).collect()
}

/// The statistics of the outputs, from the last line of standard output; checks that each adds up.
fn ledgers(lines: &[String]) -> Vec<Value> {
    let line: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let ledgers = line["outputs"].as_array().unwrap().clone();
    for ledger in &ledgers {
        let count = |name: &str| ledger[name].as_u64().unwrap();
        let dropped: u64 = ledger["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        let sum = count("delivered") + count("folded") + count("limited") + dropped + count("in_spool");
        assert_eq!(count("seen"), sum, "{ledger}");
    }
    ledgers
}

/// Sends `each` packets from each of `sources` source addresses.
fn send_from(lab: &Lab, sources: u8, each: usize) {
    lab.run_inside(|| {
        for source in 1..=sources {
            let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 1, source), 0)).unwrap();
            (0..each).for_each(|_| _ = socket.send_to(b"0123456789", to_five()));
        }
    });
}

#[test]
fn root_repetition_is_one_record_and_its_count() {
    const EACH: usize = 400;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("foldrepeat");
    let file = |name: &str| lab.dir().join(name);
    let to = |format: &str, name: &str| format!("{format}:{}", file(name).display());
    let receiver = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let syslog = format!("syslog+udp://{}", receiver.local_addr().unwrap());
    let targets = [to("json", "rows"), to("logemu", "lines"), syslog, to("pcap", "packets")];
    let to: Vec<&str> = targets.iter().flat_map(|target| ["--to", target]).collect();
    let mut going = shipping(&lab, &[&["--columns", "seq,prefix,time,sport", "--fold", "1s"], &to[..]].concat());
    send_from(&lab, 3, EACH);
    // The count is sent when the window is over, even if no further packets arrive and the run continues.
    testkit::wait_until("each source is summed up", || text(&file("rows")).matches("\"folded\":").count() == 3);
    assert!(going.child.try_wait().unwrap().is_none());
    send_from(&lab, 1, 1);
    let (lines, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("receives every row").count(), 1, "{}", ran.stderr);
    let rows = rows(&file("rows"));
    let (folded, plain): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row.get("folded").is_some());
    assert_eq!((plain.len(), folded.len()), (4, 3), "{rows:?}");
    for row in folded {
        assert_eq!((&row["folded"], &row["prefix"]), (&EACH.into(), &"to five: ".into()), "{row}");
        assert!(row["folded_since"].as_str() <= row["time"].as_str(), "from the first to the last: {row}");
    }
    let words = format!(" ×{EACH} in 1 s\n");
    assert_eq!(text(&file("lines")).matches(&words).count(), 3, "{}", text(&file("lines")));
    let messages = received(&receiver, 7);
    assert_eq!(messages.matches(&format!(" folded=\"{EACH}\" folded_since=\"")).count(), 3, "{messages}");
    assert_eq!(messages.matches(words.trim_end()).count(), 3, "{messages}");
    let ledgers = ledgers(&lines);
    let all = counted(&lab, "7009");
    assert_eq!(all, 3 * EACH + 1);
    for (ledger, delivered) in ledgers.iter().zip([7, 7, 7, all]) {
        let expected = (&all.into(), &delivered.into(), &(all - delivered).into());
        assert_eq!((&ledger["seen"], &ledger["delivered"], &ledger["folded"]), expected, "{ledger}");
    }
}

#[test]
fn root_records_above_the_rate_are_counted_and_reported() {
    const EACH: usize = 2_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("foldrate");
    let path = lab.dir().join("rows");
    let to = format!("json:{}", path.display());
    let going =
        shipping(&lab, &["--columns", "seq,prefix,time,sport", "--rate", "1/h:10", "--rate-by", "src", "--to", &to]);
    send_from(&lab, 2, EACH);
    testkit::wait_until("what may go out is there", || rows(&path).len() >= 20);
    let (lines, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = rows(&path);
    let limited: Vec<u64> = rows.iter().filter_map(|row| row.get("limited")?.as_u64()).collect();
    assert_eq!((rows.len(), limited), (22, vec![EACH as u64 - 11; 2]), "{rows:?}");
    let ledger = &ledgers(&lines)[0];
    let expected = (&(2 * EACH).into(), &22.into(), &(2 * EACH - 22).into());
    assert_eq!((&ledger["seen"], &ledger["delivered"], &ledger["limited"]), expected, "{ledger}");
}

/// A sender that uses each address once fills half of the table; records that do not fit into the table are shipped.
#[test]
fn root_a_flood_of_addresses_stops_no_other_rules_folding() {
    const SOURCES: u32 = 70_000;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("foldflood");
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 log prefix \"flood: \" group 5 drop
           udp dport 7010 log prefix \"calm: \" group 5 drop
         }
         }",
    );
    let path = lab.dir().join("rows");
    let to = format!("json:{}", path.display());
    let going =
        shipping(&lab, &["--columns", "seq,prefix,time,sport", "--fold", "1h", "--buffer", "128MiB", "--to", &to]);
    lab.run_inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for number in 0..SOURCES {
            let address = IpAddr::V4(Ipv4Addr::from(0x7f80_0000 + number));
            let _ = socket.send_to(b"x", SocketAddr::new(address, 7009));
        }
        (0..1000).for_each(|_| _ = socket.send_to(b"x", (Ipv4Addr::LOCALHOST, 7010)));
    });
    let (lines, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let unfolded = SOURCES as usize - 32_768;
    assert!(ran.stderr.contains(&format!("{unfolded} rows were not folded")), "{}", ran.stderr);
    let ledger = &ledgers(&lines)[0];
    let seen = (SOURCES + 1000).into();
    assert_eq!((&ledger["seen"], &ledger["folded"], &ledger["lost_in_kernel"]), (&seen, &998.into(), &0.into()));
    let calm: Vec<Value> = rows(&path).into_iter().filter(|row| row["prefix"] == "calm: ").collect();
    assert_eq!((calm.len(), &calm[1]["folded"]), (2, &1000.into()));
}

/// A flood of one rule while the receiver is away does not displace the records of another rule.
fn a_flood_leaves_others(purpose: &str, when_full: &str, more: &[&str]) {
    const FLOOD: u64 = 100_000;
    const CALM: u64 = 100;
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 log prefix \"flood: \" group 5 drop
           udp dport 7010 log prefix \"calm: \" group 5 drop
         }
         }",
    );
    let listener = lab.run_inside(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let (to, control) = (format!("json+tcp://{addr}"), lab.dir().join("control").display().to_string());
    let spool = lab.dir().join("spool").display().to_string();
    let more: Vec<&str> = more.iter().map(|word| if *word == "SPOOL" { &*spool } else { word }).collect();
    let args =
        ["--buffer", "128MiB", "--columns", OWN_COLUMNS, "--when-full", when_full, "--control", &control, "--to", &to];
    let going = shipping(&lab, &[&args, &more[..]].concat());
    lab.run_inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for number in 0..FLOOD {
            let _ = socket.send_to(b"x", (Ipv4Addr::LOCALHOST, 7009));
            if number % (FLOOD / CALM) == FLOOD / CALM / 2 {
                let _ = socket.send_to(b"x", (Ipv4Addr::LOCALHOST, 7010));
            }
        }
    });
    let count = |name: &str| {
        let status = netwren(&["log", "status", "-o", "json", "--control", &control]).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        status["outputs"][0][name].as_u64()
    };
    testkit::wait_until("all of it waits or was dropped", || count("seen") == Some(FLOOD + CALM));
    let listener = lab.run_inside(|| TcpListener::bind(addr)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    // Wait, because the rest of a spool would stay there if the receiver were away at the end.
    testkit::wait_until("the rest is delivered", || count("in_spool") == Some(0));
    let ledger = {
        let (lines, ran) = going.end();
        assert_eq!(ran.code, 3, "something was dropped: {}", ran.stderr);
        ledgers(&lines).remove(0)
    };
    let text = reader.join().unwrap();
    let of = |prefix: &str| text.matches(&format!("\"prefix\":\"{prefix}: \"")).count() as u64;
    let dropped = ledger["dropped"]["full"].as_u64().unwrap();
    assert_eq!((of("calm"), of("flood") + dropped), (CALM, FLOOD), "{ledger}");
    assert!(dropped > FLOOD / 4, "{ledger}");
    let numbers: Vec<u64> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "in order");
    // The last records of the flood are kept, or the first ones; a small batch may fit at any time.
    let floods: Vec<u64> =
        text.lines().zip(&numbers).filter(|(line, _)| line.contains("flood: ")).map(|(_, at)| *at).collect();
    let kept = if when_full == "drop-oldest" { FLOOD + CALM - 1 } else { 0 };
    assert!(floods.contains(&kept), "{when_full}: {:?} to {:?}", floods.first(), floods.last());
}

#[test]
fn root_a_flood_of_one_rule_pushes_no_others_out_of_the_queue() {
    a_flood_leaves_others("floodold", "drop-oldest", &["--queue-max", "4MiB"]);
    a_flood_leaves_others("floodnew", "drop-newest", &["--queue-max", "4MiB"]);
}

#[test]
fn root_a_flood_of_one_rule_pushes_no_others_out_of_the_spool() {
    a_flood_leaves_others("spoolold", "drop-oldest", &["--spool", "SPOOL", "--spool-max", "16MiB"]);
    a_flood_leaves_others("spoolnew", "drop-newest", &["--spool", "SPOOL", "--spool-max", "16MiB"]);
}

/// Counts of folded and limited records are stored in the spool.
#[test]
fn root_counts_of_what_was_not_shipped_outlive_the_run() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("foldspool");
    let spool = lab.dir().join("spool").display().to_string();
    let to = format!("json:{}", lab.dir().join("rows").display());
    for run in 1..=2_usize {
        let going = shipping(
            &lab,
            &[
                "--columns",
                "seq,prefix,time,sport",
                "--fold",
                "1h",
                "--rate",
                "1/h:500",
                "--spool",
                &spool,
                "--to",
                &to,
            ],
        );
        send(&lab, to_five(), 600);
        let ledger = ledgers(&going.end().0).remove(0);
        let count = |each: usize| (run * each).into();
        // Delivered: the first of 500 equal records, the record that counts them, and the record that counts the 100
        // above the rate.
        let expected = (&count(600), &count(3), &count(498), &count(99));
        let counts = (&ledger["seen"], &ledger["delivered"], &ledger["folded"], &ledger["limited"]);
        assert_eq!(counts, expected, "{ledger}");
    }
}

/// If a run is killed within a window, its counts remain in the spool, and the pending summary record is lost.
#[test]
fn root_what_stood_for_others_is_counted_after_a_kill() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("foldkill");
    let path = |name: &str| lab.dir().join(name).display().to_string();
    let (spool, to, control) = (path("spool"), format!("json:{}", path("rows")), path("control"));
    let words = ["--columns", "seq,prefix,time,sport", "--fold", "1h", "--spool", &spool, "--control", &control];
    let words = [&words[..], &["--to", &to]].concat();
    let going = shipping(&lab, &words);
    send(&lab, to_five(), 600);
    testkit::wait_until("the first is delivered, the others are folded", || {
        let status = netwren(&["log", "status", "-o", "json", "--control", &control]).stdout;
        let status: Value = serde_json::from_str(&status).unwrap_or_default();
        let output = &status["outputs"][0];
        (output["folded"].as_u64(), output["delivered"].as_u64()) == (Some(598), Some(1))
    });
    going.signal("-KILL");
    drop(going);
    let (lines, ran) = shipping(&lab, &words).end();
    let ledger = ledgers(&lines).remove(0);
    let counts = (&ledger["seen"], &ledger["folded"], &ledger["dropped"]["lost"]);
    assert_eq!(counts, (&600.into(), &598.into(), &1.into()), "{ledger}");
    assert!(ran.stderr.contains("1 messages are lost"), "{}", ran.stderr);
}
