//! XML: one element per record.

use super::UlogdStyle;
use super::clock::SecondText;
use super::logemu::put_outside;
use crate::LocalTime;
use record::Lookups;
use record::rows::LogRecord;
use record::text::{Line, put_u64, u64_len};

/// The text before the first element of a file.
pub const XML_HEAD: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<packet>\n";
/// The end of a file.
pub const XML_END: &[u8] = b"</packet>\n";

/// Writes elements like `<log><when>…</when><prefix>fwd</prefix><hook>2</hook>…<payload>4500…</payload></log>`.
pub struct Xml {
    time: SecondText,
    line: Line,
}

impl Xml {
    /// A writer of elements, which [`XML_HEAD`] and [`XML_END`] enclose.
    pub fn new(options: UlogdStyle) -> Xml {
        Xml { time: SecondText::new(options.zone, put_when), line: Line::new() }
    }

    /// Appends the record's element and a newline.
    pub fn write(&mut self, row: &LogRecord<'_>, _: &Lookups<'_>, out: &mut Vec<u8>) {
        self.time.advance(row.time_ns);
        out.extend_from_slice(self.time.text());
        let line = &mut self.line;
        put_escaped(line, out, row.prefix);
        line.put_short(b"</prefix><hook>");
        line.decimal(row.hook.into());
        line.put_short(b"</hook><hw><proto>");
        line.hex4(row.ether_type);
        line.put_short(b"</proto>");
        if !row.hw_addr.is_empty() {
            line.put_short(b"<src>");
            put_hex(line, out, row.hw_addr);
            line.put_short(b"</src>");
        }
        line.put_short(b"</hw>");
        line.make_room(out);
        put_number(line, b"mark", row.mark.filter(|mark| *mark != 0));
        put_number(line, b"indev", row.in_ifindex);
        put_number(line, b"outdev", row.out_ifindex);
        put_number(line, b"physindev", row.physin_ifindex);
        put_number(line, b"physoutdev", row.physout_ifindex);
        line.make_room(out);
        line.put_short(b"<payload>");
        put_hex(line, out, row.payload);
        line.put_short(b"</payload></log>\n");
        line.drain(out);
    }
}

/// Appends the beginning that all elements of a second share. Sunday is 1.
fn put_when(out: &mut Vec<u8>, at: &LocalTime) {
    let mut number = |before: &str, n: u32, width: usize| {
        out.extend_from_slice(before.as_bytes());
        out.extend(std::iter::repeat_n(b'0', width.saturating_sub(u64_len(n.into()))));
        put_u64(out, n.into());
    };
    number("<log><when><hour>", at.hour.into(), 1);
    number("</hour><min>", at.minute.into(), 2);
    number("</min><sec>", at.second.into(), 2);
    number("</sec><wday>", u32::from(at.weekday) + 1, 1);
    number("</wday><day>", at.day.into(), 1);
    number("</day><month>", at.month.into(), 1);
    number("</month><year>", at.year.unsigned_abs(), 1);
    out.extend_from_slice(b"</year></when><prefix>");
}

fn put_number(line: &mut Line, name: &[u8], n: Option<u32>) {
    let Some(n) = n else { return };
    line.byte(b'<');
    line.put_short(name);
    line.byte(b'>');
    line.decimal(n.into());
    line.put_short(b"</");
    line.put_short(name);
    line.byte(b'>');
}

/// Appends pairs of hexadecimal digits.
fn put_hex(line: &mut Line, out: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(32) {
        line.make_room(out);
        let mut pairs = part.chunks_exact(2);
        for pair in &mut pairs {
            if let [high, low] = pair {
                line.hex4(u16::from_be_bytes([*high, *low]));
            }
        }
        pairs.remainder().iter().for_each(|last| line.hex_pairs(&[*last]));
    }
}

/// Appends text from outside between tags.
fn put_escaped(line: &mut Line, out: &mut Vec<u8>, text: &[u8]) {
    for part in text.split_inclusive(|byte| b"<>&".contains(byte)) {
        let (plain, mark): (&[u8], &[u8]) = match part.split_last() {
            Some((b'<', plain)) => (plain, b"&lt;"),
            Some((b'>', plain)) => (plain, b"&gt;"),
            Some((b'&', plain)) => (plain, b"&amp;"),
            _ => (part, b""),
        };
        put_outside(line, out, plain);
        line.put_short(mark);
    }
}
