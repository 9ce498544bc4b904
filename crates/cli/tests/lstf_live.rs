//! The lstf face on a table of known sockets: correct output, and compatible output.
//!
//! The compatible output is compared with lstf itself if it is installed (`LSTF` names the binary, or it is in PATH),
//! else with its recorded output for the same table in `fixtures/lstf`. `NETWREN_RECORD_LSTF=1` records it again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use testkit::netns::Lab;

/// Sockets whose flows are the same in every run: addresses, services and counts are fixed, and so is a client's port
/// where lstf shows it (because it considers the service's end active).
struct Scene {
    lab: Lab,
    _listeners: Vec<TcpListener>,
    streams: Vec<(TcpStream, TcpStream)>,
}

impl Scene {
    fn new(purpose: &str) -> Scene {
        let lab = Lab::new(purpose);
        let ours = ["192.0.2.10/32", "198.51.100.20/32", "2001:db8:2::20/128", "2001:db8:123::100/128"];
        for addr in ours {
            let nodad: &[&str] = if addr.contains(':') { &["nodad"] } else { &[] };
            lab.ip(&[&["addr", "add", addr, "dev", "lo"], nodad].concat());
        }
        // Connections to local addresses come from 192.0.2.10, so that the two hosts of a flow differ.
        let from = ["dev", "lo", "src", "192.0.2.10"];
        lab.ip(&[&["route", "replace", "table", "local", "local", "198.51.100.20/32"], &from[..]].concat());
        let mut scene = Scene { lab, _listeners: Vec::new(), streams: Vec::new() };
        scene.fill();
        scene
    }

    fn fill(&mut self) {
        // These never count.
        self.lab.syn_sent();
        self.lab.udp_pair();
        // A service on the wildcard address.
        self.serve("0.0.0.0:8080", &["198.51.100.20:8080"; 3]);
        // A dual-stack wildcard service: two rows are IPv4-mapped.
        let to = ["[2001:db8:2::20]:8081", "[2001:db8:2::20]:8081", "198.51.100.20:8081", "198.51.100.20:8081"];
        self.serve("[::]:8081", &to);
        // A service whose address and port fill a column of 24 characters.
        self.serve("[::]:8443", &["[2001:db8:123::100]:8443"]);
        // Defect 1 of lstf: a service bound to one address. lstf shows each client, so they get known ports.
        for port in [40_001, 40_002] {
            self.clients_use(port);
            self.serve_at_one_address(port);
        }
        // Defect 2: a client with the same port as a listener on 127.0.0.1. The listener is created later, because
        // the kernel does not assign a bound port.
        self.clients_use(40_003);
        self.serve("0.0.0.0:8083", &["198.51.100.20:8083"]);
        self.serve("127.0.0.1:40003", &[]);
        // Link-local, private and loopback addresses.
        let mut fe80 = SocketAddr::from(self.lab.link_local());
        fe80.set_port(8084);
        self.clients_use(41_000);
        self.serve_addrs(fe80, &[fe80]);
        self.clients_use(41_001);
        self.serve("127.0.0.1:8085", &["127.0.0.1:8085"]);
        // Last, so that its port is not reused: a client in TIME_WAIT.
        self.clients_use(42_000);
        self.serve("0.0.0.0:8086", &["198.51.100.20:8086"]);
        close(self.streams.pop().unwrap());
        let (lab, listener) = (&self.lab, self._listeners.last().unwrap());
        let mut looks = 0;
        lab.wait_until("a TIME_WAIT", || {
            let is_there = lab.output("ss", &["-Htan", "state", "time-wait"]).lines().count() == 1;
            looks += 1;
            // On a busy machine it may end without TIME_WAIT; its port is then free again.
            if !is_there && looks % 500 == 0 {
                let again = lab.run_inside(|| TcpStream::connect("198.51.100.20:8086"));
                again.into_iter().for_each(|client| close((client, listener.accept().unwrap().0)));
            }
            is_there
        });
    }

    /// Forces this port for the next clients.
    fn clients_use(&self, port: u16) {
        self.lab
            .run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", format!("{port} {port}")))
            .unwrap();
    }

    fn serve(&mut self, bind: &str, to: &[&str]) {
        let bind: SocketAddr = bind.parse().unwrap();
        let to: Vec<SocketAddr> = to.iter().map(|addr| addr.parse().unwrap()).collect();
        self.serve_addrs(bind, &to);
    }

    fn serve_at_one_address(&mut self, client_port: u16) {
        let addr = "198.51.100.20:8082".parse().unwrap();
        if client_port == 40_001 {
            return self.serve_addrs(addr, &[addr]);
        }
        let listener = self._listeners.iter().find(|l| l.local_addr().unwrap() == addr).unwrap();
        let pair = self.lab.run_inside(|| (TcpStream::connect(addr).unwrap(), listener.accept().unwrap().0));
        self.streams.push(pair);
    }

    fn serve_addrs(&mut self, bind: SocketAddr, to: &[SocketAddr]) {
        let listener = self.lab.run_inside(|| TcpListener::bind(bind)).unwrap_or_else(|e| panic!("{bind}: {e}"));
        for addr in to {
            let client = self.lab.run_inside(|| TcpStream::connect(addr)).unwrap_or_else(|e| panic!("{addr}: {e}"));
            self.streams.push((client, listener.accept().unwrap().0));
        }
        self._listeners.push(listener);
    }

    fn netwren(&self, args: &[&str]) -> Output {
        let mut command = self.lab.command(testkit::program::netwren());
        command.arg("lstf").args(args).env_remove("NETWREN_BUG_COMPATIBLE").output().unwrap()
    }

    /// The face's stdout; asserts success.
    fn ours(&self, args: &[&str]) -> String {
        let out = self.netwren(args);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// The output of lstf, live or recorded: see the top of this file.
    fn theirs(&self, case: &str, args: &[&str]) -> String {
        let recorded = testkit::program::workspace().join("fixtures/lstf/0.7.2").join(format!("{case}.expect"));
        let Some(lstf) = lstf() else {
            eprintln!("lstf is not installed: compared with {}", recorded.display());
            return std::fs::read_to_string(&recorded).unwrap_or_else(|e| panic!("{}: {e}", recorded.display()));
        };
        let text = self.lab.output(lstf, args);
        if std::env::var_os("NETWREN_RECORD_LSTF").is_some_and(|v| v == "1") {
            std::fs::write(recorded, &text).unwrap();
        }
        text
    }
}

/// Closes the client first, so that its end is in TIME_WAIT.
fn close((client, mut server): (TcpStream, TcpStream)) {
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
}

/// The real lstf; skips a link of that name to netwren, which would only agree with itself.
fn lstf() -> Option<PathBuf> {
    let named = std::env::var_os("LSTF").map(PathBuf::from).or_else(|| testkit::tool::find("lstf"))?;
    let version = Command::new(&named).arg("--version").output().ok()?;
    let is_netwren = String::from_utf8_lossy(&version.stderr).contains("netwren");
    (!is_netwren).then_some(named)
}

/// Sorts lines, because lstf's order is random.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The sorted elements of lstf's array.
fn elements(json: &str) -> Vec<&str> {
    let inner =
        json.strip_prefix("[{").and_then(|j| j.strip_suffix("}]")).unwrap_or_else(|| panic!("no array: {json}"));
    let mut all: Vec<&str> = inner.split("},{\"direction\"").map(|e| e.trim_start_matches("\"direction\"")).collect();
    all.sort_unstable();
    all
}

#[test]
fn root_the_right_table() {
    testkit::require_root!();
    let scene = Scene::new("lstf_right");
    assert_eq!(
        scene.ours(&["-n"]),
        "\
Local Address:Port\t\t<-->\tPeer Address:Port\t\tConnections
192.0.2.10:many\t\t\t-->\t198.51.100.20:8080\t\t3
198.51.100.20:8080\t\t<--\t192.0.2.10:many\t\t\t3
192.0.2.10:many\t\t\t-->\t198.51.100.20:8081\t\t2
192.0.2.10:many\t\t\t-->\t198.51.100.20:8082\t\t2
198.51.100.20:8081\t\t<--\t192.0.2.10:many\t\t\t2
198.51.100.20:8082\t\t<--\t192.0.2.10:many\t\t\t2
[2001:db8:2::20]:many\t\t-->\t[2001:db8:2::20]:8081\t\t2
[2001:db8:2::20]:8081\t\t<--\t[2001:db8:2::20]:many\t\t2
127.0.0.1:many\t\t\t-->\t127.0.0.1:8085\t\t\t1
127.0.0.1:8085\t\t\t<--\t127.0.0.1:many\t\t\t1
192.0.2.10:many\t\t\t-->\t198.51.100.20:8083\t\t1
192.0.2.10:many\t\t\t-->\t198.51.100.20:8086\t\t1
198.51.100.20:8083\t\t<--\t192.0.2.10:many\t\t\t1
[2001:db8:123::100]:many\t-->\t[2001:db8:123::100]:8443\t1
[2001:db8:123::100]:8443\t<--\t[2001:db8:123::100]:many\t1
[fe80::1]:many\t\t\t-->\t[fe80::1]:8084\t\t\t1
[fe80::1]:8084\t\t\t<--\t[fe80::1]:many\t\t\t1
"
    );
}

/// Compatible layout and directions.
#[test]
fn root_the_old_table_is_lstfs() {
    testkit::require_root!();
    let scene = Scene::new("lstf_old");
    let theirs = scene.theirs("table", &["-n"]);
    let ours = scene.ours(&["--bug-compatible", "-n"]);
    assert_eq!(sorted(&ours), sorted(&theirs));
    // Defects 1 and 2, and the cell that fills its column.
    assert!(ours.contains("198.51.100.20:many\t-->\t192.0.2.10:40001\t"), "{ours}");
    assert!(ours.contains("192.0.2.10:40003\t<--\t198.51.100.20:many\t"), "{ours}");
    assert!(ours.contains("[2001:db8:123::100]:8443<--\t"), "{ours}");
    // A link as called by an old script.
    let link = scene.lab.dir().join("lstf");
    std::os::unix::fs::symlink(testkit::program::netwren(), &link).unwrap();
    let out = scene.lab.command(&link).arg("-n").env("NETWREN_BUG_COMPATIBLE", "1").output().unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), ours);
}

#[test]
fn root_json_is_lstfs() {
    testkit::require_root!();
    let scene = Scene::new("lstf_json");
    let theirs = scene.theirs("json", &["-n", "--json"]);
    let ours = scene.ours(&["--bug-compatible", "-n", "--json"]);
    assert_eq!(elements(&ours), elements(&theirs));
    let right = scene.ours(&["-n", "--json"]);
    assert!(right.ends_with("}]\n"), "{right}");
    let parsed: serde_json::Value = serde_json::from_str(&right).unwrap();
    assert_eq!(parsed.as_array().unwrap().len(), scene.ours(&["-n"]).lines().count() - 1);
}

#[test]
fn root_public_and_private_are_lstfs() {
    testkit::require_root!();
    let scene = Scene::new("lstf_filter");
    for scope in ["all", "public", "private"] {
        let theirs = scene.theirs(scope, &["-n", "-f", scope]);
        assert_eq!(sorted(&scene.ours(&["--bug-compatible", "-n", "-f", scope])), sorted(&theirs), "{scope}");
    }
    let (all, public, private) =
        (scene.ours(&["-n"]), scene.ours(&["-n", "-f", "public"]), scene.ours(&["-n", "-f", "private"]));
    let flows = |text: &str| text.lines().count() - 1;
    assert_eq!(flows(&all), flows(&public) + flows(&private));
    assert!(private.contains("127.0.0.1:8085") && !public.contains("127.0.0.1:8085"));
}

/// Names come from the namespace's hosts file; lstf queries a name server for other names, but none is available.
#[test]
fn root_names() {
    testkit::require_root!();
    let scene = Scene::new("lstf_names");
    let text = scene.ours(&[]);
    assert!(text.contains("localhost:8085"), "{text}");
    assert!(text.contains("192.0.2.10:many") && text.contains("[2001:db8:2::20]:8081"), "{text}");
}

/// The test process owns the sockets. lstf would end at the first unreadable process.
#[test]
fn root_processes() {
    testkit::require_root!();
    let scene = Scene::new("lstf_process");
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
    let group: u32 = rest.split_whitespace().nth(2).unwrap().parse().unwrap();
    let text = scene.ours(&["-n", "-p"]);
    assert!(text.starts_with("Local Address:Port\t\t<-->\tPeer Address:Port\t\tConnections\tProcess\n"), "{text}");
    let process = format!("\t(\"{name}\",pgid={group})");
    // Every flow except the one in TIME_WAIT, which has no owner.
    let owned = text.lines().filter(|line| line.ends_with(&process)).count();
    assert_eq!(owned, text.lines().count() - 2, "{text}");
    let json: serde_json::Value = serde_json::from_str(&scene.ours(&["-n", "-p", "--json"])).unwrap();
    assert_eq!(json[0]["process"]["pgid"], group, "{json}");
}

/// lstf gets a /proc with only this process, which it can read completely. `PROC_ROOT` is used for processes and
/// nothing else.
#[test]
fn root_issue_10_processes_below_another_root() {
    testkit::require_root!();
    let scene = Scene::new("lstfroot");
    let root = scene.lab.dir().join("proc");
    let inodes = scene.lab.output("ss", &["-Htlne", "sport = :8080"]);
    let inode = inodes.split("ino:").nth(1).unwrap().split_whitespace().next().unwrap();
    let dir = root.join("4242");
    std::fs::create_dir_all(dir.join("fd")).unwrap();
    let connections = scene.lab.output("ss", &["-Htne", "state", "established", "sport = :8080"]);
    let of_connections = connections.split("ino:").skip(1).map(|rest| rest.split_whitespace().next().unwrap());
    for (fd, inode) in of_connections.chain([inode]).enumerate() {
        std::os::unix::fs::symlink(format!("socket:[{inode}]"), dir.join(format!("fd/{fd}"))).unwrap();
    }
    std::fs::write(dir.join("comm"), "elsewhere\n").unwrap();
    std::fs::write(dir.join("stat"), "4242 (elsewhere) S 1 77 77 0 -1 0 0 0 0 0 0 0 0 0\n").unwrap();
    let run = |root: &std::path::Path| {
        let mut command = scene.lab.command(testkit::program::netwren());
        command.args(["lstf", "-n", "-p"]).env("PROC_ROOT", root).env_remove("NETWREN_BUG_COMPATIBLE").output().unwrap()
    };
    let found = String::from_utf8(run(&root).stdout).unwrap();
    let held: Vec<&str> = found.lines().filter(|line| line.contains("pgid=")).collect();
    assert!(
        !held.is_empty() && held.iter().all(|line| line.contains(":8080") && line.contains("(\"elsewhere\",pgid=77)")),
        "{found}"
    );
    let missing = run(&root.join("none"));
    assert_eq!(missing.status.code(), Some(11), "{missing:?}");
    if let Some(lstf) = lstf() {
        let mut command = scene.lab.command(lstf);
        let theirs = command.args(["-n", "-p"]).env("PROC_ROOT", &root).output().unwrap();
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        assert_eq!(theirs.matches("elsewhere").count(), held.len(), "{theirs}{found}");
        let mut command = scene.lab.command(self::lstf().unwrap());
        let failed = command.args(["-n", "-p"]).env("PROC_ROOT", root.join("none")).output().unwrap();
        assert_eq!(failed.status.code(), Some(11), "{failed:?}");
    }
}

#[test]
fn root_old_processes_are_lstfs() {
    testkit::require_root!();
    let Some(lstf) = lstf() else { return eprintln!("skipped: lstf is not installed") };
    let scene = Scene::new("lstf_owner");
    let proc = scene.lab.dir().join("proc");
    let ours = proc.join(std::process::id().to_string());
    std::fs::create_dir_all(ours.join("fd")).unwrap();
    std::fs::copy("/proc/self/stat", ours.join("stat")).unwrap();
    for fd in std::fs::read_dir("/proc/self/fd").unwrap().map(Result::unwrap) {
        // The descriptor used to read this directory is closed by now.
        if let Ok(target) = std::fs::read_link(fd.path()) {
            std::os::unix::fs::symlink(target, ours.join("fd").join(fd.file_name())).unwrap();
        }
    }
    let out = scene.lab.command(lstf).args(["-n", "-p"]).env("PROC_ROOT", &proc).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    // Its order is random, and the number of tabs before a process depends on adjacent lines.
    let squeezed = |text: &str| text.split('\t').filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("\t");
    let (theirs, ours) = (String::from_utf8(out.stdout).unwrap(), scene.ours(&["--bug-compatible", "-n", "-p"]));
    assert_eq!(sorted(&squeezed(&ours)), sorted(&squeezed(&theirs)));
}

#[test]
fn root_rounds_until_interrupted() {
    testkit::require_root!();
    let scene = Scene::new("lstf_watch");
    let mut command = scene.lab.command(testkit::program::netwren());
    let mut child = command.args(["lstf", "-n", "-w=1s"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut round = || -> Vec<String> { lines.by_ref().map(Result::unwrap).take_while(|l| !l.is_empty()).collect() };
    let (first, second) = (round(), round());
    let is_time =
        |line: &str| line.len() == "-- 15:04:05 -- ".len() && line.starts_with("-- ") && line.ends_with(" -- ");
    assert!(is_time(&first[0]) && is_time(&second[0]), "{first:?}");
    assert_eq!(first[1..], second[1..]);
    assert!(first[1].starts_with("Local Address:Port"));
    // `ip netns exec` execs the program, so the pid is netwren's.
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
