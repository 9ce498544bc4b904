//! Ports that get another connection within a batch: what is asked afterwards is the view of the last one, which is not
//! that of the packets before.

use super::NetnsTuple;
use record::rows::{CtTuple, LogRecord, Transport, ip_proto};
use std::collections::HashSet;

/// Ends of a connection, whichever way the packet goes, in one log group: its records come in the order of packets.
type GroupTuple = (u16, NetnsTuple);

/// TCP's connections of a batch that begin after packets with the same ends.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Ends of packets that begin no connection, as the batch is looked at.
    seen: HashSet<GroupTuple>,
    /// The ends whose connection begins later in the batch.
    ahead: HashSet<GroupTuple>,
}

impl Restarts {
    /// Notes a record of the next batch.
    pub(super) fn note(&mut self, of: &NetnsTuple, record: &LogRecord<'_>) {
        if of.tuple.proto != ip_proto::TCP {
            return;
        }
        let ends = ends(of, record);
        if !begins_anew(record) {
            self.seen.insert(ends);
        } else if self.seen.contains(&ends) {
            self.ahead.insert(ends);
        }
    }

    /// The batch has been looked at; its records are handed out next.
    pub(super) fn end_batch(&mut self) {
        self.seen.clear();
    }

    /// True if the record is of a packet before the one that begins the connection which is known.
    pub(super) fn is_before(&mut self, of: &NetnsTuple, record: &LogRecord<'_>) -> bool {
        if self.ahead.is_empty() || of.tuple.proto != ip_proto::TCP {
            return false;
        }
        let ends = ends(of, record);
        if begins_anew(record) {
            self.ahead.remove(&ends);
            return false;
        }
        self.ahead.contains(&ends)
    }
}

fn ends(of: &NetnsTuple, record: &LogRecord<'_>) -> GroupTuple {
    let tuple = of.tuple;
    let is_sorted = (tuple.src, tuple.src_part) <= (tuple.dst, tuple.dst_part);
    let inverse =
        CtTuple { src: tuple.dst, dst: tuple.src, src_part: tuple.dst_part, dst_part: tuple.src_part, ..tuple };
    (record.group, NetnsTuple { tuple: if is_sorted { tuple } else { inverse }, ..*of })
}

/// True of a packet after which its ports may be another connection's: TCP's SYN.
pub(super) fn begins_anew(record: &LogRecord<'_>) -> bool {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let Some(Transport::Tcp(tcp)) = record.packet.as_ref().map(|packet| &packet.transport) else { return false };
    tcp.flags & (SYN | ACK) == SYN
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{PacketHeaders, TcpHeader};

    fn record(flags: u8) -> LogRecord<'static> {
        let transport = Transport::Tcp(TcpHeader { flags, ..TcpHeader::default() });
        LogRecord { packet: Some(PacketHeaders { transport, ..PacketHeaders::default() }), ..LogRecord::default() }
    }

    #[test]
    fn packets_before_a_second_connection_are_told_apart() {
        let tuple = CtTuple { proto: ip_proto::TCP, src_part: 1, dst_part: 2, ..CtTuple::EMPTY };
        let (there, back) = (tuple, CtTuple { src_part: 2, dst_part: 1, ..tuple });
        let of = |tuple| NetnsTuple { netns_id: 1, tuple };
        let mut restarts = Restarts::default();
        let batch = [(there, 0x02), (back, 0x12), (there, 0x11), (back, 0x11), (there, 0x02), (back, 0x12)];
        batch.iter().for_each(|(tuple, flags)| restarts.note(&of(*tuple), &record(*flags)));
        restarts.end_batch();
        let before: Vec<bool> =
            batch[1..].iter().map(|(tuple, flags)| restarts.is_before(&of(*tuple), &record(*flags))).collect();
        assert_eq!(before, [true, true, true, false, false]);
        assert_eq!(restarts.ahead.len(), 0);
    }
}
