//! A simulated host with programs, a container and clients; town.py and clients.py define them.

use crate::namespaces::Killed;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use testkit::lock::MachineLock;
use testkit::netns::Lab;
use testkit::tables::SharedUse;

/// The host `web1`, in separate pid, mount, host name and network namespaces, and the lab of its clients. Everything
/// ends when this is dropped.
pub(crate) struct Town {
    machine: Killed,
    clients: Option<Killed>,
    outside: Lab,
    cgroup: Option<PathBuf>,
    _tracking: SharedUse,
    /// With two hosts at once, `--all-netns` would show namespaces to distinguish their equal addresses, which would
    /// change the answers.
    _only: MachineLock,
}

impl Town {
    /// Creates the host; returns when all programs run and all clients have connected.
    pub(crate) fn new(purpose: &str) -> Town {
        // Build the program first, because that may take longer than the host exists.
        testkit::program::netwren();
        let only = MachineLock::take("town");
        let outside = Lab::new(purpose);
        let cgroup = container_group(outside.name());
        let (town, clients) = (script(&outside, "town.py", TOWN), script(&outside, "clients.py", CLIENTS));
        let mut machine = Command::new("unshare");
        machine.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts", "--net", "python3"]);
        machine.arg(town).arg(cgroup.clone().unwrap_or_default()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut machine = Killed(machine.spawn().unwrap());
        let mut said = BufReader::new(machine.0.stdout.take().unwrap());
        let mut town = Town { machine, clients: None, outside, cgroup, _tracking: SharedUse::share(), _only: only };
        wait_for("made", &mut said);
        town.plug();
        let mut talking = Command::new("python3");
        talking.arg(clients).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut talking = Killed(town.outside.run_inside(|| talking.spawn()).unwrap());
        wait_for("ready", &mut said);
        talking.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        wait_for("ready", &mut BufReader::new(talking.0.stdout.take().unwrap()));
        town.clients = Some(talking);
        town
    }

    /// A command in the host's network namespace.
    fn net(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.machine.0.id()));
        command
    }

    /// Connects the host to the outside clients, through `eth0` on both sides.
    fn plug(&self) {
        let own = |line: &str| {
            let status = self.net().arg("ip").args(line.split(' ')).status();
            assert!(status.is_ok_and(|status| status.success()), "ip {line}");
        };
        own(&format!("link add eth0 type veth peer name eth0 netns {}", self.outside.name()));
        let outside = |line: &str| self.outside.ip(&line.split(' ').collect::<Vec<_>>());
        outside("addr add 192.0.2.1/24 dev eth0");
        outside("link set eth0 up");
        ["10.1.2.3", "10.1.2.4", "198.51.100.7"].iter().for_each(|to| outside(&format!("addr add {to}/32 dev lo")));
        own("link set eth0 up");
        // Packets to this address vanish; an unreachable address would cause an ICMP error.
        outside("route add blackhole 198.51.100.99");
        self.outside.run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
        own("addr add 192.0.2.10/24 dev eth0");
        own("route add default via 192.0.2.1");
    }

    /// Runs a line of shell on a terminal of 80 columns; returns its output, followed by its text on stderr without
    /// lines about other tests' namespaces.
    pub(crate) fn says(&self, line: &str) -> String {
        self.run(line, false)
    }

    /// Like `says`, but in colour.
    pub(crate) fn shows(&self, line: &str) -> String {
        self.run(line, true)
    }

    fn run(&self, line: &str, in_colour: bool) -> String {
        let (program, dir) = (testkit::program::netwren(), self.outside.dir());
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
        let of = |name: &str| format!("/proc/{}/ns/{name}", self.machine.0.id());
        let mut command = Command::new("nsenter");
        command.args(["mnt", "net", "uts"].map(|name| match name {
            "mnt" => format!("--mount={}", of(name)),
            name => format!("--{name}={}", of(name)),
        }));
        command.arg(format!("--pid={}", of("pid_for_children"))).arg(format!("--wd={}", dir.display()));
        command.args(["script", "-qec", "stty cols 80 rows 40; exec bash -c \"$LINE\" 2> stderr", "/dev/null"]);
        crate::run::clean(&mut command).env("PATH", path).env("LINE", line).env("TERM", "xterm");
        // The default layout is the installed ss's, which depends on the machine.
        command.env("LC_ALL", "C.UTF-8").env("NETWREN_SS_LAYOUT", "6.1").stdin(Stdio::null());
        if !in_colour {
            command.env("NO_COLOR", "1");
        }
        let output = testkit::report_if_late(line, || command.output()).expect("nsenter starts");
        let stderr = std::fs::read_to_string(dir.join("stderr")).unwrap_or_default();
        let is_complete = matches!(output.status.code(), Some(0 | 3));
        assert!(is_complete, "`{line}` ended with {:?}: {stderr}", output.status.code());
        let own = stderr.lines().filter(|line| !is_of_others(line)).map(|line| format!("{line}\n"));
        let shown = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n") + &own.collect::<String>();
        // Remove the vendor's suffix of the kernel version, which differs between machines.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let version = release.split_once('-').map_or(release.as_str(), |(version, _)| version);
        shown.replace(release.trim_end(), version.trim_end())
    }
}

/// True for messages about the surrounding machine: other namespaces and processes, and its load.
fn is_of_others(line: &str) -> bool {
    ["network namespace", "outside this PID namespace", "a routine drop is not shown", "was not taken"]
        .iter()
        .any(|words| line.contains(words))
}

impl Drop for Town {
    fn drop(&mut self) {
        self.clients = None;
        let _ = (self.machine.0.kill(), self.machine.0.wait());
        let Some(group) = &self.cgroup else { return };
        for directory in [Some(group.as_path()), group.parent()].into_iter().flatten() {
            if !std::thread::panicking() {
                testkit::wait_until("the group is empty", || std::fs::remove_dir(directory).is_ok());
            }
        }
    }
}

const TOWN: &str = include_str!("town.py");
const CLIENTS: &str = include_str!("clients.py");

fn script(lab: &Lab, name: &str, text: &str) -> PathBuf {
    let path = lab.dir().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn wait_for(word: &str, from: &mut BufReader<ChildStdout>) {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), word, "the host does not come up");
}

/// A cgroup with LXC's path for a container `shop`; `None` without cgroup 2.
fn container_group(name: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find(|line| line.contains(" cgroup2 "))?.split(' ').nth(1)?;
    let group = PathBuf::from(root).join(name).join("lxc.payload.shop");
    std::fs::create_dir_all(&group).unwrap();
    Some(group)
}
