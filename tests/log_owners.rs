//! `log` shows the processes that send and receive packets.

use crate::going::Going;
use crate::log::command;
use crate::run::Ran;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use testkit::netns::Lab;

/// Packets between two sockets of this process, logged on output and input, and a packet to a closed port.
#[test]
fn root_log_finds_who_sent_a_packet_and_whom_it_is_for() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("logowner");
    lab.nft(
        "table inet t {
         chain o { type filter hook output priority 0
           udp dport { 7009, 7010 } log prefix \"out\" group 5
         }
         chain i { type filter hook input priority 0
           udp dport { 7009, 7010 } log prefix \"in\" group 5
         }
         }",
    );
    let own = std::process::id();
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
    let comm = comm.trim_end();
    let expected = [
        format!("in\t7009\t{own}\t{comm}"),
        "in\t7010\t-\t-".to_owned(),
        format!("out\t7009\t{own}\t{comm}"),
        format!("out\t7010\t{own}\t{comm}"),
    ];
    let (lines, ran) = testkit::until_equal(|| once(&lab), |(lines, _)| *lines == expected);
    assert_eq!(lines, expected);
    assert!(ran.stderr.contains("1 of 4 records of packets to or from this host have no owner"), "{}", ran.stderr);
}

/// The sorted records of two packets, and the messages of the run.
fn once(lab: &Lab) -> (Vec<String>, Ran) {
    let columns = "prefix,dport,pid,process";
    let args = ["--columns", columns, "--group", "5", "--latency", "10ms"];
    let mut log: Going<String> = Going::past_header(command(lab, &args), columns, |line| line);
    let at = |port: u16| -> SocketAddr { (Ipv4Addr::LOCALHOST, port).into() };
    let (receiver, sender) = lab.run_inside(|| (UdpSocket::bind(at(7009)).unwrap(), UdpSocket::bind(at(0)).unwrap()));
    lab.run_inside(|| {
        sender.send_to(b"x", at(7009)).unwrap();
        sender.send_to(b"x", at(7010)).unwrap();
    });
    log.read_until("four records", |lines| lines.len() >= 4);
    let (mut lines, ran) = log.end();
    drop((receiver, sender));
    lines.sort_unstable();
    (lines, ran)
}

/// A socket of the other family on the same port does not own the packet.
#[test]
fn root_log_names_no_holder_of_the_port_in_the_other_family() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("python3");
    let lab = Lab::new("logv6only");
    lab.nft(
        "table inet t {
         chain o { type filter hook output priority 0
           udp sport 7019 log prefix \"out\" group 5
         }
         }",
    );
    let script = "
import socket
ours = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
ours.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
ours.bind(('::', 7019))
short = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
short.bind(('', 7019))
import sys
sys.stdin.readline()
short.sendto(b'x', ('127.0.0.1', 7020))
short.close()
ours.recv(1)
";
    let columns = "sport,process";
    let args = ["--columns", columns, "--group", "5", "--latency", "10ms"];
    let mut log: Going<String> = Going::past_header(command(&lab, &args), columns, |line| line);
    let mut python = lab.command("python3");
    let mut child = python.args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    log.read_until("a record", |lines| !lines.is_empty());
    let (lines, ran) = log.end();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lines, ["7019\t-"], "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 1 records of packets to or from this host have no owner"), "{}", ran.stderr);
}
