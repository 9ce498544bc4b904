//! A query for the name of an address, and its answer.
use record::Addr;

use super::message::{Message, Section, class, rcode, rtype};
use super::{DnsError, Name};

/// Maximum size of a query: header, 32 nibbles with their lengths, `ip6`, `arpa`, the root, type and class.
const QUERY_MAX: usize = 12 + 64 + 4 + 5 + 1 + 4;

/// Maximum number of CNAMEs to follow. One is common, to delegate a network smaller than a /24 (RFC 2317).
const CNAMES_MAX: usize = 4;

/// A PTR query for one address (RFC 1035 §3.5, RFC 3596 §2.5), ready to send.
#[derive(Debug, Clone, Copy)]
pub struct PtrQuery {
    bytes: [u8; QUERY_MAX],
    length: usize,
}

/// Content of an answer.
#[derive(Debug, Clone, Copy)]
pub enum PtrAnswer<'m> {
    /// The address has this name.
    Name(Name<'m>),
    /// The address has no name.
    NoName,
    /// The server failed, with this response code (see [`rcode`]); another server may know the name.
    Failed(u8),
}

impl PtrQuery {
    /// A query with this id for the name of an address; IPv4-mapped addresses are queried as IPv4. Recursion is
    /// desired.
    pub fn new(id: u16, addr: Addr) -> PtrQuery {
        let mut query = PtrQuery { bytes: [0; QUERY_MAX], length: 0 };
        query.put(&id.to_be_bytes());
        // Flags: RD. One question, no records.
        query.put(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        match addr.unmapped() {
            Addr::V4(octets) => query.put_v4(octets),
            Addr::V6(octets) => query.put_v6(octets),
        }
        query.put(b"\x04arpa\0");
        query.put(&rtype::PTR.to_be_bytes());
        query.put(&class::IN.to_be_bytes());
        query
    }

    /// The message.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The id of the query.
    pub fn id(&self) -> u16 {
        let [a, b, ..] = self.bytes;
        u16::from_be_bytes([a, b])
    }

    /// The answer in `bytes`; `None` if they do not answer this query at all (another id, another question, not DNS),
    /// in which case the caller keeps waiting. The caller must check that the right server sent them.
    pub fn find_answer<'m>(&self, bytes: &'m [u8]) -> Option<PtrAnswer<'m>> {
        let message = Message::parse(bytes).ok().filter(|m| m.is_response() && m.id() == self.id())?;
        let own = Message::parse(self.as_bytes()).ok()?.questions().next()?.ok()?;
        let mut questions = message.questions();
        let question = questions.next()?.ok()?;
        let same =
            question.name.eq_ignore_case(&own.name) && (question.rtype, question.class) == (own.rtype, own.class);
        if !same || questions.next().is_some() {
            return None;
        }
        Some(match message.rcode() {
            // A malformed record makes the whole answer fail: the next server may do better.
            rcode::NO_ERROR => find(&message, question.name).unwrap_or(PtrAnswer::Failed(rcode::NO_ERROR)),
            rcode::NX_DOMAIN => PtrAnswer::NoName,
            other => PtrAnswer::Failed(other),
        })
    }

    fn put(&mut self, bytes: &[u8]) {
        // The array has room for the longest query; more is dropped rather than indexed.
        if let Some(place) = self.bytes.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    fn put_v4(&mut self, octets: [u8; 4]) {
        for octet in octets.into_iter().rev() {
            let digits = [b'0' + octet / 100, b'0' + octet / 10 % 10, b'0' + octet % 10];
            let zeros = usize::from(octet < 100) + usize::from(octet < 10);
            let label = digits.get(zeros..).unwrap_or_default();
            self.put(&[label.len() as u8]);
            self.put(label);
        }
        self.put(b"\x07in-addr");
    }

    fn put_v6(&mut self, octets: [u8; 16]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for octet in octets.into_iter().rev() {
            for nibble in [octet & 15, octet >> 4] {
                self.put(&[1, DIGITS[usize::from(nibble)]]);
            }
        }
        self.put(b"\x03ip6");
    }
}

// The first PTR record of `name`, or of the name that its CNAMEs lead to. Each pass over the records follows one CNAME,
// so their order does not matter.
fn find<'m>(message: &Message<'m>, name: Name<'m>) -> Result<PtrAnswer<'m>, DnsError> {
    let mut name = name;
    for _ in 0..=CNAMES_MAX {
        let mut cname = None;
        for record in message.records() {
            let record = record?;
            if record.section != Section::Answer {
                break;
            }
            if record.class != class::IN || !record.name.eq_ignore_case(&name) {
                continue;
            }
            match record.rtype {
                rtype::PTR => return record.target().map(PtrAnswer::Name),
                rtype::CNAME => cname = Some(record.target()?),
                _ => {}
            }
        }
        match cname {
            Some(next) => name = next,
            None => break,
        }
    }
    Ok(PtrAnswer::NoName)
}
