//! Compares `netwren tcpdump -i` with this machine's tcpdump: both print the same lines for the same traffic.

use crate::capture::rings;
use crate::going::Going;
use crate::run::{Ran, clean};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn inside(lab: &Lab, program: &str, args: &[&str]) -> Command {
    let mut command = match program {
        "netwren" => Command::new(testkit::program::netwren()),
        other => Command::new(other),
    };
    clean(&mut command).args(if program == "netwren" { &["tcpdump"][..] } else { &[] }).args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

/// A connection with a few bytes in each direction, datagrams, and some datagrams to closed ports.
fn traffic(lab: &Lab) {
    lab.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        server.read_exact(&mut [0; 18]).unwrap();
        server.write_all(&[7; 3000]).unwrap();
        client.read_exact(&mut [0; 3000]).unwrap();
        drop((client, server));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        (1..20).for_each(|len| _ = socket.send_to(&vec![len; len.into()], other.local_addr().unwrap()).unwrap());
        let _ = socket.send_to(b"refused", (Ipv4Addr::LOCALHOST, 7123));
        let _ = UdpSocket::bind("[::1]:0").unwrap().send_to(b"refused", (Ipv6Addr::LOCALHOST, 7123));
    });
    // The last packet: a program that has shown it has shown everything.
    lab.run_inside(|| _ = UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"the end", (Ipv4Addr::LOCALHOST, 7999)));
}

/// The lines and the final messages of both for the same traffic.
#[track_caller]
fn next_to_tcpdump(lab: &Lab, args: &[&str]) -> [(Vec<String>, Ran); 2] {
    // The ring of a program that has ended may still be there for a moment.
    testkit::wait_until("no ring is left", || rings(lab) == 0);
    let both = ["tcpdump", "netwren"].map(|program| {
        let words = [&["-n", "-t", "-l"], args].concat();
        Going::<String>::spawn(inside(lab, program, &words), |line| line)
    });
    testkit::wait_until("both rings are there", || rings(lab) == 2);
    // A program may open more than one socket for a moment. One that polls is ready; 7 is poll(2).
    let polls =
        |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|text| text.starts_with("7 "));
    testkit::wait_until("both wait for packets", || both.iter().all(|going| polls(going.child.id())));
    traffic(lab);
    both.map(|mut going| {
        going.read_until("the last packet", |lines| lines.iter().any(|line| line.contains("7999: UDP")));
        let (mut lines, ran) = going.end();
        // Ignore the answer to the last packet, which is not awaited.
        lines.retain(|line| !line.contains("port 7999 unreachable"));
        (lines, ran)
    })
}

#[test]
fn root_live_lines_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    let lab = Lab::new("tdlive");
    for args in [
        &["-i", "lo"][..],
        &["-i", "lo", "-e", "-S", "-q"],
        &["-i", "lo", "-v", "udp or icmp or icmp6"],
        &["-i", "lo", "-#", "-x", "-s", "100", "tcp or udp port 7999"],
        &["-i", "lo", "-p", "-Q", "in", "-B", "32768", "--immediate-mode", "ip"],
        &["-i", "any"],
        &["-i", "any", "-e", "udp or icmp"],
        &["-i", "any", "-B", "32768", "--immediate-mode", "-Q", "in", "udp"],
    ] {
        let [(theirs, their_end), (ours, our_end)] = next_to_tcpdump(&lab, args);
        assert!(theirs.len() > 20, "{args:?}: {theirs:?}");
        assert_eq!(ours, theirs, "{args:?}");
        assert_eq!(our_end.code, their_end.code, "{args:?}");
        let words = |ran: &Ran| {
            ran.stderr.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned()).collect()
        };
        let (ours, theirs): (Vec<String>, Vec<String>) = (words(&our_end), words(&their_end));
        assert_eq!(ours, theirs, "{args:?}");
    }
}

#[test]
fn root_live_runs_end_and_refuse_as_tcpdump() {
    testkit::require_root!();
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    let lab = Lab::new("tdends");
    lab.ip(&["link", "add", "down0", "type", "veth", "peer", "name", "down1"]);
    for args in [
        &["-i", "nope0"][..],
        &["-i", "down0"],
        &["-i", "99"],
        &["-i", "lo", "-Q", "sideways"],
        &["-i", "lo", "-s", "x"],
        &["-i", "lo", "-B", "x"],
        &["-i", "lo", "-j", "x"],
        &["-i", "lo", "--time-stamp-precision", "x"],
        &["-i", "lo", "-J"],
        &["-i", "any", "-J"],
    ] {
        let [theirs, ours] = ["tcpdump", "netwren"].map(|program| inside(&lab, program, args).output().unwrap());
        assert_eq!(ours.status.code(), theirs.status.code(), "{args:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{args:?}");
        assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{args:?}");
    }
    // tcpdump also lists devices that are not interfaces, after all interfaces.
    let [theirs, ours] = ["tcpdump", "netwren"].map(|program| {
        let listed = inside(&lab, program, &["-D"]).output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let is_interface =
            |line: &&str| ["lo", "any ", "down"].iter().any(|name| line.split_once('.').unwrap().1.starts_with(name));
        text.lines().filter(is_interface).map(|line| line.split_once('.').unwrap().1.to_owned()).collect::<Vec<_>>()
    });
    assert_eq!((ours.len(), &ours), (4, &theirs));
}

/// Timestamp types that an adapter does not support cause the same warnings in the same place and the same lists; a
/// number is first taken as a name.
#[test]
fn root_missing_adapter_stamps_are_reported_as_by_tcpdump() {
    testkit::require_root!();
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    let lab = Lab::new("tdstamps");
    lab.ip(&["link", "add", "v0", "type", "veth", "peer", "name", "down1"]);
    lab.ip(&["link", "set", "v0", "up"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let clocks = ["adapter", "adapter_unsynced", "host_hiprec", "host"];
    let lists = ["lo", "v0", "down1", "any", "nope0", "1", "99"].map(|iface| vec!["-J", "-i", iface]);
    let refused = ["down1", "nope0", "99", "nope\u{1}"].map(|iface| clocks.map(|clock| vec!["-i", iface, "-j", clock]));
    let programs = ["v0", "lo", "down1", "any"].map(|iface| vec!["-d", "-i", iface, "-j", "adapter", "ip"]);
    let monitor = vec!["-i", "v0", "-I", "-j", "adapter"];
    for args in lists.into_iter().chain(refused.into_iter().flatten()).chain(programs).chain([vec!["-J"], monitor]) {
        let [theirs, ours] = ["tcpdump", "netwren"].map(|program| inside(&lab, program, &args).output().unwrap());
        if args.contains(&"nope\u{1}") {
            // netwren escapes the name.
            assert_eq!(text(&ours.stderr).lines().count(), text(&theirs.stderr).lines().count(), "{args:?}");
        } else {
            assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{args:?}");
        }
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{args:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{args:?}");
    }
    for (iface, clock) in [("lo", "adapter"), ("lo", "adapter_unsynced"), ("any", "adapter"), ("any", "host")] {
        let args = ["-i", iface, "-j", clock, "udp"];
        let [(theirs, their_end), (ours, our_end)] = next_to_tcpdump(&lab, &args);
        assert_eq!(ours, theirs, "{args:?}");
        let told = |ran: &Ran| ran.stderr.split_once("listening on").unwrap().0.to_owned();
        assert_eq!((told(&our_end), our_end.code), (told(&their_end), their_end.code), "{args:?}");
        assert_eq!(our_end.stderr.contains("is not supported by that device"), clock != "host", "{args:?}");
    }
}

/// `-c` ends the run without a signal, and without the empty line printed after one; `--count` prints only the number
/// of packets.
#[test]
fn root_live_runs_end_at_their_count() {
    testkit::require_root!();
    let lab = Lab::new("tdcount");
    for (args, expected) in [(&["-c", "3"][..], 3), (&["-c", "3", "--count"], 1)] {
        let words = [&["-t", "-i", "lo", "udp"], args].concat();
        let mut going: Going<String> = Going::spawn(inside(&lab, "netwren", &words), |line| line);
        testkit::wait_until("the ring is there", || rings(&lab) == 1);
        traffic(&lab);
        assert!(going.child.wait().unwrap().success());
        going.read_until("its lines", |lines| lines.len() == expected);
        let mut said = String::new();
        going.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("\n3 packets captured\n"), "{said}");
        assert!(said.ends_with(" received by filter\n0 packets dropped by kernel\n"), "{said}");
    }
}
