//! unix_diag: the request for unix sockets, and its answers.
//!
//! Layouts: include/uapi/linux/unix_diag.h. Unlike in inet_diag, the kernel only sends requested attributes, and the
//! state.
use crate::address_families::AF_UNIX;
use netlink::prefix::u32_at;
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{SkMem, Socket, UnixPart, UnixType, need};
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `struct unix_diag_req`: family, protocol, pad u16, states u32, ino u32, show u32, cookie u32[2].
const REQ: usize = 24;
/// `struct unix_diag_msg`: family, type, state, pad, ino u32, cookie u32[2].
const MSG: usize = 16;
const _: () = assert!(REQ == 4 + 3 * 4 + 8 && MSG == 4 + 4 + 8);

// Attributes, `UNIX_DIAG_…`.
const NAME: u16 = 0;
const VFS: u16 = 1;
const PEER: u16 = 2;
const ICONS: u16 = 3;
const RQLEN: u16 = 4;
const MEMINFO: u16 = 5;
const SHUTDOWN: u16 = 6;
const UID: u16 = 7;

// Request bits, `UDIAG_SHOW_…`.
const SHOW_NAME: u32 = 1;
const SHOW_VFS: u32 = 2;
const SHOW_PEER: u32 = 4;
const SHOW_ICONS: u32 = 8;
const SHOW_RQLEN: u32 = 0x10;
const SHOW_MEMINFO: u32 = 0x20;
const SHOW_UID: u32 = 0x40;

/// The request bits that fetch the fields of these `need` bits.
pub(crate) fn show_of(demanded: u64) -> u32 {
    let bits = [
        (need::UNIX_NAME, SHOW_NAME),
        (need::UNIX_VFS, SHOW_VFS),
        (need::UNIX_PEER, SHOW_PEER),
        (need::UNIX_ICONS, SHOW_ICONS),
        (need::QUEUES, SHOW_RQLEN),
        (need::SKMEM, SHOW_MEMINFO),
        (need::UID, SHOW_UID),
    ];
    bits.iter().filter(|(need, _)| demanded & need != 0).fold(0, |show, (_, bit)| show | bit)
}

/// Requests all unix sockets in these states. (6.18 leaves out sockets without an inode: not yet accepted.)
pub(crate) fn request(states: u32, show: u32) -> Request {
    let mut body = [0; REQ];
    body[0] = AF_UNIX;
    body[4..8].copy_from_slice(&states.to_ne_bytes());
    body[12..16].copy_from_slice(&show.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Requests only the names of all unix sockets.
pub(crate) fn request_names() -> Request {
    request(u32::MAX, SHOW_NAME)
}

/// Decodes `unix_diag_msg`s into rows. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct UnixDecoder {
    netns_id: u64,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl UnixDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> UnixDecoder {
        UnixDecoder { netns_id, unknown_attrs: 0 }
    }

    /// Decodes one message's payload into a row that borrows it.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit.
    pub fn decode<'b>(&mut self, payload: &'b [u8]) -> Result<Socket<'b>, DecodeError> {
        let Some((msg, attrs)) = payload.split_first_chunk::<MSG>() else {
            return Err(DecodeError::Short { what: "unix_diag_msg", claims: MSG, has: payload.len() });
        };
        if msg[0] != AF_UNIX {
            return Err(DecodeError::Family(msg[0]));
        }
        let u32_of = |at| u32_at(msg, at).unwrap_or(0);
        let mut row = Socket {
            proto: Proto::Unix,
            family: AF_UNIX,
            state: State(msg[2]),
            inode: u32_of(4),
            cookie: u64::from(u32_of(8)) | u64::from(u32_of(12)) << 32,
            netns_id: self.netns_id,
            ..Socket::EMPTY
        };
        let mut part = empty_part(UnixType(msg[1]));
        for attr in Attrs::new(attrs) {
            self.attribute(&mut row, &mut part, &attr?)?;
        }
        row.unix = Some(part);
        Ok(row)
    }

    fn attribute<'b>(
        &mut self,
        row: &mut Socket<'b>,
        part: &mut UnixPart<'b>,
        attr: &Attr<'b>,
    ) -> Result<(), DecodeError> {
        match attr.kind {
            NAME => part.path = bound_name(attr.payload),
            PEER => part.peer_inode = Some(attr.u32()?).filter(|inode| *inode != 0),
            VFS => {
                let [inode, device] = pair(attr)?;
                part.vfs = Some((device, inode));
            }
            RQLEN => {
                let [rqueue, wqueue] = pair(attr)?;
                (row.rqueue, row.wqueue) = (rqueue, Some(wqueue));
            }
            ICONS => part.icons = Some(attr.payload),
            MEMINFO => row.skmem = Some(SkMem::new(attr.payload)),
            SHUTDOWN => row.shutdown = Some(attr.u8()?),
            UID => row.uid = Some(attr.u32()?),
            _ => self.unknown_attrs += 1,
        }
        Ok(())
    }
}

/// Decodes one unix_diag message into a row. For a whole dump use a [`UnixDecoder`], which counts skipped attributes.
pub fn decode_unix(payload: &[u8], netns_id: u64) -> Result<Socket<'_>, DecodeError> {
    UnixDecoder::new(netns_id).decode(payload)
}

/// A unix socket with a known type only.
pub(crate) fn empty_part(kind: UnixType) -> UnixPart<'static> {
    UnixPart { kind, path: None, peer_inode: None, vfs: None, refs: None, flags: None, icons: None }
}

// An abstract name starts with a NUL and may contain more of them; a path ends at its first one.
fn bound_name(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first() {
        None => None,
        Some(0) => Some(bytes),
        Some(_) => bytes.split(|byte| *byte == 0).next(),
    }
}

// Two numbers; further members of a newer kernel's struct are ignored.
fn pair(attr: &Attr<'_>) -> Result<[u32; 2], DecodeError> {
    let both = attr.array::<8>()?;
    let [a, b, c, d, e, f, g, h] = both;
    Ok([u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])])
}
