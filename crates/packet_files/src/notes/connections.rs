//! Selects the captured packets that get notes.
//!
//! Notes are about as long as a small packet. They are therefore attached only to the first packet of a connection,
//! and to packets where their content has changed.

use super::NoteFields;
use record::rows::{CapturedPacket, Transport};
use record::{Addr, Value};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Maximum number of connections whose comment is remembered, 16 bytes each. At the limit all are forgotten, and
/// comments are repeated.
///
/// Bound: connections whose comment is remembered (`connections::what_is_remembered_is_bounded`). Beyond: all are
/// forgotten: comments are written again. By: any sender of packets.
const CONNECTIONS_MAX: usize = 1 << 16;

/// Selects the packets that get notes, and makes the notes.
pub struct ConnectionNotes {
    fields: NoteFields,
    /// True if a field depends on the direction, so that each direction has its own comment.
    is_of_direction: bool,
    hasher: RandomState,
    /// Maps a connection to its last notes, both as hashes.
    said: HashMap<u64, u64>,
}

impl ConnectionNotes {
    /// Makes notes from these fields of the row.
    pub fn new(fields: NoteFields) -> ConnectionNotes {
        let is_of_direction =
            fields.names().any(|name| name.starts_with("src_") || name.starts_with("dst_") || name == "ct_direction");
        ConnectionNotes { fields, is_of_direction, hasher: RandomState::new(), said: HashMap::new() }
    }

    /// Starts a new file, or a section that may be separated from others, where all notes must be repeated.
    pub fn begin_file(&mut self) {
        self.said.clear();
    }

    /// Names and values for the packet with these cells; empty if an earlier packet has the same notes.
    pub fn of(&mut self, row: &CapturedPacket<'_>, cells: &[Value<'_>]) -> Vec<(&str, &[u8])> {
        if self.is_due(row, cells) { self.fields.fill(cells) } else { Vec::new() }
    }

    fn is_due(&mut self, row: &CapturedPacket<'_>, cells: &[Value<'_>]) -> bool {
        let (mut hasher, mut is_empty) = (self.hasher.build_hasher(), true);
        for cell in self.fields.cells(cells) {
            is_empty &= cell.is_null();
            said(&cell, &mut hasher);
        }
        let said = hasher.finish();
        let connection = self.hasher.hash_one(connection(row, self.is_of_direction));
        if self.said.len() >= CONNECTIONS_MAX {
            self.said.clear();
        }
        let before = self.said.insert(connection, said);
        !is_empty && (before != Some(said) || begins(row))
    }
}

/// Hashes the part of a cell that notes show.
fn said(cell: &Value<'_>, state: &mut impl Hasher) {
    match cell {
        Value::Bytes(text) | Value::FirstOf(text, _) | Value::Words(text) => text.hash(state),
        Value::Name(word) | Value::Guess(word) => word.hash(state),
        Value::U64(number) => number.hash(state),
        Value::I64(number) => number.hash(state),
        Value::Bool(yes) => yes.hash(state),
        Value::Addr(addr) => addr.hash(state),
        Value::LinkAddr(link) => link.hash(state),
        Value::Endpoint(addr, port) => (addr, port).hash(state),
        Value::Bits(bits, _) => bits.hash(state),
        _ => state.write_u8(0),
    }
}

/// An address with a port.
type PortOf = (Addr, u16);

/// Namespace, protocol and both ends: in the packet's order, or in the same order for both directions.
fn connection(row: &CapturedPacket<'_>, is_of_direction: bool) -> Option<(u64, u8, [PortOf; 2])> {
    let packet = row.packet.as_ref()?;
    let (sport, dport) = packet.transport.ports().unwrap_or_default();
    let mut ends = [(packet.src, sport), (packet.dst, dport)];
    if !is_of_direction {
        ends.sort_unstable_by_key(|(addr, port)| (*port, addr.octets().len(), octets(*addr)));
    }
    Some((row.netns_id, packet.proto, ends))
}

fn octets(addr: Addr) -> [u8; 16] {
    let mut all = [0; 16];
    all.iter_mut().zip(addr.octets()).for_each(|(place, octet)| *place = *octet);
    all
}

/// True for the first packet of a TCP connection, because an earlier connection may have used the same ports.
fn begins(row: &CapturedPacket<'_>) -> bool {
    let transport = row.packet.as_ref().map(|packet| packet.transport);
    matches!(transport, Some(Transport::Tcp(tcp)) if tcp.begins_connection())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{PacketHeaders, TcpHeader};
    use record::{Column, Columns, Kind};

    fn packet(from: (u8, u16), to: (u8, u16), flags: u8) -> CapturedPacket<'static> {
        let addr = |last| Addr::V4([10, 0, 0, last]);
        let transport = Transport::Tcp(TcpHeader { sport: from.1, dport: to.1, flags, ..TcpHeader::default() });
        let headers =
            PacketHeaders { src: addr(from.0), dst: addr(to.0), proto: 6, transport, ..PacketHeaders::default() };
        CapturedPacket { packet: Some(headers), ..CapturedPacket::default() }
    }

    fn notes(names: &[&str]) -> ConnectionNotes {
        let column = |name: &&str| Column { name: (*name).into(), kind: Kind::Text };
        ConnectionNotes::new(NoteFields::of_columns(&Columns(names.iter().map(column).collect()), 0))
    }

    #[test]
    fn a_comment_stands_where_a_connection_begins_or_changes() {
        let (there, back) = (packet((1, 4000), (2, 443), 16), packet((2, 443), (1, 4000), 16));
        let curl = [Value::Bytes(b"curl"), Value::U64(7)];
        let mut both = notes(&["process", "pid"]);
        let due = [(&there, &curl), (&back, &curl), (&there, &curl), (&there, &[Value::Bytes(b"wget"), Value::U64(8)])];
        assert_eq!(due.map(|(row, cells)| both.is_due(row, cells)), [true, false, false, true]);
        assert!(both.is_due(&packet((1, 4001), (2, 443), 16), &curl), "another connection");
        let syn = packet((1, 4001), (2, 443), record::rows::tcp_flag::SYN);
        assert!(both.is_due(&syn, &curl), "another one with the same ports");
        assert!(!both.is_due(&packet((1, 4002), (2, 443), 16), &[Value::Null; 2]), "nothing to say");
        let mut each = notes(&["src_process"]);
        assert_eq!([&there, &back, &there].map(|row| each.is_due(row, &curl[..1])), [true, true, false]);
        let other = packet((1, 4003), (2, 443), 16);
        assert_eq!(both.of(&other, &[Value::Null, Value::U64(7)]), [("pid", &b"7"[..])]);
        assert!(both.of(&other, &[Value::Null, Value::U64(7)]).is_empty(), "it stands there");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut notes = notes(&["pid"]);
        for number in 0..2 * CONNECTIONS_MAX {
            let [_, _, .., a, b, c] = number.to_be_bytes();
            notes.is_due(&packet((a, u16::from_be_bytes([b, c])), (2, 443), 16), &[Value::U64(1)]);
        }
        assert!(notes.said.len() <= CONNECTIONS_MAX);
    }
}
