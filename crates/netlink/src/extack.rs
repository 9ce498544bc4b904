//! The kernel's explanation of a refusal (extended acknowledgement, kernel 4.12): a sentence, and the attribute of our
//! request that it is about.
use crate::attr::{Attrs, aligned};
use crate::message::{HEADER_BYTES, Message, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_ERROR};
use crate::prefix;

// enum nlmsgerr_attrs (include/uapi/linux/netlink.h).
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;
const NLMSGERR_ATTR_MISS_TYPE: u16 = 5;

/// Longer texts are truncated: the kernel's are one sentence.
const SAYS_MAX: usize = 512;

/// The kernel's information beyond its errno.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    /// Its sentence, escaped.
    pub(crate) says: Option<Box<str>>,
    /// Kind of the attribute that it complains about or that is missing.
    pub(crate) at_attr: Option<u16>,
}

impl Explanation {
    /// Reads it from an NLMSG_ERROR, or from an NLMSG_DONE with an errno. A malformed explanation is ignored: the
    /// refusal itself is what matters.
    pub(crate) fn read(message: &Message<'_>, request: &[u8]) -> Explanation {
        let mut found = Explanation::default();
        if message.flags & NLM_F_ACK_TLVS == 0 {
            return found;
        }
        let attrs = message.payload.get(start(message)..).unwrap_or_default();
        for attr in Attrs::new(attrs).map_while(Result::ok) {
            match attr.kind {
                NLMSGERR_ATTR_MSG => {
                    let text = attr.c_str();
                    found.says = Some(sys::escape_bytes(text.get(..SAYS_MAX).unwrap_or(text)));
                }
                NLMSGERR_ATTR_OFFS => found.at_attr = attr.u32().ok().and_then(|at| kind_at(request, at)),
                NLMSGERR_ATTR_MISS_TYPE => found.at_attr = attr.u32().ok().and_then(|kind| u16::try_from(kind).ok()),
                _ => {}
            }
        }
        found
    }
}

// Offset of the attributes. They follow the errno; in an NLMSG_ERROR our request is repeated before them, completely,
// or with NLM_F_CAPPED only its head.
fn start(message: &Message<'_>) -> usize {
    const ERRNO: usize = 4;
    if message.kind != NLMSG_ERROR {
        return ERRNO;
    }
    let request = prefix::u32_at(message.payload, ERRNO).unwrap_or(0) as usize;
    let repeated = if message.flags & NLM_F_CAPPED != 0 { HEADER_BYTES } else { request.max(HEADER_BYTES) };
    // A corrupt length must not overflow here; beyond the message it finds nothing.
    ERRNO + aligned(repeated.min(1 << 20))
}

// The offset refers to our request, which we still have: it points to the attribute, which starts with its length.
fn kind_at(request: &[u8], at: u32) -> Option<u16> {
    let at = at as usize;
    let is_attr = at > HEADER_BYTES && at % 4 == 0;
    prefix::u16_at(request, at.checked_add(2)?).filter(|_| is_attr).map(|kind| kind & 0x3fff)
}
