//! `--all-netns` while a user creates dozens of network namespaces: the user's share of memory is limited, and netwren
//! still reads the host's namespaces.

use crate::capture::command;
use crate::going::Going;
use crate::log::{send, to_five};
use crate::run::clean;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use testkit::netns::Lab;

/// Number of namespaces that the user creates.
const COUNT: usize = 60;
/// Room for the smallest rings (1 MiB) of 64 namespaces, including 16 namespaces of users.
const TOTAL: [&str; 2] = ["--buffer-total", "64MiB"];

/// A user's namespaces. The kernel removes them when the process ends.
struct UsersNamespaces(Child);

impl UsersNamespaces {
    /// Creates the namespaces; `None` if users may not create any.
    fn make() -> Option<UsersNamespaces> {
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-Urpf", "--kill-child"];
        let tried = Command::new("setpriv").args(user).arg("true").output().unwrap();
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
            testkit::print_loud(&format!("skipped: a user can make no network namespace here: {why}"));
            return None;
        }
        let script = format!("for i in $(seq {COUNT}); do unshare -n sh -c 'echo made; exec sleep 600' & done; wait");
        let mut command = Command::new("setpriv");
        let mut child = command.args(user).args(["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let made = BufReader::new(child.stdout.take().unwrap()).lines().take(COUNT);
        assert_eq!(made.map_while(Result::ok).count(), COUNT);
        Some(UsersNamespaces(child))
    }
}

impl Drop for UsersNamespaces {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_a_users_namespaces_take_their_share_of_a_capture_and_no_more() {
    testkit::require_root!();
    testkit::require_tool!("setpriv");
    let (lab, other) = (Lab::new("budgetcap"), Lab::new("budgetother"));
    let Some(_users) = UsersNamespaces::make() else { return };
    let words = [&["--all-netns"][..], &TOTAL].concat();
    let explained = command(&lab, &[&words[..], &["--explain"]].concat()).output().unwrap();
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    let kib = explained.split_once(" rings, ").and_then(|(_, rest)| rest.split_once(" KiB")).unwrap().0;
    let kib = kib.parse::<u32>().unwrap();
    assert!(kib <= (64 + 16) << 10, "{explained}");
    let columns = "netns,dport";
    let words = [&["--columns", columns][..], &words, &["dport = 7131"]].concat();
    let mut going: Going<String> = Going::past_header(command(&lab, &words), columns, |line| line);
    lab.run_inside(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"0", "127.0.0.1:7131").unwrap());
    other.run_inside(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"0", "127.0.0.1:7131").unwrap());
    let all = [&lab, &other].map(|lab| format!("{}\t7131", lab.name()));
    going.read_until("packets of both", |lines| all.iter().all(|line| lines.contains(line)));
    going.end().1.says(3, &["network namespaces were left out for lack of memory", "--buffer-total"]);
}

#[test]
fn root_a_users_namespaces_take_their_share_of_a_log_and_no_more() {
    const GROUP: &str = "47121";
    testkit::require_root!();
    for tool in ["nft", "setpriv"] {
        testkit::require_tool!(tool);
    }
    let log_to = |lab: &Lab| {
        let rule = format!("udp dport 7009 log prefix \"budget\" group {GROUP} drop");
        lab.nft(&format!("table inet t {{ chain o {{ type filter hook output priority 0\n {rule}\n }}\n }}"));
    };
    let before = Lab::new("budgetlog");
    log_to(&before);
    let Some(_users) = UsersNamespaces::make() else { return };
    let mut run = Command::new(testkit::program::netwren());
    clean(&mut run).args(["log", "--all-netns", "--group", GROUP, "--latency", "10ms", "-c", "netns"]);
    // Room for 64 of the smallest buffers (512 KiB).
    run.args(["--buffer-total", "32MiB", "prefix = budget"]);
    let mut log: Going<String> = Going::past_header(run, "netns", |line| line);
    send(&before, to_five(), 1);
    log.read_until("its record", |lines| lines.iter().any(|line| line == before.name()));
    // A namespace created after all of the user's namespaces.
    let later = Lab::new("budgetlater");
    log_to(&later);
    let groups = || later.output("cat", &["/proc/net/netfilter/nfnetlink_log"]);
    testkit::wait_until("the group is bound", || {
        groups().lines().any(|line| line.split_whitespace().next() == Some(GROUP))
    });
    send(&later, to_five(), 1);
    log.read_until("its record", |lines| lines.iter().any(|line| line == later.name()));
    log.end().1.says(3, &["network namespaces were left out for lack of memory", "--buffer-total"]);
}

/// Each namespace needs descriptors. If few may be open, netwren reads the host's namespaces and counts the rest.
#[test]
fn root_a_users_namespaces_use_up_no_descriptors() {
    testkit::require_root!();
    testkit::require_tool!("prlimit");
    let lab = Lab::new("budgetfiles");
    let Some(_users) = UsersNamespaces::make() else { return };
    let mut run = lab.command("prlimit");
    run.args(["--nofile=200:200", testkit::program::netwren().to_str().unwrap(), "capture"]);
    let ran = crate::run::Ran::of(clean(&mut run).args(["--all-netns", "--for", "0.2"]).output().unwrap());
    ran.says(3, &["network namespaces were left out for lack of memory or file descriptors", "ulimit -n"]);
}
