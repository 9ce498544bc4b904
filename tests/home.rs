//! `netwren` without a command shows every part of a faulty host on one screen, and the remaining parts if privileges,
//! BPF or parts of the host are missing.

use crate::run::{Ran, clean, command_for_anyone, netwren, netwren_in};
use serde_json::Value;
use std::process::Stdio;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};
use testkit::wait_until;

/// A server with a hostile name that neither accepts nor reads, its clients, and a connection with traffic; they run
/// for at most a minute.
const SICK: &str = "
import socket, time
open('/proc/self/comm', 'wb').write(b'e\\x1b[2J\\n|')
listener = socket.socket(); listener.bind(('127.0.0.1', 8080)); listener.listen(2)
busy = socket.socket(); busy.bind(('127.0.0.1', 8090)); busy.listen(2)
sender = socket.create_connection(('127.0.0.1', 8090)); receiver = busy.accept()[0]
reader = socket.socket(2, 2); reader.setsockopt(1, 8, 4096); reader.bind(('127.0.0.1', 9999))
flood, clients, end = socket.socket(2, 2), [], time.time() + 60
while time.time() < end:
    client = socket.socket(); client.setblocking(False); client.connect_ex(('127.0.0.1', 8080)); clients.append(client)
    if len(clients) > 100: clients.pop(50).close()
    flood.sendto(b'x' * 1000, ('127.0.0.1', 9999))
    sender.send(b'y' * 10000); receiver.recv(10000)
    time.sleep(0.01)
";

/// A lab in which [`SICK`] runs and has caused overflows.
fn sick(purpose: &str) -> (Lab, u32) {
    // Build the program first, because that may take longer than a minute.
    testkit::program::netwren();
    let lab = Lab::new(purpose);
    let pid = lab.spawn("python3", &["-c", SICK]);
    let grown = |name: &str| {
        let text = lab.output("nstat", &["-asz", name]);
        text.split_whitespace().skip_while(|word| *word != name).nth(1).is_some_and(|count| count != "0")
    };
    lab.wait_until("both overflow", || grown("TcpExtListenOverflows") && grown("UdpRcvbufErrors"));
    (lab, pid)
}

/// The output of a run that may lack other tests' processes and namespaces.
fn seen(ran: Ran) -> String {
    assert!(ran.code == 0 || ran.code == 3 && !ran.stderr.is_empty(), "{}: {}", ran.code, ran.stderr);
    ran.stdout
}

/// The first object of JSON output.
fn object(text: &str) -> Value {
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// True if the screen has a part with this label.
fn has_part(screen: &str, label: &str) -> bool {
    screen.lines().any(|line| line.starts_with(label))
}

const PARTS: [&str; 7] = ["ifaces", "sockets", "conntrack", "tcp", "flows", "drops", "findings"];

#[test]
fn root_every_part_of_a_sick_host_is_on_one_screen() {
    testkit::require_root!();
    let (lab, pid) = sick("homesick");
    let screen = seen(netwren_in(&lab, &[]));
    assert!(screen.lines().count() < 24 && screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    for part in PARTS {
        assert!(has_part(&screen, part), "{part}: {screen}");
    }
    assert!(screen.contains("CRITICAL listen-overflow: ") && screen.contains("CRITICAL udp-rcvbuf: "), "{screen}");
    assert!(!screen.contains('\x1b') && screen.contains("e\\x1b[2J"), "{screen}");
    let home = object(&seen(netwren_in(&lab, &["-o", "json"])));
    let ids: Vec<&str> = home["findings"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids[..2], ["listen-overflow", "udp-rcvbuf"]);
    assert!(home["findings"][0]["title"].as_str().unwrap().contains(&format!("({pid}) at 127.0.0.1:8080")), "{home}");
    let busiest = &home["flows"][0];
    assert!(busiest["local_port"] == 8090 || busiest["peer_port"] == 8090, "{home}");
    assert!(busiest["bytes_out_per_s"].as_u64().unwrap() > 1000 || busiest["bytes_in_per_s"].as_u64().unwrap() > 1000);
    assert_eq!(busiest["pid"], pid);
    let dropped: u64 = home["drops"].as_array().unwrap().iter().map(|one| one["count"].as_u64().unwrap()).sum();
    assert!(dropped > 10, "{home}");
    let lo = &home["interfaces"][0];
    assert_eq!((&lo["iface"], lo["bits_in_per_s"].as_u64() > Some(100_000)), (&"lo".into(), true), "{home}");
    assert!(home["segs_out"].as_u64().unwrap() > 100 && !home["retransmits"].is_null(), "{home}");
    let states = home["sockets"].as_array().unwrap();
    assert!(states.iter().any(|one| one["proto"] == "tcp" && one["state"] == "listen" && one["count"] == 2), "{home}");
    let of_lab = object(&seen(netwren(&["--netns", lab.name(), "-o", "json", "--columns", "findings_total,host"])));
    assert!(of_lab["findings_total"].as_u64().unwrap() >= 2 && of_lab.as_object().unwrap().len() == 2, "{of_lab}");
    let all = object(&seen(netwren(&["--all-netns", "-o", "json"])));
    let is_here = |one: &Value| one["netns"] == lab.name() && one["id"] == "listen-overflow";
    assert!(all["findings"].as_array().unwrap().iter().any(is_here), "{all}");
}

/// A server that sends 2 MB/s to a client that says nothing, and reads what six others send; it runs for a minute.
const SERVER: &str = "
import select, socket, time
listener = socket.socket(); listener.bind(('172.17.0.2', 8000)); listener.listen(16)
reader = socket.socket(); reader.bind(('172.17.0.2', 8001)); reader.listen(16)
download, senders, end = listener.accept()[0], [reader.accept()[0] for _ in range(6)], time.time() + 60
while time.time() < end:
    download.send(b'x' * 20000)
    for ready in select.select(senders, [], [], 0)[0]: ready.recv(65536)
    time.sleep(0.01)
";

/// The client: one connection that only receives, six that only send.
const CLIENT: &str = "
import socket, time
def connect(port):
    while True:
        try: return socket.create_connection(('172.17.0.2', port))
        except OSError: time.sleep(0.01)
download, senders, end = connect(8000), [connect(8001) for _ in range(6)], time.time() + 60
while time.time() < end:
    download.recv(65536)
    for number, sender in enumerate(senders): sender.send(b'y' * 500 * (number + 1))
    time.sleep(0.005)
";

/// The busiest flows count what comes in as well as what goes out, and the largest sum comes first.
#[test]
fn root_a_download_is_the_first_of_the_busiest_flows() {
    testkit::require_root!();
    testkit::program::netwren();
    let Routed { client, router: _router, server } = Routed::new("homein");
    server.spawn("python3", &["-c", SERVER]);
    client.spawn("python3", &["-c", CLIENT]);
    client.wait_until("all are connected", || {
        client.output("ss", &["-Htn", "state", "established"]).lines().count() == 7
    });
    let home = object(&seen(netwren_in(&client, &["-o", "json"])));
    let flows = home["flows"].as_array().unwrap();
    let rate = |flow: &Value, name: &str| flow[name].as_u64().unwrap_or(0);
    let sum = |flow: &Value| rate(flow, "bytes_in_per_s") + rate(flow, "bytes_out_per_s");
    assert_eq!(flows[0]["peer_port"], 8000, "{home}");
    assert!(rate(&flows[0], "bytes_in_per_s") > 50 * rate(&flows[0], "bytes_out_per_s"), "{home}");
    assert!(flows.windows(2).all(|pair| sum(&pair[0]) >= sum(&pair[1])), "{home}");
}

#[test]
fn root_a_part_that_cannot_be_seen_leaves_the_others() {
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let (lab, _) = sick("homeless");
    let limited = |args: &[&str], limits: &[Limit]| {
        let mut child = command_for_anyone(args);
        confine(&mut child, &[&[Limit::Network(lab.path())], limits].concat()).unwrap();
        Ran::of(child.output().unwrap())
    };
    let nobody = [Limit::User { uid: 65_534, gid: 65_534 }];
    let ran = limited(&[], &nobody);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    for reason in ["netwren: causes of drops are not available: ", "netwren: owners of "] {
        assert!(ran.stderr.contains(reason), "{reason}: {}", ran.stderr);
    }
    for part in PARTS.into_iter().chain(["not seen"]) {
        assert!(has_part(&ran.stdout, part), "{part}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("listen-overflow") && ran.stdout.contains("127.0.0.1:8090"), "{}", ran.stdout);
    assert!(ran.stdout.contains("(a counter)"), "{}", ran.stdout);
    let home = object(&limited(&["-o", "json"], &nobody).stdout);
    let unseen: Vec<&str> = home["unseen"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    for part in ["owners", "causes of drops"] {
        assert!(unseen.iter().any(|text| text.starts_with(part)), "{part}: {unseen:?}");
    }
    // If only BPF is missing, the kernel's counters show the same drops.
    let home = object(&limited(&["-o", "json"], &[Limit::NoBpf(sys::Errno::PERM)]).stdout);
    assert_eq!(home["drops_via"], "counters", "{home}");
    let reasons: Vec<&str> =
        home["drops"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"UdpRcvbufErrors"), "{reasons:?}");
    assert!(!home["flows"][0]["process"].is_null(), "owners are found by /proc: {home}");
}

#[test]
fn root_a_quiet_host_has_a_short_screen() {
    testkit::require_root!();
    let lab = Lab::new("homequiet");
    let screen = seen(netwren_in(&lab, &[]));
    for line in ["flows         none\n", "findings      none\n"] {
        assert!(screen.contains(line), "{screen}");
    }
    netwren(&["--by", "host"]).says(2, &["--by"]);
    netwren(&["nothing"]).says(2, &["`nothing` is not a command"]);
    netwren(&["home", "--replay", "/nowhere"]).says(4, &["no such file"]);
}

#[test]
fn root_the_screen_of_a_recording_and_of_rounds() {
    testkit::require_root!();
    let (lab, _) = sick("hometape");
    let tape = lab.dir().join("tape").display().to_string();
    let ran = netwren_in(&lab, &["record", "--for", "1", &tape]);
    assert!(matches!(ran.code, 0 | 3), "{}", ran.stderr);
    let replay = |args: &[&str]| netwren(&[&["--replay", &tape], args].concat()).stdout;
    let screen = replay(&[]);
    assert_eq!(replay(&[]), screen);
    assert!(screen.contains("CRITICAL listen-overflow: ") || screen.contains(" listen-overflow: "), "{screen}");
    let home = object(&replay(&["-o", "json"]));
    // A recording made without BPF has no drops by cause, and the screen says so.
    let has_causes = home["drops_via"] == "bpf";
    let causes =
        home["unseen"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().contains("not in the recording"));
    assert!(causes || has_causes, "{home}");
    let is_busy = |one: &Value| one["netns"] == lab.name() && !one["bytes_out_per_s"].is_null();
    assert!(home["flows"].as_array().unwrap().iter().any(is_busy), "{home}");

    let file = lab.dir().join("rounds");
    let mut command = lab.command(testkit::program::netwren());
    clean(&mut command).args(["--watch=0.2", "-o", "json"]);
    let out = std::fs::File::create(&file).unwrap();
    let mut child = command.stdout(out).stderr(Stdio::null()).spawn().unwrap();
    let rounds = || {
        let text = std::fs::read_to_string(&file).unwrap();
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        rows.filter(|row| row.get("host").is_some()).collect::<Vec<_>>()
    };
    wait_until("three rounds are out", || rounds().len() >= 3);
    let _ = (child.kill(), child.wait());
    let later = &rounds()[2];
    assert!(later["window_us"].as_u64().unwrap() < 900_000, "{later}");
    assert!(
        later["flows"][0]["bytes_out_per_s"].as_u64() > Some(0)
            || later["flows"][0]["bytes_in_per_s"].as_u64() > Some(0)
    );
}
