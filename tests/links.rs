//! Ends that look alike and are not: a link-local address on two links, listeners on two devices, and listeners at
//! `::` with and without IPv4.

use crate::going::Going;
use crate::run::{Ran, clean, netwren_in};
use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, TcpStream};
use std::process::Command;
use testkit::netns::Lab;

/// Port of the servers.
const PORT: u16 = 2222;

/// A lab whose interfaces `e0` and `e1` each lead to another one. All have `fe80::1` here and `fe80::2` there.
struct Links {
    near: Lab,
    far: [Lab; 2],
    servers: Vec<TcpListener>,
}

impl Links {
    fn new(purpose: &str) -> Links {
        let near = Lab::new(purpose);
        let far = [0, 1].map(|nth| {
            let far = Lab::new(&format!("{purpose}{nth}"));
            let (here, there) = (format!("e{nth}"), format!("p{nth}"));
            near.ip(&["link", "add", &here, "type", "veth", "peer", "name", &there]);
            near.ip(&["link", "set", &there, "netns", far.name()]);
            for (lab, iface, addr) in [(&near, &here, "fe80::1/64"), (&far, &there, "fe80::2/64")] {
                lab.ip(&["link", "set", iface, "addrgenmode", "none"]);
                lab.ip(&["link", "set", iface, "up"]);
                lab.ip(&["addr", "add", addr, "dev", iface, "nodad"]);
            }
            far
        });
        let servers =
            far.iter().map(|far| far.run_inside(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap()));
        let servers = servers.collect();
        Links { near, far, servers }
    }

    /// A connection over the interface `e0` or `e1`.
    fn connect(&self, nth: usize) -> [TcpStream; 2] {
        let index = self.near.output("cat", &[&format!("/sys/class/net/e{nth}/ifindex")]);
        let to = SocketAddrV6::new("fe80::2".parse().unwrap(), PORT, 0, index.trim().parse().unwrap());
        let client = self.near.run_inside(|| TcpStream::connect(to).unwrap());
        [client, self.servers[nth].accept().unwrap().0]
    }

    /// What `netwren` says in the near lab.
    fn says(&self, args: &[&str]) -> String {
        let ran = netwren_in(&self.near, args);
        if ran.code == 3 && ran.stderr.trim() == "netwren: this netwren was built without BPF" {
            return ran.stdout;
        }
        ran.ok_but_owners()
    }
}

/// The lines of a run that says nothing else, in order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn root_one_address_on_two_links_is_two_peers() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    let links = Links::new("links");
    let held: Vec<_> = [0, 0, 1].map(|nth| links.connect(nth)).into_iter().collect();
    let flows = ["flows", "-H", "-c", "local_addr,peer_addr,peer_port,connections"];
    let two = ["fe80::1%e0\tfe80::2%e0\t2222\t2", "fe80::1%e1\tfe80::2%e1\t2222\t1"];
    assert_eq!(sorted(&links.says(&flows)), two);
    let one = |filter: &str| links.says(&[&flows[..], &[filter]].concat());
    assert_eq!(one("peer = fe80::2%e1"), format!("{}\n", two[1]));
    assert_eq!(one("peer = fe80::2%e1 or peer_addr in (fe80::2%e0, 10.0.0.0/8)").lines().count(), 2);
    assert_eq!(one("peer = fe80::2 and peer != fe80::2%e1"), format!("{}\n", two[0]));
    assert_eq!(one("peer = fe80::2%e9"), "");
    // Where the interface is a column, the address is an address.
    let rows = links.says(&["flows", "-o", "json"]);
    for (iface, count) in [("e0", 2), ("e1", 1)] {
        let is_it = |row: &&str| row.contains(&format!("\"iface\":\"{iface}\"")) && row.contains("\"fe80::2\"");
        let row = rows.lines().find(is_it).unwrap_or_else(|| panic!("{iface}: {rows}"));
        assert!(row.contains(&format!("\"connections\":{count},")), "{row}");
    }
    for command in ["sockets", "flows"] {
        let by = links.says(&[command, "-H", "proto = tcp and peer != null", "--by", "peer"]);
        let mut peers: Vec<&str> = by.lines().filter_map(|line| line.split('\t').next()).collect();
        peers.sort_unstable();
        assert_eq!(peers, ["fe80::2%e0", "fe80::2%e1"], "{command}: {by}");
    }
    // As ss, which writes the interface at our end.
    let by_ss = links.near.output("ss", &["-Htn", "state", "established"]);
    let here = links.says(&["sockets", "-H", "state = established", "-c", "local_addr,local_port"]);
    let here: Vec<String> = here
        .lines()
        .map(|line| {
            let (addr, port) = line.split_once('\t').unwrap();
            let (addr, iface) = addr.split_once('%').unwrap();
            format!("[{addr}]%{iface}:{port}")
        })
        .collect();
    assert_eq!(here.len(), 3, "{by_ss}");
    assert!(here.iter().all(|end| by_ss.contains(&format!(" {end} "))), "{here:?}\n{by_ss}");
    // A round knows the flows of the one before.
    let rounds = links.says(&["flows", "-H", "--watch=0.05", "--for", "0.3", "-c", "peer_addr,change"]);
    assert!(rounds.contains("fe80::2%e0\tkept") && rounds.contains("fe80::2%e1\tkept"), "{rounds}");
    assert!(!rounds.contains("new") && !rounds.contains("gone"), "{rounds}");
    // All namespaces: the servers' ends are other flows, on interfaces of their own.
    let all = netwren_in(&links.near, &["flows", "-H", "--all-netns", "-c", "netns,local_addr,peer_addr,connections"]);
    // Namespaces of other tests come and go.
    assert!([0, 3].contains(&all.code), "{}", all.stderr);
    let all = all.stdout;
    for (lab, iface, count) in [(&links.far[0], "p0", 2), (&links.far[1], "p1", 1)] {
        let line = format!("{}\tfe80::2%{iface}\tfe80::1%{iface}\t{count}", lab.name());
        assert!(all.lines().any(|shown| shown == line), "{line}\n{all}");
    }
    let killed = links.says(&["sockets", "kill", "-H", "peer = fe80::2%e1", "--yes", "-c", "peer_addr"]);
    assert_eq!(killed, "fe80::2%e1\taborted\n");
    drop(held);
}

/// The columns and their cells, which replay as they were, whatever the replay shows.
#[test]
fn root_a_recording_knows_the_interfaces() {
    testkit::require_root!();
    let links = Links::new("linktape");
    let _held: Vec<_> = [0, 1].map(|nth| links.connect(nth)).into_iter().collect();
    let tape = links.near.dir().join("tape");
    let tape = tape.to_str().unwrap();
    let two = ["fe80::2%e0", "fe80::2%e1"];
    let shown = links.says(&["sockets", "-H", "--no-owner", "--record", tape]);
    assert!(two.iter().all(|peer| shown.contains(&format!("\t{peer}\t2222"))), "{shown}");
    let replay = |args: &[&str]| {
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(args).args(["--replay", tape]);
        Ran::of(command.output().unwrap()).ok()
    };
    assert_eq!(sorted(&replay(&["sockets", "-H", "-c", "peer_addr"])), two);
    assert_eq!(sorted(&replay(&["sockets", "-H", "-c", "iface"])), ["e0", "e1"]);
    let plain = replay(&["sockets", "-o", "plain", "--no-owner"]);
    assert!(plain.contains("fe80::2%e0") && !plain.contains("iface"), "{plain}");
}

/// The lines of a stream in which each connection comes and goes.
fn followed(links: &Links, args: &[&str], columns: &str, lines: usize) -> Vec<String> {
    let mut command = links.near.command(testkit::program::netwren());
    clean(&mut command).args(args).args(["-c", columns]);
    let mut going: Going<String> = Going::past_header(command, columns, |line| line);
    let mut held: Vec<_> = [0, 1].map(|nth| links.connect(nth)).into_iter().collect();
    let opened = |read: &[String]| ["e0", "e1"].iter().all(|iface| read.iter().any(|line| line.contains(iface)));
    going.read_until("both openings", opened);
    held.clear();
    going.read_until("both closings", |read| read.len() >= lines);
    going.end().0
}

#[test]
fn root_both_follows_have_the_interface() {
    testkit::require_root!();
    let links = Links::new("linkfollow");
    let ways: &[&[&str]] = match crate::run::netwren(&["support"]).stdout.contains("bpf: tracepoints of sockets\tyes") {
        true => &[&["--via", "bpf"], &["--via", "netlink"]],
        false => &[&["--via", "netlink"]],
    };
    for via in ways {
        let sockets = [&["sockets", "--follow", "--no-owner"], *via].concat();
        let lines = followed(&links, &sockets, "event,direction,peer_addr", 4);
        let expected =
            ["close\tout\tfe80::2%e0", "close\tout\tfe80::2%e1", "open\tout\tfe80::2%e0", "open\tout\tfe80::2%e1"];
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{via:?}");
        let lines = followed(&links, &sockets, "event,peer_addr,iface", 4);
        assert!(lines.contains(&"open\tfe80::2\te1".to_owned()), "{via:?}: {lines:?}");
        let flows = [&["flows", "--follow=0.1"], *via].concat();
        for (columns, e0, e1) in
            [("peer_addr", "fe80::2%e0", "fe80::2%e1"), ("iface,peer_addr", "e0\tfe80::2", "e1\tfe80::2")]
        {
            let lines = followed(&links, &flows, columns, 2);
            let has = |row: &str| lines.iter().any(|line| line == row);
            assert!(has(e0) && has(e1) && lines.iter().all(|line| line == e0 || line == e1), "{via:?}: {lines:?}");
        }
    }
}

/// Listens as the words say: family, address, port, v6only (`-`: as the system does), device (`-`: any).
const LISTENER: &str = r#"
import socket, sys, time
held = []
for words in sys.argv[1:]:
    kind, addr, port, v6only, device = words.split(",")
    family = socket.AF_INET6 if ":" in addr else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    if v6only != "-":
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(v6only))
    if device != "-":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
    s.bind((addr, int(port)))
    if kind == "tcp":
        s.listen()
    held.append(s)
time.sleep(1000)
"#;

fn listen(lab: &Lab, sockets: &[&str]) {
    lab.spawn("python3", &[&["-c", LISTENER], sockets].concat());
    let count = |lab: &Lab| lab.output("ss", &["-Hltun"]).lines().count();
    lab.wait_until("all listen", || count(lab) == sockets.len());
}

/// The words of an aligned table.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn root_similar_listeners_are_distinguished() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    testkit::require_tool!("python3");
    let links = Links::new("alike");
    let has_vrf = links.near.command("ip").args(["link", "add", "red", "type", "vrf", "table", "10"]).status();
    let device = if has_vrf.unwrap().success() { "red" } else { "e1" };
    let bound = format!("tcp,0.0.0.0,82,-,{device}");
    let sockets =
        ["tcp,::,80,0,-", "tcp,0.0.0.0,81,-,-", "tcp,::,81,1,-", "tcp,0.0.0.0,82,-,e0", &bound, "udp,::,53,1,-"];
    listen(&links.near, &sockets);
    let by_ss = links.near.output("ss", &["-Hltun"]);
    for end in ["*:80", "0.0.0.0:81", "[::]:81", "0.0.0.0%e0:82", &format!("0.0.0.0%{device}:82"), "[::]:53"] {
        assert!(by_ss.contains(&format!(" {end} ")), "{end}\n{by_ss}");
    }
    let expected = |device: &'static str| {
        vec![
            vec!["tcp", "::", "80", "-", "false"],
            vec!["tcp", "0.0.0.0", "81", "-", "-"],
            vec!["tcp", "::", "81", "-", "true"],
            vec!["tcp", "0.0.0.0", "82", "e0", "-"],
            vec!["tcp", "0.0.0.0", "82", device, "-"],
            vec!["udp", "::", "53", "-", "true"],
        ]
    };
    for args in [&["listeners", "-H", "-o", "plain"][..], &["listeners", "-H", "-o", "plain", "--no-owner"]] {
        let text = links.says(args);
        let mut rows: Vec<Vec<&str>> = words(&text).into_iter().map(|row| row[..5].to_vec()).collect();
        rows.sort_unstable_by_key(|row| {
            (row[0].len(), row[0] == "udp", row[2].to_owned(), row[1] == "::", row[3] != "e0")
        });
        assert_eq!(rows, expected(device), "{text}");
    }
    // Every interface of the kernel that knows it.
    let header = |args: &[&str]| links.says(args).lines().next().unwrap().to_owned();
    for via in ["netlink", "bpf"] {
        let head = header(&["sockets", "-o", "plain", "--no-owner", "--via", via]);
        assert_eq!(
            head.split_whitespace().collect::<Vec<_>>().join(" "),
            "proto state recv_q send_q local_addr local_port peer_addr peer_port iface v6only",
            "{via}"
        );
    }
    // /proc knows neither, and nobody asked for them.
    assert!(!header(&["sockets", "-o", "plain", "--no-owner", "--via", "proc", "proto = tcp"]).contains("iface"));
    let only = |filter: &str| header(&["listeners", "-o", "plain", "--no-owner", filter]);
    assert!(!only("port = 80").contains("v6only") && !only("port = 80").contains("iface"));
    assert!(only("port = 81").contains("v6only") && !only("port = 81").contains("iface"));
    assert!(!only("port = 82").contains("v6only") && only("port = 82").contains("iface"));
    // What was left out stays out, and what was asked for is there.
    assert!(!header(&["sockets", "-o", "plain", "--no-owner", "-c", "-iface"]).contains("iface"));
    assert!(header(&["sockets", "-o", "plain", "--no-owner", "-c", "+v6only", "port = 80"]).contains("v6only"));
    assert_eq!(words(&header(&["sockets", "-o", "plain", "-c", "local_addr"])), [["local_addr"]]);
}

/// At 80 columns others leave first; machines read the same columns whatever the rows.
#[test]
fn root_unusual_columns_stay_on_a_narrow_terminal_and_out_of_pipes() {
    testkit::require_root!();
    testkit::require_tool!("ss");
    testkit::require_tool!("python3");
    let lab = Lab::new("alikenarrow");
    let sockets = ["tcp,::,80,0,-", "tcp,::1,81,1,-", "tcp,::,82,1,-", "tcp,0.0.0.0,83,-,lo"];
    listen(&lab, &sockets);
    let narrow = |command: &str| {
        let mut run = lab.command(testkit::program::netwren());
        clean(&mut run).args([command, "state = listen"]).env("COLUMNS", "80");
        Ran::of(run.output().unwrap()).ok_but_owners()
    };
    for command in ["listeners", "sockets"] {
        let text = narrow(command);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let of = |port: &str| text.lines().find(|line| line.contains(port)).unwrap().to_owned();
        assert!(of(" 80 ").contains("false") && of(" 82 ").contains("true") && of(" 83 ").contains(" lo "), "{text}");
        // At an address of its own, a socket takes no IPv4 in any case.
        assert!(!of(" 81 ").contains("true"), "{text}");
    }
    let columns = |args: &[&str]| netwren_in(&lab, args).ok_but_owners().lines().next().unwrap().to_owned();
    assert_eq!(columns(&["listeners"]), "proto\tlocal_addr\tlocal_port\taccept_q\taccept_q_max\tprocess\tpid\tuser");
    let csv = columns(&["sockets", "-o", "csv"]);
    assert_eq!(csv, "proto,state,recv_q,send_q,local_addr,local_port,peer_addr,peer_port,process,pid");
    let json = netwren_in(&lab, &["listeners", "-o", "json", "port = 82"]).ok_but_owners();
    assert!(json.contains("\"iface\":null,\"v6only\":true,"), "{json}");
}
