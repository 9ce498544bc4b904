use super::*;
use record::rows::{Endpoint, TcpHeader};
use record::{Comm, Owner, State};
use std::rc::Rc;

const HERE: Addr = Addr::V4([10, 0, 0, 1]);
const THERE: Addr = Addr::V4([10, 0, 0, 2]);
const ALL: Addr = Addr::V4([0; 4]);
const GROUP: Addr = Addr::V4([224, 0, 0, 251]);

pub(crate) fn known(pid: u32) -> PacketSocket {
    PacketSocket {
        inode: pid,
        proto: Proto::Tcp,
        state: State::ESTABLISHED,
        uid: Some(0),
        owners: [Owner { pid, fd: 3, process: Comm::new(b"x"), started: 0 }].into(),
        words: Rc::default(),
    }
}

/// Adds a socket whose owner's pid equals its inode.
pub(crate) fn add(sockets: &mut PacketSockets, proto: Proto, own: (Addr, u16), peer: Option<(Addr, u16)>, pid: u32) {
    sockets.add_socket(&ends(proto, own, peer, pid), known(pid));
}

fn ends(proto: Proto, own: (Addr, u16), peer: Option<(Addr, u16)>, inode: u32) -> Socket<'static> {
    let end = |(addr, port)| Endpoint { addr, port };
    let peer = peer.map_or(Socket::EMPTY.peer, end);
    Socket { netns_id: 1, proto, inode, local: end(own), peer, ..Socket::EMPTY }
}

pub(crate) fn packet(flags: Option<u8>, from: (Addr, u16), to: (Addr, u16), time_ns: u64) -> CapturedPacket<'static> {
    let (proto, transport) = match flags {
        Some(flags) => {
            (ip_proto::TCP, Transport::Tcp(TcpHeader { sport: from.1, dport: to.1, flags, ..TcpHeader::default() }))
        }
        None => (ip_proto::UDP, Transport::Ports { sport: from.1, dport: to.1 }),
    };
    let headers = PacketHeaders { src: from.0, dst: to.0, proto, transport, ..PacketHeaders::default() };
    CapturedPacket { time_ns, netns_id: 1, packet: Some(headers), ..CapturedPacket::default() }
}

/// Takes a reading at this time, of a host with one address and the sockets that `add` adds.
pub(crate) fn read(sockets: &mut PacketSockets, taken_ns: u64, add: impl FnOnce(&mut PacketSockets)) {
    sockets.begin(taken_ns);
    sockets.add_address(1, HERE);
    add(sockets);
    sockets.end();
}

/// The pids of both ends: 0 for an end on another host, -1 if unknown, -2 if the packet must wait.
fn pids(sockets: &PacketSockets, packet: &CapturedPacket<'_>) -> [i64; 2] {
    sockets.ends(packet).map(|end| match end {
        Attribution::NotHere => 0,
        Attribution::Unknown => -1,
        Attribution::NotYet => -2,
        Attribution::Found(socket) => socket.owners[0].pid.into(),
    })
}

const PSH: Option<u8> = Some(record::rows::tcp_flag::PSH);

#[test]
fn a_packet_has_the_socket_of_its_connection_or_the_listener() {
    let mut sockets = PacketSockets::default();
    read(&mut sockets, 100, |sockets| {
        add(sockets, Proto::Tcp, (HERE, 4000), Some((THERE, 443)), 11);
        add(sockets, Proto::Tcp, (ALL, 80), None, 12);
        add(sockets, Proto::Udp, (ALL, 53), None, 13);
        add(sockets, Proto::Udp, (HERE, 5000), Some((THERE, 53)), 14);
    });
    let of = |flags, from, to, time_ns| pids(&sockets, &packet(flags, from, to, time_ns));
    assert_eq!(of(PSH, (HERE, 4000), (THERE, 443), 200), [11, 0], "its connection is known, however young it is");
    assert_eq!(of(PSH, (THERE, 443), (HERE, 4000), 200), [0, 11]);
    assert_eq!(of(Some(SYN), (THERE, 9), (HERE, 80), 200), [0, 12], "whoever listens");
    assert_eq!(of(Some(SYN | ACK), (HERE, 80), (THERE, 9), 200), [12, 0]);
    assert_eq!(of(PSH, (THERE, 9), (HERE, 80), 200), [0, -2], "who accepted it is not known yet");
    assert_eq!(of(PSH, (THERE, 9), (HERE, 80), 50), [0, 12], "nobody has");
    assert_eq!(of(None, (THERE, 9), (HERE, 53), 200), [0, 13]);
    assert_eq!(of(None, (HERE, 53), (HERE, 53), 200), [13, 13], "both ends are here");
    assert_eq!(of(None, (HERE, 5000), (THERE, 53), 200), [14, 0]);
    assert_eq!(of(None, (HERE, 5001), (THERE, 53), 200), [-2, 0]);
    assert_eq!(of(None, (HERE, 5001), (THERE, 53), 50), [-1, 0]);
    assert_eq!(of(PSH, (THERE, 1), (THERE, 2), 200), [0, 0], "it passes through");
    let other = CapturedPacket { netns_id: 2, ..packet(PSH, (HERE, 4000), (THERE, 443), 200) };
    assert_eq!(pids(&sockets, &other), [0, 0], "another namespace");
    let to_many =
        CapturedPacket { packet_type: Some(PktType::Multicast), ..packet(None, (THERE, 53), (GROUP, 53), 200) };
    assert_eq!(pids(&sockets, &to_many), [0, 13]);
    let passing = packet(None, (THERE, 53), (GROUP, 53), 200);
    assert_eq!(pids(&sockets, &passing), [0, 0]);
}

#[test]
fn the_ports_of_a_former_connection_give_no_name_to_the_next() {
    let mut sockets = PacketSockets::default();
    read(&mut sockets, 100, |sockets| add(sockets, Proto::Tcp, (HERE, 4000), Some((THERE, 443)), 11));
    let syn = packet(Some(SYN), (HERE, 4000), (THERE, 443), 200);
    assert_eq!(pids(&sockets, &syn), [-2, 0], "it begins another one");
    read(&mut sockets, 300, |sockets| add(sockets, Proto::Tcp, (HERE, 4000), Some((THERE, 443)), 12));
    assert_eq!(pids(&sockets, &syn), [12, 0]);
    // A packet from before the newest reading, whose socket no longer exists.
    read(&mut sockets, 400, |_| {});
    assert_eq!(pids(&sockets, &packet(PSH, (HERE, 4000), (THERE, 443), 350)), [12, 0]);
    assert_eq!(pids(&sockets, &packet(PSH, (HERE, 4000), (THERE, 443), 450)), [-2, 0]);
    assert_eq!(pids(&sockets, &packet(Some(SYN), (HERE, 4000), (THERE, 443), 350)), [-1, 0]);
}

#[test]
fn events_tell_what_no_reading_has_seen() {
    let mut sockets = PacketSockets::default();
    read(&mut sockets, 100, |sockets| add(sockets, Proto::Tcp, (ALL, 80), None, 12));
    let (ours, theirs) = ((HERE, 4000), (THERE, 443));
    let syn = packet(Some(SYN), ours, theirs, 200);
    sockets.opened(&ends(Proto::Tcp, ours, Some(theirs), 0), known(21), 210);
    sockets.closed(&ends(Proto::Tcp, ours, Some(theirs), 0), known(21), 220);
    let pid = |sockets: &PacketSockets, packet| pids(sockets, &packet)[0];
    assert_eq!(pid(&sockets, syn), 21);
    assert_eq!(pid(&sockets, packet(PSH, ours, theirs, 230)), 21, "its last packets, too");
    assert_eq!(pid(&sockets, packet(Some(SYN), ours, theirs, 240)), -2, "which is the next one's first");
    sockets.opened(&ends(Proto::Tcp, (HERE, 81), Some((THERE, 9)), 0), known(23), 250);
    assert_eq!(pid(&sockets, packet(Some(SYN | ACK), (HERE, 81), (THERE, 9), 245)), 23);
    assert_eq!(pids(&sockets, &packet(Some(SYN), (THERE, 9), (HERE, 81), 240)), [0, 23], "whose listener is gone");
    sockets.opened(&ends(Proto::Tcp, (HERE, 80), Some((THERE, 9)), 0), known(22), 250);
    assert_eq!(pid(&sockets, packet(PSH, (HERE, 80), (THERE, 9), 260)), 22, "who accepted, not who listens");
}

#[test]
fn a_sender_between_two_readings_is_known_for_a_while() {
    let mut sockets = PacketSockets::default();
    read(&mut sockets, 100, |_| {});
    let question = packet(None, (HERE, 5000), (THERE, 53), 200);
    sockets.sends(&ends(Proto::Udp, (ALL, 5000), None, 0), known(31), 210);
    sockets.sends(&ends(Proto::Udp, (HERE, 5001), None, 0), known(32), 220);
    assert_eq!(pids(&sockets, &question), [-2, 0], "a socket that is there may have the port by now");
    read(&mut sockets, 300, |_| {});
    assert_eq!(pids(&sockets, &question), [31, 0]);
    assert_eq!(pids(&sockets, &packet(None, (THERE, 53), (HERE, 5001), 230)), [0, 32], "its answer");
    assert_eq!(pids(&sockets, &packet(None, (HERE, 5002), (THERE, 53), 230)), [-1, 0]);
    sockets.sends(&ends(Proto::Udp, (Addr::ANY6, 5003), None, 0), known(34), 230);
    assert_eq!(pids(&sockets, &packet(None, (HERE, 5003), (THERE, 53), 230)), [-1, 0], "that one sends by IPv6 only");
    sockets.sends(&ends(Proto::Udp, (ALL, 9), None, 0), known(33), 10_000_000_000);
    assert_eq!(pids(&sockets, &question), [-1, 0]);
}

#[test]
fn a_socket_that_two_readings_did_not_find_has_no_owner() {
    let mut sockets = PacketSockets::default();
    let nobody = |sockets: &mut PacketSockets| {
        let known = PacketSocket { owners: Box::default(), ..known(41) };
        sockets.add_socket(&ends(Proto::Udp, (ALL, 53), None, 41), known);
    };
    let question = packet(None, (THERE, 9), (HERE, 53), 200);
    let end = |sockets: &PacketSockets| match sockets.ends(&question)[1] {
        Attribution::Found(socket) => Some(socket.owners.len()),
        other => (other != Attribution::NotYet).then_some(9),
    };
    read(&mut sockets, 100, nobody);
    assert_eq!(end(&sockets), None, "the next reading may find who it is");
    read(&mut sockets, 300, |sockets| add(sockets, Proto::Udp, (ALL, 53), None, 41));
    assert_eq!(end(&sockets), Some(1));
    read(&mut sockets, 400, nobody);
    assert_eq!(end(&sockets), Some(1), "it escaped");
    read(&mut sockets, 500, nobody);
    assert_eq!(end(&sockets), Some(0));
}
