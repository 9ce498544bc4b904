//! The sockets that sent or receive the packets of log records.

use crate::attribution::Attribution;
use crate::readings::{ReadOwners, Readings, SeenOwners};
use crate::socket_owners::PacketTable;
use record::rows::{Conntrack, CtTuple, LogRecord, LogRecords};
use record::{Each, Next};

impl PacketTable for LogRecords {
    const ROWS: &'static str = "records of packets to or from this host";
    const EXPLAIN: Option<&'static str> = None;

    fn find<R: ReadOwners>(record: &LogRecord<'_>, readings: &mut Readings<R>) -> Attribution<SeenOwners> {
        let ifindex = record.in_ifindex.or(record.out_ifindex).unwrap_or(0);
        from_the_local_end(record).map_or(Attribution::NotHere, |entry| readings.find(&entry, ifindex, record.time_ns))
    }

    fn hand_out(record: &LogRecord<'_>, seen: &SeenOwners, each: &mut Each<'_, LogRecords>) -> Next {
        each(&LogRecord { owners: &seen.owners, owners_seen_ns: seen.seen_ns, ..*record })
    }
}

/// The packet as one direction of a connection, seen from the local end according to its hook; `None` for a packet
/// that passes through or has no ports.
fn from_the_local_end(record: &LogRecord<'_>) -> Option<Conntrack<'static>> {
    let packet = record.packet.as_ref()?;
    let (sport, dport) = packet.transport.ports()?;
    let orig = match record.direction()? {
        "out" => CtTuple { src: packet.src, dst: packet.dst, src_part: sport, dst_part: dport, ..CtTuple::EMPTY },
        "in" => CtTuple { src: packet.dst, dst: packet.src, src_part: dport, dst_part: sport, ..CtTuple::EMPTY },
        _ => return None,
    };
    Some(Conntrack { netns_id: record.netns_id, orig: CtTuple { proto: packet.proto, ..orig }, ..Conntrack::EMPTY })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket_index::SocketIndex;
    use record::rows::{Endpoint, PacketHeaders, Socket, Transport, ip_proto};
    use record::{Addr, Proto};

    const HERE: Addr = Addr::V4([10, 0, 0, 1]);
    const THERE: Addr = Addr::V4([10, 0, 0, 2]);

    /// A UDP packet from `from` to `to` at this hook.
    fn record(hook: u8, from: (Addr, u16), to: (Addr, u16)) -> LogRecord<'static> {
        let transport = Transport::Ports { sport: from.1, dport: to.1 };
        let headers = PacketHeaders { src: from.0, dst: to.0, proto: ip_proto::UDP, transport, ..Default::default() };
        LogRecord { family: 2, hook, packet: Some(headers), ..LogRecord::default() }
    }

    #[test]
    fn each_hook_asks_for_its_own_end() {
        let mut sockets = SocketIndex::new(false);
        sockets.add_address(0, HERE);
        for (port, inode) in [(53, 5), (4000, 6)] {
            let local = Endpoint { addr: HERE, port };
            sockets.add_socket(&Socket { proto: Proto::Udp, local, inode, ..Socket::EMPTY });
        }
        let inode = |record: LogRecord<'_>| sockets.inode(&from_the_local_end(&record)?, 0);
        assert_eq!(inode(record(1, (THERE, 9), (HERE, 53))), Some(5), "for the server");
        assert_eq!(inode(record(3, (HERE, 4000), (THERE, 53))), Some(6), "from the client");
        // Between two local sockets: at output it belongs to the sender, at input to the receiver.
        assert_eq!(inode(record(3, (HERE, 4000), (HERE, 53))), Some(6));
        assert_eq!(inode(record(1, (HERE, 4000), (HERE, 53))), Some(5));
        assert_eq!(inode(record(2, (HERE, 4000), (THERE, 53))), None, "it passes through");
        assert_eq!(inode(record(1, (HERE, 4000), (THERE, 99))), None);
        assert_eq!(from_the_local_end(&LogRecord::default()), None);
    }
}
