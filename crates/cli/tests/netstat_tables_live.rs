//! Compares the netstat face with netstat itself: interfaces, routes, multicast groups.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::{Command, Output, Stdio};
use testkit::netns::Lab;
use testkit::{program, require_root, require_tool, until_equal};

/// Interfaces of several types, up and down, with aliases and long names.
fn interfaces(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    let ip = |line: &str| lab.ip(&line.split(' ').collect::<Vec<_>>());
    ip("link add va type veth peer name vb");
    ip("link add averylongname15 type veth peer name v10");
    ip("link add v9 type veth peer name v01");
    ip("link set va mtu 1400 txqueuelen 77");
    ip("link set vb allmulticast on");
    ip("link set v10 promisc on");
    // A tunnel, if /dev/net/tun is available: another hardware type.
    let _ = lab.command("ip").args(["tuntap", "add", "tun5", "mode", "tun"]).output();
    for link in ["va", "vb", "averylongname15", "v9"] {
        ip(&format!("link set {link} up"));
    }
    ip("addr add 192.0.2.1/24 brd + dev va");
    ip("addr add 192.0.2.5/24 dev va label va:10");
    ip("addr add 192.0.2.6/24 dev va label va:2");
    ip("addr add 192.0.2.7/24 dev va label va:10");
    ip("addr add 10.0.0.1 peer 10.0.0.2 dev v9");
    ip("addr add 192.0.2.99/32 dev lo");
    ip("addr add 2001:db8::1/64 dev va nodad");
    ip("addr add ::1.2.3.4/128 dev va nodad");
    lab
}

fn netstat(lab: &Lab, words: &[&str]) -> Output {
    lab.command("netstat").args(words).env("LC_ALL", "C").output().unwrap()
}

fn face(lab: &Lab, words: &[&str], bug_compatible: bool) -> Output {
    let old = if bug_compatible { "1" } else { "0" };
    lab.command(program::netwren()).arg("netstat").args(words).env("NETWREN_BUG_COMPATIBLE", old).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts the same bytes in the same order and the same exit code. Repeats both calls if they differ, because
/// counters may move in between and an address may stop being tentative.
#[track_caller]
fn same(lab: &Lab, words: &str, bug_compatible: bool) {
    let words: Vec<&str> = words.split(' ').collect();
    let both = || [netstat(lab, &words), face(lab, &words, bug_compatible)];
    let [theirs, ours] = until_equal(both, |[theirs, ours]| theirs.stdout == ours.stdout);
    assert_eq!(text(&theirs.stdout), text(&ours.stdout), "{words:?}: {}", text(&ours.stderr));
    assert_eq!(theirs.status.code(), ours.status.code(), "{words:?}");
}

#[test]
fn root_interfaces_are_netstats() {
    require_root!();
    require_tool!("netstat");
    let lab = interfaces("nstif");
    for words in ["-i", "-ia", "-ie", "-iea", "-in", "-ig", "--interfaces --all", "-ix -6", "-ieeW"] {
        same(&lab, words, false);
        same(&lab, words, true);
    }
    let short = text(&face(&lab, &["-ia"], false).stdout);
    let names: Vec<&str> = short.lines().skip(2).filter_map(|line| line.split(' ').next()).collect();
    let order = ["averylongname15", "lo", "v01", "v9", "v10", "va", "va:2", "va:10", "vb"];
    let known: Vec<&str> = names.into_iter().filter(|name| *name != "tun5").collect();
    assert_eq!(known, order);
    assert!(short.contains("- no statistics available -"));
}

#[test]
fn root_routes_are_netstats() {
    require_root!();
    require_tool!("netstat");
    let lab = interfaces("nstrt");
    for route in [
        "unreachable 198.51.100.0/24 metric 7",
        "blackhole 198.51.101.0/24",
        "prohibit 198.51.102.1",
        "throw 198.51.103.0/24",
        "203.0.113.0/24 via 192.0.2.8 metric 4000000000 mtu 1300 advmss 1200 window 10 rtt 200ms",
        "203.0.114.0/24 nexthop via 192.0.2.8 nexthop via 192.0.2.7 weight 3",
        "203.0.115.0/24 via inet6 fe80::1 dev va",
        "203.0.116.0/24 dev averylongname15",
        "local 203.0.119.1 dev va table main",
        "multicast 224.1.1.0/24 dev va",
        "10.9.9.9 dev va table 99",
        "169.254.0.0/16 dev va",
        "127.0.0.0/8 dev lo",
    ] {
        lab.ip(&[&["route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
    }
    for route in [
        "default via 2001:db8::9",
        "unreachable 2001:db8:9::/48",
        "2001:db8:8::/48 via 2001:db8::8 metric 7 expires 300",
        "::ffff:1.2.3.0/120 dev va",
    ] {
        lab.ip(&[&["-6", "route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
    }
    // These commands look up names. They run while there is no default route, so they do not wait for a name server.
    for words in ["-r", "-re", "-rCF", "-6r", "-46r", "-r --numeric-ports"] {
        same(&lab, words, true);
    }
    lab.ip(&["route", "add", "default", "via", "192.0.2.9"]);
    for words in [
        "-rn",
        "-ren",
        "-rnW",
        "-rnv",
        "-rN",
        "-reeen",
        "-reeeen",
        "-rC",
        "-rCe",
        "-rCee",
        "-rCFn",
        "-rFn",
        "-6rn",
        "-6rC",
        "-6rCFn",
        "-46rn",
        "-A inet6 -ren",
        "-A inet,ip6 -rn",
        "-rx",
        "-4rx6n",
        "-rn ignored words",
    ] {
        same(&lab, words, false);
    }
    // `-ee` truncates the interface's name; in ours `-W` shows it completely.
    same(&lab, "-reen", true);
    let wide = text(&face(&lab, &["-reenW"], true).stdout);
    assert!(wide.contains(" averylongname15   0 "), "{wide}");
    assert_eq!(wide, text(&face(&lab, &["-reen"], false).stdout));
}

#[test]
fn root_groups_are_netstats() {
    require_root!();
    require_tool!("netstat");
    let lab = interfaces("nstgr");
    lab.connect_v4(1);
    lab.listen_tcp(1);
    let sockets: Vec<UdpSocket> = lab.run_inside(|| {
        let four = UdpSocket::bind("0.0.0.0:0").unwrap();
        four.join_multicast_v4(&Ipv4Addr::new(239, 1, 2, 3), &Ipv4Addr::new(192, 0, 2, 1)).unwrap();
        let again = UdpSocket::bind("0.0.0.0:0").unwrap();
        again.join_multicast_v4(&Ipv4Addr::new(239, 1, 2, 3), &Ipv4Addr::new(192, 0, 2, 1)).unwrap();
        let six = UdpSocket::bind("[::]:0").unwrap();
        six.join_multicast_v6(&"ff02::1234".parse::<Ipv6Addr>().unwrap(), 1).unwrap();
        vec![four, again, six]
    });
    for words in ["-g", "-gn", "-gan", "-gxn", "-gtn", "-gn --unix --tcp", "--groups --numeric-hosts"] {
        same(&lab, words, true);
    }
    // A family alone also selects its sockets.
    for words in ["-g4n", "-g6n"] {
        same(&lab, words, true);
    }
    let ours = text(&face(&lab, &["-gn"], false).stdout);
    assert!(ours.contains("va              2      239.1.2.3\n"), "{ours}");
    drop(sockets);
}

/// `-c`: each round is complete. From its second round on netstat reads IPv4's groups as IPv6's; ours does not.
#[test]
fn root_tables_again_and_again() {
    require_root!();
    let lab = Lab::new("nstco");
    for (words, heading) in [("-inc", "Iface "), ("-rnc", "Destination "), ("-gnc", "Interface ")] {
        let mut child = lab.run_inside(|| {
            Command::new(program::netwren()).args(["netstat", words]).stdout(Stdio::piped()).spawn().unwrap()
        });
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut titles = 0;
        let mut rows = Vec::new();
        let mut headings = 0;
        for line in lines.map_while(Result::ok) {
            titles += usize::from(line == "Kernel Interface table");
            headings += usize::from(line.starts_with(heading));
            rows.push(line);
            if headings == 3 {
                break;
            }
        }
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words}");
        assert_eq!(titles, usize::from(words == "-inc"), "the title comes once");
        let groups = rows.iter().filter(|line| line.ends_with(" 224.0.0.1")).count();
        assert_eq!(groups, if words == "-gnc" { 2 } else { 0 }, "{rows:?}");
    }
}

/// netstat prints an error and exits if no policy is loaded.
#[test]
fn root_contexts_need_selinux() {
    require_root!();
    require_tool!("netstat");
    let lab = Lab::new("nstctx");
    let [theirs, ours] = [netstat(&lab, &["-tanZ"]), face(&lab, &["-tanZ"], false)];
    if theirs.status.success() {
        return;
    }
    assert_eq!((theirs.status.code(), text(&theirs.stderr)), (ours.status.code(), text(&ours.stderr)));
}
