//! `nat events` shows the events of conntrack(8) and more, counts lost events, and leaves nothing loaded.

use crate::going::Going;
use crate::run::{Ran, clean, netwren};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use sys::caps::Cap;
use testkit::conntrack::Entry;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Returns from the test with a message if BPF cannot report new entries.
macro_rules! require_packets {
    ($lab:expr) => {
        let tried = Running::tried(&$lab, &["--event", "new", "--via", "bpf", "--limit", "0"]);
        if tried.code != 0 {
            let built_without = tried.stderr.contains("built without BPF");
            assert!(built_without || sys::Kernel::read_running().version() < (6, 4), "{}", tried.stderr);
            eprintln!("skipped: {}", tried.stderr);
            return;
        }
    };
}

/// A running program with unparsed lines.
type Running = Going<String>;

fn command(lab: &Lab, program: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    clean(&mut command).args(args).stdin(Stdio::null());
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

impl Running {
    /// Starts `netwren nat events` and waits for its header; every event after that is shown.
    #[track_caller]
    fn events(lab: &Lab, columns: &str, args: &[&str]) -> Running {
        let all = [&["nat", "events", "--columns", columns], args].concat();
        Going::past_header(command(lab, testkit::program::netwren(), &all), columns, |line| line)
    }

    /// Starts `conntrack -E` and waits until it listens, using flows to [`TRIED`], which are not counted.
    fn conntrack(lab: &Lab, args: &[&str]) -> Running {
        let all = [&["-E"], args].concat();
        let mut running = Going::spawn(command(lab, std::path::Path::new("conntrack"), &all), |line| line);
        let mut tried = 60_000;
        testkit::wait_until("conntrack listens", || {
            lab.new_udp_flows(tried, 1);
            tried += 1;
            running.take();
            !running.read.is_empty()
        });
        running
    }

    /// A run of `nat events` that ends without being interrupted.
    fn tried(lab: &Lab, args: &[&str]) -> Ran {
        let all = [&["nat", "events"], args].concat();
        Ran::of(command(lab, testkit::program::netwren(), &all).output().unwrap())
    }
}

/// A connection that carries 1,000 bytes in one direction and 3,000 in the other, closed by both ends.
pub(crate) fn converse(lab: &Lab, address: &str) -> SocketAddr {
    lab.run_inside(|| {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let mut near = TcpStream::connect(address).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        far.write_all(&[2; 3000]).unwrap();
        near.read_exact(&mut [0; 3000]).unwrap();
        drop(near);
        assert_eq!(far.read(&mut [0; 1]).unwrap(), 0);
        address
    })
}

/// The addresses of flows that only check whether a program listens: 127.1.0.0 plus 60,000 to 65,535.
const TRIED: [&str; 3] = ["127.1.23", "127.1.24", "127.1.25"];

/// The lines without those flows.
fn counted(lines: Vec<String>) -> Vec<String> {
    let is_tried = |line: &String| TRIED.iter().any(|start| line.contains(start));
    lines.into_iter().filter(|line| !is_tried(line)).collect()
}

/// Sends UDP over IPv6.
fn say_v6(lab: &Lab) {
    lab.run_inside(|| {
        let here = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let there = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        here.send_to(b"x", there.local_addr().unwrap()).unwrap();
    });
}

/// Sends UDP to 192.0.2.1:53, which [`REDIRECTED`] redirects.
fn ask_the_redirected(lab: &Lab) {
    lab.ip(&["address", "add", "192.0.2.1/32", "dev", "lo"]);
    lab.run_inside(|| {
        let there = UdpSocket::bind((Ipv4Addr::LOCALHOST, 5353)).unwrap();
        let here = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        here.send_to(b"x", "192.0.2.1:53").unwrap();
        there.recv_from(&mut [0; 8]).unwrap();
    });
}

const REDIRECTED: &str = "table ip redirected {
 chain output {
 type nat hook output priority -100;
 ip daddr 192.0.2.1 udp dport 53 dnat to 127.0.0.1:5353
 }
}
";

fn flush(lab: &Lab) {
    lab.output("conntrack", &["-F"]);
}

fn count(lines: &[String], event: &str) -> usize {
    lines.iter().filter(|line| line.split('\t').next() == Some(event)).count()
}

/// The number of occurrences of each line.
fn bag(lines: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut bag = BTreeMap::new();
    lines.into_iter().for_each(|line| *bag.entry(line).or_default() += 1);
    bag
}

/// Checks that both have the same lines equally often; a failure shows the first differences.
#[track_caller]
fn assert_same(ours: Vec<String>, theirs: Vec<String>) {
    let (ours, theirs) = (bag(ours), bag(theirs));
    let only = |one: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>| {
        let differs = one.iter().filter(|(line, times)| other.get(*line) != Some(*times));
        differs.map(|(line, times)| format!("{times} x {line}")).take(8).collect::<Vec<_>>()
    };
    let none: Vec<String> = Vec::new();
    assert_eq!((only(&ours, &theirs), only(&theirs, &ours)), (none.clone(), none));
}

/// Converts a line of `conntrack -E -o id` to the columns [`OF_CONNTRACK`].
fn in_our_words(line: &str) -> String {
    let event = match line.split('[').nth(1).and_then(|rest| rest.split(']').next()) {
        Some("NEW") => "new",
        Some("UPDATE") => "update",
        Some("DESTROY") => "destroy",
        other => panic!("{other:?} in {line}"),
    };
    let (_, rest) = line.split_once(']').unwrap();
    let proto = rest.split_whitespace().next().unwrap();
    let all = |name: &str| {
        let parts = rest.split_whitespace().filter_map(|word| word.strip_prefix(name));
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let parts = [all("src="), all("dst="), all("sport="), all("dport=")].concat();
    // The original and the reply value alternate in each pair.
    format!("{event}\t{proto}\t{}\t{}", parts.join("\t"), all("id=")[0])
}

const OF_CONNTRACK: &str =
    "event,proto,orig_src,reply_src,orig_dst,reply_dst,orig_sport,reply_sport,orig_dport,reply_dport,id";

#[test]
fn root_what_conntrack_tells_and_no_more() {
    testkit::require_root!();
    testkit::require_tool!("conntrack");
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evsame");
    lab.use_conntrack();
    lab.nft(REDIRECTED);
    let mut ours = Running::events(&lab, OF_CONNTRACK, &[]);
    let mut theirs = Running::conntrack(&lab, &["-o", "id"]);
    // conntrack enlarges its buffer only after it has started to listen, so everything must fit into the default
    // buffer.
    lab.new_udp_flows(0, 40);
    ask_the_redirected(&lab);
    say_v6(&lab);
    converse(&lab, "127.0.0.1:0");
    converse(&lab, "[::1]:0");
    flush(&lab);
    let gone =
        |lines: &[String], word: &str| counted(lines.to_vec()).iter().filter(|line| line.contains(word)).count() >= 44;
    ours.read_until("we have told of every end", |lines| gone(lines, "destroy"));
    theirs.read_until("so has conntrack", |lines| gone(lines, "[DESTROY]"));
    let (ours, ran) = ours.end();
    ran.says(0, &["new entries", "destroyed"]);
    let (theirs, _) = theirs.end();
    assert_same(counted(ours), counted(theirs).iter().map(|line| in_our_words(line)).collect());
}

#[test]
fn root_by_packet_the_same_new_entries_as_by_netlink() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evdoors");
    lab.use_conntrack();
    lab.nft(REDIRECTED);
    require_packets!(lab);
    const COLUMNS: &str =
        "event,proto,family,state,nat,client,published,backend,reply_dst,reply_dport,mark,zone,netns_id";
    let mut told = Running::events(&lab, COLUMNS, &["--event", "new", "--via", "netlink"]);
    // BPF is the default here, because only new entries are requested.
    let mut seen = Running::events(&lab, COLUMNS, &["--event", "new", "--cost"]);
    lab.new_udp_flows(0, 500);
    ask_the_redirected(&lab);
    say_v6(&lab);
    converse(&lab, "127.0.0.1:0");
    converse(&lab, "[::1]:0");
    told.read_until("all by netlink", |lines| lines.len() >= 504);
    seen.read_until("all by packet", |lines| lines.len() >= 504);
    let (told, _) = told.end();
    let (seen, ran) = seen.end();
    ran.says(0, &["504 new entries", "via bpf"]);
    assert!(seen.iter().any(|line| line.contains("\tdnat\t") && line.contains("\t127.0.0.1:5353\t")), "{seen:?}");
    assert_same(seen, told);
}

#[test]
fn root_a_session_log_has_bytes_and_duration() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    for (timestamps, events) in [("0", "0 new"), ("1", "0 new")] {
        let lab = Lab::new("evlog");
        lab.use_conntrack();
        lab.set_conntrack("nf_conntrack_acct", "1");
        lab.set_conntrack("nf_conntrack_timestamp", timestamps);
        let columns = "event,published,bytes_out,bytes_in,packets_in,duration_us,state";
        let mut log = Running::events(&lab, columns, &["--event", "destroy", "proto = tcp"]);
        let address = converse(&lab, "127.0.0.1:0");
        lab.new_udp_flows(0, 3);
        flush(&lab);
        log.read_until("the end of it", |lines| !lines.is_empty());
        let (lines, ran) = log.end();
        ran.says(0, &[events, "4 destroyed"]);
        let cells: Vec<&str> = lines[0].split('\t').collect();
        assert_eq!((lines.len(), cells[0], cells[1]), (1, "destroy", address.to_string().as_str()), "{lines:?}");
        let number = |index: usize| cells[index].parse::<u64>().unwrap();
        assert!((1_000..3_000).contains(&number(2)) && (3_000..6_000).contains(&number(3)), "{lines:?}");
        assert!(number(4) > 0 && (1..60_000_000).contains(&number(5)), "{lines:?}");
        assert_eq!(cells[6], "time_wait");
    }
}

#[test]
fn root_filter_limit_and_a_closed_pipe() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evlimit");
    lab.use_conntrack();
    for via in ["netlink", "bpf"] {
        if via == "bpf" {
            require_packets!(lab);
        }
        flush(&lab);
        let filter = "orig_dst in 127.1.0.8/29";
        let args = ["--event", "new", "--via", via, filter, "--limit", "5", "--stats"];
        let mut limited = Running::events(&lab, "event,orig_dst", &args);
        lab.new_udp_flows(0, 64);
        limited.read_until("five", |lines| lines.len() >= 5);
        let code = limited.child.wait().unwrap().code();
        assert_eq!((code, limited.lines.iter().count()), (Some(0), 0));
        let expected: Vec<String> = (8..13).map(|n| format!("new\t127.1.0.{n}")).collect();
        assert_eq!(limited.read, expected);

        let mut closed = Running::events(&lab, "event,orig_dst", &["--event", "new", "--via", via]);
        let (_, nobody) = channel();
        // The reading thread ends at the next line and closes its pipe.
        drop(std::mem::replace(&mut closed.lines, nobody));
        testkit::wait_until("it ends", || {
            lab.new_udp_flows(1_000, 100);
            flush(&lab);
            closed.child.try_wait().unwrap().is_some()
        });
        assert_eq!(closed.child.wait().unwrap().code(), Some(0), "{via}");
    }
}

#[test]
fn root_a_recording_tells_the_same() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evtape");
    lab.use_conntrack();
    for (n, via) in ["netlink", "bpf"].into_iter().enumerate() {
        if via == "bpf" {
            require_packets!(lab);
        }
        let file = lab.dir().join(format!("{via}.tape"));
        let file = file.to_str().unwrap();
        let columns = "event,time,proto,client,published,backend,netns_id";
        let mut live = Running::events(&lab, columns, &["--event", "new", "--via", via, "--record", file]);
        lab.new_udp_flows(10_000 * n as u32, 300);
        live.read_until("all", |lines| lines.len() >= 300);
        let (lines, ran) = live.end();
        let said = ran.stderr.clone();
        ran.says(0, &["300 new entries"]);
        let again = netwren(&["nat", "events", "--replay", file, "--columns", columns, "--event", "new", "-H"]);
        assert_eq!(again.stderr, said);
        assert_eq!(again.ok().lines().collect::<Vec<_>>(), lines, "{via}");
        // A replay with a different filter selects from the recorded events.
        let one = netwren(&["nat", "events", "--replay", file, "--columns", "orig_dst", "-H", "orig_dst = 127.1.0.9"]);
        assert_eq!(one.stdout, if n == 0 { "127.1.0.9\n" } else { "" });
        one.says(3, &["the recording holds no update and destroy events"]);
    }
}

/// A shell in the lab with one established connection; it ends with the lab or with [`Client::end`].
struct Client {
    pid: u32,
    port: u16,
    _near: TcpStream,
}

impl Client {
    fn connect(lab: &Lab, listener: &TcpListener) -> Client {
        let to = listener.local_addr().unwrap();
        let script = format!("exec 3<>/dev/tcp/{}/{}; read line <&3", to.ip(), to.port());
        let pid = lab.spawn("bash", &["-c", &script]);
        let (near, from) = listener.accept().unwrap();
        // It reads from this connection until it is killed.
        Client { pid, port: from.port(), _near: near }
    }

    /// Kills the process, waits for its end, and then flushes the table.
    fn end(&self, lab: &Lab) {
        assert!(Command::new("kill").args(["-9", &self.pid.to_string()]).status().unwrap().success());
        let dead = format!("/proc/{}/fd", self.pid);
        testkit::wait_until("the client is gone", || {
            std::fs::read_dir(&dead).map_or(true, |mut files| files.next().is_none())
        });
        flush(lab);
    }

    fn row(&self, event: &str) -> String {
        format!("{event}\t127.0.0.1:{}\tbash\t{}", self.port, self.pid)
    }
}

/// New events have owners from sockets that are looked up afterwards; destroy events have the owners known before.
#[test]
fn root_owners_of_events() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evowners");
    lab.use_conntrack();
    let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let columns = "event,client,process,pid";
    let tape = lab.dir().join("owners.tape");
    let tape = tape.to_str().unwrap();
    let args = ["--event", "new,destroy", "--record", tape];
    let mut running = Running::events(&lab, columns, &args);
    let first = Client::connect(&lab, &listener);
    running.read_until("the first begins", |lines| lines.contains(&first.row("new")));
    // Immediately afterwards: this event waits for the next reading of owners, which includes it.
    let second = Client::connect(&lab, &listener);
    running.read_until("the second begins", |lines| lines.contains(&second.row("new")));
    first.end(&lab);
    running.read_until("both are out", |lines| count(lines, "destroy") >= 2);
    // An entry with a local address but without a socket, and an entry without a local address.
    let elsewhere = |last| (Ipv4Addr::new(10, 0, 0, last).into(), 9);
    let here = (Ipv4Addr::LOCALHOST.into(), 9);
    lab.track([Entry::udp(here, elsewhere(2)), Entry::udp(elsewhere(1), elsewhere(2))]);
    let nobodys = ["new\t10.0.0.1:9\t-\t-", "new\t127.0.0.1:9\t-\t-"];
    let holds = |lines: &[String], row: &str| lines.iter().any(|line| line == row);
    running.read_until("nobody's", |lines| nobodys.iter().all(|row| holds(lines, row)));
    let (lines, ran) = running.end();
    for row in [first.row("new"), second.row("new"), first.row("destroy"), second.row("destroy")] {
        assert!(holds(&lines, &row), "{row} {lines:?}");
    }
    // A last packet of the killed client may have created another entry after the flush.
    assert!(ran.stderr.contains(" events with an endpoint on this host have no owner"), "{}", ran.stderr);
    let again = netwren(&["nat", "events", "--event", "new,destroy", "--replay", tape, "--columns", columns, "-H"]);
    assert_eq!(again.stdout.lines().collect::<Vec<_>>(), lines, "{}", again.stderr);
    assert_eq!(again.stderr, ran.stderr);
    second.end(&lab);
}

/// Destroy events have owners even if new events are not shown, and new entries reported by BPF have owners as well.
#[test]
fn root_owners_where_one_kind_is_asked_for() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evowners1");
    lab.use_conntrack();
    let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let columns = "event,client,process,pid";
    let mut ends = Running::events(&lab, columns, &["process = bash", "--event", "destroy"]);
    let mut begins = Running::events(&lab, columns, &["process = bash", "--event", "new"]);
    let client = Client::connect(&lab, &listener);
    begins.read_until("it begins", |lines| !lines.is_empty());
    flush(&lab);
    ends.read_until("it ends", |lines| !lines.is_empty());
    assert_eq!(begins.end().0, [client.row("new")]);
    assert_eq!(ends.end().0, [client.row("destroy")]);
}

/// The same connection exists in two namespaces, each with its own process.
#[test]
fn root_owners_of_events_in_the_right_namespace() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let labs = [Lab::new("evowners2"), Lab::new("evowners3")];
    let script = "import socket,signal\ns=socket.socket(); s.bind(('127.0.0.1',4321)); s.connect(('127.0.0.1',7777))\n\
                  signal.pause()";
    let args = ["client = 127.0.0.1:4321", "--all-netns", "--event", "new"];
    let mut all = Running::events(&labs[0], "netns,client,pid", &args);
    let begin = |lab: &Lab| {
        lab.use_conntrack();
        let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:7777")).unwrap();
        let pid = lab.spawn("python3", &["-c", script]);
        (listener, format!("{}\t127.0.0.1:4321\t{pid}", lab.name()))
    };
    let (_listeners, rows): (Vec<TcpListener>, Vec<String>) = labs.iter().map(begin).unzip();
    all.read_until("both", |lines| lines.len() >= 2);
    let (lines, ran) = all.end();
    assert_eq!(bag(lines), bag(rows), "{}", ran.stderr);
}

#[test]
fn root_losses_are_reported_and_live_entries_are_dumped() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evlost");
    lab.use_conntrack();
    let args = ["--event", "new,live", "--buffer", "4KiB", "--resync", "--stats"];
    let mut running = Running::events(&lab, "event,orig_dst", &args);
    let sent = 20_000;
    lab.new_udp_flows(0, sent);
    running.read_until("something", |lines| !lines.is_empty());
    let (lines, ran) = running.end();
    let told = count(&lines, "new") as u64;
    assert!(ran.stderr.contains("events lost: the netlink buffer (8192 bytes) was full"), "{}", ran.stderr);
    let (_, lost) = ran.stderr.split_once("; lost ").unwrap();
    let lost: u64 = lost.split(';').next().unwrap().parse().unwrap();
    assert_eq!(told + lost, u64::from(sent), "{}", ran.stderr);
    // Two milliseconds of a flood exceed 8 KiB.
    assert!(lost > 0 && ran.code == 3, "{}", ran.stderr);
    assert!(count(&lines, "live") > 0, "{}", ran.stderr);
}

/// A loss during a dump causes another dump. A burst may be shorter than the 10,000 events between dumps; after its
/// end, the last dump contains every lost entry.
#[test]
fn root_issue_10_after_losses_the_table_is_dumped_until_none_is_missing() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evresync");
    lab.use_conntrack();
    // `--resync` shows the entries it finds, independent of `--event`.
    let args = ["--event", "new", "--buffer", "4KiB", "--resync", "--stats"];
    let mut running = Running::events(&lab, "event,orig_dst", &args);
    let sent = 9_000;
    lab.new_udp_flows(0, sent);
    let addresses = |lines: &[String]| -> usize {
        let all = lines.iter().filter_map(|line| line.split('\t').nth(1));
        all.collect::<std::collections::BTreeSet<_>>().len()
    };
    running.read_until("every entry", |lines| addresses(lines) == sent as usize);
    let (lines, ran) = running.end();
    assert!(count(&lines, "new") < sent as usize && count(&lines, "live") > 0, "{}", ran.stderr);
    ran.says(3, &["events lost", "found by dumps"]);
}

#[test]
fn root_issue_10_entries_that_bpf_does_not_see_are_reported() {
    testkit::require_root!();
    testkit::require_tool!("conntrack");
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evinsert");
    lab.use_conntrack();
    require_packets!(lab);
    let insert = "-I -p udp -s 10.9.8.7 -d 10.9.8.6 --sport 5 --dport 6 --timeout 60";
    let insert: Vec<&str> = insert.split(' ').collect();
    let mut heard = Running::events(&lab, "event,orig_dst", &["--event", "new", "--via", "netlink"]);
    let mut seen = Running::events(&lab, "event,orig_dst", &["--event", "new"]);
    lab.output("conntrack", &insert);
    lab.new_udp_flows(0, 1);
    heard.read_until("both", |lines| lines.len() == 2);
    seen.read_until("that of the packet", |lines| lines.len() == 1);
    assert!(!heard.end().1.stderr.contains("conntrack -I"));
    seen.end().1.says(0, &["not by processes (conntrack -I", "--via netlink reports both"]);
}

#[test]
fn root_every_namespace_by_its_name() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let (near, far) = (Lab::new("evnear"), Lab::new("evfar"));
    let mut all = Running::events(&near, "event,netns,orig_dst", &["--all-netns", "--event", "new"]);
    for lab in [&near, &far] {
        lab.use_conntrack();
        lab.new_udp_flows(0, 50);
    }
    // A namespace that did not exist at the start.
    let late = Lab::new("evlate");
    late.use_conntrack();
    let of = |lines: &[String], lab: &Lab| lines.iter().filter(|line| line.contains(lab.name())).count();
    let mut first = 0;
    testkit::wait_until("the new one is heard", || {
        late.new_udp_flows(first, 1);
        first += 1;
        all.take();
        of(&all.read, &late) > 0
    });
    all.read_until("all of both", |lines| of(lines, &near) >= 50 && of(lines, &far) >= 50);
    let (lines, ran) = all.end();
    assert_eq!((of(&lines, &near), of(&lines, &far)), (50, 50));
    // The namespace had no ID at first, so its first events may be missing.
    ran.says(3, &["read only a moment later"]);
}

#[test]
fn root_without_the_right_it_says_what_is_missing() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evdenied");
    let mut command = command(&lab, testkit::program::netwren(), &["nat", "events"]);
    confine(&mut command, &[Limit::WithoutCaps(vec![Cap::NetAdmin])]).unwrap();
    Ran::of(command.output().unwrap()).says(4, &["events of connection tracking", "operation not permitted"]);
}

#[test]
fn root_kill_9_leaves_nothing() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("evkilled");
    lab.use_conntrack();
    require_packets!(lab);
    let args = ["--event", "new", "--via", "bpf"];
    // As many runs as there are places at the hook: if one place stayed occupied, the next run would fail.
    let mut all: Vec<Running> = (0..4).map(|_| Running::events(&lab, "event", &args)).collect();
    let fifth = Running::tried(&lab, &args);
    fifth.says(4, &["another BPF program already uses hook LOCAL_IN"]);
    for running in &mut all {
        running.signal("-KILL");
        running.child.wait().unwrap();
    }
    testkit::wait_until("all places are free", || {
        Running::tried(&lab, &[&args[..], &["--limit", "0"]].concat()).code == 0
    });
    // While all places are taken, a run without `--via` falls back to netlink.
    let all: Vec<Running> = (0..4).map(|_| Running::events(&lab, "event", &args)).collect();
    let fifth = Running::events(&lab, "event", &["--event", "new", "--cost"]);
    let (_, ran) = fifth.end();
    ran.says(0, &["via netlink", "another BPF program already uses"]);
    drop(all);
}

#[test]
fn contradictory_flags_are_refused() {
    netwren(&["nat", "events", "--via", "proc"]).says(2, &["--via takes netlink or bpf"]);
    netwren(&["nat", "events", "colour = red"]).says(2, &["colour"]);
    assert!(netwren(&["nat", "events", "--columns", "help"]).ok().contains("duration_us"));
}
