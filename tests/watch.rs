//! `--watch` compares rounds: exact rates, new rows, and rows that are gone. The tests use recordings, whose times are
//! known.

use crate::run::{clean, netwren, netwren_in};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use testkit::conntrack::{Entry, mixed_entries};
use testkit::netns::Lab;
use testkit::wait_until;

const COLUMNS: &str = "change,proto,local_port,peer_port,bytes_in,bytes_in_per_s,bytes_out_per_s,retrans_per_s";

/// A run with `--watch`, and the file that it writes to.
struct Running {
    child: Child,
    file: std::path::PathBuf,
}

impl Running {
    fn start(lab: &Lab, args: &[&str]) -> Running {
        let file = lab.dir().join("rows");
        let mut command = lab.command(testkit::program::netwren());
        clean(&mut command).args(args).stdout(std::fs::File::create(&file).unwrap()).stderr(Stdio::null());
        Running { child: command.spawn().unwrap(), file }
    }

    fn wait(&self, what: &str, holds: impl Fn(&serde_json::Value) -> bool) {
        wait_until(what, || rows(&std::fs::read_to_string(&self.file).unwrap()).iter().flatten().any(&holds));
    }

    fn end(mut self) {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap();
    }
}

/// The rows of each round; an incomplete last line is left out.
fn rows(text: &str) -> Vec<Vec<serde_json::Value>> {
    let mut rounds = Vec::new();
    for line in text.lines().map_while(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        match line.get("proto") {
            None => rounds.push(Vec::new()),
            Some(_) => rounds.last_mut().unwrap().push(line),
        }
    }
    rounds
}

/// The times of the rounds in a recording, in nanoseconds: frames of kind 8 (see `sys::tape`).
fn times(tape: &Path) -> Vec<u64> {
    let bytes = std::fs::read(tape).unwrap();
    let number = |at: usize, n: usize| bytes[at..at + n].iter().rev().fold(0u64, |all, b| all << 8 | u64::from(*b));
    let (mut at, mut times) = ("NETWREN-TAPE".len() + 2, Vec::new());
    while at + 9 <= bytes.len() {
        if bytes[at] == 8 {
            times.push(number(at + 9, 8) * 1_000_000_000 + number(at + 17, 4));
        }
        at += 9 + number(at + 5, 4) as usize + 4;
    }
    times
}

#[test]
fn root_watch_tells_rates_to_the_byte_and_what_is_new_or_gone() {
    testkit::require_root!();
    let lab = Lab::new("watchrates");
    let tape = lab.dir().join("tape");
    let (mut client, mut server) = lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    });
    let port = client.local_addr().unwrap().port();
    let filter = format!("proto = udp or peer_port = {port}");
    let tape = tape.to_str().unwrap();
    let running = Running::start(
        &lab,
        &["sockets", "-o", "json", "--columns", COLUMNS, "--watch=0.05", "--record", tape, &filter],
    );
    running.wait("the first round", |row| row["change"] == "kept");
    client.write_all(&[0; 123_456]).unwrap();
    server.read_exact(&mut vec![0; 123_456]).unwrap();
    running.wait("the bytes", |row| row["bytes_in"] == 123_456);
    let udp = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 5300)).unwrap());
    running.wait("a new socket", |row| row["change"] == "new" && row["local_port"] == 5300);
    drop(udp);
    running.wait("a socket that is gone", |row| row["change"] == "gone" && row["local_port"] == 5300);
    running.end();

    let replay = |columns: &str, more: &[&str]| {
        let args = ["sockets", "-o", "json", "--columns", columns, "--watch", "--replay", tape];
        let ran = netwren(&[&args, more].concat());
        // A filter that differs from the recorded one may select sockets that the kernel left out.
        assert!(ran.code == 0 || more.iter().all(|word| *word != filter) && ran.code == 3, "{}", ran.stderr);
        rows(&ran.stdout)
    };
    let rounds = replay(COLUMNS, &[&filter]);
    let times = times(Path::new(tape));
    assert!(rounds.len() >= 4 && times.len() >= rounds.len());
    assert!(rounds[0].iter().all(|row| row["change"].is_null() && row["bytes_in_per_s"].is_null()), "{:?}", rounds[0]);
    let bytes = |n: usize| {
        rounds[n].iter().find(|row| row["proto"] == "tcp").map(|row| (row["bytes_in"].as_u64().unwrap(), row))
    };
    let mut moved = 0;
    for n in 1..rounds.len() {
        let (Some((before, _)), Some((now, row))) = (bytes(n - 1), bytes(n)) else { continue };
        let interval = times[n] - times[n - 1];
        let rate = ((now - before) * 1_000_000_000 + interval / 2) / interval;
        assert_eq!(row["bytes_in_per_s"], rate, "round {n}");
        assert_eq!((&row["bytes_out_per_s"], &row["retrans_per_s"]), (&0.into(), &0.into()));
        assert_eq!(row["change"], "kept");
        moved += now - before;
    }
    assert_eq!(moved, 123_456);
    let changes = |rounds: &[Vec<serde_json::Value>]| {
        let udp = rounds.iter().flatten().filter(|row| row["proto"] == "udp" && row["change"] != "kept");
        udp.map(|row| row["change"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(changes(&rounds), ["new", "gone"]);
    // The filter, the order and the limit can use the columns of `--watch` like any other field.
    let fast =
        replay("change,proto,bytes_in_per_s", &["bytes_in_per_s > 0", "--sort", "bytes_in_per_s:desc", "--limit", "1"]);
    assert!(fast.iter().flatten().all(|row| row["bytes_in_per_s"].as_u64().unwrap() > 0));
    assert!((1..4).contains(&fast.iter().flatten().count()), "{fast:?}");
    assert_eq!(changes(&replay("change,proto", &["change = gone"])), ["gone"]);
}

#[test]
fn root_watch_shows_the_busiest_connections_first() {
    testkit::require_root!();
    let lab = Lab::new("watchorder");
    let tape = lab.dir().join("tape");
    let mut pairs: Vec<(TcpStream, TcpStream)> = lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080)).unwrap();
        let connect = |_| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        (0..8).map(connect).collect()
    });
    let (tape, filter) = (tape.to_str().unwrap(), "state = established and local_port = 8080");
    let columns = "change,proto,peer_port,bytes_in,bytes_in_per_s,bytes_out_per_s";
    let args = ["sockets", "-o", "json", "-c", columns, "--watch=0.05", "--record", tape, filter];
    let running = Running::start(&lab, &args);
    running.wait("the second round", |row| row["change"] == "kept");
    // Sent bytes count as much as received bytes.
    for (n, (client, server)) in pairs.iter_mut().enumerate() {
        let bytes = vec![0; 5_000 * (1 + n * 3 % 8)];
        let (from, to) = if n % 2 == 0 { (client, server) } else { (server, client) };
        from.write_all(&bytes).unwrap();
        to.read_exact(&mut bytes.clone()).unwrap();
    }
    let last = pairs[6].0.local_addr().unwrap().port();
    running.wait("the bytes", |row| row["bytes_in"] == 15_000 && row["peer_port"] == last);
    running.end();
    let args = ["sockets", "-o", "plain", "-H", "-c", columns, "--watch", "--replay", tape, filter];
    let shown = netwren(&args).stdout;
    let rate = |line: &str| {
        let cells = line.split_whitespace().rev().take(2).map(|cell| cell.parse::<u64>().unwrap_or(0));
        cells.sum::<u64>()
    };
    let rates: Vec<u64> = shown.lines().filter(|line| line.contains("tcp")).map(rate).collect();
    assert!(rates.iter().filter(|rate| **rate > 0).count() >= 8, "{shown}");
    for round in rates.chunks(8) {
        assert!(round.is_sorted_by(|a, b| a >= b), "{shown}");
    }
}

/// Unchanged rows are not rendered again; changed rows must still be recognized, and unchanged rows must not be shown
/// as gone.
#[test]
fn root_watch_tells_what_moves_among_many_that_rest() {
    testkit::require_root!();
    let lab = Lab::new("watchrest");
    if netwren_in(&lab, &["sockets", "--via", "bpf", "proto = tcp", "--no-owner"]).code != 0 {
        return;
    }
    let (listener, mut pairs) = lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080)).unwrap();
        let pairs: Vec<(TcpStream, TcpStream)> = (0..40).map(|_| pair(&listener)).collect();
        (listener, pairs)
    });
    let columns = "change,proto,state,recv_q,local_port,peer_port,bytes_in_per_s";
    let filter = "proto = tcp and state != time-wait";
    let args = ["sockets", "--via", "bpf", "--no-owner", "-o", "json", "--watch=0.03", "-c", columns, filter];
    let running = Running::start(&lab, &args);
    let whole = |n: usize| {
        let all = rows(&std::fs::read_to_string(&running.file).unwrap());
        all.len() > n
            && all[..all.len() - 1].last().is_some_and(|round| round.iter().all(|row| row["change"] == "kept"))
    };
    wait_until("several rounds", || whole(5));
    let port = pairs[7].0.local_addr().unwrap().port();
    let of = |row: &serde_json::Value| row["local_port"] == 8080 && row["peer_port"] == port;
    pairs[7].0.write_all(&[0; 777]).unwrap();
    running.wait("the bytes", |row| of(row) && row["recv_q"] == 777 && row["bytes_in_per_s"].as_u64() > Some(0));
    running.wait("no more of them", |row| of(row) && row["recv_q"] == 777 && row["bytes_in_per_s"] == 0);
    let late = lab.run_inside(|| pair(&listener));
    let new = late.0.local_addr().unwrap().port();
    running.wait("a new one", |row| row["change"] == "new" && row["local_port"] == new);
    drop(pairs.remove(7));
    running.wait("one that is gone", |row| row["change"] == "gone" && row["local_port"] == 8080);
    let file = running.file.clone();
    running.end();

    let rounds = rows(&std::fs::read_to_string(file).unwrap());
    // The last round may be incomplete.
    for (n, round) in rounds[..rounds.len() - 1].iter().enumerate() {
        let here = round.iter().filter(|row| row["change"] != "gone");
        let mut ends: Vec<_> = here.map(|row| (row["local_port"].as_u64(), row["peer_port"].as_u64())).collect();
        let count = ends.len();
        assert!((79..=83).contains(&count), "round {n}: {count}");
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), count, "round {n}: none twice");
        let told = |change: &str| round.iter().filter(|row| row["change"] == change).count();
        assert!(n == 0 || told("kept") + told("new") == count, "round {n}");
        assert!(told("new") + told("gone") <= 2, "round {n}");
    }
}

/// Entries that differ only in their remaining time are not rendered again.
#[test]
fn root_watch_of_nat_tells_the_time_and_what_has_changed() {
    testkit::require_root!();
    let lab = Lab::new("watchnat");
    lab.track(mixed_entries(300));
    let columns = "timeout_s,proto,client,published,mark";
    let args = ["nat", "--via", "bpf", "--no-owner", "-o", "json", "-c", columns];
    if netwren_in(&lab, &args).code != 0 {
        return;
    }
    let running = Running::start(&lab, &[&args[..], &["--watch=0.1"]].concat());
    let whole = |n: usize| rows(&std::fs::read_to_string(&running.file).unwrap()).len() > n + 1;
    wait_until("a second of rounds", || whole(12));
    lab.run_inside(|| testkit::conntrack::remove(mixed_entries(300).take(20)));
    lab.track(mixed_entries(300).take(10).map(|entry| entry.mark(0x77)));
    running.wait("an entry with a mark", |row| row["mark"] == 0x77);
    let told = rows(&std::fs::read_to_string(&running.file).unwrap()).len();
    wait_until("one round more", || whole(told + 1));
    let file = running.file.clone();
    running.end();
    let rounds = rows(&std::fs::read_to_string(file).unwrap());
    let (first, last) = (&rounds[0], &rounds[rounds.len() - 2]);
    assert_eq!((first.len(), last.len()), (300, 290));
    let marked = last.iter().filter(|row| row["mark"] == 0x77).count();
    assert_eq!(marked, 10);
    // Their remaining time decreases and matches the table.
    let now = netwren_in(&lab, &["nat", "--via", "netlink", "--no-owner", "-o", "json", "-c", columns]).ok();
    let sorted = |rows: &[serde_json::Value]| {
        let of = |row: &serde_json::Value| {
            let mut row = row.clone();
            let timeout_s = row["timeout_s"].take().as_i64().unwrap();
            (row.to_string(), timeout_s)
        };
        let mut all: Vec<_> = rows.iter().map(of).collect();
        all.sort();
        all
    };
    let now: Vec<serde_json::Value> = now.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (told, now) in sorted(last).iter().zip(sorted(&now)) {
        assert_eq!(told.0, now.0);
        assert!((0..100).contains(&(told.1 - now.1)), "{told:?} {now:?}");
    }
    // Entries with a mark were created again.
    let old = |row: &&serde_json::Value| row["mark"] != 0x77;
    let time = |rows: &[serde_json::Value]| rows.iter().filter(old).filter_map(|row| row["timeout_s"].as_i64()).max();
    assert!(time(first) > time(last));
}

/// The entry stays unchanged while sockets at its ends are opened and closed.
#[test]
fn root_watch_of_nat_tells_whose_an_entry_is_now() {
    testkit::require_root!();
    let lab = Lab::new("watchowners");
    let here = |port: u16| (Ipv4Addr::LOCALHOST.into(), port);
    lab.track([Entry::udp(here(4000), here(5300)), Entry::udp(here(4001), here(5301))]);
    let columns = "proto,client,pid,timeout_s";
    let args = ["nat", "--via", "bpf", "-o", "json", "-c", columns];
    if netwren_in(&lab, &args).code != 0 {
        return;
    }
    let running = Running::start(&lab, &[&args[..], &["--watch=0.05"]].concat());
    let is =
        |row: &serde_json::Value, client: &str, pid: serde_json::Value| row["client"] == client && row["pid"] == pid;
    let own = || serde_json::Value::from(std::process::id());
    let latest = |client: &'static str, pid: serde_json::Value| {
        wait_until("a change of owners", || {
            let all = rows(&std::fs::read_to_string(&running.file).unwrap());
            all.iter().rev().nth(1).is_some_and(|round| round.iter().any(|row| is(row, client, pid.clone())))
        });
    };
    latest("127.0.0.1:4000", serde_json::Value::Null);
    let server = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 5300)).unwrap());
    latest("127.0.0.1:4000", own());
    latest("127.0.0.1:4001", serde_json::Value::Null);
    let client = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 4001)).unwrap());
    latest("127.0.0.1:4001", own());
    latest("127.0.0.1:4000", own());
    drop(server);
    latest("127.0.0.1:4000", serde_json::Value::Null);
    latest("127.0.0.1:4001", own());
    drop(client);
    latest("127.0.0.1:4001", serde_json::Value::Null);
    running.end();
}

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// The default columns are the columns of a single run plus three more. With explicit columns there are only those,
/// and rows that are gone are not shown.
#[test]
fn root_watch_adds_its_columns_by_itself() {
    testkit::require_root!();
    let lab = Lab::new("watchcolumns");
    let tape = lab.dir().join("tape");
    let tape = tape.to_str().unwrap();
    let udp = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 5300)).unwrap());
    let running = Running::start(
        &lab,
        &["sockets", "-o", "json", "--columns", "proto,change", "--watch=0.05", "--record", tape, "proto = udp"],
    );
    running.wait("the second round", |row| row["change"] == "kept");
    drop(udp);
    running.wait("it is gone", |row| row["change"] == "gone");
    running.end();
    // The additional data for wide rows was not recorded; netwren reports that, which does not matter here.
    let replay =
        |args: &[&str]| netwren(&[&["sockets", "--no-owner", "--replay", tape, "proto = udp"], args].concat()).stdout;
    let head = |args: &[&str]| replay(args).lines().next().unwrap().replace('\t', " ");
    let once = head(&[]);
    assert_eq!(head(&["--watch"]), format!("change {once} bytes_in_per_s bytes_out_per_s"));
    assert_eq!(head(&["--watch", "-c", "+inode,-change,-bytes_in_per_s"]), format!("{once} inode bytes_out_per_s"));
    assert_eq!(head(&["--watch", "-c", "proto"]), "proto");
    assert!(head(&["--watch", "-o", "wide"]).ends_with("segs_in_per_s segs_out_per_s retrans_per_s"));
    assert!(!head(&["-o", "wide"]).contains("per_s"));
    let count = |args: &[&str]| replay(args).lines().filter(|line| line.contains("udp")).count();
    assert_eq!(count(&["--watch"]), count(&["--watch", "-c", "proto"]) + 1, "the one that is gone");
}

#[test]
fn root_watch_tells_the_same_of_flows() {
    testkit::require_root!();
    let lab = Lab::new("watchflows");
    let tape = lab.dir().join("tape");
    let (_listener, mut clients, mut servers) = lab.run_inside(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 8080)).unwrap();
        let pairs = (0..3).map(|_| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        });
        let (clients, servers): (Vec<_>, Vec<_>) = pairs.unzip();
        // The listener is kept because it determines the direction.
        (listener, clients, servers)
    });
    let columns = "change,proto,direction,connections,bytes_in,bytes_in_per_s,peer_port";
    let tape = tape.to_str().unwrap();
    let args = ["flows", "-o", "json", "--columns", columns, "--watch=0.05", "--record", tape];
    let running = Running::start(&lab, &args);
    running.wait("the second round", |row| row["change"] == "kept");
    for (client, server) in clients.iter_mut().zip(&mut servers) {
        client.write_all(&[0; 10_000]).unwrap();
        server.read_exact(&mut vec![0; 10_000]).unwrap();
    }
    running.wait("the bytes", |row| row["bytes_in"] == 30_000);
    let udp = lab.run_inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, 53)).unwrap();
        socket
    });
    running.wait("a new flow", |row| row["change"] == "new" && row["proto"] == "udp");
    drop(udp);
    running.wait("a flow that is gone", |row| row["change"] == "gone" && row["proto"] == "udp");
    running.end();

    let rounds = rows(&netwren(&["flows", "-o", "json", "--columns", columns, "--watch", "--replay", tape]).ok());
    let times = times(Path::new(tape));
    let inbound = |n: usize| rounds[n].iter().find(|row| row["proto"] == "tcp" && row["direction"] == "in").unwrap();
    let mut moved = 0;
    for n in 1..rounds.len() {
        let grown = inbound(n)["bytes_in"].as_u64().unwrap() - inbound(n - 1)["bytes_in"].as_u64().unwrap();
        let rate = grown as f64 * 1e9 / (times[n] - times[n - 1]) as f64;
        let told = inbound(n)["bytes_in_per_s"].as_f64().unwrap();
        assert!((told - rate).abs() <= 3.0, "round {n}: {told} of {rate}, each connection is rounded");
        assert_eq!((&inbound(n)["connections"], &inbound(n)["change"]), (&3.into(), &"kept".into()));
        moved += grown;
    }
    assert_eq!(moved, 30_000);
    let udp = rounds.iter().flatten().filter(|row| row["proto"] == "udp" && row["change"] != "kept");
    let changes: Vec<(&str, u64)> =
        udp.map(|row| (row["change"].as_str().unwrap(), row["peer_port"].as_u64().unwrap())).collect();
    assert_eq!(changes, [("new", 53), ("gone", 53)]);
}

#[test]
fn root_what_is_gone_still_has_its_owner() {
    testkit::require_root!();
    let lab = Lab::new("watchowner");
    let udp = lab.run_inside(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 5300)).unwrap());
    let running = Running::start(
        &lab,
        &["sockets", "-o", "json", "--columns", "change,proto,owners", "--watch=0.05", "proto = udp"],
    );
    // A child of another test that has not called exec yet may also hold the socket.
    let is_ours = |row: &serde_json::Value| {
        row["owners"].as_array().is_some_and(|owners| owners.iter().any(|owner| owner["pid"] == std::process::id()))
    };
    running.wait("the second round", |row| row["change"] == "kept" && is_ours(row));
    drop(udp);
    // If such a child held it last, that is the owner which the row still has.
    let has_owner = |row: &serde_json::Value| row["owners"].as_array().is_some_and(|owners| !owners.is_empty());
    running.wait("it is gone", |row| row["change"] == "gone" && has_owner(row));
    running.end();
}

/// Commands that show rounds or a stream, with what they need: `--for` ends each of them.
#[test]
fn root_for_ends_every_stream_and_all_rounds() {
    testkit::require_root!();
    let lab = Lab::new("watchfor");
    lab.use_conntrack();
    let watched = |args: &'static str| format!("{args} --watch=0.1");
    let tables = [
        "",
        "home",
        "sockets",
        "listeners",
        "flows",
        "routes",
        "nat",
        "nat stats",
        "nat top src",
        "counters",
        "doctor",
    ];
    let others = ["doctor softirq", "doctor path", "drops", "capture latency", "capture -i lo"];
    let streams = [
        "sockets --follow",
        "flows --follow=0.1",
        "nat events",
        "log --group 1",
        "log tail --group 2",
        "log top --group 3",
        "capture -i lo",
        "capture -i lo --by src --watch=0.1",
        "capture -i lo -w /dev/null --watch=0.1",
        "drops --events",
    ];
    let lines = tables.iter().chain(&others).map(|args| watched(args)).chain(streams.map(str::to_owned));
    ends_in_time(&lab, lines.map(|line| format!("{line} --for 0.5")));
    // The rounds of a recording end as well; rounds of counters are readings that are compared.
    let ran = netwren_in(&lab, &["counters", "--watch=0.1", "--for", "0.7", "-o", "json", "name = UdpNoPorts"]);
    let rounds = ran.ok().lines().filter(|line| line.contains("\"round\"")).count();
    assert!((2..=8).contains(&rounds), "{rounds}");
}

/// Runs every line of words in the lab; none of them may be refused, fail or go on.
fn ends_in_time(lab: &Lab, lines: impl IntoIterator<Item = String, IntoIter: Send>) {
    crate::run::side_by_side(lines, |line| {
        let mut command = lab.command("timeout");
        clean(&mut command).args(["--preserve-status", "--signal=KILL", "60"]).arg(testkit::program::netwren());
        let ran = crate::run::Ran::of(command.args(line.split_whitespace()).output().unwrap());
        let cannot = ran.stderr.contains("built without BPF");
        assert!([0, 3].contains(&ran.code) || cannot, "{line}: {}: {}", ran.code, ran.stderr);
    });
}

/// Tables whose rows are about a time, and streams, with filters that match nothing: on an address, which other network
/// namespaces may have, on a container, and on a field that no hint is about.
#[test]
fn root_a_run_without_a_match_ends_when_its_time_is_over() {
    testkit::require_root!();
    let lab = Lab::new("nomatch");
    lab.use_conntrack();
    let (addr, container) = ("dst = 192.0.2.1", "container = no-such-container");
    let lines = [
        ("drops", &[addr, container, "reason = NO_SUCH_REASON"][..]),
        ("drops --via counters", &[addr]),
        ("drops --all --by dst", &[addr]),
        ("drops --events", &[addr, container]),
        ("counters", &["name = NoSuchCounter"]),
        ("doctor", &["cost = nothing"]),
        ("doctor softirq", &["samples > 999999999"]),
        ("doctor path", &["packets > 999999999"]),
        ("capture latency", &["local_addr = 192.0.2.1", container]),
        ("capture -i lo", &[addr]),
        ("log top --group 3", &[addr]),
    ];
    let of_table = |words: &str, filter: &str| {
        let line = format!("{words} {filter} --for 0.3");
        let has_rounds = ["drops", "counters", "doctor", "capture latency"].iter().any(|name| words.starts_with(name));
        let watched = (has_rounds && !words.contains("--events")).then(|| format!("{line} --watch=0.1"));
        // A log group has one reader at a time.
        let limited = |limit: &str| (!words.starts_with("log")).then(|| format!("{line} -n {limit}"));
        [limited("0"), limited("2"), watched, Some(line)]
    };
    let lines = lines.iter().flat_map(|(words, filters)| filters.iter().flat_map(|filter| of_table(words, filter)));
    ends_in_time(&lab, lines.flatten());
    // Ctrl-C ends a run without `--for`.
    for words in [&["drops", addr][..], &["drops", container]] {
        let mut command = lab.command("timeout");
        clean(&mut command).args(["--preserve-status", "--signal=INT", "--kill-after=30", "1"]);
        let ran = crate::run::Ran::of(command.arg(testkit::program::netwren()).args(words).output().unwrap());
        assert!([0, 3].contains(&ran.code) || ran.stderr.contains("built without BPF"), "{words:?}: {}", ran.stderr);
    }
}
