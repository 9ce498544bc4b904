//! `netwren doctor softirq` and `netwren doctor path`: load and losses caused by the test are shown at the right
//! place.

use crate::run::{Ran, clean, command_for_anyone, netwren, netwren_in};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sys::Errno;
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

/// The rows of an output, without the accounting that follows an incomplete result.
fn rows(stdout: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout.lines().map(parse).filter(|row: &Value| row.get("accounting").is_none()).collect()
}

/// Runs `work` while datagrams are exchanged in the lab.
fn under_load<T>(lab: &Lab, work: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            lab.run_inside(|| {
                let (a, b) = pair("127.0.0.1:0");
                [&a, &b].iter().for_each(|socket| {
                    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                });
                // A datagram may be lost if the machine's queues are short; the exchange continues after the timeout.
                let mut buffer = [0; 64];
                while !ends.load(Ordering::Relaxed) {
                    let _ = a.send(b"0123456789").and_then(|_| b.recv(&mut buffer));
                    let _ = b.send(b"0123456789").and_then(|_| a.recv(&mut buffer));
                }
            });
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        ends.store(true, Ordering::Relaxed);
        load.join().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Two sockets connected to each other.
fn pair(any: &str) -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind(any).unwrap(), UdpSocket::bind(any).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    [&a, &b].iter().for_each(|socket| socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap());
    (a, b)
}

/// Exchanges `count` datagrams in each direction.
fn go_round(a: &UdpSocket, b: &UdpSocket, count: u32) {
    let mut buffer = [0; 64];
    for _ in 0..count {
        a.send(b"0123456789").unwrap();
        assert_eq!(b.recv(&mut buffer).unwrap(), 10);
        b.send(b"0123456789").unwrap();
        assert_eq!(a.recv(&mut buffer).unwrap(), 10);
    }
}

/// The output of a run that may lack samples: on a busy machine fewer samples are taken, and a message says so.
#[track_caller]
fn sampled(ran: Ran) -> String {
    let words = ["a sample was not taken", "not via "];
    let is_only_that = ran.stderr.lines().all(|line| words.iter().any(|words| line.contains(words)));
    assert!(ran.code == 0 || ran.code == 3 && is_only_that, "exit code {}; stderr: {}", ran.code, ran.stderr);
    ran.stdout
}

/// False if the program was built without BPF; prints a message then.
fn has_bpf() -> bool {
    let tried = netwren(&["doctor", "softirq", "--for", "0.01", "--via", "bpf"]);
    let is_without = tried.stderr.contains("netwren was built without BPF");
    if is_without {
        assert_eq!(tried.code, 4, "{}", tried.stderr);
        eprintln!("skipped: {}", tried.stderr);
    }
    !is_without
}

/// The sum of the percentages of one CPU over the groups that `is_meant` selects.
fn percent(rows: &[Value], is_meant: impl Fn(&Value) -> bool) -> f64 {
    rows.iter().filter(|row| is_meant(row)).map(|row| row["percent"].as_f64().unwrap()).sum()
}

#[test]
fn root_cpus_are_sampled_by_every_backend() {
    testkit::require_root!();
    let lab = Lab::new("softirq");
    for via in if has_bpf() { &["bpf", "perf"][..] } else { &["perf"] } {
        let args = ["doctor", "softirq", "--for", "1", "--via", via, "--all", "--per-cpu", "-o", "json"];
        let rows = rows(&sampled(under_load(&lab, || netwren(&args))));
        let cpus: std::collections::BTreeSet<u64> = rows.iter().map(|row| row["cpu"].as_u64().unwrap()).collect();
        for cpu in &cpus {
            // Each group is rounded down to thousandths.
            let all = percent(&rows, |row| row["cpu"].as_u64() == Some(*cpu));
            assert!((99.9..=100.001).contains(&all), "{via}: CPU {cpu} has {all} percent: {rows:?}");
        }
        // A datagram passes these groups on its way between two processes, and the load does nothing else.
        for group in ["udp", "ip", "core", "socket"] {
            assert!(percent(&rows, |row| row["group"] == group) > 0.0, "{via}: {group}: {rows:?}");
        }
        let udp = rows.iter().find(|row| row["group"] == "udp").unwrap();
        assert!(udp["function"].as_str().unwrap().contains("udp"), "{udp}");
        assert!(udp["samples"].as_u64().unwrap() > 0 && udp["window_us"].as_u64().unwrap() >= 900_000, "{udp}");
    }
}

#[test]
fn root_call_chains_lead_from_the_innermost_function_outwards() {
    testkit::require_root!();
    let lab = Lab::new("softchain");
    let ran = under_load(&lab, || netwren(&["doctor", "softirq", "--for", "1", "--stack", "-o", "json"]));
    let rows = rows(&sampled(ran));
    assert!(rows.windows(2).all(|two| two[0]["samples"].as_u64() >= two[1]["samples"].as_u64()), "{rows:?}");
    let udp: Vec<&Value> = rows.iter().filter(|row| row["group"] == "udp").collect();
    let names = |row: &Value| -> Vec<String> { serde_json::from_value(row["stack"].clone()).unwrap() };
    assert!(!udp.is_empty(), "{rows:?}");
    for row in udp {
        let stack = names(row);
        assert_eq!(row["innermost"], stack[0].as_str(), "{row}");
        assert!(stack.contains(&row["function"].as_str().unwrap().to_owned()), "{row}");
    }
    // A sender's call chain ends with its system call.
    assert!(rows.iter().any(|row| names(row).iter().any(|name| name.contains("do_syscall_64"))), "{rows:?}");
}

#[test]
fn root_samples_of_a_recording_are_those_of_the_run() {
    testkit::require_root!();
    let lab = Lab::new("softtape");
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("samples.nw");
    let tape = tape.to_str().unwrap();
    let args = ["doctor", "softirq", "--for", "0.5", "-o", "json", "--record", tape];
    let seen = rows(&sampled(under_load(&lab, || netwren(&args))));
    // The accounting of missing samples differs because it contains the CPU time of the run.
    assert_eq!(rows(&sampled(netwren(&["doctor", "softirq", "-o", "json", "--replay", tape]))), seen);
    let chains = netwren(&["doctor", "softirq", "--stack", "-o", "json", "--replay", tape]);
    assert!(!rows(&chains.stdout).is_empty(), "{}", chains.stderr);
    netwren(&["doctor", "path", "--replay", tape]).says(4, &["not in the recording"]);
    // With `--watch`, each round is sampled separately.
    let watched = under_load(&lab, || {
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["doctor", "softirq", "--watch=0.2", "-o", "json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut rounds = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            rounds += u32::from(line.contains("\"round\""));
            if rounds == 3 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        rounds
    });
    assert_eq!(watched, 3);
}

#[test]
fn root_without_rights_another_backend_is_used_and_reported() {
    testkit::require_root!();
    let lab = Lab::new("softbad");
    let limited = |args: &[&str], limit: Limit| {
        let mut child = command_for_anyone(args);
        confine(&mut child, &[limit]).unwrap();
        under_load(&lab, || Ran::of(child.output().unwrap()))
    };
    let softirq = ["doctor", "softirq", "--for", "0.5", "-o", "json"];
    let without = |caps: &[Cap]| Limit::WithoutCaps(caps.to_vec());
    if has_bpf() {
        for limit in [without(&[Cap::Bpf, Cap::SysAdmin]), Limit::NoBpf(Errno::PERM), Limit::NoBpf(Errno::NOSYS)] {
            let ran = limited(&softirq, limit);
            assert!(ran.stderr.contains("not via bpf"), "{}", ran.stderr);
            let rows = rows(&sampled(ran));
            assert!(percent(&rows, |row| row["group"] == "udp") > 0.0, "{rows:?}");
        }
        // Perf sampling does not need the kernel's BTF.
        let empty = tempfile::tempdir().unwrap();
        let cover = Limit::Cover { with: empty.path().into(), place: "/sys/kernel/btf".into() };
        let ran = limited(&softirq, cover);
        assert!(!ran.stderr.contains("not via bpf"), "{}", ran.stderr);
        sampled(ran);
    }
    let ran = limited(&softirq, without(&[Cap::Bpf, Cap::Perfmon, Cap::SysAdmin]));
    let rows = rows(&ran.stdout);
    ran.says(3, &["not via perf", "CAP_PERFMON", "/proc/stat shows only the total time of softirqs"]);
    assert_eq!((&rows[0]["group"], &rows[0]["samples"]), (&"softirq".into(), &Value::Null));
    let hidden = limited(&softirq, without(&[Cap::Syslog, Cap::SysAdmin]));
    hidden.says(3, &["samples are not grouped", "CAP_SYSLOG"]);
    limited(&["doctor", "softirq", "--via", "bpf"], Limit::NoBpf(Errno::PERM)).says(4, &["CPU time in the kernel"]);
    let path = ["doctor", "path", "--for", "0.1"];
    limited(&path, without(&[Cap::NetAdmin, Cap::SysAdmin])).says(4, &["stages of packets"]);
    limited(&path, Limit::NoBpf(Errno::PERM)).says(4, &["stages of packets"]);
}

/// A running `netwren doctor path`.
struct Counting {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Counting {
    /// Starts it in a lab and waits until it counts.
    fn begin(lab: &Lab) -> Counting {
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["doctor", "path", "--for", "60", "--all", "-o", "json"]);
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("while this runs"), "{line}");
        Counting { child, said }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Interrupts it as Ctrl-C does; returns its rows and messages.
    fn end(mut self) -> (Vec<Value>, String) {
        self.signal("-INT");
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.said.read_to_string(&mut stderr).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{stderr}");
        (rows(&stdout), stderr)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number of packets at a stage, and the number lost there.
#[track_caller]
fn stage(rows: &[Value], family: &str, hook: &str, stage: &str) -> (u64, u64) {
    let is_it = |row: &&Value| row["family"] == family && row["hook"] == hook && row["stage"] == stage;
    let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{family} {hook} {stage}: {rows:?}"));
    (row["packets"].as_u64().unwrap(), row["lost"].as_u64().unwrap())
}

/// False if this kernel or this build lacks the programs; prints a message then.
fn measures_stages() -> bool {
    let tried = netwren(&["doctor", "path", "--for", "0.01"]);
    let cannot = ["netwren was built without BPF", "has no program type netfilter"];
    let is_without = cannot.iter().any(|words| tried.stderr.contains(words));
    if is_without {
        assert_eq!(tried.code, 4, "{}", tried.stderr);
        eprintln!("skipped: {}", tried.stderr);
    }
    !is_without
}

/// Returns from the test if stages cannot be measured.
macro_rules! require_stages {
    () => {
        testkit::require_root!();
        if !measures_stages() {
            return;
        }
    };
}

#[test]
fn root_every_stage_has_every_packet() {
    require_stages!();
    let lab = Lab::new("pathall");
    for (family, any) in [("ip", "127.0.0.1:0"), ("ip6", "[::1]:0")] {
        let counting = Counting::begin(&lab);
        lab.run_inside(|| {
            let (a, b) = pair(any);
            go_round(&a, &b, 100);
        });
        let (rows, said) = counting.end();
        assert!(said.contains("64 points were measured"), "{said}");
        let own: Vec<&Value> = rows.iter().filter(|row| row["family"] == family).collect();
        let passed: Vec<&&Value> = own.iter().filter(|row| row["hook"] != "forward").collect();
        assert_eq!((own.len(), passed.len()), (29, 26), "{rows:?}");
        for row in passed {
            assert_eq!((row["packets"].as_u64(), row["lost"].as_u64()), (Some(200), Some(0)), "{row}");
            assert!(row["measured"].as_u64() > Some(190), "{row}");
            let [mean, p99, max] = ["mean_us", "p99_us", "max_us"].map(|name| row[name].as_f64().unwrap());
            assert!(mean > 0.0 && p99 <= max && mean <= max, "{row}");
        }
        assert!(rows.iter().filter(|row| row["hook"] == "forward").all(|row| row["packets"] == 0), "{rows:?}");
    }
}

#[test]
fn root_packets_are_lost_where_the_rule_is() {
    require_stages!();
    testkit::require_tool!("nft");
    let lab = Lab::new("pathlost");
    lab.nft(
        "table ip t {\n chain r {\n type filter hook prerouting priority -300;\n udp dport 7 drop\n }\n\
         chain i {\n type filter hook input priority 0;\n udp dport 8 drop\n }\n\
         chain o {\n type filter hook output priority -150;\n udp dport 9 drop\n }\n}\n",
    );
    let counting = Counting::begin(&lab);
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (port, count) in [(7, 30), (8, 20), (9, 10)] {
            // The sender gets an error if a rule rejects its packet.
            (0..count).for_each(|_| drop(socket.send_to(b"x", ("127.0.0.1", port))));
        }
        let (a, b) = pair("127.0.0.1:0");
        go_round(&a, &b, 50);
    });
    let (rows, _) = counting.end();
    for (hook, name, packets, lost) in [
        ("output", "conntrack", 160, 0),
        ("output", "mangle", 160, 10),
        ("output", "dstnat", 150, 0),
        ("postrouting", "routing", 150, 0),
        ("postrouting", "late", 150, 0),
        ("prerouting", "raw", 150, 30),
        ("prerouting", "conntrack", 120, 0),
        ("prerouting", "routing", 120, 0),
        ("input", "mangle", 120, 0),
        ("input", "filter", 120, 20),
        ("input", "srcnat", 100, 0),
    ] {
        assert_eq!(stage(&rows, "ip", hook, name), (packets, lost), "{hook} {name}: {rows:?}");
    }
}

#[test]
fn root_a_router_forwards_and_drops() {
    require_stages!();
    testkit::require_tool!("nft");
    let hosts = Routed::new("pathfwd");
    hosts.router.nft("table ip t {\n chain f {\n type filter hook forward priority 0;\n udp dport 7 drop\n }\n}\n");
    let send = |port: u16, count: u32| {
        hosts.client.run_inside(|| {
            let socket = UdpSocket::bind("192.0.2.10:0").unwrap();
            (0..count).for_each(|_| assert_eq!(socket.send_to(b"x", ("172.17.0.2", port)).unwrap(), 1));
        });
    };
    // The first packet resolves neighbours; ICMP errors from the server may be returned to the client.
    let server = hosts.server.run_inside(|| UdpSocket::bind("172.17.0.2:5000").unwrap());
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    send(5000, 1);
    server.recv(&mut [0; 8]).unwrap();
    let counting = Counting::begin(&hosts.router);
    send(5000, 100);
    send(7, 40);
    (0..100).for_each(|_| assert_eq!(server.recv(&mut [0; 8]).unwrap(), 1));
    let (rows, _) = counting.end();
    for (hook, name, packets, lost) in [
        ("prerouting", "conntrack", 140, 0),
        ("prerouting", "routing", 140, 0),
        ("forward", "mangle", 140, 0),
        ("forward", "filter", 140, 40),
        ("forward", "late", 100, 0),
        ("postrouting", "routing", 100, 0),
        ("postrouting", "srcnat", 100, 0),
        ("input", "filter", 0, 0),
    ] {
        assert_eq!(stage(&rows, "ip", hook, name), (packets, lost), "{hook} {name}: {rows:?}");
    }
}

#[test]
fn root_places_of_others_are_left_to_them_and_nothing_stays() {
    require_stages!();
    let lab = Lab::new("pathtwo");
    let (first, second) = (Counting::begin(&lab), Counting::begin(&lab));
    lab.run_inside(|| {
        let (a, b) = pair("127.0.0.1:0");
        go_round(&a, &b, 10);
    });
    let (rows, said) = second.end();
    assert!(
        said.contains("priority -199 of prerouting belongs to another BPF program: -198 is used instead"),
        "{said}"
    );
    assert_eq!(stage(&rows, "ip", "prerouting", "conntrack"), (20, 0));
    assert_eq!(stage(&rows, "ip", "output", "empty"), (20, 0));
    // SIGKILL leaves the program no time for cleaning up.
    first.signal("-KILL");
    drop(first);
    let again = netwren_in(&lab, &["doctor", "path", "--for", "0.01"]);
    assert!(again.code == 0 && !again.stderr.contains("belongs to another"), "{}", again.stderr);
}
