//! Detects port reuse within a batch: later queries return the last connection, which is not the connection of earlier
//! packets.

use super::{NetnsTuple, SeenPacket};
use foldhash::fast::RandomState;
use record::rows::{CtTuple, PacketHeaders, Transport, ip_proto};
use std::collections::HashSet;

/// The ends of a connection in either direction, on a path with ordered packets.
type PathTuple = (u32, NetnsTuple);

/// TCP connections of a batch that begin after packets with the same ends.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Ends of packets that do not begin a connection, collected while the batch is scanned.
    seen: HashSet<PathTuple, RandomState>,
    /// Ends whose new connection begins later in the batch.
    ahead: HashSet<PathTuple, RandomState>,
}

impl Restarts {
    /// Notes a packet of the next batch.
    pub(super) fn note(&mut self, packet: &SeenPacket) {
        if packet.of.tuple.proto != ip_proto::TCP {
            return;
        }
        let ends = ends(packet);
        if !packet.begins_anew {
            self.seen.insert(ends);
        } else if self.seen.contains(&ends) {
            self.ahead.insert(ends);
        }
    }

    /// Ends the scan of the batch; its packets are handed out next.
    pub(super) fn end_batch(&mut self) {
        self.seen.clear();
    }

    /// True if the packet comes before the one that begins the queried connection.
    pub(super) fn is_before(&mut self, packet: &SeenPacket) -> bool {
        if self.ahead.is_empty() || packet.of.tuple.proto != ip_proto::TCP {
            return false;
        }
        let ends = ends(packet);
        if packet.begins_anew {
            self.ahead.remove(&ends);
            return false;
        }
        self.ahead.contains(&ends)
    }
}

fn ends(packet: &SeenPacket) -> PathTuple {
    let tuple = packet.of.tuple;
    let is_sorted = (tuple.src, tuple.src_part) <= (tuple.dst, tuple.dst_part);
    let inverse =
        CtTuple { src: tuple.dst, dst: tuple.src, src_part: tuple.dst_part, dst_part: tuple.src_part, ..tuple };
    (packet.path, NetnsTuple { tuple: if is_sorted { tuple } else { inverse }, ..packet.of })
}

/// True for a packet after which its ports may belong to a new connection: a TCP SYN.
pub(super) fn begins_anew(packet: &PacketHeaders<'_>) -> bool {
    matches!(packet.transport, Transport::Tcp(tcp) if tcp.begins_connection())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::TcpHeader;

    fn seen(tuple: CtTuple, flags: u8) -> SeenPacket {
        let transport = Transport::Tcp(TcpHeader { flags, ..TcpHeader::default() });
        let begins_anew = begins_anew(&PacketHeaders { transport, ..PacketHeaders::default() });
        let of = NetnsTuple { netns_id: 1, tuple };
        SeenPacket { of, is_error: false, time_ns: 0, path: 0, begins_anew }
    }

    #[test]
    fn packets_before_a_second_connection_are_distinguished() {
        let tuple = CtTuple { proto: ip_proto::TCP, src_part: 1, dst_part: 2, ..CtTuple::EMPTY };
        let (there, back) = (tuple, CtTuple { src_part: 2, dst_part: 1, ..tuple });
        let mut restarts = Restarts::default();
        let batch = [(there, 0x02), (back, 0x12), (there, 0x11), (back, 0x11), (there, 0x02), (back, 0x12)]
            .map(|(tuple, flags)| seen(tuple, flags));
        batch.iter().for_each(|packet| restarts.note(packet));
        restarts.end_batch();
        let before: Vec<bool> = batch[1..].iter().map(|packet| restarts.is_before(packet)).collect();
        assert_eq!(before, [true, true, true, false, false]);
        assert_eq!(restarts.ahead.len(), 0);
    }
}
