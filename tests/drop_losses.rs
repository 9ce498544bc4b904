//! Losses that are not dropped packets, shown together with drops and alone.

use crate::drops::{LOOPBACK, command, counter, counting, counts_drops, limited, parse, send_once, sum};
use crate::going::Going;
use crate::run::netwren_in;
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use sys::Errno;
use sys::socket::{AF_PACKET, SOCK_DGRAM, bind, bind_bytes, connect, listen, open, set_number};
use testkit::netns::Lab;
use testkit::sandbox::Limit;

const AF_INET: i32 = 2;
const SOCK_STREAM: i32 = 1;
const SOCK_NONBLOCK: i32 = 0o4000;
const SOL_SOCKET: i32 = 1;
const SO_RCVBUF: i32 = 8;

/// Starts counting in a lab with rows of losses; returns once it counts.
fn losing(lab: &Lab, args: &[&str]) -> Going<Value> {
    counting(lab, &[&["--columns", "+counted_in,total,pid,netns_id"], args].concat())
}

fn row_of<'v>(read: &'v [Value], reason: &str) -> &'v Value {
    read.iter().find(|row| row["reason"] == reason).unwrap()
}

/// Opens connections to a listener whose accept queue holds one, until SYNs are lost.
fn overflow(lab: &Lab) -> Vec<sys::Fd> {
    lab.run_inside(|| {
        let at: SocketAddr = (LOOPBACK, 7777).into();
        let listener = open(AF_INET, SOCK_STREAM, 0).unwrap();
        bind(&listener, &at).unwrap();
        listen(&listener, 0).unwrap();
        let mut held = vec![listener];
        for _ in 0..6 {
            let client = open(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
            // The connection is in progress, or its SYN is lost.
            let _ = connect(&client, &at);
            held.push(client);
        }
        held
    })
}

/// If a SYN finds a full accept queue, the kernel frees it like a consumed packet, so no tracepoint reports it.
#[test]
fn root_syns_that_a_full_queue_refuses() {
    testkit::require_root!();
    if !counts_drops() {
        return;
    }
    let lab = Lab::new("losssyn");
    let mut going = losing(&lab, &[]);
    let held = overflow(&lab);
    let lost = || counter(&lab, "netstat", "TcpExt", "ListenDrops");
    testkit::wait_until("SYNs are lost", || lost() >= 4);
    drop(held);
    let counted = |read: &[Value]| sum(read, "TcpExtListenDrops") + sum(read, "TCP_LISTEN_OVERFLOW");
    going.read_until("all of them", |read| counted(read) >= lost());
    let (read, ran) = going.end();
    assert_eq!((ran.code, counted(&read)), (0, lost()), "{}", ran.stderr);
    let row = row_of(&read, "TcpExtListenDrops");
    assert_eq!((&row["counted_in"], &row["place"], &row["total"]), (&"netstat".into(), &Value::Null, &Value::Null));
    assert!(row["meaning"].as_str().unwrap().starts_with("SYNs"), "{row}");
}

/// A packet socket without a reader loses packets, although the packets themselves are delivered.
#[test]
fn root_what_a_capture_loses_has_its_process() {
    testkit::require_root!();
    if !counts_drops() {
        return;
    }
    let lab = Lab::new("losstap");
    let reader = lab.run_inside(|| UdpSocket::bind((LOOPBACK, 7)).unwrap());
    let mut going = losing(&lab, &[]);
    let tap = lab.run_inside(|| {
        let tap = open(AF_PACKET, SOCK_DGRAM, 0).unwrap();
        set_number(&tap, SOL_SOCKET, SO_RCVBUF, 2304).unwrap();
        let address = [&(AF_PACKET as u16).to_ne_bytes()[..], &[0, 3], &[0; 16]].concat();
        bind_bytes(&tap, &address).unwrap();
        tap
    });
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 100);
    let is_tap = |row: &&Value| row["reason"] == "PACKET_SOCK_ERROR" || row["reason"] == "packet_socket_drops";
    let counted =
        |read: &[Value]| -> u64 { read.iter().filter(is_tap).map(|row| row["count"].as_u64().unwrap()).sum() };
    let said = netwren_in(&lab, &["sockets", "proto = packet", "--columns", "socket_drops", "-H"]).ok();
    let lost: u64 = said.trim().parse().unwrap();
    assert!(lost > 50, "{said}");
    going.read_until("all of them", |read| counted(read) >= lost);
    let (read, ran) = going.end();
    drop((tap, reader));
    assert_eq!((ran.code, counted(&read)), (0, lost), "{}\n{read:?}", ran.stderr);
    let row = row_of(&read, "packet_socket_drops");
    assert_eq!((&row["counted_in"], &row["pid"]), (&"socket".into(), &std::process::id().into()), "{row}");
}

/// Without BPF each loss is shown once, with a message about the missing data; a recording gives the same rows.
#[test]
fn root_counters_alone() {
    testkit::require_root!();
    let lab = Lab::new("lossalone");
    let tape = lab.dir().join("losses.nw");
    let tape = tape.to_str().unwrap();
    let args = ["--watch=0.05", "-o", "json", "--via", "counters", "--record", tape, "--columns", "count,reason,pid"];
    let mut going: Going<Value> = Going::spawn(command(&lab, &args), parse);
    going.read_until("the first round", |read| !read.is_empty());
    let slow = lab.run_inside(|| {
        let slow = open(AF_INET, SOCK_DGRAM, 0).unwrap();
        set_number(&slow, SOL_SOCKET, SO_RCVBUF, 2304).unwrap();
        bind(&slow, &(LOOPBACK, 7).into()).unwrap();
        UdpSocket::from(OwnedFd::from(slow))
    });
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 7), 100);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 10);
    let of = |name| counter(&lab, "snmp", "Udp", name);
    going.read_until("both", |read| {
        sum(read, "udp_socket_drops") >= of("RcvbufErrors") && sum(read, "UdpNoPorts") >= of("NoPorts")
    });
    let (read, ran) = going.end();
    drop(slow);
    ran.says(3, &["dropped packets are not counted individually: only the kernel's drop counters are shown"]);
    assert_eq!(sum(&read, "udp_socket_drops"), of("RcvbufErrors"));
    assert_eq!((sum(&read, "UdpNoPorts"), sum(&read, "UdpRcvbufErrors")), (of("NoPorts"), 0), "{read:?}");
    assert_eq!(row_of(&read, "udp_socket_drops")["pid"], std::process::id());
    let replay = ["drops", "--replay", tape, "--watch", "-o", "json", "--columns", "count,reason"];
    let replayed = netwren_in(&lab, &replay);
    let rows: Vec<Value> = replayed.stdout.lines().map(|line| parse(line.to_owned())).collect();
    assert_eq!((replayed.code, sum(&rows, "udp_socket_drops")), (3, of("RcvbufErrors")), "{}", replayed.stderr);
    netwren_in(&lab, &["drops", "--events", "--via", "counters"]).says(2, &["shows no single packets"]);
    let refusal = if counts_drops() { "operation not permitted" } else { "netwren was built without BPF" };
    limited(&lab, &["--events", "--for", "0.1"], &[Limit::NoBpf(Errno::PERM)]).says(4, &[refusal]);
}

/// A veth pair without other traffic, with an XDP program on `vb` that drops everything in the driver.
fn with_xdp(lab: &Lab) {
    lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    lab.output("sysctl", &["-qw", "net.ipv6.conf.va.disable_ipv6=1", "net.ipv6.conf.vb.disable_ipv6=1"]);
    lab.ip(&["addr", "add", "198.51.100.1/24", "dev", "va"]);
    lab.ip(&["neigh", "add", "198.51.100.2", "lladdr", "02:00:00:00:00:02", "dev", "va"]);
    let index: i32 = lab.output("cat", &["/sys/class/net/vb/ifindex"]).trim().parse().unwrap();
    // r0 = XDP_DROP; exit
    let instructions = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let shape = sys::bpf::ProgramShape {
        name: "nw_xdp_drop",
        kind: 6,
        attach: 0,
        flags: 0,
        target: 0,
        instructions: instructions.as_flattened(),
        licence: c"GPL",
    };
    let program = sys::bpf::load_program(&shape, &mut []).unwrap();
    // RTM_SETLINK with IFLA_XDP: IFLA_XDP_FD, and IFLA_XDP_FLAGS with XDP_FLAGS_DRV_MODE.
    let mut request = netlink::Request::for_one(19);
    request.append(&[&[0; 4][..], &index.to_ne_bytes(), &[0; 8]].concat());
    request.nested(43, |xdp| {
        xdp.attr(1, &std::os::fd::AsRawFd::as_raw_fd(&program).to_ne_bytes()).attr_u32(3, 4);
    });
    let ask = netlink::Query { what: "XDP", protocol: 0, request: &request, key: "xdp", note: "", netns: None };
    let go_on = |_: &netlink::AnswerMessage<'_>| std::ops::ControlFlow::Continue(());
    lab.run_inside(|| netlink::exchange(&sys::Host::live(), &ask, go_on).map(drop)).unwrap();
    lab.ip(&["link", "set", "vb", "up"]);
    lab.ip(&["link", "set", "va", "up"]);
}

/// The statistics of the driver alone, by name.
fn of_driver(lab: &Lab, iface: &str) -> std::collections::BTreeMap<String, u64> {
    let filter = format!("source = driver and iface = {iface}");
    let ran = netwren_in(lab, &["counters", "--for", "0.01", "-o", "json", "-c", "name,value", &filter]);
    let rows = ran.ok();
    let rows = rows.lines().map(|line| parse(line.to_owned()));
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["value"].as_u64().unwrap())).collect()
}

/// Drops by an XDP program are counted only by the driver. On veth the kernel also frees these packets as dropped, and
/// netwren must not count them twice.
#[test]
fn root_what_a_driver_drops_is_one_loss() {
    testkit::require_root!();
    let lab = Lab::new("lossxdp");
    with_xdp(&lab);
    let args = ["--watch=0.05", "-o", "json", "--via", "counters", "--columns", "count,reason,counted_in,iface"];
    let mut alone: Going<Value> = Going::spawn(command(&lab, &args), parse);
    alone.read_until("the first round", |read| !read.is_empty());
    let mut both = counts_drops().then(|| losing(&lab, &[]));
    send_once(&lab, "198.51.100.1:0", (std::net::Ipv4Addr::new(198, 51, 100, 2), 7), 40);
    let lost = || -> u64 {
        of_driver(&lab, "vb").iter().filter(|(name, _)| name.ends_with("_xdp_drops")).map(|(_, n)| n).sum()
    };
    testkit::wait_until("all have arrived", || lost() == 40);
    let name = "rx_queue_#_xdp_drops";
    alone.read_until("all of them", |read| sum(read, name) >= 40);
    let (read, ran) = alone.end();
    ran.says(3, &["packets are not counted"]);
    assert_eq!(sum(&read, name), 40, "{read:?}");
    let row = row_of(&read, name);
    assert_eq!((&row["counted_in"], &row["iface"]), (&"driver".into(), &"vb".into()), "{row}");
    let Some(mut both) = both.take() else { return };
    let is_it =
        |row: &&Value| row["reason"] == name || row["place"].as_str().is_some_and(|place| place.starts_with("veth_"));
    let counted = |read: &[Value]| -> u64 { read.iter().filter(is_it).map(|row| row["count"].as_u64().unwrap()).sum() };
    both.read_until("all of them once", |read| counted(read) >= 40);
    let (read, ran) = both.end();
    assert_eq!((ran.code, counted(&read)), (0, 40), "{}\n{read:?}", ran.stderr);
}

/// Driver statistics have the same names and values as `ethtool -S`; known names have an explanation.
#[test]
fn root_statistics_of_drivers_are_those_of_ethtool() {
    testkit::require_root!();
    let lab = Lab::new("ethtool");
    with_xdp(&lab);
    send_once(&lab, "198.51.100.1:0", (std::net::Ipv4Addr::new(198, 51, 100, 2), 7), 3);
    let ours = of_driver(&lab, "vb");
    assert!(ours.contains_key("peer_ifindex") && ours["rx_queue_0_xdp_packets"] == 3, "{ours:?}");
    if !testkit::tool::is_installed("ethtool") {
        testkit::print_loud("not compared: there is no ethtool");
        return;
    }
    let text = lab.output("ethtool", &["-S", "vb"]);
    let theirs = text.lines().filter_map(|line| line.trim().split_once(": "));
    let theirs: std::collections::BTreeMap<String, u64> =
        theirs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect();
    assert_eq!(ours, theirs);
}
