//! DNS and multicast DNS: `4711+ A? example.org. (29)`, `4711 1/0/0 A 192.0.2.1 (45)`.
//!
//! `-v` adds the names of answers, `-vv` the questions of responses and the other sections, `-vvv` times to live. Like
//! the tool, netwren reads data of records by their type and not by their length.

mod edns;
mod name;
mod record;
mod words;

pub(super) use self::name::put_name_from;
use self::name::{put_name, skip_name};
use self::record::put_record;
use self::words::{OPERATIONS, RESPONSES, put_class, put_type};
use super::bytes::{Cut, Printed, be16, behind, part, u8_at};
use super::line::Line;
use super::pieces::{Hex, put, put_last};

const HEADER: usize = 12;
/// Bound: bytes of text for each byte of a DNS message, whose names may point to one another. Beyond: the line ends
/// with `[|domain]`. By: any sender of packets.
const TEXT_A_BYTE: usize = 64;
/// Bits of the flags (RFC 1035 §4.1.1, 2535).
const RESPONSE: u16 = 0x8000;
const AUTHORITATIVE: u16 = 0x0400;
const TRUNCATED: u16 = 0x0200;
const RECURSION_DESIRED: u16 = 0x0100;
const RECURSION_AVAILABLE: u16 = 0x0080;
const AUTHENTIC: u16 = 0x0020;
const CHECKING_DISABLED: u16 = 0x0010;
/// Bits that are not set in questions.
const ODD_IN_QUESTION: u16 = 0x06cf;
const INVERSE_QUERY: u16 = 1;

/// A message, and the limit of its text.
#[derive(Clone, Copy)]
struct DnsMessage<'a> {
    bytes: &'a [u8],
    is_multicast: bool,
    /// The length of the line after which no further record is begun.
    text_end: usize,
}

impl DnsMessage<'_> {
    fn check_text(&self, line: &Line<'_>) -> Printed {
        if line.out.len() > self.text_end { Err(Cut) } else { Ok(()) }
    }
}

/// Appends a message in a datagram.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    print_datagram(line, bytes, length, false)
}

/// Appends a message of multicast DNS (RFC 6762).
pub(super) fn print_multicast(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    print_datagram(line, bytes, length, true)
}

/// Appends a message in a datagram of `length` bytes, of which `bytes` were captured.
fn print_datagram(line: &mut Line<'_>, bytes: &[u8], length: usize, is_multicast: bool) -> Printed {
    line.protocol = "domain";
    line.or_cut(|line| put_message(line, DnsMessage { bytes, is_multicast, text_end: 0 }, length));
    Ok(())
}

/// Appends a message in a segment of TCP, where the message follows its length. Like the tool, this prints only the
/// length if the segment is not exactly one message.
pub(super) fn print_over_tcp(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "domain";
    if length < 2 {
        return put_last!(line, " [DNS over TCP: length ", length, " < 2] (invalid)");
    }
    let prefix = usize::from(be16(bytes, 0)?);
    put!(line, " ");
    if prefix != length - 2 {
        return put_last!(line, "[prefix length(", prefix, ") != length(", length - 2, ")] (invalid)");
    }
    print_datagram(line, behind(bytes, 2), prefix, false)
}

fn put_message(line: &mut Line<'_>, mut message: DnsMessage<'_>, length: usize) -> Printed {
    message.text_end = line.out.len() + TEXT_A_BYTE * message.bytes.len();
    line.protocol = "domain";
    if length < HEADER {
        return put_last!(line, "domain [length ", length, " < ", HEADER, "] (invalid)");
    }
    part(message.bytes, 0, HEADER)?;
    let field = |n: usize| be16(message.bytes, 2 * n);
    let (id, flags) = (field(0)?, field(1)?);
    let counts = [field(2)?, field(3)?, field(4)?, field(5)?];
    put!(line, id);
    match flags & RESPONSE {
        0 => put_query(line, message, flags, counts)?,
        _ => put_response(line, message, flags, counts)?,
    }
    put_last!(line, " (", length, ")")
}

fn put_response(line: &mut Line<'_>, message: DnsMessage<'_>, flags: u16, counts: [u16; 4]) -> Printed {
    put!(line, OPERATIONS[operation(flags)], RESPONSES[usize::from(flags & 15)]);
    let signs =
        [(AUTHORITATIVE, true, "*"), (RECURSION_AVAILABLE, false, "-"), (TRUNCATED, true, "|"), (AUTHENTIC, true, "$")];
    for (bit, set, sign) in signs {
        if (flags & bit != 0) == set {
            put!(line, sign);
        }
    }
    let [questions, answers, authorities, additional] = counts;
    if questions != 1 {
        put!(line, " [", questions, "q]");
    }
    let mut at = HEADER;
    for n in 0..questions {
        put!(line, if n == 0 { "" } else { "," });
        at = if line.verbose() > 1 {
            put!(line, " q:");
            put_question(line, message, at)?
        } else {
            skip_name(message.bytes, at)? + 4
        };
    }
    put!(line, " ", answers, "/", authorities, "/", additional);
    at = put_records(line, message, at, answers)?;
    put_other_sections(line, message, at, [authorities, additional])
}

fn put_query(line: &mut Line<'_>, message: DnsMessage<'_>, flags: u16, counts: [u16; 4]) -> Printed {
    put!(line, OPERATIONS[operation(flags)]);
    for (bit, sign) in [(RECURSION_DESIRED, "+"), (CHECKING_DISABLED, "%")] {
        if flags & bit != 0 {
            put!(line, sign);
        }
    }
    if flags & ODD_IN_QUESTION != 0 {
        put!(line, " [b2&3=0x", Hex(flags), "]");
    }
    let [questions, answers, authorities, additional] = counts;
    let is_inverse = operation(flags) == usize::from(INVERSE_QUERY);
    let first = if is_inverse {
        [(questions != 0, questions, "q]"), (answers != 1, answers, "a]")]
    } else {
        [(answers != 0, answers, "a]"), (questions != 1, questions, "q]")]
    };
    let rest = [(authorities != 0, authorities, "n]"), (additional != 0, additional, "au]")];
    for (is_unusual, count, word) in first.into_iter().chain(rest) {
        if is_unusual {
            put!(line, " [", count, word);
        }
    }
    let mut at = HEADER;
    for n in 0..questions {
        if n > 0 && at >= message.bytes.len() {
            return Err(Cut);
        }
        at = put_question(line, message, at)?;
    }
    if line.verbose() < 2 {
        return Ok(());
    }
    at = put_records(line, message, at, answers)?;
    put_other_sections(line, message, at, [authorities, additional])
}

fn operation(flags: u16) -> usize {
    usize::from(flags >> 11 & 15)
}

/// Appends ` A? example.org.`; returns the offset of the next question.
fn put_question(line: &mut Line<'_>, message: DnsMessage<'_>, at: usize) -> Printed<usize> {
    message.check_text(line)?;
    let bytes = message.bytes;
    let end = skip_name(bytes, at)?;
    let (kind, class) = (be16(bytes, end)?, be16(bytes, end + 2)?);
    put!(line, " ");
    put_type(line, kind);
    put_class(line, if message.is_multicast { class & 0x7fff } else { class });
    if message.is_multicast {
        put!(line, if class & 0x8000 != 0 { " (QU)" } else { " (QM)" });
    }
    put!(line, "? ");
    Ok(put_name(line, bytes, at)? + 4)
}

fn put_other_sections(line: &mut Line<'_>, message: DnsMessage<'_>, mut at: usize, counts: [u16; 2]) -> Printed {
    if line.verbose() < 2 {
        return Ok(());
    }
    for (count, word) in counts.into_iter().zip([" ns:", " ar:"]) {
        if count > 0 {
            u8_at(message.bytes, at)?;
            put!(line, word);
            at = put_records(line, message, at, count)?;
        }
    }
    Ok(())
}

/// Appends `count` records; returns the offset of the next section.
fn put_records(line: &mut Line<'_>, message: DnsMessage<'_>, mut at: usize, count: u16) -> Printed<usize> {
    for n in 0..count {
        if n > 0 {
            if at >= message.bytes.len() {
                return Err(Cut);
            }
            put!(line, ",");
        }
        message.check_text(line)?;
        at = put_record(line, message, at)?;
    }
    Ok(at)
}
