//! Building a request: head, the family's own struct, attributes.
use crate::attr::aligned;
use crate::message::{HEAD, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};

/// Sequence number of every request. Each has a socket of its own, so answers to different
/// requests cannot meet; a fixed number makes recordings of equal runs equal.
pub(crate) const SEQ: u32 = 1;

/// Longest payload of an attribute: its length field counts the head too and has 16 bits.
const PAYLOAD_MAX: usize = u16::MAX as usize - 4;

/// A request being built. Each step keeps it valid and padded.
///
/// ```
/// let mut request = netlink::Request::dump(20); // SOCK_DIAG_BY_FAMILY
/// request.body(&[2, 6, 0, 0]).attr(1, b"filter");
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    /// The first attribute that was too long, and its length: such a request is never sent.
    too_long: Option<(u16, usize)>,
}

impl Request {
    /// A request for all there is (NLM_F_REQUEST | NLM_F_DUMP), for [`crate::dump()`].
    pub fn dump(kind: u16) -> Request {
        Request::with_flags(kind, NLM_F_REQUEST | NLM_F_DUMP)
    }

    /// A request for one thing, to be acknowledged, for [`crate::exchange`].
    pub fn one(kind: u16) -> Request {
        Request::one_with(kind, 0)
    }

    /// The same with more flags (NLM_F_CREATE …).
    pub fn one_with(kind: u16, flags: u16) -> Request {
        // Always acknowledged: without that a change would have no answer to wait for.
        Request::with_flags(kind, NLM_F_REQUEST | NLM_F_ACK | flags)
    }

    /// Replaces it by a request for one thing that is answered, by what it asks for or by an error, and not
    /// acknowledged; `seq` is the number of its answer. For many in one datagram. Keeps the memory.
    pub fn begin_unacknowledged(&mut self, kind: u16, seq: u32) -> &mut Request {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend_from_slice(&(HEAD as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        bytes.extend_from_slice(&seq.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        *self = Request { bytes, too_long: None };
        self
    }

    fn with_flags(kind: u16, flags: u16) -> Request {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&(HEAD as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&SEQ.to_ne_bytes());
        // The port is filled in by the kernel.
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        Request { bytes, too_long: None }
    }

    /// Appends the family's own struct.
    pub fn body(&mut self, bytes: &[u8]) -> &mut Request {
        self.bytes.extend_from_slice(bytes);
        self.pad()
    }

    /// Appends an attribute.
    pub fn attr(&mut self, kind: u16, payload: &[u8]) -> &mut Request {
        let Some(length) = self.attr_length(kind, payload.len()) else { return self };
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(payload);
        self.pad()
    }

    /// Appends an attribute of four bytes in the machine's order.
    pub fn attr_u32(&mut self, kind: u16, number: u32) -> &mut Request {
        self.attr(kind, &number.to_ne_bytes())
    }

    /// Appends an attribute that holds those which `inside` appends (NLA_F_NESTED set).
    pub fn nested(&mut self, kind: u16, inside: impl FnOnce(&mut Request)) -> &mut Request {
        const NLA_F_NESTED: u16 = 0x8000;
        let start = self.bytes.len();
        self.attr(kind | NLA_F_NESTED, &[]);
        inside(self);
        let length = self.attr_length(kind, self.bytes.len() - start - 4);
        if let (Some(length), Some(place)) = (length, self.bytes.get_mut(start..start + 2)) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        self
    }

    /// The message's type.
    pub fn kind(&self) -> u16 {
        crate::prefix::u16_at(&self.bytes, 4).unwrap_or(0)
    }

    /// True if it asks for a dump.
    pub fn is_dump(&self) -> bool {
        Request::asks_for_dump(&self.bytes)
    }

    /// The same for a request's bytes.
    pub(crate) fn asks_for_dump(request: &[u8]) -> bool {
        crate::prefix::u16_at(request, 6).unwrap_or(0) & NLM_F_DUMP == NLM_F_DUMP
    }

    /// The bytes to send; the kind and size of an attribute that does not fit into one otherwise.
    pub fn bytes(&self) -> Result<&[u8], (u16, usize)> {
        self.too_long.map_or(Ok(&self.bytes), Err)
    }

    // Length field of an attribute with this payload; too long is remembered.
    fn attr_length(&mut self, kind: u16, payload: usize) -> Option<u16> {
        if payload > PAYLOAD_MAX {
            self.too_long = self.too_long.or(Some((kind, payload)));
            return None;
        }
        u16::try_from(payload + 4).ok()
    }

    fn pad(&mut self) -> &mut Request {
        self.bytes.resize(aligned(self.bytes.len()), 0);
        // Kept right at every step, so that there is no "finish" to forget.
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(..4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        self
    }
}
