//! `--all-netns`: every namespace, a namespace that cannot be read, and connections between two namespaces.

use crate::going::Going;
use crate::lab::furnished;
use crate::run::{Ran, command, command_for_anyone, netwren, netwren_in};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use sys::caps::Cap;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Checks that messages are only about other tests' namespaces, which change while they are read.
#[track_caller]
pub(crate) fn but_for_others(ran: Ran) -> String {
    let expected = |line: &str| {
        [
            "netwren: owners of ",
            "changed while they were read",
            "was removed before it was read",
            "went away",
            "rows read",
            "cannot enter",
            "cannot be entered",
            "rows seen",
            "comparing",
        ]
        .iter()
        .any(|w| line.contains(w))
    };
    assert!(matches!(ran.code, 0 | 3) && ran.stderr.lines().all(expected), "exit {}: {}", ran.code, ran.stderr);
    ran.stdout
}

pub(crate) fn only(labs: &[&Lab]) -> String {
    let names: Vec<String> = labs.iter().map(|lab| format!("\"{}\"", lab.name())).collect();
    format!("netns in ({})", names.join(", "))
}

/// Connects two labs with a pair of interfaces that have these addresses.
pub(crate) fn join(a: (&Lab, &str), b: (&Lab, &str)) {
    let [one, two] = [a.0, b.0].map(|lab| {
        let mut name = lab.name().to_owned();
        // Interface names have at most 15 bytes; the end of the name is what differs.
        name.drain(..name.len().saturating_sub(13));
        format!("v{name}")
    });
    a.0.ip(&["link", "add", &one, "type", "veth", "peer", "name", &two, "netns", b.0.name()]);
    for ((lab, addr), iface) in [(a, &one), (b, &two)] {
        lab.ip(&["addr", "add", &format!("{addr}/24"), "dev", iface]);
        lab.ip(&["link", "set", iface, "up"]);
    }
    for (lab, iface) in [(a.0, &one), (b.0, &two)] {
        lab.wait_until("the link is up", || lab.output("ip", &["-br", "link", "show", iface]).contains(" UP "));
    }
}

/// Two addresses that only this run uses: connections of an earlier run may linger for minutes in removed namespaces
/// and would match the same pair of ends.
pub(crate) fn ends_of_this_run(first: u8) -> [String; 2] {
    let [low, high, ..] = std::process::id().to_le_bytes();
    [1, 2].map(|last| format!("{first}.{high}.{low}.{last}"))
}

/// A process that accepts connections on port 8080.
fn serve(lab: &Lab) -> u32 {
    let script = "import socket,time\ns=socket.socket()\ns.bind(('0.0.0.0',8080))\ns.listen()\nc=[]\n\
                  while True: c.append(s.accept())";
    let pid = lab.spawn("python3", &["-c", script]);
    lab.wait_until("it listens", || lab.output("ss", &["-Hltn"]).contains(":8080"));
    pid
}

/// A process with connections from these ports to port 8080 of `to`.
fn connect(lab: &Lab, from: &str, to: &str, ports: &[u16]) -> u32 {
    let script = format!(
        "import socket,time\nc=[socket.create_connection(('{to}',8080),source_address=('{from}',p)) for p in \
            {ports:?}]\n\
         time.sleep(600)"
    );
    let pid = lab.spawn("python3", &["-c", &script]);
    lab.wait_until("it is connected", || lab.output("ss", &["-Htn"]).matches("ESTAB").count() >= ports.len());
    pid
}

#[test]
fn root_all_namespaces_are_the_union_of_each() {
    testkit::require_root!();
    let labs = [Lab::new("union"), Lab::new("union"), Lab::new("union")];
    for (n, lab) in labs.iter().enumerate() {
        lab.connect_v4(n + 2);
        lab.listen_tcp(2);
        lab.time_wait(1);
    }
    let mut expected = Vec::new();
    for lab in &labs {
        for line in lab.output("ss", &["-Htan"]).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            expected.push(format!("{}\t{}\t{}", lab.name(), words[3], words[4]));
        }
    }
    expected.sort();
    let columns = "netns,local_addr,local_port,peer_addr,peer_port";
    let filter = format!("proto = tcp and {}", only(&labs.each_ref()));
    let rows = netwren(&["sockets", "--all-netns", "-H", "--no-owner", "--columns", columns, &filter]).ok();
    let shown = |addr: &str, port: &str| if addr == "-" { "0.0.0.0:*".to_owned() } else { format!("{addr}:{port}") };
    let mut found: Vec<String> = rows
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            format!("{}\t{}\t{}", cells[0], shown(cells[1], cells[2]), shown(cells[3], cells[4]))
        })
        .collect();
    found.sort();
    assert_eq!(found, expected);
    assert!(found.len() > 15);
}

/// Each table of each namespace is the same as if it were read alone, and the namespace's name is a default column.
#[test]
fn root_each_family_of_each_namespace() {
    testkit::require_root!();
    let lab = furnished("each");
    let filter = only(&[&lab]);
    // Between two runs a handshake, or the minute of a closed connection, may end.
    let both = |columns: &str| {
        let lines = |place: &[&str]| {
            let ran = netwren(&[&["sockets", "-H", "--columns", columns, "--no-owner"], place].concat());
            // Another test may have a packet socket at that moment.
            let is_unmeasured = ran.stderr.contains("not measured: netwren was built without BPF") && ran.code == 3;
            testkit::mask::sorted_lines(&if is_unmeasured { ran.stdout } else { ran.ok() })
        };
        (lines(&["--netns", lab.name()]), lines(&["--all-netns", &filter]))
    };
    let rows = || {
        let (alone, together) = both("all");
        (alone.lines().count(), together.lines().count())
    };
    let (alone, together) = testkit::until_equal(rows, |(alone, together)| alone == together);
    assert_eq!(together, alone);
    let stable = "proto,family,state,local_addr,local_port,peer_addr,peer_port,path,inode,cookie,uid";
    let (alone, together) = testkit::until_equal(|| both(stable), |(alone, together)| alone == together);
    assert_eq!(together, alone);
    let head = netwren(&["sockets", "--all-netns", "--no-owner", "--limit", "1", &only(&[&lab])]).ok();
    assert!(head.starts_with("netns\tproto\t") && head.contains(&format!("\n{}\t", lab.name())), "{head}");
}

#[test]
fn root_both_ends_of_a_connection_are_one_flow() {
    testkit::require_root!();
    if !testkit::tool::require("python3") {
        return;
    }
    let (near, far) = (Lab::new("near"), Lab::new("far"));
    let [one, two] = ends_of_this_run(11);
    join((&near, &one), (&far, &two));
    let service = serve(&far);
    let client = connect(&near, &one, &two, &[40_001, 40_002]);
    let columns =
        "netns,direction,local_addr,peer_addr,peer_port,connections,process,pid,peer_netns,peer_process,peer_pid";
    let flows = |filter: &str| but_for_others(netwren(&["flows", "--all-netns", "-H", "--columns", columns, filter]));
    let joined =
        format!("{}\tout\t{one}\t{two}\t8080\t2\tpython3\t{client}\t{}\tpython3\t{service}\n", near.name(), far.name());
    far.wait_until("both are accepted", || flows(&only(&[&near])).contains("\t2\tpython3"));
    assert_eq!(flows(&only(&[&near, &far])), joined);
    // A filter that matches either end selects the flow.
    assert_eq!(flows(&only(&[&far])), joined);
    assert_eq!(flows(&format!("pid = {client}")), joined);
    assert_eq!(flows(&format!("pid = {service}")), joined);
    // One namespace shows only one end.
    let alone = netwren(&["flows", "--netns", far.name(), "-H", "--no-owner"]).ok();
    assert_eq!(alone, format!("tcp\tin\t{two}\t8080\t{one}\tmany\t2\n"));
}

/// Two unrelated pairs of namespaces use the same private addresses: ends are joined only if the match is unambiguous.
#[test]
fn root_equal_private_addresses_are_not_joined() {
    testkit::require_root!();
    if !testkit::tool::require("python3") {
        return;
    }
    let labs: Vec<Lab> = (0..4).map(|_| Lab::new("twins")).collect();
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| &labs[n]);
    let [one, two] = ends_of_this_run(10);
    for (client, service, ports) in [(a, b, [40_001, 40_002]), (c, d, [40_002, 40_003])] {
        join((client, &one), (service, &two));
        serve(service);
        connect(client, &one, &two, &ports);
    }
    let filter = only(&[a, b, c, d]);
    let args = ["flows", "--all-netns", "-H", "--columns", "netns,direction,connections,peer_netns", &filter];
    let mut expected: Vec<String> = Vec::new();
    for (client, service) in [(a, b), (c, d)] {
        // Ports 40001 and 40003 are unambiguous. Port 40002 exists twice, which gives four flows with one end each.
        expected.push(format!("{}\tout\t1\t{}", client.name(), service.name()));
        expected.push(format!("{}\tout\t1\t-", client.name()));
        expected.push(format!("{}\tin\t1\t-", service.name()));
    }
    expected.sort();
    let found = || {
        let mut lines: Vec<String> = but_for_others(netwren(&args)).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    a.wait_until("all are accepted", || found().len() == expected.len());
    assert_eq!(found(), expected);
}

/// A namespace that is created and removed repeatedly until this is dropped.
struct Churning {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Churning {
    fn of(name: &str) -> Churning {
        let over = Arc::new(AtomicBool::new(false));
        let (name, is_over) = (name.to_owned(), Arc::clone(&over));
        // Each command is awaited, so that no namespace is created after the last one was removed.
        let thread = std::thread::spawn(move || {
            while !is_over.load(SeqCst) {
                for what in ["add", "del"] {
                    assert!(Command::new("ip").args(["netns", what, &name]).status().unwrap().success());
                }
            }
        });
        Churning { over, thread: Some(thread) }
    }
}

impl Drop for Churning {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "ip made and removed namespaces");
    }
}

/// Namespaces that appear and disappear affect neither the rows of others nor the run.
#[test]
fn root_namespaces_may_vanish_while_they_are_read() {
    testkit::require_root!();
    let lab = Lab::new("stays");
    lab.connect_v4(2);
    let churn = format!("{}-c", lab.name());
    let _churning = Churning::of(&churn);
    let filter = format!("proto = tcp and netns in (\"{}\", \"{churn}\")", lab.name());
    for _ in 0..10 {
        let rows = but_for_others(netwren(&["sockets", "--all-netns", "-H", "--no-owner", &filter]));
        assert_eq!(rows.lines().count(), 5, "{rows}");
    }
}

/// Without permission to enter other namespaces, the own namespace is shown, and a message mentions the others.
#[test]
fn root_without_the_right_to_enter_only_ones_own() {
    testkit::require_root!();
    let (own, other) = (Lab::new("own"), Lab::new("other"));
    own.connect_v4(2);
    other.connect_v4(2);
    let filter = format!("proto = tcp and {}", only(&[&own, &other]));
    let without = |caps: &[Cap], more: &[&str]| {
        let mut child = command_for_anyone(&[&["sockets", "--all-netns", "-H", "--no-owner", &filter], more].concat());
        confine(&mut child, &[Limit::Network(own.path()), Limit::WithoutCaps(caps.to_vec())]).unwrap();
        Ran::of(child.output().unwrap())
    };
    let ran = without(&[Cap::SysAdmin, Cap::Bpf, Cap::Perfmon], &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    for word in ["one network namespace was not read (", "CAP_SYS_ADMIN"] {
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    assert_eq!(ran.stdout.lines().count(), 5);
    assert!(ran.stdout.lines().all(|line| line.starts_with(own.name())), "{}", ran.stdout);
    // The BPF walk does not enter namespaces. It can be requested only if the program was built with BPF.
    let walked = without(&[Cap::SysAdmin], &["--via", "bpf"]);
    assert!(walked.code == 4 || walked.ok().lines().count() == 10);
}

/// The object that keeps alive a namespace without a name and without processes.
enum Holder {
    Thread,
    Descriptor,
    Socket,
    /// A socket sent over a Unix socket to a process that has not received it yet.
    InFlight,
}

/// A namespace with a TCP listener, a UDP socket, a Unix socket and a route. Only `holder` keeps it alive.
struct HeldNetns {
    inode: u64,
    /// A path that leads there through the thread that made it.
    thread_path: String,
    files: Vec<std::os::fd::OwnedFd>,
    end: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeldNetns {
    fn new(holder: Holder) -> HeldNetns {
        let (send, receive) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let home = sys::NetNs::current().unwrap();
            sys::netns::unshare_net().unwrap();
            let inode = sys::netns::current_inode().unwrap();
            let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
            assert!(up.success());
            let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let unix = std::os::unix::net::UnixDatagram::unbound().unwrap();
            let netns = std::fs::File::open("/proc/thread-self/ns/net").unwrap();
            let is_thread = matches!(holder, Holder::Thread);
            if !is_thread {
                home.enter().unwrap().stay();
            }
            // Close all other descriptors before netwren reads.
            let files: Vec<std::os::fd::OwnedFd> = match holder {
                Holder::Thread | Holder::Socket => {
                    drop(netns);
                    vec![tcp.into(), udp.into(), unix.into()]
                }
                Holder::Descriptor => {
                    drop((tcp, udp, unix));
                    vec![netns.into()]
                }
                Holder::InFlight => {
                    drop((netns, udp, unix));
                    in_flight(tcp).into()
                }
            };
            let task = std::fs::read_link("/proc/thread-self").unwrap();
            send.send((inode, format!("/proc/{}/ns/net", task.display()), files)).unwrap();
            if is_thread {
                let _ = wait.recv();
            }
        });
        let (inode, thread_path, files) = receive.recv().unwrap();
        HeldNetns { inode, thread_path, files, end: Some(end), thread: Some(thread) }
    }

    /// A path that leads into the namespace, if a thread or a descriptor keeps it.
    fn way(&self) -> String {
        use std::os::fd::AsRawFd;
        match &self.files[..] {
            [descriptor] => format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd()),
            _ => self.thread_path.clone(),
        }
    }
}

impl Drop for HeldNetns {
    fn drop(&mut self) {
        self.end.take();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sends `listener` through a pair of sockets and returns the pair. No process has it open.
fn in_flight(listener: std::net::TcpListener) -> [std::os::fd::OwnedFd; 2] {
    let (one, two) = std::os::unix::net::UnixStream::pair().unwrap();
    sys::descriptors::send_files(&one, b"x", &[std::os::fd::AsFd::as_fd(&listener)]).unwrap();
    [one.into(), two.into()]
}

fn has_walk(lab: &Lab) -> bool {
    netwren_in(lab, &["sockets", "--via", "bpf", "proto = tcp", "--no-owner"]).code == 0
}

/// A thread, a namespace descriptor or a socket leads into the namespace, so every table and every backend reads it.
#[test]
fn root_a_namespace_that_no_process_is_in() {
    testkit::require_root!();
    let lab = Lab::new("held");
    let has_walk = has_walk(&lab);
    for holder in [Holder::Thread, Holder::Descriptor, Holder::Socket] {
        let (has_sockets, by_socket) = (!matches!(holder, Holder::Descriptor), matches!(holder, Holder::Socket));
        if by_socket && !has_walk {
            continue;
        }
        let held = HeldNetns::new(holder);
        let filter = format!("netns_id = {}", held.inode);
        let expected = if has_sockets { "tcp\tlisten\nudp\tunconn\nunix\tunconn\n" } else { "" };
        for via in [&[][..], &["--via", if by_socket { "proc" } else { "netlink" }]] {
            let args = ["sockets", "--all-netns", "-H", "--no-owner", "--columns", "proto,state", &filter];
            let ran = netwren(&[&args[..], via].concat());
            let stderr = ran.stderr.clone();
            let rows = but_for_others(ran);
            assert_eq!(testkit::mask::sorted_lines(&rows).trim_end(), expected.trim_end(), "{via:?} {stderr}");
        }
        if by_socket {
            continue;
        }
        let routes = netwren(&["routes", "--all-netns", "-H", "--columns", "destination", &filter]);
        assert!(but_for_others(routes).contains("127.0.0.0/8"));
    }
}

/// A process that enters a namespace and leaves it again, all the time. It hides neither the namespace nor its tables
/// from other programs, although it is the only process that they see there.
#[test]
fn root_a_visitor_hides_no_namespace() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let script = "import ctypes,os,sys,time\nlibc=ctypes.CDLL(None)\nhome=os.open('/proc/self/ns/net',0)\n\
                  there=os.open(sys.argv[1],0)\nwhile True:\n for fd in (there,home):\n  assert libc.setns(fd,0)==0\n  \
                  time.sleep(0.004)";
    for holder in [Holder::Thread, Holder::Descriptor] {
        let held = HeldNetns::new(holder);
        let way = held.way();
        let mut visitor = Command::new("python3").args(["-c", script, &way]).spawn().unwrap();
        testkit::wait_until("the visitor is there", || {
            let link = std::fs::read_link(format!("/proc/{}/ns/net", visitor.id()));
            link.is_ok_and(|link| link.as_os_str() == format!("net:[{}]", held.inode).as_str())
        });
        let filter = format!("netns_id = {}", held.inode);
        for _ in 0..40 {
            let routes = netwren(&["routes", "--all-netns", "-H", "--columns", "destination", &filter]);
            assert!(but_for_others(routes).contains("127.0.0.0/8"), "the namespace is missing");
        }
        visitor.kill().and_then(|()| visitor.wait()).unwrap();
    }
}

/// Only a walk of the kernel's tables finds the TCP sockets of a namespace whose last socket is in flight between two
/// processes. All other tables report the namespace as missing, with any backend.
#[test]
fn root_a_namespace_that_nothing_leads_into() {
    testkit::require_root!();
    if !has_walk(&Lab::new("inflight")) {
        return;
    }
    let held = HeldNetns::new(Holder::InFlight);
    let (inode, filter) = (held.inode, format!("netns_id = {}", held.inode));
    let args = ["sockets", "--all-netns", "-H", "--no-owner", "--columns", "netns,proto,state", &filter];
    let ran = netwren(&args);
    assert_eq!(ran.stdout, format!("{inode}\ttcp\tlisten\n"));
    ran.says(3, &["a network namespace cannot be entered"]);
    let tcp = format!("proto = tcp and {filter}");
    let args = ["sockets", "--all-netns", "-H", "--no-owner", "--columns", "netns,proto,state", &tcp];
    assert_eq!(but_for_others(netwren(&args)), format!("{inode}\ttcp\tlisten\n"));
    for via in ["netlink", "proc"] {
        let udp = format!("proto = udp and {filter}");
        netwren(&["sockets", "--all-netns", "--no-owner", "--via", via, &udp])
            .says(3, &["a network namespace cannot be entered"]);
    }
    netwren(&["routes", "--all-netns", &filter]).says(3, &["network namespace", "cannot enter"]);
    // If the walk cannot read a column, its cells are null for this namespace, and numbers for all namespaces that can
    // be entered.
    let ran = netwren(&["sockets", "--all-netns", "-H", "--no-owner", "--columns", "netns,cookie", &tcp]);
    assert_eq!(ran.stdout, format!("{inode}\t-\n"));
    assert!(ran.stderr.contains("some columns are empty"), "{}", ran.stderr);
}

#[test]
fn root_a_replay_has_all_namespaces() {
    testkit::require_root!();
    let (near, far) = (furnished("tapenear"), Lab::new("tapefar"));
    join((&near, "198.51.100.1"), (&far, "198.51.100.2"));
    let listener = far.listen("198.51.100.2:0".parse().unwrap());
    let _held = near.run_inside(|| std::net::TcpStream::connect(listener.addr).unwrap());
    let dir = tempfile::tempdir().unwrap();
    for table in ["sockets", "flows"] {
        let tape = dir.path().join(table).display().to_string();
        let filter = only(&[&near, &far]);
        let wide = ["--all-netns", "-o", "wide", &filter];
        let live = but_for_others(netwren(&[&[table, "--record", &tape], &wide[..]].concat()));
        let replayed = but_for_others(netwren(&[&[table, "--replay", &tape], &wide[..]].concat()));
        assert_eq!(replayed, live);
        assert!(live.contains(near.name()) && live.contains(far.name()) && live.lines().count() > 5, "{live}");
    }
    // A recording of one namespace contains only that namespace.
    let tape = dir.path().join("one").display().to_string();
    let one = netwren(&["sockets", "--netns", far.name(), "--record", &tape, "-H", "--no-owner"]).ok();
    let all = netwren(&["sockets", "--all-netns", "--replay", &tape, "-H", "--no-owner", "--columns", "-netns"]);
    assert_eq!((all.stdout.lines().count(), all.stdout.as_str()), (2, one.as_str()));
    all.says(3, &["the recording holds one network namespace"]);
}

/// A process that reads many namespaces is briefly in each of them, and may be the first process that a search finds
/// there. No rows are lost when it moves on.
#[test]
fn root_issue_10_passers_by_cost_no_rows() {
    testkit::require_root!();
    if !testkit::tool::require("python3") {
        return;
    }
    let lab = Lab::new("passedby");
    lab.listen_tcp(1);
    let script = "import ctypes,os,sys\nsetns=ctypes.CDLL(None).setns\n\
                  home,there=[os.open(path,os.O_RDONLY) for path in ('/proc/self/ns/net',sys.argv[1])]\n\
                  print(flush=True)\nwhile setns(there,0)==0 and setns(home,0)==0: pass";
    let mut passer_by = Command::new("python3");
    passer_by.args(["-c", script]).arg(lab.path()).stdout(std::process::Stdio::piped());
    let mut passer_by = Killed(passer_by.spawn().unwrap());
    // This process has the lower pid.
    let mut ready = [0];
    std::io::Read::read_exact(passer_by.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let pid = lab.spawn("sleep", &["600"]);
    // Unmount lazily, because the other process has the file open.
    assert!(Command::new("umount").arg("-l").arg(lab.path()).status().unwrap().success());
    let filter = format!("proto = tcp and netns_id = {}", sys::NetNs::open_pid(pid).unwrap().inode());
    for _ in 0..30 {
        let args = ["sockets", "--all-netns", "--via", "netlink", "-H", "--no-owner", "--columns", "state", &filter];
        let ran = netwren(&args);
        let said = ran.stderr.clone();
        assert_eq!(but_for_others(ran), "listen\n", "{said}");
    }
}

/// A process that is killed on drop.
pub(crate) struct Killed(pub(crate) std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace without a name is shown by the container of its process, or by the process if it is in no container.
#[test]
fn root_a_container_names_its_namespace() {
    testkit::require_root!();
    let lab = Lab::new("cont");
    lab.listen_tcp(1);
    let pid = lab.spawn("sleep", &["600"]);
    assert!(Command::new("umount").arg(lab.path()).status().unwrap().success());
    let inode = sys::NetNs::open_pid(pid).unwrap().inode();
    let filter = format!("proto = tcp and netns_id = {inode}");
    let args = ["sockets", "--all-netns", "-H", "--no-owner", "--columns", "netns", &filter];
    // While another test also reads this namespace, it may be shown by that test's process; the row is always present.
    let named = |expected: &str| {
        let rows = || {
            let rows = but_for_others(netwren(&args));
            assert_eq!(rows.lines().count(), 1, "{rows}");
            rows
        };
        assert_eq!(testkit::until_equal(rows, |rows| rows == expected), expected);
    };
    named(&format!("pid:{pid}\n"));
    assert_eq!(
        netwren(&["sockets", "--netns", &format!("pid:{pid}"), "-H", "--no-owner", "--columns", "state"]).ok(),
        "listen\n"
    );
    let Some(_group) = ContainerGroup::of(pid) else { return };
    // The runtime does not know the container, so the beginning of the ID is shown, as runtimes do.
    named(&format!("{pid:012}\n"));
}

/// Two Docker containers with their state files, in a folder mounted over /var/lib for the reader.
#[test]
fn root_issue_15_a_container_names_the_namespace_to_read() {
    testkit::require_root!();
    let labs = ["conta", "contb"].map(Lab::new);
    let listeners = [0, 1].map(|at| (labs[at].listen_tcp(1)[0], labs[at].spawn("sleep", &["600"])));
    let groups = listeners.map(|(_, pid)| ContainerGroup::of(pid));
    let [Some(first), Some(second)] = &groups else { return };
    let state = labs[0].dir().join("lib");
    let call = |group: &ContainerGroup, name: &str| group.call(&state, name);
    let read = |netns: &str| {
        let args = ["sockets", "--netns", netns, "-H", "--no-owner", "--columns", "local_port", "proto = tcp"];
        let mut command = command(&args);
        confine(&mut command, &[Limit::Cover { with: state.clone(), place: "/var/lib".into() }]).unwrap();
        Ran::of(command.output().unwrap())
    };
    let (one, other) = (format!("nwone{}", first.pid), format!("nw other \x1b[1m{}", first.pid));
    call(first, &one);
    call(second, &other);
    // A process of a container may enter another namespace; the container is in the namespace of its oldest process.
    let elsewhere = Killed(Command::new("unshare").args(["--net", "sleep", "600"]).spawn().unwrap());
    second.add(elsewhere.0.id());
    let inside = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    testkit::wait_until("it is elsewhere", || inside(elsewhere.0.id()) != inside(std::process::id()));
    for (name, (port, _)) in
        [(one.as_str(), listeners[0]), (other.as_str(), listeners[1]), (&second.id(), listeners[1])]
    {
        assert_eq!(read(name).ok(), format!("{port}\n"), "{name}");
    }
    drop(elsewhere);
    call(second, &one);
    let ran = read(&one);
    let pids = listeners.map(|(_, pid)| format!("pid:{pid} ("));
    ran.says(
        4,
        &[&format!("several containers in different network namespaces are called `{one}`"), &pids[0], &pids[1]],
    );
    let none = read("nw\x1b[1mnone");
    assert!(!none.stderr.contains('\x1b'), "{}", none.stderr);
    none.says(4, &["no network namespace `nw", "[1mnone`: ", "a container's name, a PID or a path"]);
}

/// Moves a process to the cgroup of a Docker container whose ID begins with the pid, and back to the root on drop.
pub(crate) struct ContainerGroup {
    pid: u32,
    root: &'static std::path::Path,
}

impl ContainerGroup {
    /// `None` without cgroup 2.
    pub(crate) fn of(pid: u32) -> Option<ContainerGroup> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let root =
            roots.into_iter().map(std::path::Path::new).find(|root| root.join("cgroup.controllers").is_file())?;
        let group = ContainerGroup { pid, root };
        std::fs::create_dir_all(group.path()).ok()?;
        std::fs::write(group.path().join("cgroup.procs"), pid.to_string()).ok()?;
        Some(group)
    }

    /// Adds another process, which must end before this is dropped.
    fn add(&self, pid: u32) {
        std::fs::write(self.path().join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Gives the container a name in Docker's state; `state` replaces /var/lib.
    pub(crate) fn call(&self, state: &std::path::Path, name: &str) {
        let folder = state.join("docker/containers").join(self.id());
        std::fs::create_dir_all(&folder).unwrap();
        let config = serde_json::json!({ "Name": format!("/{name}") });
        std::fs::write(folder.join("config.v2.json"), config.to_string()).unwrap();
    }

    fn id(&self) -> String {
        format!("{:012}{:052}", self.pid, 0)
    }

    fn path(&self) -> std::path::PathBuf {
        self.root.join("docker").join(self.id())
    }
}

impl Drop for ContainerGroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.root.join("cgroup.procs"), self.pid.to_string());
        let _ = std::fs::remove_dir(self.path());
        // This fails if Docker really runs here.
        let _ = std::fs::remove_dir(self.root.join("docker"));
    }
}

/// An additional name of a lab's namespace.
struct Renamed(std::path::PathBuf);

impl Renamed {
    /// Adds the new name and then removes the lab's name.
    fn new(lab: &Lab, name: &str) -> Renamed {
        let renamed = Renamed(lab.path().with_file_name(name));
        std::fs::File::create(&renamed.0).unwrap();
        assert!(Command::new("mount").arg("--bind").arg(lab.path()).arg(&renamed.0).status().unwrap().success());
        // A program that reads all namespaces may have this one open.
        assert!(Command::new("umount").arg("-l").arg(lab.path()).status().unwrap().success());
        renamed
    }
}

impl Drop for Renamed {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Namespaces appear, disappear and are renamed between rounds: the next round shows it, also for unchanged sockets.
#[test]
fn root_rounds_see_namespaces_come_go_and_renamed() {
    testkit::require_root!();
    let (lab, observer) = (Lab::new("nsround"), Lab::new("nsroundfile"));
    if netwren_in(&lab, &["sockets", "--via", "bpf", "proto = tcp", "--no-owner"]).code != 0 {
        return;
    }
    lab.listen_tcp(2);
    let file = observer.dir().join("rows");
    let mut watching = command(&["sockets", "--all-netns", "--no-owner", "-o", "json", "--watch=0.05"]);
    let filter = format!("proto = tcp and netns ~ \"^nw-nsround-{}-\"", std::process::id());
    watching.args(["--columns", "netns,change", &filter]);
    watching.stdout(std::fs::File::create(&file).unwrap()).stderr(std::process::Stdio::null());
    let mut watching = watching.spawn().unwrap();
    let rounds = || {
        let mut rounds: Vec<Vec<(String, String)>> = Vec::new();
        let text = std::fs::read_to_string(&file).unwrap();
        for row in text.lines().map_while(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
            match row.get("netns") {
                None => rounds.push(Vec::new()),
                Some(name) => {
                    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                    rounds.last_mut().unwrap().push((text(name), text(&row["change"])));
                }
            }
        }
        rounds
    };
    let kept = |name: &str| (name.to_owned(), "kept".to_owned());
    let rests = |names: &[&str]| {
        // The last round may be incomplete.
        let mut found = rounds().into_iter().rev().nth(1).unwrap_or_default();
        found.sort_unstable();
        let mut expected: Vec<_> = names.iter().map(|name| kept(name)).collect();
        expected.sort_unstable();
        found == expected
    };
    let (old, new) = (lab.name().to_owned(), format!("{}-new", lab.name()));
    testkit::wait_until("several rounds", || rounds().len() > 5 && rests(&[&old, &old]));
    let renamed = Renamed::new(&lab, &new);
    testkit::wait_until("its new name", || rests(&[&new, &new]));
    let other = Lab::new("nsround");
    other.listen_tcp(1);
    testkit::wait_until("another namespace", || rests(&[&new, &new, other.name()]));
    let gone = other.name().to_owned();
    drop(other);
    testkit::wait_until("that is gone", || rests(&[&new, &new]));
    assert!(rounds().iter().flatten().all(|(name, _)| *name == old || *name == new || *name == gone));
    let _ = Command::new("kill").args(["-INT", &watching.id().to_string()]).status();
    watching.wait().unwrap();
    drop(renamed);
}

/// An event has the current name of its namespace. For a stream this is the same as a new namespace that gets the inode
/// of a removed one.
#[test]
fn root_streams_name_namespaces_as_they_are_called_by_then() {
    testkit::require_root!();
    // Other tests fill the table, whose limit applies to the whole host.
    let _shared = testkit::tables::SharedUse::share();
    let lab = Lab::new("nsstream");
    lab.use_conntrack();
    let new = format!("{}-new", lab.name());
    let has_bpf = netwren(&["--version", "-v"]).ok().contains("bpf");
    for line in [
        ["nat", "events", "--columns", "netns,orig_dst", "--all-netns", "--event", "new"].as_slice(),
        &["sockets", "--follow", "--columns", "netns,event", "--all-netns"],
        &["capture", "--columns", "netns,iface", "--all-netns"],
        &["drops", "--columns", "netns,reason", "--all-netns", "--events"],
    ] {
        if !has_bpf && ["sockets", "drops"].contains(&line[0]) {
            continue;
        }
        let columns = line.iter().find(|word| word.starts_with("netns,")).unwrap();
        let mut going = Going::past_header(command(line), columns, |line| line);
        let mut sent = 0;
        let mut wait_for = |name: &str| {
            testkit::wait_until(&format!("{line:?}: a row of {name}"), || {
                sent += 1;
                let there = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
                let to = (std::net::Ipv4Addr::from(0x7f01_0000 + sent), there.local_addr().unwrap().port());
                let client = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
                client.send_to(b"x", to).unwrap();
                // The kernel drops it, because no socket has the port.
                client.send_to(b"x", ("127.0.0.1", 9)).unwrap();
                let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
                drop((std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener));
                going.take();
                going.read.iter().any(|row| row.split('\t').next() == Some(name))
            });
        };
        lab.run_inside(|| {
            wait_for(lab.name());
            let renamed = Renamed::new(&lab, &new);
            wait_for(&new);
            std::fs::File::create(lab.path()).unwrap();
            assert!(Command::new("mount").arg("--bind").arg(&renamed.0).arg(lab.path()).status().unwrap().success());
        });
        going.end();
    }
}

/// Every table that takes --all-netns has the column `netns` in each format, including grouped rows.
#[test]
fn root_every_table_of_all_namespaces_names_them() {
    testkit::require_root!();
    let has_netns = |explained: &str| {
        let columns = explained.lines().find_map(|line| line.strip_prefix("columns")).unwrap_or_default();
        columns.split_whitespace().any(|column| column == "netns")
    };
    let mut tables = 0;
    for (command, help) in crate::examples::helps() {
        if !help.contains("--all-netns") || !help.contains("--explain") {
            continue;
        }
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.extend(match command.join(" ").as_str() {
            "log" | "log top" | "log tail" => &["--all-netns", "--explain", "--group", "1"][..],
            _ => &["--all-netns", "--explain"],
        });
        for format in ["table", "json", "csv"] {
            let ran = netwren(&[&words[..], &["-o", format]].concat());
            if ran.code == 2 && ran.stderr.contains("cannot be used with") {
                continue;
            }
            assert_eq!(ran.code, 0, "{words:?} -o {format}: {}", ran.stderr);
            let says_columns = ran.stdout.contains("\ncolumns");
            tables += usize::from(says_columns);
            assert!(!says_columns || has_netns(&ran.stdout), "{words:?} -o {format}: {}{}", ran.stdout, ran.stderr);
        }
    }
    assert!(tables >= 20, "{tables}");
}

/// Equal addresses in two namespaces are different endpoints. Groups do not span namespaces unless requested.
#[test]
fn root_groups_do_not_reach_across_namespaces() {
    testkit::require_root!();
    let labs = [Lab::new("groups"), Lab::new("groups")];
    for lab in &labs {
        lab.listen_tcp(2);
    }
    let filter = format!("state = listen and {}", only(&labs.each_ref()));
    let groups = |by: &str| {
        let args = ["sockets", "--all-netns", "-H", "--no-owner", "--by", by, "--sort", "netns", &filter];
        let args = if by.contains("-netns") { [&args[..6], &args[8..]].concat() } else { args.to_vec() };
        but_for_others(netwren(&args))
    };
    let mut expected = labs.each_ref().map(|lab| format!("{}\t0.0.0.0\t2\n", lab.name()));
    expected.sort();
    assert_eq!(groups("local_addr"), expected.concat());
    assert_eq!(groups("local_addr,-netns"), "0.0.0.0\t4\n");
    let listeners = netwren(&["listeners", "--all-netns", "--no-owner", "-o", "csv", &filter]);
    let listeners = but_for_others(listeners);
    assert!(listeners.starts_with("netns,proto,local_addr,"), "{listeners}");
    assert!(labs.iter().all(|lab| listeners.contains(&format!("{},tcp,", lab.name()))), "{listeners}");
}

#[test]
fn one_namespace_or_all() {
    Ran::of(command(&["sockets", "--all-netns", "--netns", "x"]).output().unwrap()).says(2, &["cannot be used with"]);
}

#[test]
fn root_a_path_that_is_no_network_namespace_is_refused() {
    testkit::require_root!();
    // Opening the FIFO would wait for a writer.
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for file in ["/etc/passwd", "/proc/self/ns/mnt", fifo.to_str().unwrap()] {
        netwren(&["sockets", "--netns", file]).says(4, &[file, "not a network namespace"]);
    }
}
