//! tipc_diag: the request for TIPC sockets, and its answers.
//!
//! Layouts: include/uapi/linux/tipc_sockets_diag.h, tipc_netlink.h. A message has no struct: it is one attribute,
//! TIPC_NLA_SOCK, which contains all the others.
use crate::address_families::AF_TIPC;
use netlink::{Attr, Attrs, DecodeError, Request};
use record::rows::{FamilyExtras, SockType, Socket, TipcConnection, TipcPart};
use record::{Proto, State};

use crate::backends::netlink::inet_diag::SOCK_DIAG_BY_FAMILY;

/// `struct tipc_sock_diag_req`: family, protocol, pad u16, states u32.
const REQ: usize = 8;

/// `TIPC_NLA_SOCK`
const SOCK: u16 = 2;
// `TIPC_NLA_SOCK_…`; 11 is padding.
const ADDR: u16 = 1;
const REF: u16 = 2;
const CON: u16 = 3;
const HAS_PUBL: u16 = 4;
const STAT: u16 = 5;
const TYPE: u16 = 6;
const INO: u16 = 7;
const UID: u16 = 8;
const TIPC_STATE: u16 = 9;
const COOKIE: u16 = 10;
const GROUP: u16 = 12;
/// The last attribute of 6.18.
const LAST_KNOWN: u16 = GROUP;
// `TIPC_NLA_SOCK_STAT_…`: they start with 0.
const STAT_RCVQ: u16 = 0;
const STAT_SENDQ: u16 = 1;
const STAT_LINK_CONG: u16 = 2;
const STAT_CONN_CONG: u16 = 3;
const STAT_DROP: u16 = 4;
// `TIPC_NLA_CON_…`
const CON_FLAG: u16 = 1;
const CON_NODE: u16 = 2;
const CON_SOCK: u16 = 3;
const CON_TYPE: u16 = 4;
const CON_INST: u16 = 5;
/// `TIPC_NLA_SOCK_GROUP_ID`
const GROUP_ID: u16 = 0;

/// Requests the sockets in these states.
pub(crate) fn request(states: u32) -> Request {
    let mut body = [0; REQ];
    body[0] = AF_TIPC;
    body[4..8].copy_from_slice(&states.to_ne_bytes());
    let mut request = Request::dump(SOCK_DIAG_BY_FAMILY);
    request.append(&body);
    request
}

/// Decodes the messages into rows. Allocates nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct TipcDecoder {
    netns_id: u64,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl TipcDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> TipcDecoder {
        TipcDecoder { netns_id, unknown_attrs: 0 }
    }

    /// Decodes one message's payload into a row, with the additional fields of TIPC sockets in `extras`.
    ///
    /// Fails if it contains no socket, or an attribute does not fit.
    pub fn decode<'b>(
        &mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let mut socket = None;
        for attr in Attrs::new(payload) {
            let attr = attr?;
            if attr.kind == SOCK {
                socket = Some(attr);
            }
        }
        let Some(socket) = socket else {
            return Err(DecodeError::Short { what: "TIPC_NLA_SOCK", claims: 4, has: payload.len() });
        };
        let mut row =
            Socket { proto: Proto::Tipc, family: AF_TIPC, wqueue: Some(0), netns_id: self.netns_id, ..Socket::EMPTY };
        let mut part = TipcPart {
            kind: SockType(0),
            node: 0,
            port: 0,
            connection: None,
            published: false,
            link_congested: false,
            connection_congested: false,
            drops: None,
            group: None,
        };
        for attr in socket.nested() {
            self.attribute(&mut row, &mut part, &attr?)?;
        }
        *extras = FamilyExtras { tipc: Some(part), ..FamilyExtras::EMPTY };
        row.extras = Some(extras);
        Ok(row)
    }

    fn attribute(&mut self, row: &mut Socket<'_>, part: &mut TipcPart, attr: &Attr<'_>) -> Result<(), DecodeError> {
        match attr.kind {
            ADDR => part.node = attr.u32()?,
            REF => part.port = attr.u32()?,
            CON => part.connection = Some(connection(attr)?),
            HAS_PUBL => part.published = true,
            STAT => statistics(row, part, attr)?,
            TYPE => part.kind = SockType(u8::try_from(attr.u32()?).unwrap_or(0)),
            INO => row.inode = attr.u32()?,
            UID => row.uid = Some(attr.u32()?),
            // TIPC uses the numbers of TCP states (net/tipc/socket.c).
            TIPC_STATE => row.state = State(u8::try_from(attr.u32()?).unwrap_or(0)),
            COOKIE => row.cookie = attr.u64()?,
            GROUP => part.group = group(attr)?,
            known if known <= LAST_KNOWN => {}
            _ => self.unknown_attrs += 1,
        }
        Ok(())
    }
}

fn connection(con: &Attr<'_>) -> Result<TipcConnection, DecodeError> {
    let mut connection = TipcConnection::default();
    let (mut named, mut service, mut instance) = (false, 0, 0);
    for attr in con.nested() {
        let attr = attr?;
        match attr.kind {
            CON_FLAG => named = true,
            CON_NODE => connection.node = attr.u32()?,
            CON_SOCK => connection.port = attr.u32()?,
            CON_TYPE => service = attr.u32()?,
            CON_INST => instance = attr.u32()?,
            _ => {}
        }
    }
    connection.service = named.then_some((service, instance));
    Ok(connection)
}

fn statistics(row: &mut Socket<'_>, part: &mut TipcPart, stat: &Attr<'_>) -> Result<(), DecodeError> {
    for attr in stat.nested() {
        let attr = attr?;
        match attr.kind {
            STAT_RCVQ => row.rqueue = attr.u32()?,
            STAT_SENDQ => row.wqueue = Some(attr.u32()?),
            STAT_LINK_CONG => part.link_congested = true,
            STAT_CONN_CONG => part.connection_congested = true,
            STAT_DROP => part.drops = Some(attr.u32()?),
            _ => {}
        }
    }
    Ok(())
}

fn group(group: &Attr<'_>) -> Result<Option<u32>, DecodeError> {
    for attr in group.nested() {
        let attr = attr?;
        if attr.kind == GROUP_ID {
            return Ok(Some(attr.u32()?));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_asked_and_what_is_no_message() {
        let request = request(0x82);
        let bytes = request.bytes().unwrap();
        assert_eq!((bytes.len(), bytes[16]), (16 + REQ, AF_TIPC));
        assert_eq!(bytes[20..24], 0x82u32.to_ne_bytes());
        let decode =
            |bytes: &[u8]| TipcDecoder::new(1).decode(bytes, &mut FamilyExtras::default()).map(|row| row.inode);
        assert!(matches!(decode(&[]), Err(DecodeError::Short { .. })));
        assert!(matches!(decode(&[4, 0, 9, 0]), Err(DecodeError::Short { .. })));
        // A socket without attributes, and a port of two bytes.
        assert_eq!(decode(&[4, 0, 2, 0]), Ok(0));
        let error = decode(&[12, 0, 2, 0, 6, 0, 2, 0, 1, 1, 0, 0]).unwrap_err();
        assert_eq!(error, DecodeError::Attr { attr: REF, claims: 4, has: 2 });
    }

    #[test]
    fn a_group_has_a_number() {
        let group = [8, 0, 0, 0, 7, 0, 0, 0];
        let bytes = [&[16, 0, 2, 0, 12, 0, 12, 0][..], &group].concat();
        let mut extras = FamilyExtras::default();
        let row = TipcDecoder::new(1).decode(&bytes, &mut extras).unwrap();
        let group = row.extras.and_then(|extras| extras.tipc).and_then(|tipc| tipc.group);
        assert_eq!(group, Some(u32::from_ne_bytes([7, 0, 0, 0])));
    }
}
