//! vsock_diag: the request for sockets between virtual machines and their host, and its answers.
//!
//! Layouts: include/uapi/linux/vm_sockets_diag.h. A message is a fixed struct of 32 bytes, without attributes.
use crate::address_families::AF_VSOCK;
use netlink::prefix::u32_at;
use netlink::{DecodeError, Request};
use record::rows::{FamilyExtras, SockType, Socket, VsockPart};
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `struct vsock_diag_req`: family, protocol, pad u16, states u32, ino u32, show u32, cookie u32[2].
const REQ: usize = 24;
/// `struct vsock_diag_msg`: family, type, state, shutdown, src_cid u32, src_port u32, dst_cid u32, dst_port u32,
/// ino u32, cookie u32[2].
const MSG: usize = 32;
const _: () = assert!(REQ == 4 + 3 * 4 + 8 && MSG == 4 + 5 * 4 + 8);

/// Requests the sockets in these states.
pub(crate) fn request(states: u32) -> Request {
    let mut body = [0; REQ];
    body[0] = AF_VSOCK;
    body[4..8].copy_from_slice(&states.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Decodes one message's payload into a row, with the additional fields of vsock sockets in `extras`. Allocates
/// nothing.
///
/// Fails if the payload is shorter than the struct.
pub fn decode_vsock<'b>(
    payload: &[u8],
    netns_id: u64,
    extras: &'b mut FamilyExtras<'b>,
) -> Result<Socket<'b>, DecodeError> {
    let Some(msg) = payload.first_chunk::<MSG>() else {
        return Err(DecodeError::Short { what: "vsock_diag_msg", claims: MSG, has: payload.len() });
    };
    if msg[0] != AF_VSOCK {
        return Err(DecodeError::Family(msg[0]));
    }
    let u32_of = |at| u32_at(msg, at).unwrap_or(0);
    let part = VsockPart { kind: SockType(msg[1]), local: (u32_of(4), u32_of(8)), peer: (u32_of(12), u32_of(16)) };
    *extras = FamilyExtras { vsock: Some(part), ..FamilyExtras::EMPTY };
    Ok(Socket {
        proto: Proto::Vsock,
        family: AF_VSOCK,
        state: State(msg[2]),
        shutdown: Some(msg[3]),
        inode: u32_of(20),
        cookie: u64::from(u32_of(24)) | u64::from(u32_of(28)) << 32,
        netns_id,
        extras: Some(extras),
        ..Socket::EMPTY
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_asked_and_what_is_no_message() {
        let request = request(0x402);
        let bytes = request.bytes().unwrap();
        assert_eq!((bytes.len(), bytes[16]), (16 + REQ, AF_VSOCK));
        assert_eq!(bytes[20..24], 0x402u32.to_ne_bytes());
        let decode = |bytes: &[u8]| decode_vsock(bytes, 1, &mut FamilyExtras::default()).map(|row| row.inode);
        assert!(matches!(decode(&[AF_VSOCK; MSG - 1]), Err(DecodeError::Short { .. })));
        assert_eq!(decode(&[2; MSG]), Err(DecodeError::Family(2)));
    }
}
