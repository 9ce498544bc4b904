//! Compares `netwren ss` and `netwren netstat` with the installed tools: raw, UDP-Lite, packet, netlink and MPTCP
//! sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::net::Ipv4Addr;
use std::process::Output;
use testkit::netns::Lab;
use testkit::{mask, program, require_root, require_tool, tool, until_equal};

/// The layout of the installed ss.
fn layout() -> &'static str {
    if tool::version("ss").expect("ss tells its version") >= tool::Version(6, 15, 0) { "6.15" } else { "6.1" }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn theirs(lab: &Lab, tool: &str, line: &str) -> Output {
    lab.command(tool).args(line.split_whitespace()).output().expect("ip(8) starts")
}

fn ours(lab: &Lab, tool: &str, before: &[&str], line: &str) -> Output {
    let mut command = lab.command(program::netwren());
    command.arg(tool).args(before).args(line.split_whitespace()).env("NETWREN_SS_LAYOUT", layout());
    command.output().expect("ip(8) starts")
}

/// Removes the netlink sockets that the two tools themselves use, and the kernel's ends of them.
fn comparable(output: &Output) -> String {
    let own = |line: &&str| !line.contains("tcpdiag:") && !line.split(' ').any(|word| word.starts_with("4:"));
    let text = mask::netstat(&mask::ss(&text(&output.stdout)));
    let lines: Vec<&str> = text.lines().filter(own).collect();
    mask::sorted_lines(&lines.join("\n"))
}

/// Asserts the same lines and the same exit code.
#[track_caller]
fn same(lab: &Lab, tool: &str, before: &[&str], line: &str) {
    let both = || (theirs(lab, tool, line), ours(lab, tool, before, line));
    let (theirs, ours) = until_equal(both, |(theirs, ours)| comparable(theirs) == comparable(ours));
    assert_eq!(comparable(&theirs), comparable(&ours), "{tool} {line}: {}", text(&ours.stderr));
    assert_eq!(theirs.status.code(), ours.status.code(), "{tool} {line}");
}

const OLD: &[&str] = &["--bug-compatible"];

fn populate(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.ip(&["link", "set", "lo", "up"]);
    lab.raw_sockets();
    lab.packet_sockets();
    lab.netlink_sockets();
    lab.mptcp_connection();
    lab.udplite_sockets();
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    lab.udp((Ipv4Addr::UNSPECIFIED, 5300).into());
    lab.unix_pair();
    lab
}

#[test]
fn root_raw_packet_and_mptcp_sockets() {
    require_root!();
    require_tool!("ss");
    let lab = populate("ssfamilies");
    for line in [
        "-w",
        "-wa",
        "-wan",
        "-4wan",
        "-6wan",
        "-wl",
        "-wanp",
        "-wanoemi",
        "-wan --tos --inet-sockopt",
        "-tuwan",
        "-wa sport = 1",
        "-wan dst 127.0.0.2",
        "-wan state established",
        "-A raw,udp -a",
        "-M",
        "-Ma",
        "-Man",
        "-Mani",
        "-Manm",
        "-ManmiO",
        "-Manp",
        "-Man --tos --inet-sockopt -o",
        "-A mptcp,tcp -an",
        "-tani sport != :80",
        "-0",
        "-0a",
        "-0an",
        "-0al",
        "-0anp",
        "-0ane",
        "-0aneO",
        "-0ab",
        "-0abO",
        "-0anm",
        "-0anebmp",
        "-f link -a",
        "-A packet -an",
        "-0a src ip",
        "-0a src ip:lo",
        "-0a src *:lo",
        "-0a src :1",
        "-0a src LLDP:*",
        "-0a dst *:1",
        "-0a sport = :1",
        "-0a sport >= :1",
        "-0a dport < :1",
        "-0a dev lo",
        "-0a not dev lo",
        "-0a autobound",
        "-0a src nonsense",
        "-0 state established",
    ] {
        same(&lab, "ss", &[], line);
        same(&lab, "ss", OLD, line);
    }
}

/// The kernel reports sockets with groups twice, and ss shows them twice.
#[test]
fn root_netlink_sockets() {
    require_root!();
    require_tool!("ss");
    let lab = populate("ssnetlink");
    for line in [
        "-f netlink",
        "-f netlink -a",
        "-f netlink -an",
        "-f netlink -ane",
        "-f netlink -anm",
        "-f netlink -aemp",
        "-A netlink -l",
        "-f netlink -a src rtnl",
        "-f netlink -a src rtnl:kernel",
        "-f netlink -an src genl:*",
        "-f netlink -a sport = :0",
        "-f netlink -a sport > :0",
        "-f netlink -a sport <= :0",
        "-f netlink -a dport = :0",
        "-f netlink -a dev lo",
        "-f netlink -a autobound",
        "-f netlink -a src nonsense",
    ] {
        same(&lab, "ss", OLD, line);
    }
    let shown = |before: &[&str]| {
        let all = text(&ours(&lab, "ss", before, "-Hf netlink -aep").stdout);
        all.lines().filter(|line| line.contains("groups=0x00000011")).count()
    };
    assert_eq!((shown(OLD), shown(&[])), (2, 1));
}

#[test]
fn root_all_tables_at_once() {
    require_root!();
    require_tool!("ss");
    let lab = populate("ssall");
    for line in
        ["", "-a", "-an", "-l", "-p", "-4a", "-6an", "-A all", "-A inet -a", "-a state established", "-a sport = :1"]
    {
        same(&lab, "ss", OLD, line);
        let ours = ours(&lab, "ss", &[], line);
        // The user did not name the table that this kernel lacks.
        assert!(!text(&ours.stderr).contains("raw sockets"), "ss {line}: {}", text(&ours.stderr));
    }
}

/// The kernel sends packet sockets of every type, and ss shows them all.
#[test]
fn root_packet_sockets_by_type() {
    require_root!();
    require_tool!("ss");
    let lab = populate("sstypes");
    let count = |before: &[&str], table: &str| {
        text(&ours(&lab, "ss", before, &format!("-HA {table} -a")).stdout).lines().count()
    };
    assert_eq!((count(&[], "p_raw"), count(&[], "p_dgr"), count(&[], "packet")), (4, 1, 5));
    assert_eq!(count(OLD, "p_dgr"), 5);
    same(&lab, "ss", OLD, "-A p_dgr -an");
}

/// Clients waiting at a unix listener.
#[test]
fn root_peers_of_unix_listeners() {
    require_root!();
    require_tool!("ss");
    require_tool!("python3");
    let lab = Lab::new("sspeers");
    let ready = lab.dir().join("ready");
    let script = "import socket,sys,signal\n\
                  l=socket.socket(socket.AF_UNIX); l.bind('\\0waits'); l.listen(5); keep=[]\n\
                  for _ in range(2):\n    c=socket.socket(socket.AF_UNIX); c.connect('\\0waits'); keep.append(c)\n\
                  open(sys.argv[1],'w').close(); signal.pause()";
    lab.spawn("python3", &["-c", script, ready.to_str().unwrap()]);
    lab.wait_until("two that wait", || ready.exists());
    for line in ["-xane", "-xlne", "-xlnemp"] {
        same(&lab, "ss", OLD, line);
    }
    let listener = text(&ours(&lab, "ss", &[], "-Hxlne").stdout);
    let peers = listener.split(" peers:").nth(1).unwrap_or_default();
    assert_eq!(peers.split_whitespace().count(), 2, "{listener}");
}

#[test]
fn root_netstat_raw_and_udplite() {
    require_root!();
    require_tool!("netstat");
    let lab = populate("nsfamilies");
    for line in [
        "-wan", "-wa", "-w", "-wl", "-wanp", "-waneo", "-Uan", "-Uaneop", "-Ul", "-4wan", "-6wUan", "-twan", "-an4",
        "-an6",
    ] {
        same(&lab, "netstat", OLD, line);
    }
}
