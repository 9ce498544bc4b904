//! Rows as IPFIX records (RFC 7011): sessions of NAT (RFC 8158), and connections as two flows.
//!
//! The message of a row is a set with one record, or two of them. The transport joins sets into datagrams and sends the
//! templates.

use super::row_writer::RowWriter;
use record::rows::{CloseReason, EventKind, NatEvent, NatEventKind, NatEvents, NatKind, SocketEvent, SocketEvents};
use record::{Addr, Lookups, RowCells};
use std::net::Ipv4Addr;

/// The private enterprise number of our own elements: the one for documentation, until there is a registered one.
const PEN: u32 = 32473;
/// The bit of an element's number that an enterprise number follows.
const ENTERPRISE: u16 = 0x8000;
/// A length of 1 byte in the record, or of 3.
const VARIABLE: u16 = 65_535;

/// An element of a template: its number and length, <https://www.iana.org/assignments/ipfix>.
type Element = (u16, u16);

/// Our name of a process: PEN 32473, element 1.
const PROCESS: Element = (ENTERPRISE | 1, VARIABLE);

/// The set of templates.
const TEMPLATE_SET: u16 = 2;
/// A closed connection in one direction, IPv4. A template's number is never used for another layout, because
/// collectors keep templates.
const FLOW4: u16 = 256;
/// A closed connection in one direction, IPv6.
const FLOW6: u16 = 257;
/// A session of NAT from IPv4 to IPv4.
const NAT44: u16 = 260;

/// flowStartMilliseconds, flowEndMilliseconds.
const TIMES: &[Element] = &[(152, 8), (153, 8)];
/// Source and destination, IPv4.
const ENDS4: &[Element] = &[(8, 4), (12, 4)];
/// Source and destination, IPv6.
const ENDS6: &[Element] = &[(27, 16), (28, 16)];
/// Ports, protocolIdentifier, octetDeltaCount, packetDeltaCount, ingressInterface, egressInterface, flowDirection,
/// flowEndReason.
const FLOW: &[Element] = &[(7, 2), (11, 2), (4, 1), (1, 8), (2, 8), (10, 4), (14, 4), (61, 1), (136, 1), PROCESS];
/// observationTimeMilliseconds, natEvent, protocolIdentifier, then source and destination before and after NAT.
const SESSION: &[Element] =
    &[(323, 8), (230, 1), (4, 1), (8, 4), (7, 2), (12, 4), (11, 2), (225, 4), (227, 2), (226, 4), (228, 2)];

/// natEvent: a session of NAT44 was created.
const NAT44_CREATED: u8 = 4;
/// natEvent: a session of NAT44 was deleted.
const NAT44_DELETED: u8 = 5;

/// The protocol number of TCP.
const TCP: u8 = 6;

/// The set of templates: the number of each, and its elements.
fn templates(all: &[(u16, &[&[Element]])]) -> Vec<u8> {
    let mut set = Vec::new();
    put_set(&mut set, TEMPLATE_SET, |out| {
        for (number, parts) in all {
            let elements = parts.concat();
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(&(elements.len() as u16).to_be_bytes());
            for (element, length) in elements {
                out.extend_from_slice(&element.to_be_bytes());
                out.extend_from_slice(&length.to_be_bytes());
                if element & ENTERPRISE != 0 {
                    out.extend_from_slice(&PEN.to_be_bytes());
                }
            }
        }
    });
    set
}

/// Appends a set: its number, its length, and what `put` appends.
fn put_set(out: &mut Vec<u8>, number: u16, put: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    put(out);
    let length = u16::try_from(out.len() - begin).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(begin + 2..begin + 4) {
        place.copy_from_slice(&length);
    }
}

fn put_millis(out: &mut Vec<u8>, ns: u64) {
    out.extend_from_slice(&(ns / 1_000_000).to_be_bytes());
}

/// Appends the name of a process, which has 15 bytes at most, without control characters.
fn put_name(out: &mut Vec<u8>, name: &[u8]) {
    let at = out.len();
    out.push(0);
    out.extend(name.iter().copied().filter(|byte| !byte.is_ascii_control()));
    let length = u8::try_from(out.len() - at - 1).unwrap_or(0);
    if let Some(place) = out.get_mut(at) {
        *place = length;
    }
}

/// Appends an IPv6 address; an IPv4 address becomes a mapped one.
fn put_v6(out: &mut Vec<u8>, addr: Addr) {
    match addr {
        Addr::V4(bytes) => out.extend_from_slice(&Ipv4Addr::from(bytes).to_ipv6_mapped().octets()),
        Addr::V6(bytes) => out.extend_from_slice(&bytes),
    }
}

/// Writes sessions of NAT: a record when one is created, and one when it is deleted. RFC 8158 has no events for other
/// changes, and none for sessions between IPv6 addresses; the latter are counted.
pub(super) struct NatSessions;

impl RowWriter<NatEvents> for NatSessions {
    fn chooses(&self) -> bool {
        true
    }

    fn takes(&self, row: &NatEvent<'_>) -> bool {
        is_session(row) && nat44(row).is_some()
    }

    fn misses(&self, row: &NatEvent<'_>) -> bool {
        is_session(row)
    }

    fn lacks_place(&self) -> Option<&'static str> {
        Some("IPFIX has no event for NAT between IPv6 addresses: ship them as json")
    }

    fn file_header(&mut self) -> Vec<u8> {
        templates(&[(NAT44, &[SESSION])])
    }

    fn write(&mut self, row: &NatEvent<'_>, _: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        let Some([src, dst, after_src, after_dst]) = nat44(row) else { return };
        put_set(out, NAT44, |out| {
            put_millis(out, row.time_ns);
            out.push(if row.kind == NatEventKind::New { NAT44_CREATED } else { NAT44_DELETED });
            out.push(row.entry.orig.proto);
            for (addr, port) in [src, dst, after_src, after_dst] {
                out.extend_from_slice(&addr);
                out.extend_from_slice(&port.to_be_bytes());
            }
        });
    }
}

/// True if a session of NAT begins or ends.
fn is_session(row: &NatEvent<'_>) -> bool {
    let is_nat = row.entry.nat().is_some_and(|nat| nat != NatKind::None);
    is_nat && matches!(row.kind, NatEventKind::New | NatEventKind::Destroy)
}

/// An IPv4 address and a port.
type End = ([u8; 4], u16);

/// Source and destination before and after NAT; `None` for IPv6.
fn nat44(row: &NatEvent<'_>) -> Option<[End; 4]> {
    let (orig, reply) = (&row.entry.orig, &row.entry.reply);
    let end = |addr: Addr, port: Option<u16>| match addr {
        Addr::V4(bytes) => Some((bytes, port.unwrap_or(0))),
        Addr::V6(_) => None,
    };
    // The reply goes back from the destination after NAT to the source after NAT.
    Some([
        end(orig.src, orig.sport())?,
        end(orig.dst, orig.dport())?,
        end(reply.dst, reply.dport())?,
        end(reply.src, reply.sport())?,
    ])
}

/// Writes each closed connection as two flows: most collectors know flows of one direction only.
pub(super) struct Connections;

impl RowWriter<SocketEvents> for Connections {
    fn chooses(&self) -> bool {
        true
    }

    fn takes(&self, row: &SocketEvent) -> bool {
        row.kind == EventKind::Close
    }

    fn file_header(&mut self) -> Vec<u8> {
        templates(&[(FLOW4, &[TIMES, ENDS4, FLOW]), (FLOW6, &[TIMES, ENDS6, FLOW])])
    }

    fn write(&mut self, row: &SocketEvent, _: &mut dyn RowCells, _: &Lookups<'_>, out: &mut Vec<u8>) {
        let (local, peer) = ((row.local.addr.unmapped(), row.local.port), (row.peer.addr.unmapped(), row.peer.port));
        let sent = (row.bytes_out, row.segs_out, EGRESS);
        let received = (row.bytes_in, row.segs_in, INGRESS);
        put_flow(row, local, peer, sent, out);
        put_flow(row, peer, local, received, out);
    }
}

/// flowDirection: the flow came in, or went out.
const INGRESS: u8 = 0;
const EGRESS: u8 = 1;

/// Appends the flow from one end to the other.
fn put_flow(
    row: &SocketEvent,
    (src, sport): (Addr, u16),
    (dst, dport): (Addr, u16),
    (bytes, segments, direction): (Option<u64>, Option<u32>, u8),
    out: &mut Vec<u8>,
) {
    let number = if matches!((src, dst), (Addr::V4(_), Addr::V4(_))) { FLOW4 } else { FLOW6 };
    put_set(out, number, |out| {
        let lasted_ns = row.duration_us.unwrap_or(0).saturating_mul(1000);
        put_millis(out, row.time_ns.saturating_sub(lasted_ns));
        put_millis(out, row.time_ns);
        for addr in [src, dst] {
            match (addr, number) {
                (Addr::V4(bytes), FLOW4) => out.extend_from_slice(&bytes),
                (addr, _) => put_v6(out, addr),
            }
        }
        out.extend_from_slice(&sport.to_be_bytes());
        out.extend_from_slice(&dport.to_be_bytes());
        out.push(TCP);
        out.extend_from_slice(&bytes.unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&u64::from(segments.unwrap_or(0)).to_be_bytes());
        // The interface that the socket is bound to; a route may lead elsewhere at any time.
        let ifindex = row.ifindex.to_be_bytes();
        let [ingress, egress] = if direction == INGRESS { [ifindex, [0; 4]] } else { [[0; 4], ifindex] };
        out.extend_from_slice(&ingress);
        out.extend_from_slice(&egress);
        out.push(direction);
        out.push(end_reason(row));
        put_name(out, row.holder.as_ref().map_or(b"", |holder| holder.process.as_bytes()));
    });
}

/// flowEndReason.
fn end_reason(row: &SocketEvent) -> u8 {
    const IDLE_TIMEOUT: u8 = 1;
    const END_SEEN: u8 = 3;
    const FORCED: u8 = 4;
    match row.reason {
        Some(CloseReason::Timeout) => IDLE_TIMEOUT,
        Some(CloseReason::Killed) => FORCED,
        _ => END_SEEN,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use record::rows::{Conntrack, CtTuple, Endpoint, Holder};
    use record::{Comm, Value};

    fn record<T: record::Table>(writer: &mut dyn RowWriter<T>, row: &T::Row<'_>) -> String {
        let (mut out, no_cells): (Vec<u8>, &[Value<'_>]) = (Vec::new(), &[]);
        if writer.takes(row) {
            writer.write(row, &mut &*no_cells, &Lookups::empty(), &mut out);
        }
        hex(&out)
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn templates_are_those_of_the_rfc() {
        let set = hex(&NatSessions.file_header());
        assert_eq!(
            set,
            "000200340104000b01430008\
                         00e60001000400010008000400070002000c0004000b000200e1000400e3000200e2000400e40002"
        );
        let flows = hex(&Connections.file_header());
        assert!(flows.starts_with("000200840100000e") && flows.ends_with("8001ffff00007ed9"), "{flows}");
    }

    #[test]
    fn a_session_has_both_ends_before_and_after() {
        let tuple = |src, src_part, dst, dst_part| CtTuple {
            src: Addr::V4(src),
            dst: Addr::V4(dst),
            proto: 17,
            src_part,
            dst_part,
            ..CtTuple::EMPTY
        };
        let (client, public, server) = ([10, 0, 0, 2], [192, 0, 2, 1], [198, 51, 100, 9]);
        let entry = Conntrack {
            family: 2,
            orig: tuple(client, 0x1111, server, 53),
            reply: tuple(server, 53, public, 0x2222),
            ..Conntrack::EMPTY
        };
        let event = NatEvent {
            kind: NatEventKind::New,
            time_ns: 0x0102_0304_0506 * 1_000_000,
            entry: &entry,
            ..NatEvent::EMPTY
        };
        let set = "010400260000010203040506";
        let ends = "0a0000021111c63364090035c00002012222c63364090035";
        assert_eq!(record(&mut NatSessions, &event), format!("{set}0411{ends}"));
        let end = NatEvent { kind: NatEventKind::Destroy, ..event };
        assert_eq!(record(&mut NatSessions, &end), format!("{set}0511{ends}"));
        let update = NatEvent { kind: NatEventKind::Update, ..event };
        let plain = Conntrack { reply: tuple(server, 53, client, 0x1111), ..entry };
        assert_eq!(record(&mut NatSessions, &update), "");
        let plain = NatEvent { entry: &plain, ..event };
        assert_eq!(record(&mut NatSessions, &plain), "");
        let [v6, other] = [7, 8].map(|byte| Addr::V6([byte; 16]));
        let orig = CtTuple { src: v6, dst: v6, ..tuple(client, 1, server, 2) };
        let entry = Conntrack { family: 10, orig, reply: CtTuple { src: v6, dst: other, ..orig }, ..Conntrack::EMPTY };
        let nat66 = NatEvent { entry: &entry, ..event };
        assert_eq!(record(&mut NatSessions, &nat66), "");
        let misses = [update, plain, nat66].map(|event| NatSessions.misses(&event));
        assert_eq!(misses, [false, false, true]);
    }

    #[test]
    fn a_connection_is_two_flows() {
        let holder = Holder { pid: 7, process: Comm::new(b"ng\ninx"), started: 0, cgroup_id: None };
        let event = SocketEvent {
            kind: EventKind::Close,
            time_ns: 5_000_000_000,
            duration_us: Some(2_000_000),
            family: 2,
            local: Endpoint { addr: Addr::V4([10, 0, 0, 1]), port: 80 },
            peer: Endpoint { addr: Addr::V4([10, 0, 0, 2]), port: 40_000 },
            holder: Some(holder),
            bytes_in: Some(100),
            bytes_out: Some(3000),
            segs_in: Some(2),
            segs_out: Some(3),
            reason: Some(CloseReason::Timeout),
            ..SocketEvent::EMPTY
        };
        let head = "010000410000000000000bb80000000000001388";
        let sent = "0a0000010a00000200509c40060000000000000bb8000000000000000300000000000000000101";
        let received = "0a0000020a0000019c400050060000000000000064000000000000000200000000000000000001";
        let name = "056e67696e78";
        let expected = format!("{head}{sent}{name}{head}{received}{name}");
        assert_eq!(record(&mut Connections, &event), expected);
        assert_eq!(record(&mut Connections, &SocketEvent { kind: EventKind::Open, ..event }), "");
        let v6 = Endpoint { addr: Addr::V6([7; 16]), port: 1 };
        let mixed = record(&mut Connections, &SocketEvent { local: v6, ..event });
        assert!(mixed.contains("00000000000000000000ffff0a000002"), "{mixed}");
    }
}
