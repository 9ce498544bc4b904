//! netlink_diag: the request for netlink sockets, and its answers.
//!
//! Layouts: include/uapi/linux/netlink_diag.h. One dump returns the sockets of every protocol; the kernel does not
//! filter.
use crate::address_families::AF_NETLINK;
use netlink::prefix::u32_at;
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{FamilyExtras, NetlinkPart, NetlinkProtocol, SkMem, Socket, need};
use record::text::put_u64;
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `NDIAG_PROTO_ALL`
const PROTO_ALL: u8 = 255;

/// `struct netlink_diag_req`: family, protocol, pad u16, ino u32, show u32, cookie u32[2].
const REQ: usize = 20;
/// `struct netlink_diag_msg`: family, type, protocol, state, portid u32, dst_portid u32, dst_group u32, ino u32,
/// cookie u32[2].
const MSG: usize = 28;
const _: () = assert!(REQ == 4 + 2 * 4 + 8 && MSG == 4 + 4 * 4 + 8);

// Attributes, `NETLINK_DIAG_…`. 2 and 3 are rings, which kernels since 4.6 do not have.
const MEMINFO: u16 = 0;
const GROUPS: u16 = 1;
const FLAGS: u16 = 4;
/// The last attribute of 6.18.
const LAST_KNOWN: u16 = FLAGS;

// Request bits, `NDIAG_SHOW_…`.
const SHOW_MEMINFO: u32 = 1;
const SHOW_GROUPS: u32 = 2;
const SHOW_FLAGS: u32 = 8;

/// The request bits that fetch the fields of these `need` bits.
pub(crate) fn show_of(demanded: u64) -> u32 {
    let bits = [(need::QUEUES | need::SKMEM, SHOW_MEMINFO), (need::NETLINK, SHOW_GROUPS | SHOW_FLAGS)];
    bits.iter().filter(|(need, _)| demanded & need != 0).fold(0, |show, (_, bit)| show | bit)
}

/// Requests all netlink sockets.
pub(crate) fn request(show: u32) -> Request {
    let mut body = [0; REQ];
    (body[0], body[1]) = (AF_NETLINK, PROTO_ALL);
    body[8..12].copy_from_slice(&show.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Decodes `netlink_diag_msg`s into rows. Allocates nothing once its text buffer fits the longest list of groups.
#[derive(Debug, Default)]
pub struct NetlinkDecoder {
    netns_id: u64,
    /// The groups of the newest row as text.
    text: Vec<u8>,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl NetlinkDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> NetlinkDecoder {
        NetlinkDecoder { netns_id, text: Vec::new(), unknown_attrs: 0 }
    }

    /// Decodes one message's payload into a row that borrows it, with the additional fields of netlink sockets in
    /// `extras`.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit.
    pub fn decode<'b>(
        &'b mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let Some((msg, attrs)) = payload.split_first_chunk::<MSG>() else {
            return Err(DecodeError::Short { what: "netlink_diag_msg", claims: MSG, has: payload.len() });
        };
        if msg[0] != AF_NETLINK {
            return Err(DecodeError::Family(msg[0]));
        }
        let u32_of = |at| u32_at(msg, at).unwrap_or(0);
        let mut row = Socket {
            // NETLINK_CONNECTED is 1, like the connected state of every other family.
            state: if msg[3] == 1 { State::ESTABLISHED } else { State::CLOSE },
            inode: u32_of(16),
            cookie: u64::from(u32_of(20)) | u64::from(u32_of(24)) << 32,
            netns_id: self.netns_id,
            ..empty_socket()
        };
        let mut part = NetlinkPart { dst_portid: u32_of(8), dst_group: u32_of(12), ..empty_part(msg[2], u32_of(4)) };
        for attr in Attrs::new(attrs) {
            if !attribute(&mut row, &mut part, &attr?)? {
                self.unknown_attrs += 1;
            }
        }
        put_groups(&mut self.text, part.groups.unwrap_or_default());
        part.groups_text = &self.text;
        *extras = FamilyExtras { netlink: Some(part), ..FamilyExtras::EMPTY };
        row.extras = Some(extras);
        Ok(row)
    }
}

/// A netlink socket without any known fields.
pub(crate) fn empty_socket() -> Socket<'static> {
    Socket { proto: Proto::Netlink, family: AF_NETLINK, state: State::CLOSE, wqueue: None, ..Socket::EMPTY }
}

/// A socket with a known protocol and address only.
pub(crate) fn empty_part(protocol: u8, portid: u32) -> NetlinkPart<'static> {
    NetlinkPart {
        protocol: NetlinkProtocol(protocol),
        portid,
        dst_portid: 0,
        dst_group: 0,
        groups: None,
        groups_text: b"",
        flags: None,
        drops: None,
    }
}

// Returns false for an unknown attribute.
fn attribute<'b>(row: &mut Socket<'b>, part: &mut NetlinkPart<'b>, attr: &Attr<'b>) -> Result<bool, DecodeError> {
    match attr.kind {
        MEMINFO => {
            let memory = SkMem::new(attr.payload);
            (row.rqueue, row.wqueue) = (memory.get(0).unwrap_or(0), Some(memory.get(2).unwrap_or(0)));
            row.skmem = Some(memory);
        }
        GROUPS => part.groups = Some(attr.payload),
        FLAGS => part.flags = Some(attr.u32()?),
        known if known <= LAST_KNOWN => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Replaces `out` with the numbers of the groups whose bits are set: `1,5,7`. The bitmap is an array of `unsigned
/// long`, read byte by byte in the layout of a little-endian machine; on a big-endian one the bytes of each are
/// swapped.
pub(crate) fn put_groups(out: &mut Vec<u8>, bitmap: &[u8]) {
    out.clear();
    for (at, byte) in bitmap.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        let at = if cfg!(target_endian = "big") { at ^ (size_of::<usize>() - 1) } else { at };
        for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
            if !out.is_empty() {
                out.push(b',');
            }
            put_u64(out, at as u64 * 8 + bit + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_asked_for() {
        assert_eq!(show_of(0), 0);
        assert_eq!(show_of(need::SKMEM), SHOW_MEMINFO);
        assert_eq!(show_of(u64::MAX), 0xb);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn groups_by_their_numbers() {
        let of = |bitmap: &[u8]| {
            let mut out = b"old".to_vec();
            put_groups(&mut out, bitmap);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[0; 8]), "");
        assert_eq!(of(&[0b1000_0001, 0, 1]), "1,8,17");
    }

    #[test]
    fn what_is_no_message() {
        let mut decoder = NetlinkDecoder::new(1);
        assert!(matches!(
            decoder.decode(&[AF_NETLINK; 27], &mut FamilyExtras::default()),
            Err(DecodeError::Short { .. })
        ));
        assert_eq!(decoder.decode(&[2; 28], &mut FamilyExtras::default()), Err(DecodeError::Family(2)));
    }
}
