//! Counting with small maps: drops that do not fit are counted by reason and place, and a user who creates namespaces
//! takes no space from others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bpf::{DROP_KEY_BYTES, DropRoom, PacketDrops};
use std::net::{TcpStream, UdpSocket};
use sys::Host;
use testkit::netns::Lab;

/// The parts of a key that the tests use.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    reason: u32,
    netns: u32,
    is_merged: bool,
}

fn key(bytes: &[u8; DROP_KEY_BYTES]) -> Key {
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    Key { reason: word(8), netns: word(12), is_merged: bytes[23] == 255 }
}

fn counts(program: &PacketDrops) -> Vec<(Key, u64)> {
    let no_socket = program.reasons().number("NO_SOCKET").unwrap();
    let mut all = Vec::new();
    program.for_each(|bytes, packets, _| all.push((key(bytes), packets))).unwrap();
    all.retain(|(key, _)| key.reason == no_socket);
    all
}

/// Sends a datagram and a SYN to a closed port, with IPv4 and with IPv6: four keys.
fn knock() {
    for (any, closed) in [("127.0.0.1:0", "127.0.0.1:9"), ("[::1]:0", "[::1]:9")] {
        UdpSocket::bind(any).unwrap().send_to(b"x", closed).unwrap();
        assert!(TcpStream::connect(closed).is_err());
    }
}

fn open(netns: Option<u32>, room: DropRoom) -> Option<PacketDrops> {
    match PacketDrops::open(&Host::live(), netns, room) {
        Ok(program) => program.reasons().number("NO_SOCKET").is_some().then_some(program),
        Err(error) => panic!("{error}"),
    }
}

fn inode(lab: &Lab) -> u32 {
    let link = lab.run_inside(|| std::fs::read_link("/proc/thread-self/ns/net")).unwrap();
    link.to_str().unwrap().trim_start_matches("net:[").trim_end_matches(']').parse().unwrap()
}

#[test]
fn root_what_finds_no_room_is_counted_by_reason_and_place() {
    testkit::require_root!();
    let lab = Lab::new("droproom");
    let room = DropRoom { own: 2, guests: 1, merged: 64 };
    let Some(program) = open(Some(inode(&lab)), room) else { return };
    lab.run_inside(knock);
    let found = counts(&program);
    let sum = |is_merged| found.iter().filter(|(key, _)| key.is_merged == is_merged).map(|(_, n)| n).sum::<u64>();
    // Two datagrams, two SYNs, and no reply to a RST: exact to the packet, wherever they are counted.
    assert_eq!(sum(true) + sum(false), 4, "{found:?}");
    assert!(sum(true) >= 2, "{found:?}");
    let losses = program.losses().unwrap();
    assert_eq!((losses.lost, losses.merged >= 2), (0, true), "{losses:?}");
    assert!(found.iter().filter(|(key, _)| key.is_merged).all(|(key, _)| key.netns == 0), "{found:?}");
}

#[test]
fn root_without_any_room_packets_are_lost_and_counted() {
    testkit::require_root!();
    let lab = Lab::new("droplost");
    let Some(program) = open(Some(inode(&lab)), DropRoom { own: 1, guests: 1, merged: 1 }) else { return };
    lab.run_inside(knock);
    let (found, losses) = (counts(&program), program.losses().unwrap());
    let counted: u64 = found.iter().map(|(_, packets)| packets).sum();
    assert!(losses.lost > 0 && counted + losses.lost >= 4, "{found:?} {losses:?}");
}

#[test]
fn root_namespaces_of_users_take_no_room_of_others() {
    testkit::require_root!();
    if !testkit::tool::require("python3") || !testkit::tool::require("unshare") {
        return;
    }
    let lab = Lab::new("dropguest");
    // No space for users' namespaces: only reasons and places are stored for their drops.
    let Some(program) = open(None, DropRoom { own: 4096, guests: 1, merged: 64 }) else { return };
    let script = "import os,socket\nos.system('ip link set lo up')\n\
                  for af, to in ((socket.AF_INET,'127.0.0.1'),(socket.AF_INET6,'::1')):\n \
                  s=socket.socket(af,socket.SOCK_DGRAM); s.sendto(b'x',(to,9))\n \
                  t=socket.socket(af,socket.SOCK_STREAM); t.connect_ex((to,9))\n\
                  print(os.readlink('/proc/self/ns/net')[5:-1])";
    let made = lab.command("unshare").args(["-U", "-r", "-n", "python3", "-c", script]).output().unwrap();
    if String::from_utf8_lossy(&made.stderr).contains("unshare failed: Operation not permitted") {
        return testkit::print_loud("skipped: a user may make no namespace here (a chroot?)");
    }
    let guest: u32 = String::from_utf8_lossy(&made.stdout).trim().parse().unwrap();
    lab.run_inside(knock);
    let (found, own) = (counts(&program), inode(&lab));
    let keys = |netns: u32| found.iter().filter(|(key, _)| key.netns == netns && !key.is_merged).count();
    assert!(keys(own) == 4 && keys(guest) <= 1, "{own} {guest} {found:?}");
    assert!(found.iter().any(|(key, _)| key.is_merged), "{found:?}");
}
