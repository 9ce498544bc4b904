//! The sockets that sent dropped packets or would have received them.

use crate::attribution::Attribution;
use crate::readings::{ReadOwners, Readings, SeenOwners};
use crate::socket_owners::PacketTable;
use record::rows::{Conntrack, CtTuple, DropEvent, DropEvents, NetfilterHook, PacketDrop};
use record::{Each, Next};

impl PacketTable for DropEvents {
    const ROWS: &'static str = "dropped packets of this host";
    const EXPLAIN: Option<&'static str> = Some("owners: all sockets and their owners are read when drops need them");

    /// Finds the owners of the socket that the kernel names, otherwise of the socket at the local end.
    fn find<R: ReadOwners>(event: &DropEvent<'_>, readings: &mut Readings<R>) -> Attribution<SeenOwners> {
        let packet = &event.packet;
        if packet.socket_inode != 0 {
            return readings.find_socket(packet.socket_inode, event.time_ns);
        }
        for from_here in sides(packet.route_hook) {
            let Some(entry) = seen_from(packet, *from_here) else { continue };
            let answer = readings.find(&entry, packet.ifindex, event.time_ns);
            if answer != Attribution::NotHere {
                return answer;
            }
        }
        Attribution::NotHere
    }

    fn hand_out(event: &DropEvent<'_>, seen: &SeenOwners, each: &mut Each<'_, DropEvents>) -> Next {
        each(&DropEvent { owners: &seen.owners, owners_seen_ns: seen.seen_ns, ..*event })
    }
}

/// The possible roles of this host: sender (true), receiver (false), neither if the packet passes through. A packet
/// without a route may have either role.
fn sides(route: Option<NetfilterHook>) -> &'static [bool] {
    match route {
        Some(NetfilterHook::Prerouting | NetfilterHook::Input | NetfilterHook::Ingress) => &[false],
        Some(NetfilterHook::Output | NetfilterHook::Postrouting | NetfilterHook::Egress) => &[true],
        Some(NetfilterHook::Forward) => &[],
        None => &[false, true],
    }
}

/// The packet as one direction of a connection, seen from its sender or from its receiver; `None` without ports.
fn seen_from(packet: &PacketDrop<'_>, from_here: bool) -> Option<Conntrack<'static>> {
    let ((src, dst), (sport, dport), proto) = (packet.ends?, packet.ports?, packet.l4?);
    let orig = if from_here {
        CtTuple { src, dst, src_part: sport, dst_part: dport, ..CtTuple::EMPTY }
    } else {
        CtTuple { src: dst, dst: src, src_part: dport, dst_part: sport, ..CtTuple::EMPTY }
    };
    Some(Conntrack { netns_id: packet.netns_id, orig: CtTuple { proto, ..orig }, ..Conntrack::EMPTY })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fake_readings::FakeReadings;
    use record::Addr;

    #[test]
    fn a_socket_that_escaped_a_reading_has_its_owner() {
        let packet = PacketDrop { socket_inode: 9, ..PacketDrop::default() };
        let event = DropEvent { packet, time_ns: 5, ..DropEvent::default() };
        for (after, is_found, read) in [(0, true, 1), (1, true, 2), (2, false, 2)] {
            let mut readings = Readings::new(FakeReadings::new(0, after));
            assert_eq!(matches!(DropEvents::find(&event, &mut readings), Attribution::Found(_)), is_found, "{after}");
            assert_eq!(readings.taken_ns(), read * 10, "{after}");
        }
    }

    #[test]
    fn the_end_that_is_here_follows_from_the_route() {
        let packet = PacketDrop {
            netns_id: 7,
            l4: Some(17),
            ends: Some((Addr::V4([192, 0, 2, 1]), Addr::V4([192, 0, 2, 2]))),
            ports: Some((4000, 53)),
            ..PacketDrop::default()
        };
        let ports =
            |from_here| seen_from(&packet, from_here).map(|one| (one.orig.src_part, one.orig.dst_part)).unwrap();
        assert_eq!((ports(true), ports(false)), ((4000, 53), (53, 4000)));
        assert_eq!(seen_from(&packet, false).unwrap().orig.src, Addr::V4([192, 0, 2, 2]));
        assert_eq!(seen_from(&PacketDrop { ports: None, ..packet }, true), None);
        assert!(sides(Some(NetfilterHook::Forward)).is_empty());
        assert_eq!((sides(Some(NetfilterHook::Input)), sides(None)), (&[false][..], &[false, true][..]));
    }
}
