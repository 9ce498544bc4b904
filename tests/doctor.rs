//! `netwren doctor`: real faults are reported first, with their process; a healthy host has no finding, nor has a host
//! whose faults are over.

use crate::lab::furnished;
use crate::namespaces::{ends_of_this_run, join, only};
use crate::run::{Ran, clean, netwren, netwren_in};
use serde_json::Value;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use testkit::HostKnob;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::wait_until;

/// A server that neither accepts nor reads, with its clients, for at most a minute.
pub(crate) const DEAF: &str = "
import socket, time
listener = socket.socket(); listener.bind(('127.0.0.1', 8080)); listener.listen(2)
reader = socket.socket(2, 2); reader.setsockopt(1, 8, 4096); reader.bind(('127.0.0.1', 9999))
sender, clients, end = socket.socket(2, 2), [], time.time() + 60
while time.time() < end:
    client = socket.socket(); client.setblocking(False); client.connect_ex(('127.0.0.1', 8080)); clients.append(client)
    if len(clients) > 100: clients.pop(50).close()
    sender.sendto(b'x' * 1000, ('127.0.0.1', 9999))
    time.sleep(0.01)
";

/// The findings without the accounting, which follows them if something is missing.
fn findings(ran: Ran) -> Vec<Value> {
    let rows: Vec<Value> = ran.ok_but_owners().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.into_iter().filter(|row| row.get("accounting").is_none()).collect()
}

fn ids(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

/// The value of the counter `name`, read with nstat.
fn counter(lab: &Lab, name: &str) -> u64 {
    let text = lab.output("nstat", &["-asz", name]);
    text.split_whitespace().skip_while(|word| *word != name).nth(1).map_or(0, |word| word.parse().unwrap())
}

/// Packets that connection tracking dropped.
fn dropped(lab: &Lab) -> u64 {
    let rows = netwren_in(lab, &["nat", "stats", "-o", "json", "-c", "drop"]).stdout;
    lines(&rows).first().and_then(|row| row["drop"].as_u64()).unwrap_or(0)
}

/// The rows of an output, without the accounting at the end.
fn lines(text: &str) -> Vec<Value> {
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row.get("accounting").is_none()).collect()
}

fn doctor(lab: &Lab, words: &[&str]) -> Ran {
    netwren_in(lab, &[&["doctor", "--for", "0.5"], words].concat())
}

/// A manager also holds the listener, so it is likely but not certain which process accepts too slowly.
#[test]
fn root_a_listener_with_two_holders_is_blamed_on_the_likely_one() {
    testkit::require_root!();
    let lab = Lab::new("drholders");
    let script = "
import ctypes, os, socket, time
listener = socket.create_server(('127.0.0.1', 8080), backlog=1)
open('/proc/self/comm', 'w').write('manager')
if not os.fork():
    ctypes.CDLL(None).prctl(1, 9)
    open('/proc/self/comm', 'w').write('the-service')
    clients, end = [], time.time() + 600
    while time.time() < end:
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(('127.0.0.1', 8080))
        clients = clients[-50:] + [client]
        time.sleep(0.01)
os.wait()
";
    lab.spawn("python3", &["-c", script]);
    lab.wait_until("it overflows", || counter(&lab, "TcpExtListenOverflows") > 0);
    let found = findings(doctor(&lab, &["-o", "json"]));
    let title = found[0]["title"].as_str().unwrap();
    assert!(title.starts_with("the-service (") && title.contains(", likely: 2 processes hold it) at"), "{title}");
    assert_eq!((&found[0]["id"], &found[0]["confidence"]), (&"listen-overflow".into(), &"likely".into()));
}

#[test]
fn root_a_server_that_neither_accepts_nor_reads_is_named() {
    testkit::require_root!();
    let (lab, tmp) = (Lab::new("drdeaf"), tempfile::tempdir().unwrap());
    let pid = lab.spawn("python3", &["-c", DEAF]);
    lab.wait_until("both overflow", || {
        counter(&lab, "TcpExtListenOverflows") > 0 && counter(&lab, "UdpRcvbufErrors") > 0
    });
    let tape = tmp.path().join("sick");
    let tape = tape.to_str().unwrap();
    let found = findings(doctor(&lab, &["-o", "json", "--record", tape]));
    assert_eq!(ids(&found)[..2], ["listen-overflow", "udp-rcvbuf"]);
    let who = format!("python3 ({pid}) at 127.0.0.1:8080 accepts too slowly");
    assert!(found[0]["title"].as_str().unwrap().starts_with(&who), "{}", found[0]);
    assert!(found[1]["title"].as_str().unwrap().starts_with(&format!("python3 ({pid}) at 127.0.0.1:9999 reads")));
    for finding in &found[..2] {
        let first = &finding["evidence"][0];
        let grown = first["after"].as_u64().unwrap() - first["before"].as_u64().unwrap();
        assert_eq!(finding["lost"].as_u64(), Some(grown), "{finding}");
        assert_eq!((&finding["severity"], &finding["confidence"]), (&"critical".into(), &"certain".into()));
    }
    // Replaying the recording on another machine gives the same findings.
    let again = findings(netwren(&["doctor", "--replay", tape, "-o", "json"]));
    assert_eq!(again, found);
    // A recording of everything is diagnosed as well.
    let whole = tmp.path().join("whole");
    let whole = whole.to_str().unwrap();
    netwren_in(&lab, &["record", "--for", "1", whole]);
    let name = format!("netns = {}", lab.name());
    let of_whole = netwren(&["doctor", "--replay", whole, "-o", "json", &name, "and", "severity = critical"]);
    assert!(
        of_whole.stdout.starts_with("{\"severity\":\"critical\",\"id\":\"listen-overflow\""),
        "{}",
        of_whole.stdout
    );
    // The findings as text, by area, and as an exit code.
    let text = doctor(&lab, &["udp"]).ok_but_owners();
    assert!(text.starts_with("CRITICAL"), "{text}");
    assert!(text.contains("\n  evidence  UdpRcvbufErrors: ") && !text.contains("listen-overflow"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.starts_with("            sysctl")), "{text}");
    assert_eq!(doctor(&lab, &["--exit-code=critical"]).code, 1);
    doctor(&lab, &["--exit-code", "interfaces"]).ok_but_owners();
    lab.close_all();
    let well = |lab: &Lab| ids(&findings(doctor(lab, &["-o", "json", "udp", "listen-overflow"]))).is_empty();
    wait_until("what is over is no finding", || well(&lab));
}

#[test]
fn root_a_healthy_host_has_no_finding() {
    testkit::require_root!();
    let (quiet, busy) = (Lab::new("drquiet"), Lab::new("drbusy"));
    assert_eq!(findings(doctor(&quiet, &["-o", "json", "netns != null"])), Vec::<Value>::new());
    // A program without BPF cannot check a part of the host.
    let said = |args: &[&str]| doctor(&quiet, args).ok_but_owners().replace(" in the data that could be read", "");
    let of_area = said(&["conntrack"]);
    assert!(of_area.starts_with("nothing wrong was found by "), "{of_area}");
    assert!(of_area.contains(" checks\na window of "), "{of_area}");
    let filtered = said(&["netns != null and severity = critical"]);
    let count = |said: &str| {
        let number = said.split_once("found by ").and_then(|(_, after)| after.split_once(" checks"));
        number.and_then(|(number, _)| number.parse::<u32>().ok())
    };
    assert!(filtered.starts_with("nothing that matches the filter was found by "), "{filtered}");
    assert!(count(&filtered) > count(&of_area) && count(&of_area) > Some(5), "those of the area are fewer");
    // Earlier faults are no evidence, because the totals contain them.
    quiet.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..50).for_each(|_| drop(socket.send_to(b"x", "192.0.2.1:9")));
    });
    assert_eq!(findings(doctor(&quiet, &["-o", "json", "netns != null"])), Vec::<Value>::new());
    // A working server that receives much data.
    let (mut client, server) = busy.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    });
    let reader = std::thread::spawn(move || std::io::copy(&mut &server, &mut std::io::sink()).unwrap());
    let writer = std::thread::spawn(move || (0..200).for_each(|_| client.write_all(&[0; 100_000]).unwrap()));
    assert_eq!(findings(doctor(&busy, &["-o", "json", "netns != null"])), Vec::<Value>::new());
    writer.join().unwrap();
    assert_eq!(reader.join().unwrap(), 20_000_000);
}

#[test]
fn root_sockets_of_every_state_are_no_illness() {
    testkit::require_root!();
    let lab = furnished("drfurnished");
    let found = findings(doctor(&lab, &["-o", "json", "netns != null and severity != hint"]));
    assert_eq!(found, Vec::<Value>::new());
}

#[test]
fn root_a_full_table_of_connection_tracking_is_named_first() {
    testkit::require_root!();
    let lab = Lab::new("drct");
    let _knob = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_max", "100");
    lab.use_conntrack();
    let script = "
import socket, time
sender, end, port = socket.socket(2, 2), time.time() + 60, 0
while time.time() < end:
    port = port % 60000 + 1
    try: sender.sendto(b'x', ('127.0.0.1', port))
    except OSError: pass
    if port % 10 == 0: time.sleep(0.001)
";
    lab.spawn("python3", &["-c", script]);
    lab.wait_until("it drops", || dropped(&lab) > 0);
    let mut found = Vec::new();
    // The sender may get no CPU for half a second.
    wait_until("packets are dropped while it looks", || {
        found = findings(doctor(&lab, &["-o", "json"]));
        ids(&found).contains(&"ct-full")
    });
    assert_eq!(ids(&found)[0], "ct-full", "{found:?}");
    assert!(found[0]["lost"].as_u64().unwrap() > 0);
    let command = found[0]["remedy"][0]["command"].as_str().unwrap();
    assert_eq!(command, "sysctl -w net.netfilter.nf_conntrack_max=65536");
    lab.close_all();
    wait_until("no packet comes", || !ids(&findings(doctor(&lab, &["-o", "json"]))).contains(&"ct-full"));
}

#[test]
fn root_packets_that_the_way_refuses_are_named() {
    testkit::require_root!();
    let (here, there) = (Lab::new("drway"), Lab::new("drfar"));
    let ends = ends_of_this_run(10);
    join((&here, &ends[0]), (&there, &ends[1]));
    here.run_inside(|| {
        for name in std::fs::read_dir("/proc/sys/net/ipv4/conf").unwrap() {
            std::fs::write(name.unwrap().path().join("rp_filter"), "1").unwrap();
        }
    });
    there.ip(&["addr", "add", "198.51.100.7/32", "dev", "lo"]);
    // Send ARP requests from an address that gets an answer.
    there.run_inside(|| std::fs::write("/proc/sys/net/ipv4/conf/all/arp_announce", "2")).unwrap();
    here.output(
        "tc",
        &[
            "qdisc", "add", "dev", "lo", "root", "handle", "1:", "tbf", "rate", "8kbit", "burst", "1600", "limit",
            "3000",
        ],
    );
    let send = |lab: &Lab, from: &str, to: &str| {
        let script = format!(
            "import socket, time\ns, end = socket.socket(2, 2), time.time() + 60\ns.bind(('{from}', 0))\n\
             while time.time() < end:\n    try: s.sendto(b'x' * 1000, ('{to}', 9))\n    except OSError: pass\n    \
             time.sleep(0.005)"
        );
        lab.spawn("python3", &["-c", &script]);
    };
    send(&there, "198.51.100.7", &ends[0]);
    send(&here, "127.0.0.1", "127.0.0.1");
    send(&here, "0.0.0.0", "203.0.113.1");
    here.wait_until("they are refused", || {
        counter(&here, "TcpExtIPReversePathFilter") > 0
            && counter(&here, "IpOutNoRoutes") > 0
            && !here.output("tc", &["-s", "qdisc", "show", "dev", "lo"]).contains("dropped 0,")
    });
    let found = findings(doctor(&here, &["-o", "json", "netns != null"]));
    let mut of = ids(&found);
    of.sort_unstable();
    for id in ["no-route", "qdisc-drop", "rp-filter"] {
        assert!(of.contains(&id), "{id}: {of:?}");
    }
    let queue = found.iter().find(|one| one["id"] == "qdisc-drop").unwrap();
    assert_eq!(queue["object"], "lo tbf 1: root");
    // The other host is healthy.
    assert_eq!(findings(doctor(&there, &["-o", "json", "netns != null"])), Vec::<Value>::new());
}

#[test]
fn root_a_program_that_does_not_read_is_named() {
    testkit::require_root!();
    let lab = Lab::new("drunread");
    let script = "
import socket, time
listener = socket.socket(); listener.bind(('127.0.0.1', 8081)); listener.listen()
client = socket.create_connection(('127.0.0.1', 8081)); server = listener.accept()[0]
client.setblocking(False)
try:
    while True: client.send(b'x' * 100000)
except OSError: pass
time.sleep(60)
";
    let pid = lab.spawn("python3", &["-c", script]);
    lab.wait_until("it is full", || {
        let queues = lab.output("ss", &["-Htn", "sport = :8081"]);
        queues.split_whitespace().nth(1).is_some_and(|queue| queue.parse::<u64>().is_ok_and(|queue| queue > 100_000))
    });
    let mut found = Vec::new();
    wait_until("nothing comes any more", || {
        found = findings(doctor(&lab, &["-o", "json", "unread-queue"]));
        !found.is_empty()
    });
    let title = found[0]["title"].as_str().unwrap();
    assert!(
        title.starts_with(&format!("python3 ({pid}) does not read from 127.0.0.1:8081 from 127.0.0.1:")),
        "{title}"
    );
}

#[test]
fn root_a_watch_that_is_ended_early_has_checked_nothing() {
    testkit::require_root!();
    let lab = Lab::new("drended");
    let mut command = lab.command(testkit::program::netwren());
    let command = clean(&mut command).args(["doctor", "--for", "60"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    // Its signal handlers are set, so it is waiting or about to wait.
    wait_until("it can be ended", || {
        let text = std::fs::read_to_string(&status).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        text.contains("Name:\tnetwren") && u64::from_str_radix(line.trim(), 16).unwrap() & 2 != 0
    });
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &*ran.stdout), (3, "nothing was checked\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("ended before the second reading"), "{}", ran.stderr);
}

#[test]
fn root_wrong_words_are_refused() {
    testkit::require_root!();
    let lab = Lab::new("drwords");
    doctor(&lab, &["--exit-code=bad"]).says(2, &["critical, warning or hint"]);
    doctor(&lab, &["tpc"]).says(2, &["tpc"]);
    let explained = netwren(&["doctor", "--explain", "listen-overflow"]).ok();
    assert!(explained.contains("refuted by") && !explained.contains("ct-full"), "{explained}");
    let backends = netwren_in(&lab, &["doctor", "--explain", "severity = critical"]).ok();
    assert!(backends.contains("two readings"), "{backends}");
}

#[test]
fn root_the_collapse_of_a_nat_box_is_named_first() {
    testkit::require_root!();
    let _knob = HostKnob::set("/proc/sys/net/netfilter/nf_conntrack_max", "200");
    let hosts = Routed::new("drnat");
    hosts.router.nft(
        "table ip nat {\n chain published {\n type nat hook prerouting priority dstnat;\n \
         ip daddr 192.0.2.1 tcp dport 8080 dnat to 172.17.0.2:80\n }\n}\n",
    );
    let server = "
import socket
listener = socket.socket(); listener.setsockopt(1, 2, 1); listener.bind(('0.0.0.0', 80)); listener.listen(4096)
while True: listener.accept()[0].close()
";
    // The client opens connections continuously and does not wait for those that get no answer.
    let client = "
import socket, time
clients, end = [], time.time() + 60
while time.time() < end:
    client = socket.socket(); client.setblocking(False); client.connect_ex(('192.0.2.1', 8080)); clients.append(client)
    if len(clients) > 800: clients.pop(0).close()
    time.sleep(0.005)
";
    hosts.server.spawn("python3", &["-c", server]);
    hosts.server.wait_until("it listens", || !hosts.server.output("ss", &["-Hltn", "sport = :80"]).is_empty());
    hosts.client.spawn("python3", &["-c", client]);
    hosts.router.wait_until("it drops", || dropped(&hosts.router) > 0);
    let begun = std::time::Instant::now();
    let found = findings(netwren_in(&hosts.router, &["doctor", "-o", "json"]));
    assert_eq!(ids(&found)[0], "ct-full", "{found:?}");
    // A run over the whole host reports it before its consequence, retransmitted SYNs.
    let filter = only(&[&hosts.router, &hosts.client, &hosts.server]);
    let mut all = Vec::new();
    wait_until("the clients ask again", || {
        let ran = netwren(&["doctor", "--all-netns", "--for", "1", "-o", "json", &filter]);
        all = lines(&ran.stdout);
        ids(&all).contains(&"syn-retrans")
    });
    assert_eq!((ids(&all)[0], &all[0]["netns"]), ("ct-full", &hosts.router.name().into()), "{all:?}");
    assert!(begun.elapsed().as_secs() < 30);
}

/// TCP of all namespaces is read in one pass of the BPF walk; a replay has the same findings.
#[test]
fn root_all_namespaces_are_read_in_one_pass() {
    testkit::require_root!();
    if !netwren(&["sockets", "--all-netns", "--explain"]).stdout.contains("tcp sockets via bpf") {
        testkit::print_loud("skipped: TCP is not read via BPF here");
        return;
    }
    let lab = Lab::new("drwalk");
    lab.spawn("python3", &["-c", DEAF]);
    lab.wait_until("the queue is full", || lab.output("ss", &["-Hltn", "sport = :8080"]).contains(" 3 "));
    let tape = lab.dir().join("tape").display().to_string();
    let filter = only(&[&lab]);
    let ran = netwren(&["doctor", "--all-netns", "--for", "1", "-o", "json", "--record", &tape, &filter]);
    let found = lines(&ran.stdout);
    let overflow = found.iter().find(|one| one["id"] == "listen-overflow").unwrap_or_else(|| panic!("{found:?}"));
    assert!(overflow["title"].as_str().unwrap().contains(" at 127.0.0.1:8080 "), "{overflow}");
    let again = netwren(&["doctor", "--all-netns", "--replay", &tape, "-o", "json", &filter]);
    assert_eq!(lines(&again.stdout), found);
    let bytes = std::fs::read(&tape).unwrap();
    let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(holds(b"sockets/tcp/bpf-shared-0@0") && !holds(b"sockets/tcp/netlink@"));
}

#[test]
fn root_a_server_out_of_file_descriptors_is_named() {
    testkit::require_root!();
    let lab = Lab::new("drfds");
    let script = "
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
listener = socket.socket(); listener.bind(('127.0.0.1', 8082)); listener.listen(50)
files = []
try:
    while True: files.append(open('/dev/null'))
except OSError: pass
time.sleep(60)
";
    let pid = lab.spawn("python3", &["-c", script]);
    lab.wait_until("it listens", || !lab.output("ss", &["-Hltn", "sport = :8082"]).is_empty());
    let _waiting = lab.run_inside(|| TcpStream::connect("127.0.0.1:8082").unwrap());
    let mut found = Vec::new();
    wait_until("it has opened all", || {
        found = findings(doctor(&lab, &["-o", "json", "fd-limit"]));
        !found.is_empty() && found[0]["severity"] == "critical"
    });
    // A descriptor inherited from the test may have a number above the limit.
    let used = found[0]["evidence"][0]["after"].as_u64().unwrap();
    assert!((64..70).contains(&used), "{found:?}");
    assert_eq!(found[0]["title"], format!("python3 ({pid}) has {used} of 64 file descriptors open"));
    assert_eq!(found[0]["evidence"][1]["counter"], "accept queue of 127.0.0.1:8082");
}

/// Recordings of incidents (`ill`) and of their healthy twins, by the expected finding; see HOW in that folder.
fn recorded_incidents() -> Vec<(String, std::path::PathBuf)> {
    let folder = testkit::program::workspace().join("fixtures/incidents/6.18");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let id = |path: &std::path::Path| Some(path.file_name()?.to_str()?.strip_suffix(".ill.tape")?.to_owned());
    files.filter_map(|path| Some((id(&path)?, path))).collect()
}

#[test]
fn replay_recorded_incidents_are_diagnosed_as_they_were() {
    let all = recorded_incidents();
    assert!(all.len() >= 40, "{}", all.len());
    for (id, ill) in all {
        let found = |tape: &std::path::Path, filter: &str| {
            let ran = netwren(&["doctor", "--replay", tape.to_str().unwrap(), "-o", "json", filter]);
            assert_eq!(ran.code, 0, "{id}: {}", ran.stderr);
            lines(&ran.stdout)
        };
        let first = found(&ill, "severity != null");
        assert_eq!(ids(&first).first(), Some(&&*id), "{:?}", ids(&first));
        let well = ill.with_file_name(format!("{id}.well.tape"));
        assert_eq!(found(&well, "netns != null"), Vec::<Value>::new(), "{id}");
    }
}

/// Every remedy must be a valid command: its options are accepted and its filter is valid.
#[test]
fn every_netwren_command_of_a_check_is_one() {
    let checks = testkit::program::workspace().join("crates/doctor/src/checks");
    let sources = std::fs::read_dir(checks).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let text: String = sources.collect();
    let commands: Vec<String> = text
        .split(".remedy(\"netwren ")
        .skip(1)
        .filter_map(|rest| Some(rest.replace("\\\"", "\u{1}").split_once('"')?.0.replace('\u{1}', "\"")))
        .filter(|command| !command.contains('{'))
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let is_face = ["tcpdump", "ss", "conntrack"].iter().any(|face| command.starts_with(&format!("{face} ")));
        let can_explain = ["sockets", "nat", "flows", "listeners"].iter().any(|table| command.starts_with(table));
        let last = if can_explain && !command.starts_with("nat advise") { "--explain" } else { "--help" };
        let program = testkit::program::netwren().display();
        let mut shell = std::process::Command::new("sh");
        clean(&mut shell).args(["-c", &format!("{program} {command} {last}")]);
        let ran = Ran::of(shell.output().unwrap());
        assert!(is_face || ran.code != 2, "netwren {command}: {}", ran.stderr);
    }
}

/// A name that a shell would run, or that looks like an option, is part of no proposed command. Text and JSON show the
/// name itself, escaped.
#[test]
fn root_no_hostile_name_is_part_of_a_proposed_command() {
    testkit::require_root!();
    for name in ["$(reboot)", "a;reboot", "`id`", "-rf", "a\u{1b}[1m"] {
        let lab = Lab::new("hostile");
        lab.ip(&["link", "add", name, "type", "veth", "peer", "name", "peer"]);
        lab.ip(&["addr", "add", "198.51.100.1/24", "dev", name]);
        let socket = lab.run_inside(|| UdpSocket::bind("0.0.0.0:0").unwrap());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sender = std::thread::spawn(move || {
            let pause = std::time::Duration::from_millis(10);
            while ended.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = socket.send_to(b"x", "203.0.113.1:9");
            }
        });
        let found = doctor(&lab, &["-o", "json"]);
        drop(end);
        sender.join().unwrap();
        assert!(!found.stdout.contains('\u{1b}'), "{}", found.stdout);
        let found = lines(&found.stdout);
        let down = found.iter().find(|one| one["id"] == "iface-down").unwrap_or_else(|| panic!("{name:?}: {found:?}"));
        assert_eq!((&down["object"], &down["remedy"][0]["command"]), (&name.into(), &"ip link set IFACE up".into()));
        for one in &found {
            let remedies = one["remedy"].as_array().unwrap();
            assert!(remedies.iter().all(|remedy| !remedy["command"].to_string().contains(name)), "{one}");
        }
    }
}
