//! Answers words typed as commands that do not exist: proposes the intended command, or lists all commands.

use super::own_line;
use crate::command::{Command, Commands};
use crate::flags::near_command::{is_slip, near_command};
use std::ffi::OsString;

/// Words of other tools, each with our command line that answers the same question.
pub(super) const MEANT: &[(&[&str], &str)] = &[
    (&["top", "iftop", "nethogs", "bandwidth", "traffic"], "flows --watch"),
    (&["conn", "conns", "connection", "connections", "lsof", "socket", "tcp", "who"], "sockets"),
    (&["unix"], "sockets 'proto = unix'"),
    (&["udp"], "sockets 'proto = udp'"),
    (&["listen", "listening", "ports", "port", "services"], "listeners"),
    (&["kill", "close", "tcpkill"], "sockets kill --help"),
    (&["retrans", "retransmits"], "sockets --sort retrans_total:desc --limit 20"),
    (&["rtt", "latency"], "sockets --sort rtt_us:desc --limit 20"),
    (&["process", "processes", "ps"], "sockets --by process"),
    (&["stats", "stat", "statistics", "snmp", "counter"], "counters"),
    (&["interfaces", "interface", "ifaces", "iface", "links", "link", "ifconfig", "dev", "ethtool"], "home"),
    (&["status", "summary", "overview", "show", "dashboard"], "home"),
    (&["dump", "sniff", "packets", "packet", "pcap", "tshark", "wireshark", "trace"], "capture"),
    (&["ip", "rt"], "routes"),
    (&["ct", "entries", "masquerade", "snat", "dnat"], "nat"),
    (&["events", "sessions"], "nat events"),
    (&["nflog", "logs", "syslog", "firewall", "iptables", "nft"], "log --help"),
    (&["dropped", "loss", "losses"], "drops"),
    (&["check", "diagnose", "health", "problems", "why", "errors"], "doctor"),
    (&["save", "snapshot"], "record --help"),
    (&["features", "version", "capabilities"], "support"),
];

/// Returns the line of the subcommand that the first operand misspells.
pub(crate) fn near_subcommand(words: &[OsString], command: &Command, commands: Commands) -> Option<String> {
    near_command(words, command, commands).map(own_line::bare)
}

/// Returns the message about a first word that is not a command, with the intended line or else all commands.
pub(crate) fn unknown_command(word: &str, commands: Commands) -> String {
    let shown = word.escape_debug();
    let known = MEANT.iter().find(|(words, _)| words.contains(&word)).map(|(_, line)| *line);
    let first = || commands.iter().copied().filter(|command| !command.name.contains(' '));
    let is_near = |name: &str| is_slip(word.as_bytes(), name.as_bytes());
    let command = || first().find(|command| is_near(command.name)).map(own_line::bare);
    let face = || faces::FACES.iter().find(|face| is_near(face.name)).map(|face| format!("netwren {}", face.name));
    match known.map(|line| format!("netwren {line}")).or_else(command).or_else(face) {
        Some(line) => format!("`{shown}` is not a command\ndid you mean: {line}"),
        None => {
            let names: Vec<&str> = first().map(|command| command.name).collect();
            format!("`{shown}` is not a command; the commands are {}", names.join(", "))
        }
    }
}
