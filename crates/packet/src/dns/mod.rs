//! DNS messages (RFC 1035): a view of received messages, and the one question that netwren sends, a PTR query.
//!
//! Start reading at [`Message::parse`]; [`PtrQuery`] builds the query and interprets the answer.
mod message;
mod name;
mod ptr;

pub use message::{Message, Question, Questions, Record, Records, Section, class, rcode, rtype};
pub use name::{Labels, NAME_BYTES_MAX, Name};
pub use ptr::{PtrAnswer, PtrQuery};

use std::fmt;

/// An error in the bytes of a DNS message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsError {
    /// The malformed or missing part.
    pub what: &'static str,
    /// Offset in the message where it was expected.
    pub at: usize,
}

impl fmt::Display for DnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no DNS message: {} expected at byte {}", self.what, self.at)
    }
}

impl std::error::Error for DnsError {}

/// Decodes any bytes as a message completely. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_dns(data: &[u8]) {
    let mut text = Vec::new();
    let Ok(message) = Message::parse(data) else { return };
    for question in message.questions() {
        let Ok(question) = question else { break };
        visit(question.name, &mut text);
    }
    for record in message.records() {
        let Ok(record) = record else { break };
        visit(record.name, &mut text);
        if let Ok(target) = record.target() {
            visit(target, &mut text);
        }
    }
    let addr = record::Addr::V4(data.first_chunk().copied().unwrap_or_default());
    let query = PtrQuery::new(message.id(), addr);
    let _ = query.find_answer(data);
    assert!(Message::parse(query.as_bytes()).is_ok());
}

fn visit(name: Name<'_>, text: &mut Vec<u8>) {
    text.clear();
    name.put_text(text);
    assert!(text.len() <= 4 * NAME_BYTES_MAX && text.iter().all(u8::is_ascii_graphic));
    assert!(name.labels().all(|label| !label.is_empty() && label.len() <= 63));
    assert!(name.eq_ignore_case(&name));
}

#[cfg(test)]
mod tests;
