//! The programs that ship records: netwren, ulogd2 alone and with a syslog daemon, tcpdump.

use super::packets::GROUP;
use super::place::Place;
use super::syslog_daemons::{self, SyslogDaemon};
use crate::bench::cpus;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The form in which the output holds the records; it decides how they are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Syslog,
    Packets,
}

/// One task with log records, done by netwren and by the usual chain of programs.
pub(crate) struct Task {
    pub(crate) label: &'static str,
    /// The target of `--to`, with the placeholders `FILE` and `ADDR`.
    pub(crate) to: &'static str,
    pub(crate) peer_label: &'static str,
    pub(crate) peer: Peer,
    pub(crate) content: Content,
    /// The goal: the peer's CPU divided by ours is at least this.
    pub(crate) at_least: f64,
}

impl Task {
    /// The name that `--only` is compared with.
    pub(crate) fn name(&self) -> String {
        format!("{}, {}", self.label, self.peer_label)
    }
}

pub(crate) enum Peer {
    /// The stack after BASE and the section of its output plugin, with the placeholders `FILE`, `HOST` and `PORT`.
    Ulogd { stack: &'static str, section: &'static str },
    /// The output plugin SYSLOG and this daemon, which forwards via TCP.
    UlogdSyslog(SyslogDaemon),
    /// `tcpdump -i nflog:N -w`.
    Tcpdump,
}

pub(crate) const TASKS: &[Task] = &[
    Task {
        label: "RFC 5424, TCP",
        to: "syslog+tcp://ADDR",
        peer_label: "ulogd2 SYSLOG, rsyslog",
        peer: Peer::UlogdSyslog(SyslogDaemon::Rsyslog),
        content: Content::Syslog,
        at_least: 40.0,
    },
    Task {
        label: "RFC 5424, TCP",
        to: "syslog+tcp://ADDR",
        peer_label: "ulogd2 SYSLOG, syslog-ng",
        peer: Peer::UlogdSyslog(SyslogDaemon::SyslogNg),
        content: Content::Syslog,
        at_least: 130.0,
    },
    Task {
        label: "LOGEMU file",
        to: "logemu:FILE",
        peer_label: "ulogd2 LOGEMU, sync=1",
        peer: Peer::Ulogd {
            stack: "ifi1:IFINDEX,ip2str1:IP2STR,print1:PRINTPKT,emu1:LOGEMU",
            section: "[emu1]\nfile=\"FILE\"\nsync=1\n",
        },
        content: Content::Text,
        at_least: 14.0,
    },
    Task {
        label: "JSON file",
        to: "json:FILE",
        peer_label: "ulogd2 JSON, sync=1",
        peer: Peer::Ulogd {
            stack: "ifi1:IFINDEX,ip2str1:IP2STR,mac2str1:HWHDR,json1:JSON",
            section: "[json1]\nfile=\"FILE\"\nsync=1\n",
        },
        content: Content::Text,
        at_least: 28.0,
    },
    Task {
        label: "JSON, TCP",
        to: "json+tcp://ADDR",
        peer_label: "ulogd2 JSON, mode=tcp",
        peer: Peer::Ulogd {
            stack: "ifi1:IFINDEX,ip2str1:IP2STR,mac2str1:HWHDR,json1:JSON",
            section: "[json1]\nmode=\"tcp\"\nhost=\"HOST\"\nport=\"PORT\"\n",
        },
        content: Content::Text,
        at_least: 35.0,
    },
    Task {
        label: "pcap file",
        to: "pcap:FILE",
        peer_label: "ulogd2 PCAP",
        peer: Peer::Ulogd { stack: "pcap1:PCAP", section: "[pcap1]\nfile=\"FILE\"\n" },
        content: Content::Packets,
        at_least: 7.0,
    },
    Task {
        label: "pcap file",
        to: "pcap:FILE",
        peer_label: "tcpdump -w",
        peer: Peer::Tcpdump,
        content: Content::Packets,
        at_least: 5.0,
    },
];

/// A running chain of processes; they are killed on drop.
pub(crate) struct Chain {
    pub(crate) children: Vec<Child>,
}

impl Chain {
    /// The processes and their children.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut all = Vec::new();
        for pid in self.children.iter().map(Child::id) {
            let started = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            all.push(pid);
            all.extend(started.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        all
    }

    /// Keeps all processes off the CPU that sends the burst.
    pub(super) fn keep_apart(&self) -> Result<()> {
        self.pids().into_iter().try_for_each(cpus::keep_on_second)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts netwren with this latency.
pub(crate) fn ours(binary: &Path, to: &str, latency: &str, place: &Place<'_>) -> Result<Chain> {
    ours_with(binary, to, latency, &[], place)
}

/// Starts netwren with this latency and additional arguments.
pub(crate) fn ours_with(binary: &Path, to: &str, latency: &str, words: &[&str], place: &Place<'_>) -> Result<Chain> {
    let mut command = place.lab.command(binary);
    command.args(["log", "--group", &GROUP.to_string(), "--buffer", "64MiB", "--latency", latency]);
    command.args(["--to", &place.put_in(to)]).args(words);
    started(vec![command], place)
}

/// Starts the peer with buffers as large as ours; `None` if it is not installed.
pub(crate) fn peer(task: &Task, place: &Place<'_>) -> Result<Option<Chain>> {
    let commands = match task.peer {
        Peer::Tcpdump if !testkit::tool::is_installed("tcpdump") => return Ok(None),
        Peer::Tcpdump => {
            let mut command = place.lab.command("tcpdump");
            command.args(["-i", &format!("nflog:{GROUP}"), "-B", "65536", "-Z", "root", "-w"]).arg(place.file());
            vec![command]
        }
        Peer::Ulogd { stack, section } => match ulogd(stack, &place.put_in(section), place)? {
            Some(command) => vec![command],
            None => return Ok(None),
        },
        Peer::UlogdSyslog(daemon) => {
            let stack = "ifi1:IFINDEX,ip2str1:IP2STR,print1:PRINTPKT,sys1:SYSLOG";
            let logs = ulogd(stack, "[sys1]\nfacility=LOG_LOCAL2\n", place)?;
            let (Some(logs), Some(sends)) = (logs, syslog_daemons::command(daemon, place)?) else { return Ok(None) };
            vec![sends, syslog_daemons::before(logs, place)]
        }
    };
    started(commands, place).map(Some)
}

pub(super) fn started(commands: Vec<Command>, place: &Place<'_>) -> Result<Chain> {
    let (mut chain, count) = (Chain { children: Vec::new() }, commands.len());
    for mut command in commands {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        chain.children.push(command.spawn().context(program)?);
        if chain.children.len() < count {
            testkit::wait_until("the syslog daemon listens", || syslog_daemons::socket(place).exists());
        }
    }
    place.lab.wait_until("the group is bound", || place.lab.run_inside(is_bound));
    Ok(chain)
}

fn is_bound() -> bool {
    let list = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_log").unwrap_or_default();
    list.lines().any(|line| line.split_whitespace().next() == Some(&GROUP.to_string()))
}

/// The command of ulogd2 with `stack` after NFLOG and BASE.
pub(crate) fn ulogd(stack: &str, section: &str, place: &Place<'_>) -> Result<Option<Command>> {
    let Some(plugins) = plugins() else { return Ok(None) };
    let mut conf = format!("[global]\nlogfile=\"{}\"\nloglevel=5\n", place.dir.join("ulogd.log").display());
    let names = ["NFLOG", "BASE"].into_iter().chain(stack.split(',').filter_map(|word| word.split(':').nth(1)));
    for name in names {
        let kinds = ["inppkt", "raw2packet", "filter", "output"];
        let file = kinds.iter().map(|kind| plugins.join(format!("ulogd_{kind}_{name}.so"))).find(|path| path.is_file());
        let Some(file) = file else { return Ok(None) };
        conf += &format!("plugin=\"{}\"\n", file.display());
    }
    conf += &format!("stack=log1:NFLOG,base1:BASE,{stack}\n[log1]\ngroup={GROUP}\n");
    conf += "netlink_socket_buffer_size=67108864\nnetlink_socket_buffer_maxsize=67108864\nnetlink_qthreshold=1000\n";
    let path = place.dir.join("ulogd.conf");
    std::fs::write(&path, conf + section)?;
    let mut command = place.lab.command("ulogd");
    command.arg("-c").arg(path);
    Ok(Some(command))
}

fn plugins() -> Option<PathBuf> {
    let machine = std::env::consts::ARCH;
    let folders = [format!("/usr/lib/{machine}-linux-gnu/ulogd"), "/usr/lib/ulogd".to_owned()];
    folders.into_iter().map(PathBuf::from).find(|folder| folder.is_dir())
}
