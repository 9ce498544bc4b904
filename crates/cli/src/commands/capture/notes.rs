//! `--comment`: what is said of a packet in the file, as comments of pcapng.
//!
//! A comment is about as long as a small packet. So it stands at the first packet of a connection, and where what it
//! says has changed.

use crate::packet_files::put_comment_value;
use record::rows::{CapturedPacket, CapturedPackets, Transport, capture_need};
use record::{Addr, Columns, Kind, Table, Value, field_index};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// Connections whose comment is remembered, 16 bytes each. Then all are forgotten: comments are written once more.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Fields of a comment.
const FIELDS_MAX: usize = 16;
/// SYN and ACK in the flags of TCP.
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Checks the fields of `--comment`; the error is for the user.
pub(super) fn check(fields: &str) -> Result<(), String> {
    let mut count = 0;
    for name in fields.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        count += 1;
        let field = field_index::<CapturedPackets>(name).and_then(|at| CapturedPackets::FIELDS.get(at));
        let is_of_ends = |need: u64, kind| need & capture_need::OWNERS != 0 && kind != Kind::Owners;
        if !field.is_some_and(|field| matches!(name, "netns" | "netns_id") || is_of_ends(field.need, field.kind)) {
            let names =
                "netns, process, pid, uid, user, container, pod, unit, cmdline, state, or these with src_, dst_";
            return Err(format!("--comment takes fields of both ends and of the namespace ({names}), not `{name}`"));
        }
    }
    match count {
        0 => Err("--comment takes fields, as in process,container".to_owned()),
        1..=FIELDS_MAX => Ok(()),
        _ => Err(format!("--comment takes at most {FIELDS_MAX} fields")),
    }
}

/// Which packets get a comment, and what stands in it.
pub(super) struct Notes {
    names: Vec<Box<str>>,
    /// True if a field tells one end from the other: then each direction has a comment of its own.
    is_of_direction: bool,
    hasher: RandomState,
    /// Connection → what its comment said, both hashed.
    said: HashMap<u64, u64>,
    texts: Vec<Vec<u8>>,
}

impl Notes {
    /// The columns are those of the plan.
    pub(super) fn new(columns: &Columns) -> Notes {
        let names: Vec<Box<str>> = columns.0.iter().map(|column| column.name.clone()).collect();
        let is_of_direction = names.iter().any(|name| name.starts_with("src_") || name.starts_with("dst_"));
        let texts = vec![Vec::new(); names.len()];
        Notes { names, is_of_direction, hasher: RandomState::new(), said: HashMap::new(), texts }
    }

    /// Another file begins: what was said stands in the one before.
    pub(super) fn begin_file(&mut self) {
        self.said.clear();
    }

    /// True if the packet gets a comment with these cells.
    pub(super) fn is_due(&mut self, row: &CapturedPacket<'_>, cells: &[Value<'_>]) -> bool {
        let said = self.hasher.hash_one(Said(cells));
        let connection = self.hasher.hash_one(connection(row, self.is_of_direction));
        if self.said.len() >= CONNECTIONS_MAX {
            self.said.clear();
        }
        let before = self.said.insert(connection, said);
        let is_empty = cells.iter().all(Value::is_null);
        !is_empty && (before != Some(said) || begins(row))
    }

    /// Names and values; what is null is left out.
    pub(super) fn of<'n>(&'n mut self, cells: &[Value<'_>]) -> impl Iterator<Item = (&'n str, &'n [u8])> {
        for (text, cell) in self.texts.iter_mut().zip(cells) {
            text.clear();
            put_comment_value(text, cell);
        }
        let notes = self.names.iter().zip(&self.texts);
        notes.filter(|(_, text)| !text.is_empty()).map(|(name, text)| (&**name, text.as_slice()))
    }
}

/// The cells, as far as they are what comments say.
struct Said<'c, 'v>(&'c [Value<'v>]);

impl Hash for Said<'_, '_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for cell in self.0 {
            match cell {
                Value::Bytes(text) => text.hash(state),
                Value::Name(word) => word.hash(state),
                Value::U64(number) => number.hash(state),
                _ => state.write_u8(0),
            }
        }
    }
}

/// An address with a port.
type PortOf = (Addr, u16);

/// Namespace, protocol and both ends; in the order of the packet, or the same for both directions.
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

/// True for the first packet of a connection of TCP: the former one with these ports may have been another's.
fn begins(row: &CapturedPacket<'_>) -> bool {
    let transport = row.packet.as_ref().map(|packet| packet.transport);
    matches!(transport, Some(Transport::Tcp(tcp)) if tcp.flags & (SYN | ACK) == SYN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Column;
    use record::rows::{PacketHeaders, TcpHeader};

    fn packet(from: (u8, u16), to: (u8, u16), flags: u8) -> CapturedPacket<'static> {
        let addr = |last| Addr::V4([10, 0, 0, last]);
        let transport = Transport::Tcp(TcpHeader { sport: from.1, dport: to.1, flags, ..TcpHeader::default() });
        let headers =
            PacketHeaders { src: addr(from.0), dst: addr(to.0), proto: 6, transport, ..PacketHeaders::default() };
        CapturedPacket { packet: Some(headers), ..CapturedPacket::default() }
    }

    fn notes(names: &[&str]) -> Notes {
        let column = |name: &&str| Column { name: (*name).into(), kind: Kind::Text };
        Notes::new(&Columns(names.iter().map(column).collect()))
    }

    #[test]
    fn a_comment_stands_where_a_connection_begins_or_changes() {
        let (there, back) = (packet((1, 4000), (2, 443), 16), packet((2, 443), (1, 4000), 16));
        let curl = [Value::Bytes(b"curl"), Value::U64(7)];
        let mut both = notes(&["process", "pid"]);
        let due = [(&there, &curl), (&back, &curl), (&there, &curl), (&there, &[Value::Bytes(b"wget"), Value::U64(8)])];
        assert_eq!(due.map(|(row, cells)| both.is_due(row, cells)), [true, false, false, true]);
        assert!(both.is_due(&packet((1, 4001), (2, 443), 16), &curl), "another connection");
        let syn = packet((1, 4001), (2, 443), SYN);
        assert!(both.is_due(&syn, &curl), "another one with the same ports");
        assert!(!both.is_due(&packet((1, 4002), (2, 443), 16), &[Value::Null; 2]), "nothing to say");
        let mut each = notes(&["src_process"]);
        assert_eq!([&there, &back, &there].map(|row| each.is_due(row, &curl[..1])), [true, true, false]);
        let said: Vec<(String, Vec<u8>)> =
            both.of(&[Value::Null, Value::U64(7)]).map(|(name, text)| (name.to_owned(), text.to_vec())).collect();
        assert_eq!(said, [("pid".to_owned(), b"7".to_vec())]);
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

    #[test]
    fn fields_of_ends_are_taken() {
        assert!(check("src_process, netns,container").is_ok());
        for fields in ["len", "owners", "process,src", ""] {
            assert!(check(fields).is_err_and(|text| text.starts_with("--comment takes")), "{fields}");
        }
    }
}
