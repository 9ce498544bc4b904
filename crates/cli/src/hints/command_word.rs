//! Answers words typed as commands that do not exist: proposes the intended command, or lists all commands.

use crate::command::Commands;
use crate::flags::near_command::is_slip;

/// Words of other tools, each with our command line that answers the same question.
const MEANT: &[(&[&str], &str)] = &[
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

/// Returns the message about a first word that is not a command, with the intended line or else all commands.
pub(crate) fn unknown_command(word: &str, commands: Commands) -> String {
    let shown = word.escape_debug();
    let known = MEANT.iter().find(|(words, _)| words.contains(&word)).map(|(_, line)| *line);
    let first = || commands.iter().map(|command| command.name).filter(|name| !name.contains(' '));
    let slip = || {
        first().chain(faces::FACES.iter().map(|face| face.name)).find(|name| is_slip(word.as_bytes(), name.as_bytes()))
    };
    match known.or_else(slip) {
        Some(line) => format!("`{shown}` is not a command\ndid you mean: netwren {line}"),
        None => {
            let names: Vec<&str> = first().collect();
            format!("`{shown}` is not a command; the commands are {}", names.join(", "))
        }
    }
}
