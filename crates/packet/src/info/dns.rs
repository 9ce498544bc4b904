//! Describes DNS messages: the question, and the first answers.

use super::put_number;
use crate::dns::{Message, NAME_BYTES_MAX, Record, Section};
use record::text::{put_u64, put_v4, put_v6};

/// Maximum number of questions, and of answers, that are written out; the others are counted.
const ENTRIES_MAX: usize = 4;
/// Names of record types (RFC 1035, 3596, 2782, 9460).
const TYPES: [(u16, &[u8]); 11] = [
    (1, b"A"),
    (2, b"NS"),
    (5, b"CNAME"),
    (6, b"SOA"),
    (12, b"PTR"),
    (15, b"MX"),
    (16, b"TXT"),
    (28, b"AAAA"),
    (33, b"SRV"),
    (65, b"HTTPS"),
    (255, b"ANY"),
];
const CODES: [&[u8]; 6] = [b"", b"FORMERR", b"SERVFAIL", b"NXDOMAIN", b"NOTIMP", b"REFUSED"];

/// Appends `dns query 4711 A example.org`, `dns answer 4711 A example.org: 192.0.2.1`. Returns false, and appends
/// nothing, if it is not a DNS message.
pub(super) fn put(data: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(message) = Message::parse(data) else { return false };
    if !out.is_empty() {
        out.push(b' ');
    }
    out.extend_from_slice(if message.is_response() { b"dns answer " } else { b"dns query " });
    put_u64(out, message.id().into());
    for question in message.questions().take(ENTRIES_MAX).flatten() {
        put_type(question.rtype, out);
        out.push(b' ');
        question.name.put_text(out);
    }
    if message.is_response() {
        put_answers(&message, out);
    }
    true
}

fn put_answers(message: &Message<'_>, out: &mut Vec<u8>) {
    out.push(b':');
    match (message.rcode(), CODES.get(usize::from(message.rcode()))) {
        (0, _) => {}
        (_, Some(word)) => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        (code, None) => put_number(out, b"rcode", code.into()),
    }
    let mut answers = 0u64;
    for record in message.records().flatten().take_while(|record| record.section == Section::Answer) {
        answers += 1;
        if answers <= ENTRIES_MAX as u64 {
            put_record(&record, out);
        }
    }
    if answers > ENTRIES_MAX as u64 {
        out.extend_from_slice(b" and ");
        put_u64(out, answers - ENTRIES_MAX as u64);
        out.extend_from_slice(b" more");
    }
    if message.is_truncated() {
        out.extend_from_slice(b" truncated");
    }
}

fn put_record(record: &Record<'_>, out: &mut Vec<u8>) {
    match (record.rtype, record.data) {
        (1, data) if data.len() == 4 => {
            out.push(b' ');
            put_v4(out, data.try_into().unwrap_or_default());
        }
        (28, data) if data.len() == 16 => {
            out.push(b' ');
            put_v6(out, data.try_into().unwrap_or_default());
        }
        (5 | 12 | 2, _) => {
            put_type(record.rtype, out);
            if let Ok(name) = record.target() {
                out.push(b' ');
                name.put_text(out);
            }
        }
        (other, _) => put_type(other, out),
    }
}

fn put_type(number: u16, out: &mut Vec<u8>) {
    match TYPES.iter().find(|(known, _)| *known == number) {
        Some((_, word)) => {
            out.push(b' ');
            out.extend_from_slice(word);
        }
        None => put_number(out, b"type", number.into()),
    }
}

// Each of four questions and four answers has a name.
const _: () = assert!(2 * ENTRIES_MAX * (4 * NAME_BYTES_MAX + 16) < super::INFO_BYTES_MAX * 5 / 4);
