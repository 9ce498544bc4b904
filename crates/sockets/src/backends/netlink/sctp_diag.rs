//! sctp_diag: messages of inet_diag with SCTP attributes.
//!
//! A socket and each of its associations have one message each, with the same inode. The message of an association
//! contains the peer's addresses, and the association's state instead of a socket state (net/sctp/diag.c).
use netlink::{Attrs, DecodeError};
use record::rows::{FamilyExtras, SctpNumbers, SctpPart, SctpState, Socket, sctp_addrs};
use record::text::put_addr;
use record::{Proto, State};

use crate::backends::netlink::inet_diag::{self, InetDecoder};

/// Decodes `inet_diag_msg`s into rows. Allocates nothing once its text buffers fit the longest list of addresses.
#[derive(Debug)]
pub struct SctpDecoder {
    inner: InetDecoder,
    /// Addresses of the newest row.
    locals: Vec<u8>,
    peers: Vec<u8>,
}

impl SctpDecoder {
    /// A decoder for answers from namespace `netns_id`.
    pub fn new(netns_id: u64) -> SctpDecoder {
        SctpDecoder { inner: InetDecoder::new(Proto::Sctp, netns_id), locals: Vec::new(), peers: Vec::new() }
    }

    /// Number of skipped attributes so far that only newer kernels define.
    pub fn unknown_attrs(&self) -> u64 {
        self.inner.unknown_attrs
    }

    /// Decodes one message's payload into a row that borrows it, with the additional fields of SCTP sockets in
    /// `extras`.
    ///
    /// Fails if the payload is shorter than the struct or an attribute does not fit.
    pub fn decode<'b>(
        &'b mut self,
        payload: &'b [u8],
        extras: &'b mut FamilyExtras<'b>,
    ) -> Result<Socket<'b>, DecodeError> {
        let mut row = self.inner.decode(payload)?;
        let mut part = SctpPart::default();
        let attrs = payload.get(inet_diag::MSG..).unwrap_or_default();
        for attr in Attrs::new(attrs).map_while(Result::ok) {
            match attr.kind {
                inet_diag::INFO => part.numbers = Some(SctpNumbers::new(attr.payload)),
                inet_diag::LOCALS => part.locals = Some(attr.payload),
                inet_diag::PEERS => part.peers = Some(attr.payload),
                _ => {}
            }
        }
        if part.peers.is_some() {
            part.state = Some(SctpState(row.state.0));
            row.state = nearest_tcp_state(row.state.0);
        }
        put_addrs(&mut self.locals, part.locals.unwrap_or_default());
        put_addrs(&mut self.peers, part.peers.unwrap_or_default());
        (part.locals_text, part.peers_text) = (&self.locals, &self.peers);
        *extras = FamilyExtras { sctp: Some(part), ..FamilyExtras::EMPTY };
        row.extras = Some(extras);
        Ok(row)
    }
}

/// The TCP state closest to an association's state.
fn nearest_tcp_state(state: u8) -> State {
    match state {
        0 => State::CLOSE,
        1 | 2 => State::SYN_SENT,
        3 => State::ESTABLISHED,
        4 => State::FIN_WAIT1,
        5 => State::FIN_WAIT2,
        6 => State::CLOSE_WAIT,
        7 => State::LAST_ACK,
        _ => State(0),
    }
}

fn put_addrs(out: &mut Vec<u8>, array: &[u8]) {
    out.clear();
    for addr in sctp_addrs(array) {
        if !out.is_empty() {
            out.push(b',');
        }
        put_addr(out, addr);
    }
}
