//! Builds requests: head, the family's own struct, attributes.
use crate::attr::aligned;
use crate::message::{HEADER_BYTES, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};

/// Sequence number of every request. Each request has its own socket, so answers to different requests cannot be mixed
/// up; a fixed number makes recordings of equal runs equal.
pub(crate) const SEQ: u32 = 1;

/// Maximum length of an attribute's payload: its 16-bit length field includes the head.
const PAYLOAD_MAX: usize = u16::MAX as usize - 4;

/// A request under construction. It is valid and padded after each step.
///
/// ```
/// let mut request = netlink::Request::dump(20); // SOCK_DIAG_BY_FAMILY
/// request.append(&[2, 6, 0, 0]).attr(1, b"filter");
/// ```
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
    /// Kind and length of the first attribute that was too long: such a request is never sent.
    too_long: Option<(u16, usize)>,
}

impl Request {
    /// A request for all objects (NLM_F_REQUEST | NLM_F_DUMP), for [`crate::dump()`].
    pub fn dump(kind: u16) -> Request {
        Request::with_flags(kind, NLM_F_REQUEST | NLM_F_DUMP)
    }

    /// An acknowledged request for one object, for [`crate::exchange`].
    pub fn for_one(kind: u16) -> Request {
        Request::for_one_with_flags(kind, 0)
    }

    /// An acknowledged request with additional flags (NLM_F_CREATE …).
    pub fn for_one_with_flags(kind: u16, flags: u16) -> Request {
        // Always acknowledged: without that, a change would have no answer to wait for.
        Request::with_flags(kind, NLM_F_REQUEST | NLM_F_ACK | flags)
    }

    /// Starts a new request for one object, without an acknowledgement, in the same memory. The answer is either the
    /// object or an error, with the sequence number `seq`. For several requests in one datagram.
    pub fn begin_unacknowledged(&mut self, kind: u16, seq: u32) -> &mut Request {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        bytes.extend_from_slice(&seq.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        *self = Request { bytes, too_long: None };
        self
    }

    fn with_flags(kind: u16, flags: u16) -> Request {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&(HEADER_BYTES as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&SEQ.to_ne_bytes());
        // The kernel fills in the port id.
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        Request { bytes, too_long: None }
    }

    /// Appends the family's own struct.
    pub fn append(&mut self, bytes: &[u8]) -> &mut Request {
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

    /// Appends an attribute of four bytes in the machine's byte order.
    pub fn attr_u32(&mut self, kind: u16, number: u32) -> &mut Request {
        self.attr(kind, &number.to_ne_bytes())
    }

    /// Appends an attribute that contains the attributes appended by `inside` (NLA_F_NESTED set).
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

    /// True if it requests a dump.
    pub fn is_dump(&self) -> bool {
        Request::requests_dump(&self.bytes)
    }

    /// True if these bytes of a request ask for a dump.
    pub(crate) fn requests_dump(request: &[u8]) -> bool {
        crate::prefix::u16_at(request, 6).unwrap_or(0) & NLM_F_DUMP == NLM_F_DUMP
    }

    /// The bytes to send; or the kind and size of an attribute that is too long.
    pub fn bytes(&self) -> Result<&[u8], (u16, usize)> {
        self.too_long.map_or(Ok(&self.bytes), Err)
    }

    // The length field of an attribute with this payload; records an attribute that is too long.
    fn attr_length(&mut self, kind: u16, payload: usize) -> Option<u16> {
        if payload > PAYLOAD_MAX {
            self.too_long = self.too_long.or(Some((kind, payload)));
            return None;
        }
        u16::try_from(payload + 4).ok()
    }

    fn pad(&mut self) -> &mut Request {
        self.bytes.resize(aligned(self.bytes.len()), 0);
        // Updated at every step, so that there is no "finish" to forget.
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(..4) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        self
    }
}
