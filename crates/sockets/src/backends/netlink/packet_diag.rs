//! packet_diag: the request for packet sockets, and its answers.
//!
//! Layouts: include/uapi/linux/packet_diag.h. A message is a fixed struct of 16 bytes and attributes. The kernel does
//! not filter here: the request contains neither states nor programs.
use crate::address_families::AF_PACKET;
use netlink::prefix::{u16_at, u32_at};
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{FamilyExtras, PacketPart, PacketRing, PacketType, SkMem, Socket, need};
use record::text::{put_hex, put_u64};
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `struct packet_diag_req`: family, protocol, pad u16, ino u32, show u32, cookie u32[2].
const REQ: usize = 20;
/// `struct packet_diag_msg`: family, type, num u16, ino u32, cookie u32[2].
const MSG: usize = 16;
const _: () = assert!(REQ == 4 + 2 * 4 + 8 && MSG == 4 + 4 + 8);

// Attributes, `PACKET_DIAG_…`.
const INFO: u16 = 0;
const MCLIST: u16 = 1;
const RX_RING: u16 = 2;
const TX_RING: u16 = 3;
const FANOUT: u16 = 4;
const UID: u16 = 5;
const MEMINFO: u16 = 6;
const FILTER: u16 = 7;

// Request bits, `PACKET_SHOW_…`.
const SHOW_INFO: u32 = 1;
const SHOW_MCLIST: u32 = 2;
const SHOW_RING_CFG: u32 = 4;
const SHOW_FANOUT: u32 = 8;
const SHOW_MEMINFO: u32 = 0x10;
const SHOW_FILTER: u32 = 0x20;

/// The request bits that fetch the fields of these `need` bits. The interface and the uid come with INFO.
pub(crate) fn show_of(demanded: u64) -> u32 {
    let bits = [
        (need::PACKET | need::IFACE_MARK | need::UID, SHOW_INFO),
        (need::PACKET, SHOW_MCLIST | SHOW_RING_CFG | SHOW_FANOUT),
        (need::QUEUES | need::SKMEM, SHOW_MEMINFO),
        (need::FILTER, SHOW_FILTER),
    ];
    bits.iter().filter(|(need, _)| demanded & need != 0).fold(0, |show, (_, bit)| show | bit)
}

/// Requests all packet sockets.
pub(crate) fn request(show: u32) -> Request {
    let mut body = [0; REQ];
    body[0] = AF_PACKET;
    body[8..12].copy_from_slice(&show.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Decodes `packet_diag_msg`s into rows. Allocates nothing once its text buffer fits the longest filter.
#[derive(Debug, Default)]
pub struct PacketDecoder {
    netns_id: u64,
    /// The filter of the newest row as text.
    text: Vec<u8>,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl PacketDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> PacketDecoder {
        PacketDecoder { netns_id, text: Vec::new(), unknown_attrs: 0 }
    }

    /// Decodes one message's payload into a row that borrows it, with the additional fields of packet sockets in
    /// `extras`.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit.
    pub fn decode<'b>(
        &'b mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let Some((msg, attrs)) = payload.split_first_chunk::<MSG>() else {
            return Err(DecodeError::Short { what: "packet_diag_msg", claims: MSG, has: payload.len() });
        };
        if msg[0] != AF_PACKET {
            return Err(DecodeError::Family(msg[0]));
        }
        let u32_of = |at| u32_at(msg, at).unwrap_or(0);
        let mut row = Socket {
            inode: u32_of(4),
            cookie: u64::from(u32_of(8)) | u64::from(u32_of(12)) << 32,
            netns_id: self.netns_id,
            ..empty_socket()
        };
        let mut part = PacketPart::new(PacketType(msg[1]), u16_at(msg, 2).unwrap_or(0));
        for attr in Attrs::new(attrs) {
            if !attribute(&mut row, &mut part, &attr?)? {
                self.unknown_attrs += 1;
            }
        }
        self.text.clear();
        put_filter(&mut self.text, part.filter.unwrap_or_default());
        part.filter_text = &self.text;
        *extras = FamilyExtras { packet: Some(part), ..FamilyExtras::EMPTY };
        row.extras = Some(extras);
        Ok(row)
    }
}

/// A packet socket without any known fields: it is never connected.
pub(crate) fn empty_socket() -> Socket<'static> {
    Socket { proto: Proto::Packet, family: AF_PACKET, state: State::CLOSE, wqueue: None, ..Socket::EMPTY }
}

// Returns false for an unknown attribute.
fn attribute<'b>(row: &mut Socket<'b>, part: &mut PacketPart<'b>, attr: &Attr<'b>) -> Result<bool, DecodeError> {
    match attr.kind {
        INFO => {
            let info = attr.array::<24>()?;
            let [index, version, reserve, thresh, stamp, flags] =
                [0, 4, 8, 12, 16, 20].map(|at| u32_at(&info, at).unwrap_or(0));
            row.ifindex = index;
            (part.version, part.reserve, part.copy_thresh) = (Some(version), Some(reserve), Some(thresh));
            (part.timestamp, part.flags) = (Some(stamp), Some(flags));
        }
        MCLIST => part.members = Some(attr.payload),
        RX_RING => part.rx_ring = Some(ring(attr)?),
        TX_RING => part.tx_ring = Some(ring(attr)?),
        FANOUT => part.fanout = Some(attr.u32()?),
        UID => row.uid = Some(attr.u32()?),
        MEMINFO => {
            let memory = SkMem::new(attr.payload);
            (row.rqueue, row.wqueue) = (memory.get(0).unwrap_or(0), Some(0));
            row.skmem = Some(memory);
        }
        FILTER => part.filter = Some(attr.payload),
        _ => return Ok(false),
    }
    Ok(true)
}

fn ring(attr: &Attr<'_>) -> Result<PacketRing, DecodeError> {
    let words = attr.array::<28>()?;
    let [block_size, blocks, frame_size, frames, retire_ms, private_size, features] =
        [0, 4, 8, 12, 16, 20, 24].map(|at| u32_at(&words, at).unwrap_or(0));
    Ok(PacketRing { block_size, blocks, frame_size, frames, retire_ms, private_size, features })
}

/// Appends code, jumps and constant of each instruction (`struct sock_filter`): `0x28 0 0 12, 0x6 0 0 65535`.
fn put_filter(out: &mut Vec<u8>, filter: &[u8]) {
    for (i, instruction) in filter.chunks_exact(8).enumerate() {
        out.extend_from_slice(if i > 0 { b", 0x" } else { b"0x" });
        put_hex(out, u16_at(instruction, 0).unwrap_or(0).into());
        for number in instruction.get(2..4).unwrap_or_default() {
            out.push(b' ');
            put_u64(out, (*number).into());
        }
        out.push(b' ');
        put_u64(out, u32_at(instruction, 4).unwrap_or(0).into());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_is_needed_is_asked_for() {
        assert_eq!(show_of(0), 0);
        assert_eq!(show_of(need::IFACE_MARK), SHOW_INFO);
        assert_eq!(show_of(need::QUEUES), SHOW_MEMINFO);
        assert_eq!(show_of(u64::MAX), 0x3f);
    }

    #[test]
    fn what_is_no_message() {
        let mut decoder = PacketDecoder::new(1);
        assert!(matches!(
            decoder.decode(&[AF_PACKET; 15], &mut FamilyExtras::default()),
            Err(DecodeError::Short { .. })
        ));
        assert_eq!(decoder.decode(&[1; 16], &mut FamilyExtras::default()), Err(DecodeError::Family(1)));
        let mut message = [0; 16 + 8];
        (message[0], message[16], message[18]) = (AF_PACKET, 8, RX_RING as u8);
        let error = decoder.decode(&message, &mut FamilyExtras::default()).unwrap_err();
        assert_eq!(error, DecodeError::Attr { attr: RX_RING, claims: 28, has: 4 });
    }
}
