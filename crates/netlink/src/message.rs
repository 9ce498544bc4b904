//! Netlink messages in a receive buffer: a head of sixteen bytes, payload, padding, the next head.
use std::fmt;

use crate::attr::aligned;
use crate::prefix;

/// `struct nlmsghdr`: len u32 (including this head), type u16, flags u16, seq u32, pid u32.
pub(crate) const HEADER_BYTES: usize = 16;

// Message types of netlink itself (include/uapi/linux/netlink.h).
pub(crate) const NLMSG_NOOP: u16 = 1;
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;
pub(crate) const NLMSG_OVERRUN: u16 = 4;

// Flags (same header).
pub(crate) const NLM_F_REQUEST: u16 = 0x01;
pub(crate) const NLM_F_ACK: u16 = 0x04;
pub(crate) const NLM_F_DUMP_INTR: u16 = 0x10;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
/// Set on errors if only the head of the request is repeated.
pub(crate) const NLM_F_CAPPED: u16 = 0x100;
/// Set on errors if attributes with the kernel's explanation follow.
pub(crate) const NLM_F_ACK_TLVS: u16 = 0x200;

/// A message whose length exceeds the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageError {
    /// Number of bytes that it claims (or that a head needs).
    pub claims: usize,
    /// Number of bytes available.
    pub has: usize,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message claims {} bytes, {} are present", self.claims, self.has)
    }
}

impl std::error::Error for MessageError {}

/// A message; borrows the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'b> {
    /// Type, as the family defines it (below 16: netlink's own).
    pub kind: u16,
    /// `NLM_F_…`.
    pub flags: u16,
    /// Sequence number of the request that it answers.
    pub seq: u32,
    /// Port id of its receiver.
    pub port: u32,
    /// The bytes after the head.
    pub payload: &'b [u8],
}

impl Message<'_> {
    /// True for messages that end an answer: NLMSG_DONE, or NLMSG_ERROR (which is an acknowledgement if its errno is
    /// 0).
    pub fn is_end(&self) -> bool {
        self.kind == NLMSG_DONE || self.kind == NLMSG_ERROR
    }
}

/// The messages in a receive buffer, in order. The first invalid one is returned as an error and ends the iteration.
#[derive(Debug, Clone)]
pub struct Messages<'b> {
    rest: &'b [u8],
}

impl<'b> Messages<'b> {
    /// Starts at the first head.
    #[inline]
    pub fn new(buffer: &'b [u8]) -> Messages<'b> {
        Messages { rest: buffer }
    }

    fn end_with_error(&mut self, claims: usize) -> Option<Result<Message<'b>, MessageError>> {
        let has = self.rest.len();
        self.rest = &[];
        Some(Err(MessageError { claims, has }))
    }
}

impl<'b> Iterator for Messages<'b> {
    type Item = Result<Message<'b>, MessageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((head, _)) = self.rest.split_first_chunk::<HEADER_BYTES>() else {
            return self.end_with_error(HEADER_BYTES);
        };
        let length = prefix::u32_at(head, 0).unwrap_or(0) as usize;
        let Some(payload) = self.rest.get(HEADER_BYTES..length) else {
            return self.end_with_error(length.max(HEADER_BYTES));
        };
        // The last one's padding may be missing.
        self.rest = self.rest.get(aligned(length)..).unwrap_or_default();
        Some(Ok(Message {
            kind: prefix::u16_at(head, 4).unwrap_or(0),
            flags: prefix::u16_at(head, 6).unwrap_or(0),
            seq: prefix::u32_at(head, 8).unwrap_or(0),
            port: prefix::u32_at(head, 12).unwrap_or(0),
            payload,
        }))
    }
}

impl std::iter::FusedIterator for Messages<'_> {}
