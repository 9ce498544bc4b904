//! Losses that are no dropped packet, beside the drops and without them.

use crate::drops::{LOOPBACK, command, counter, counting, counts_drops, limited, parse, send_once, sum};
use crate::going::Going;
use crate::run::netwren_in;
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use sys::Errno;
use sys::sandbox::Limit;
use sys::socket::{AF_PACKET, SOCK_DGRAM, bind, bind_bytes, connect, listen, open, set_number};
use testkit::netns::Lab;

const AF_INET: i32 = 2;
const SOCK_STREAM: i32 = 1;
const SOCK_NONBLOCK: i32 = 0o4000;
const SOL_SOCKET: i32 = 1;
const SO_RCVBUF: i32 = 8;

/// Counts in a lab and tells the rows of losses, once it counts.
fn losing(lab: &Lab, args: &[&str]) -> Going<Value> {
    counting(lab, &[&["--columns", "+counted_in,total,pid,netns_id"], args].concat())
}

fn row_of<'v>(read: &'v [Value], reason: &str) -> &'v Value {
    read.iter().find(|row| row["reason"] == reason).unwrap()
}

/// Opens connections to a listener with room for one, until SYNs are lost.
fn overflow(lab: &Lab) -> Vec<sys::Fd> {
    lab.inside(|| {
        let at: SocketAddr = (LOOPBACK, 7777).into();
        let listener = open(AF_INET, SOCK_STREAM, 0).unwrap();
        bind(&listener, &at).unwrap();
        listen(&listener, 0).unwrap();
        let mut held = vec![listener];
        for _ in 0..6 {
            let client = open(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).unwrap();
            // It is under way, or it is lost.
            let _ = connect(&client, &at);
            held.push(client);
        }
        held
    })
}

/// The kernel frees a SYN that finds a full queue as if it had been taken: no tracepoint tells of it.
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

/// A packet socket that nobody reads loses packets which go their way all the same.
#[test]
fn root_what_a_capture_loses_has_its_process() {
    testkit::require_root!();
    if !counts_drops() {
        return;
    }
    let lab = Lab::new("losstap");
    let reader = lab.inside(|| UdpSocket::bind((LOOPBACK, 7)).unwrap());
    let mut going = losing(&lab, &[]);
    let tap = lab.inside(|| {
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

/// Without BPF: each loss once, with what is not known; a recording gives the same.
#[test]
fn root_counters_alone() {
    testkit::require_root!();
    let lab = Lab::new("lossalone");
    let tape = lab.dir().join("losses.nw");
    let tape = tape.to_str().unwrap();
    let args = ["--watch=0.05", "-o", "json", "--via", "counters", "--record", tape, "--columns", "count,reason,pid"];
    let mut going: Going<Value> = Going::spawn(command(&lab, &args), parse);
    going.read_until("the first round", |read| !read.is_empty());
    let slow = lab.inside(|| {
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
    ran.says(3, &["packets are not counted: the kernel's counters of losses alone are shown"]);
    assert_eq!(sum(&read, "udp_socket_drops"), of("RcvbufErrors"));
    assert_eq!((sum(&read, "UdpNoPorts"), sum(&read, "UdpRcvbufErrors")), (of("NoPorts"), 0), "{read:?}");
    assert_eq!(row_of(&read, "udp_socket_drops")["pid"], std::process::id());
    let replay = ["drops", "--replay", tape, "--watch", "-o", "json", "--columns", "count,reason"];
    let replayed = netwren_in(&lab, &replay);
    let rows: Vec<Value> = replayed.stdout.lines().map(|line| parse(line.to_owned())).collect();
    assert_eq!((replayed.code, sum(&rows, "udp_socket_drops")), (3, of("RcvbufErrors")), "{}", replayed.stderr);
    netwren_in(&lab, &["drops", "--events", "--via", "counters"]).says(2, &["knows no single packet"]);
    let refusal = if counts_drops() { "operation not permitted" } else { "netwren was built without BPF" };
    limited(&lab, &["--events", "--for", "0.1"], &[Limit::NoBpf(Errno::PERM)]).says(4, &[refusal]);
}
