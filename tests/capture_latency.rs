//! `capture latency` shows the settings of real packet sockets and their owners.

use crate::capture::{command, rings};
use crate::going::Going;
use crate::run::{Ran, command_for_anyone};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Starts tcpdump; returns once it captures.
fn tcpdump(lab: &Lab, args: &[&str]) -> Child {
    let mut tcpdump = lab.command("tcpdump");
    tcpdump.args(["-n", "-i", "lo", "-Z", "root"]).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut tcpdump = tcpdump.spawn().unwrap();
    let mut said = BufReader::new(tcpdump.stderr.take().unwrap());
    let listens = said.by_ref().lines().map_while(Result::ok).any(|line| line.contains("listening on"));
    assert!(listens, "tcpdump captures");
    tcpdump
}

#[test]
fn root_capture_latency_says_who_is_late_and_why() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("caplate");
    let mut own: Going<String> = Going::spawn(command(&lab, &["-i", "lo", "dport = 7123"]), |line| line);
    testkit::wait_until("the ring is there", || rings(&lab) == 1);
    let mut late = tcpdump(&lab, &[]);
    let mut prompt = tcpdump(&lab, &["--immediate-mode"]);
    let columns = "pid,process,iface,packet_version,rx_retire_ms,late_ms,late_why";
    let shown = command(&lab, &["latency", "-o", "csv", "-c", columns, "late_ms != null"]).output().unwrap();
    let json = command(&lab, &["latency", "--for", "0", "-o", "json", "late_ms > 1ms"]).output().unwrap();
    let text = command(&lab, &["latency", "--for", "0"]).output().unwrap();
    let mut blind = command_for_anyone(&["capture", "latency", "--for", "0.1"]);
    confine(&mut blind, &[Limit::Network(lab.path()), Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    let blind = Ran::of(blind.output().unwrap());
    let pids = [late.id(), prompt.id(), own.child.id()];
    for child in [&mut late, &mut prompt, &mut own.child] {
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = child.wait();
    }
    let out = String::from_utf8(shown.stdout).unwrap();
    let line = |pid: u32| out.lines().find(|line| line.starts_with(&format!("{pid},"))).unwrap_or_default().to_owned();
    let [late, prompt, own] = pids.map(line);
    assert!(late.contains(",tcpdump,lo,3,") && late.contains("late: TPACKET_V3"), "{out}");
    assert!(late.contains("--immediate-mode"), "{out}");
    assert!(prompt.contains(",tcpdump,lo,2,0,0,") && prompt.contains("at once"), "{out}");
    assert!(own.contains(",netwren,lo,2,0,0,") && own.contains("at once"), "{out}");
    let json = String::from_utf8(json.stdout).unwrap();
    assert!(json.lines().count() == 1 && json.contains("\"late_ms\":"), "{json}");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().nth(1).is_some_and(|first| first.contains("late: ")), "the latest first: {text}");
    assert!(blind.stdout.contains("late: "), "{}", blind.stdout);
    blind.says(3, &["processes", "delays of packet sockets were not measured: "]);
    let text = text.split('\n').next().unwrap();
    assert!(text.ends_with("late_why"), "--for 0 measures nothing: {text}");
}

#[test]
fn root_capture_latency_measures_how_long_packets_wait() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("capdelay");
    let mut late = tcpdump(&lab, &["-l"]);
    let mut prompt = tcpdump(&lab, &["--immediate-mode"]);
    let (end, ended) = channel::<()>();
    let columns = "pid,late_ms,wakeups,delay_us,delay_max_us";
    let shown = std::thread::scope(|scope| {
        let lab_of_sender = &lab;
        scope.spawn(move || {
            lab_of_sender.run_inside(move || {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                    // Some calls return the ICMP error caused by the previous datagram.
                    let _ = socket.send_to(b"0123456789", (Ipv4Addr::LOCALHOST, 7123));
                }
            });
        });
        let shown = command(&lab, &["latency", "--for", "1", "-o", "csv", "-H", "-c", columns]).output().unwrap();
        drop(end);
        Ran::of(shown)
    });
    let pids = [late.id(), prompt.id()];
    let figures = |ran: &Ran, pid: u32| {
        let line = ran.stdout.lines().find(|line| line.starts_with(&format!("{pid},"))).unwrap_or_default();
        line.split(',').skip(1).map(|cell| cell.parse::<u64>().ok()).collect::<Vec<_>>()
    };
    // The last packets may still be under way.
    let is_idle = || {
        let args = ["latency", "--for", "0.2", "-o", "csv", "-H", "-c", columns];
        let ran = Ran::of(command(&lab, &args).output().unwrap());
        let idle = [Some(0), None, None];
        !can_measure(&ran) || pids.iter().all(|pid| figures(&ran, *pid).get(1..) == Some(&idle))
    };
    testkit::wait_until("who gets no packets waits for none", is_idle);
    for child in [&mut late, &mut prompt] {
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let _ = child.wait();
    }
    if !can_measure(&shown) {
        testkit::print_loud(&format!("skipped: delays are not measured here: {}", shown.stderr));
        return shown.says(3, &["delays of packet sockets were not measured: "]);
    }
    let [late, prompt] = pids.map(|pid| figures(&shown, pid));
    let (
        Some([Some(100), Some(wakeups), Some(middle), Some(longest)]),
        Some([Some(0), Some(many), Some(soon), Some(_)]),
    ) = (late.first_chunk(), prompt.first_chunk())
    else {
        panic!("{}{}", shown.stdout, shown.stderr)
    };
    // The timer fires ten times per second, and the oldest packet of a waiting block is up to that old.
    assert!(*wakeups >= 2 && *wakeups < *many, "{}", shown.stdout);
    assert!(*middle > 20_000 && middle <= longest && soon < middle, "{}", shown.stdout);
}

/// False without BPF or without this tracepoint (Linux 6.12).
fn can_measure(ran: &Ran) -> bool {
    !ran.stderr.contains("built without BPF") && !ran.stderr.contains("sk_data_ready")
}
