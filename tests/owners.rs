//! netwren reports owners that it cannot determine, and trusts container names only if root created the cgroup.

use crate::run::{Ran, clean, command, netwren_in};
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// The interfaces by which owners are read.
const OWNERS_VIA: [&str; 2] = ["bpf", "proc"];

const COLUMNS: &[&str] = &["sockets", "-H", "--columns", "local_port,process", "proto = tcp and state = listen"];

/// The process of a listener is outside the reader's pid namespace.
#[test]
fn root_issue_10_a_listener_of_a_hidden_process_is_reported() {
    testkit::require_root!();
    testkit::require_tool!("unshare");
    let lab = Lab::new("outofsight");
    let port = lab.listen_tcp(1)[0];
    for via in [&[][..], &["--owners-via", "proc"]] {
        let mut command = Command::new("unshare");
        clean(&mut command).args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
        command.arg(testkit::program::netwren()).args(COLUMNS).args(via);
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.stdout.trim_end(), format!("{port}\t-"), "{}", ran.stderr);
        ran.says(3, &["1 listening socket has no visible process", "outside this PID namespace"]);
    }
    // Outside that pid namespace the owners are visible, so netwren prints no message about them.
    let ran = netwren_in(&lab, COLUMNS);
    assert!(!ran.stderr.contains("no process"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("\t-"), "{}", ran.stdout);
}

/// The kernel itself listens, for example for tunnels.
#[test]
fn root_issue_10_a_kernel_socket_has_no_process_and_that_is_reported() {
    testkit::require_root!();
    let lab = Lab::new("kernels");
    let made = lab.command("ip").args(["link", "add", "vx0", "type", "vxlan", "id", "7", "dstport", "4789"]).output();
    if !made.unwrap().status.success() {
        let _ = sys::out::Out::stderr().write_all(b"skipped: no vxlan here\n");
        return;
    }
    lab.ip(&["link", "set", "vx0", "up"]);
    for via in ["netlink", "proc"] {
        let ran =
            netwren_in(&lab, &["sockets", "-H", "--via", via, "--columns", "local_port,process", "local_port = 4789"]);
        assert!(ran.stdout.lines().count() > 0 && ran.stdout.lines().all(|line| line == "4789\t-"), "{}", ran.stdout);
        assert!(ran.stderr.contains("no visible process: used by the kernel itself"), "{}", ran.stderr);
        let other =
            netwren_in(&lab, &["sockets", "-H", "--via", via, "--columns", "local_port,process", "proto = tcp"]);
        assert!(!other.stderr.contains("no process"), "{}", other.stderr);
    }
}

#[test]
fn root_issue_10_a_container_that_is_elsewhere_is_hinted_at() {
    testkit::require_root!();
    let lab = Lab::new("elsewhere");
    lab.listen_tcp(1);
    let hint = "--all-netns reads all of them";
    for command in ["sockets", "flows"] {
        let ran = netwren_in(&lab, &[command, "container = no-such-container"]);
        assert!(ran.stderr.contains(hint), "{command}: {}", ran.stderr);
    }
    let ran = netwren_in(&lab, &["sockets", "kill", "container = no-such-container"]);
    assert!(ran.stderr.contains("most containers have their own: the list shows"), "{}", ran.stderr);
    let ran = netwren_in(&lab, &["sockets", "process = no-such-process"]);
    assert!(!ran.stderr.contains(hint), "{}", ran.stderr);
}

/// The address exists in another namespace, but not in this one.
#[test]
fn root_issue_10_an_address_that_is_elsewhere_is_hinted_at() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("notthere"), Lab::new("there"));
    let address = format!("10.214.{}.1", std::process::id() % 250);
    other.ip(&["address", "add", &format!("{address}/32"), "dev", "lo"]);
    let listener = other.run_inside(|| std::net::TcpListener::bind((address.as_str(), 0))).unwrap();
    let _held = other.run_inside(|| std::net::TcpStream::connect(listener.local_addr().unwrap())).unwrap();
    let hint = "no match in this network namespace, but some in others";
    for command in ["sockets", "flows"] {
        let ran = netwren_in(&lab, &[command, "--no-owner", &format!("local = {address}")]);
        assert!(ran.stderr.contains(hint) && ran.stdout.lines().count() <= 1, "{command}: {}", ran.stderr);
        let nowhere = netwren_in(&lab, &[command, "--no-owner", "local = 203.0.113.77"]);
        assert!(!nowhere.stderr.contains(hint), "{command}: {}", nowhere.stderr);
    }
    let end = |port| (address.parse().unwrap(), port);
    other.track([testkit::conntrack::Entry::udp(end(1024), end(53))]);
    let filter = format!("orig_src = {address}");
    for words in [&["nat", "--no-owner", &filter][..], &["nat", "top", "--no-owner", &filter]] {
        let ran = netwren_in(&lab, words);
        assert!(ran.stderr.contains(hint), "{words:?}: {}", ran.stderr);
    }
    // Commands that change something also print the hint, with a flag that they accept; they change nothing in the
    // other namespace.
    let local = format!("local = {address}");
    for words in [["sockets", "kill", &local], ["nat", "delete", &filter]].map(|[table, act, filter]| {
        // `--no-owner`, because other users' processes may be invisible.
        [table, act, filter, "--no-owner", "--yes"]
    }) {
        let ran = netwren_in(&lab, &words);
        let says = |words: &str| ran.stderr.contains(words);
        assert!(says(hint) && says("--netns NAME acts in one") && says("matches: nothing to "), "{}", ran.stderr);
        let nowhere =
            netwren_in(&lab, &[words[0], words[1], &words[2].replace(&address, "203.0.113.77"), words[3], words[4]]);
        assert!(nowhere.code == 0 && !nowhere.stderr.contains(hint), "{}", nowhere.stderr);
        let there = netwren_in(&other, &words[..4]);
        assert!(!there.stderr.contains(hint) && there.stdout.contains(&address), "{}", there.stderr);
    }
    // If all namespaces or the right one are read, the hint is not printed.
    for words in [&["--all-netns"][..], &["--netns", other.name()]] {
        let ran = netwren_in(&lab, &[&["sockets", "--no-owner", &format!("local = {address}")], words].concat());
        assert!(!ran.stderr.contains(hint) && ran.stdout.contains(&address), "{}", ran.stderr);
    }
}

/// The cgroup directories belong to another user, so their names are not trusted as container names.
#[test]
fn root_issue_10_a_container_forged_by_its_cgroup_is_not_shown() {
    testkit::require_root!();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let Some(root) = mounts.lines().find(|line| line.contains(" cgroup2 ")).and_then(|line| line.split(' ').nth(1))
    else {
        let _ = sys::out::Out::stderr().write_all(b"skipped: no cgroup2 file system here\n");
        return;
    };
    let lab = Lab::new("forgedgroup");
    let parent = std::path::Path::new(root).join(format!("nw-forged-{}", std::process::id()));
    let name = format!("docker-{}.scope", "ab".repeat(32));
    let group = parent.join(&name);
    let _gone = RemoveAtEnd([group.clone(), parent.clone()]);
    std::fs::create_dir_all(&group).unwrap();
    for directory in [&parent, &group] {
        std::os::unix::fs::chown(directory, Some(65_534), Some(65_534)).unwrap();
    }
    // A process moves itself into the group and then creates sockets.
    let script = "import os, socket, time; open(os.environ['GROUP'] + '/cgroup.procs', 'w').write(str(os.getpid()))\n\
                  l = socket.socket(); l.bind(('127.0.0.1', 4711)); l.listen(); time.sleep(60)";
    testkit::require_tool!("python3");
    let mut python = Command::new("python3");
    python.args(["-c", script]).env("GROUP", &group);
    // `ip netns exec` would mount another /sys.
    confine(&mut python, &[Limit::Network(lab.path())]).unwrap();
    let mut child = python.spawn().unwrap();
    let shown = || {
        let mut command = command(&["sockets", "-H", "--columns", "cgroup,container,unit", "local_port = 4711"]);
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        Ran::of(command.output().unwrap())
    };
    lab.wait_until("it listens", || !shown().stdout.is_empty());
    let ran = shown();
    let _ = child.kill();
    let _ = child.wait();
    let path = format!("/{}/{name}", parent.file_name().unwrap().to_str().unwrap());
    assert_eq!(ran.stdout.trim_end(), format!("{path}\t-\t-"), "{}", ran.stderr);
}

struct RemoveAtEnd([std::path::PathBuf; 2]);

impl Drop for RemoveAtEnd {
    fn drop(&mut self) {
        for directory in &self.0 {
            if !std::thread::panicking() {
                testkit::wait_until("the group is empty", || std::fs::remove_dir(directory).is_ok());
            }
        }
    }
}

/// A manager that listens, and a service that accepts on the same listener. The manager is older and has the lower pid.
const MANAGED: &str = "
import ctypes, os, socket
listener = socket.create_server(('127.0.0.1', 7211))
open('/proc/self/comm', 'w').write('manager')
if not os.fork():
    ctypes.CDLL(None).prctl(1, 9)
    open('/proc/self/comm', 'w').write('the-service')
    listener.accept()
os.wait()
";

/// The table shows the process that accepts; a filter finds either process, and JSON has both.
#[test]
fn root_of_several_holders_the_one_that_works_is_shown() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (lab, tmp) = (Lab::new("holders"), tempfile::tempdir().unwrap());
    let manager = lab.spawn("python3", &["-c", MANAGED]);
    let children = || std::fs::read_to_string(format!("/proc/{manager}/task/{manager}/children")).unwrap_or_default();
    let is_manager = || std::fs::read_to_string(format!("/proc/{manager}/comm")).is_ok_and(|name| name == "manager\n");
    testkit::wait_until("the manager has its name", is_manager);
    let is_waiting = || std::fs::read_to_string(format!("/proc/{manager}/wchan")).is_ok_and(|wait| wait == "do_wait");
    testkit::wait_until("the manager waits", is_waiting);
    let service: u32 = children().trim().parse().unwrap();
    testkit::wait_until("the service has its name", || {
        std::fs::read_to_string(format!("/proc/{service}/comm")).is_ok_and(|name| name == "the-service\n")
    });
    let sockets = ["sockets", "-H", "--columns", "process,pid", "local_port = 7211 and state = listen"];
    for via in ["bpf", "proc"] {
        let read = |words: &[&str]| {
            let ran = netwren_in(&lab, &[words, &["--owners-via", via]].concat());
            // Processes of other tests may be unreadable.
            assert!(ran.code == 0 || ran.stderr.contains("unreadable"), "{}", ran.stderr);
            ran.stdout
        };
        let shown = format!("the-service +1\t{service}\n");
        assert_eq!(read(&sockets), shown, "{via}");
        for name in ["manager", "the-service"] {
            assert_eq!(read(&[&sockets[..], &["--process", name]].concat()), shown, "{via} {name}");
        }
        assert_eq!(read(&[&sockets[..], &["-o", "csv"]].concat()).trim_end(), format!("the-service,{service}"));
        let mut json = sockets;
        json[3] = "process,owners";
        let tape = tmp.path().join(via);
        let tape = tape.to_str().unwrap();
        let live = read(&[&json[..], &["--json", "--record", tape]].concat());
        let row: serde_json::Value = serde_json::from_str(live.lines().next().unwrap()).unwrap();
        assert_eq!(row["process"], "the-service", "{via}");
        let owners = row["owners"].as_array().unwrap();
        assert_eq!(
            owners.iter().map(|owner| owner["pid"].as_u64()).collect::<Vec<_>>(),
            [service, manager].map(|pid| Some(u64::from(pid)))
        );
        let started = |at: usize| owners[at]["started_ms"].as_u64().unwrap();
        assert!(started(0) >= started(1) && started(1) > 0, "{via}: {row}");
        let replayed = netwren_in(&lab, &[&json[..], &["--json", "--replay", tape]].concat());
        let rows = |text: &str| text.lines().next().map(str::to_owned);
        assert_eq!(rows(&replayed.stdout), rows(&live), "{via}: {}", replayed.stderr);
    }
}

/// A listener that is registered with an io_uring; its descriptor is closed.
const REGISTERED: &str = "
import ctypes, os, signal, socket, sys
libc = ctypes.CDLL(None)
listener = socket.create_server(('127.0.0.1', 7212))
ring = libc.syscall(425, 4, (ctypes.c_uint32 * 30)())
is_registered = ring >= 0 and libc.syscall(427, ring, 2, (ctypes.c_int * 1)(listener.fileno()), 1) == 0
listener.close()
open('/proc/self/comm', 'w').write('ring-server')
open(sys.argv[1] + '.new', 'w').write(str(ring if is_registered else 0))
os.rename(sys.argv[1] + '.new', sys.argv[1])
signal.pause()
";

/// Runs a script in the lab until it has written its first argument; returns its pid and what it wrote.
fn running(lab: &Lab, script: &str) -> (u32, String) {
    let ready = lab.dir().join("ready");
    let pid = lab.spawn("python3", &["-c", script, ready.to_str().unwrap()]);
    lab.wait_until("the script is ready", || ready.exists());
    (pid, std::fs::read_to_string(ready).unwrap())
}

/// Runs netwren where it may lack the owners of processes that even root may not read.
fn owned(lab: &Lab, words: &[&str]) -> Ran {
    let ran = netwren_in(lab, words);
    assert!(ran.code == 0 || ran.stderr.contains("unreadable"), "{words:?}: {}", ran.stderr);
    ran
}

#[test]
fn root_a_listener_in_an_io_uring_has_its_owner() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (lab, tmp) = (Lab::new("ringowner"), tempfile::tempdir().unwrap());
    let (pid, ring) = running(&lab, REGISTERED);
    if ring == "0" {
        return testkit::print_loud("skipped: no io_uring here");
    }
    let columns = "local_port,process,pid,fd,held_in,owners";
    let shown = format!("7212\tring-server\t{pid}\t-\tio_uring\tring-server[{pid}]\n");
    let cannot = netwren_in(&lab, &["sockets", "--owners-via", "bpf", "--limit", "1"]).stderr.contains("not built in");
    for via in OWNERS_VIA.into_iter().filter(|via| *via != "bpf" || !cannot) {
        let tape = tmp.path().join(via);
        let tape = tape.to_str().unwrap();
        for words in [&["--record", tape][..], &["--via", "proc"], &["--netns", lab.name()]] {
            let filter = ["sockets", "-H", "--owners-via", via, "--columns", columns, "process = ring-server"];
            let ran = owned(&lab, &[&filter, words].concat());
            assert_eq!(ran.stdout, shown, "{via} {words:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("no visible process"), "{}", ran.stderr);
        }
        let replayed =
            netwren_in(&lab, &["sockets", "-H", "--columns", columns, "--replay", tape, "local_port = 7212"]);
        assert_eq!(replayed.stdout, shown, "{via}: {}", replayed.stderr);
        let all = ["sockets", "-H", "--all-netns", "--owners-via", via, "--columns", columns, "local_port = 7212"];
        assert_eq!(netwren_in(&lab, &all).stdout, shown);
        let json =
            owned(&lab, &["listeners", "--json", "--owners-via", via, "--columns", "pid,owners", "local_port = 7212"]);
        let row: serde_json::Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
        assert_eq!((&row["pid"], &row["owners"][0]["fd"]), (&pid.into(), &serde_json::Value::Null), "{row}");
    }
    let ss = netwren_in(&lab, &["ss", "-Htlnp"]);
    assert!(ss.stdout.contains(&format!("users:((\"ring-server\",pid={pid},fd={ring}))")), "{}", ss.stdout);
    assert!(!netwren_in(&lab, &["ss", "--bug-compatible", "-Htlnp"]).stdout.contains("users:"));
    let netstat = |words: &[&str]| netwren_in(&lab, &[&["netstat"], words, &["-tlnp"]].concat()).stdout;
    assert!(netstat(&[]).contains(&format!("{pid}/python3")), "{}", netstat(&[]));
    assert!(!netstat(&["--bug-compatible"]).contains(&pid.to_string()));
    let kill = ["sockets", "kill", "-H", "--columns", "local_port,process", "process = ring-server", "--yes"];
    assert_eq!(owned(&lab, &kill).stdout, "7212\tring-server\taborted\n");
}

/// A process sends its listener over a unix socket and ends. The receiving process does not read the message.
const SENT: &str = "
import os, signal, socket, sys
mine, theirs = socket.socketpair()
sender = os.fork()
if not sender:
    theirs.close()
    listener = socket.create_server(('127.0.0.1', 7213))
    socket.send_fds(mine, [b'x'], [listener.fileno()])
    os._exit(0)
mine.close()
os.waitpid(sender, 0)
open('/proc/self/comm', 'w').write('receiver')
open(sys.argv[1], 'w').close()
signal.pause()
";

#[test]
fn root_a_listener_in_flight_has_its_receiver() {
    // A program without its features lacks BPF.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("python3");
    let (lab, tmp) = (Lab::new("inflight"), tempfile::tempdir().unwrap());
    let (pid, _) = running(&lab, SENT);
    let sockets = ["sockets", "-H", "--columns", "local_port,process,pid,fd,held_in", "local_port = 7213"];
    let tape = tmp.path().join("tape");
    let tape = tape.to_str().unwrap();
    let shown = format!("7213\treceiver\t{pid}\t-\tin_flight\n");
    for words in [&["--owners-via", "bpf", "--record", tape][..], &["--replay", tape]] {
        let ran = netwren_in(&lab, &[&sockets[..], words].concat());
        assert_eq!(ran.stdout, shown, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("1 listening socket is in flight over a unix socket (SCM_RIGHTS)"),
            "{}",
            ran.stderr
        );
    }
    let ran = owned(&lab, &[&sockets[..], &["--owners-via", "proc"]].concat());
    assert_eq!(ran.stdout, "7213\t-\t-\t-\t-\n");
    let cause = format!("1 listening socket has no visible process: receiver ({pid}) has 1 descriptor to receive");
    assert!(ran.stderr.contains(&cause), "{}", ran.stderr);
}
