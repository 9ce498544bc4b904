//! RFC 5424: structured messages.

use super::pairs::{Pairs, Style};
use super::words::{name, put_line_of_text, settle_text};
use super::{APP_NAME, Message, Origin};
use crate::native::put_piece;
use record::text::{Line, TimestampWriter};
use record::{Column, Columns, RowCells};

/// Enterprise number in the names of our elements: the one that RFC 5612 reserves for documentation, because netwren
/// has no number.
const ENTERPRISE: &[u8] = b"@32473";
/// Longest name of an element, and longest message type.
const WORD_MAX: usize = 32;
const HOSTNAME_MAX: usize = 255;
/// Bytes of a time with microseconds, the highest resolution that RFC 5424 allows, without the `Z`.
const MICROSECONDS: usize = 26;
/// Number of digits for the microseconds.
const DIGITS: usize = 6;
/// Message numbers go from 1 to this, and start again (RFC 5424, 7.3.1).
pub const SEQUENCE_ID_MAX: u64 = 0x7fff_ffff;

/// Writes rows as messages of RFC 5424:
///
/// `<29>1 2026-11-21T12:43:54.699260Z host netwren 7 input [nflog@32473 prefix="in: " in="eth0"][meta sequenceId="1"]
/// text`
///
/// The element is named after the table and has every cell that is set, except the time, which is in the header; in
/// log records its interfaces are called `in` and `out`.
pub struct Rfc5424 {
    /// `<29>1 `
    before_time: Vec<u8>,
    /// `Z host netwren 7 `
    behind_time: Vec<u8>,
    /// ` [nflog@32473`
    element: Vec<u8>,
    params: Pairs,
    text: Pairs,
    times: TimestampWriter,
    line: Line,
    head: Head,
}

/// The head that all messages of one type and one second share, up to the name of the element.
#[derive(Default)]
struct Head {
    second: Option<u64>,
    msgid: &'static str,
    text: Vec<u8>,
    /// Offset of the microseconds in it.
    digits_at: usize,
}

impl Rfc5424 {
    /// A writer of rows of the table `table` with these columns.
    pub fn new(origin: &Origin<'_>, table: &str, columns: &Columns) -> Rfc5424 {
        let is_log = table == "log";
        let id = name(if is_log { "nflog" } else { table }, WORD_MAX - ENTERPRISE.len());
        let in_header = |column: &Column| &*column.name == "time";
        let param = |column| param_name(column, is_log).filter(|_| !in_header(column));
        let key = |column| param_name(column, false).filter(|_| !in_header(column));
        Rfc5424 {
            before_time: format!("<{}>1 ", origin.priority.number()).into_bytes(),
            behind_time: [
                b"Z ",
                &name(origin.hostname, HOSTNAME_MAX)[..],
                format!(" {APP_NAME} {} ", origin.pid).as_bytes(),
            ]
            .concat(),
            element: [b" [", &id[..], ENTERPRISE].concat(),
            params: Pairs::new(Style::Params, columns, param),
            text: Pairs::new(Style::Text, columns, key),
            times: TimestampWriter::new(),
            line: Line::new(),
            head: Head::default(),
        }
    }

    /// Appends one message to `out`, without an end marker.
    #[inline]
    pub fn put(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        self.put_cells(message, &mut &*message.cells, out);
    }

    /// Appends one message with these cells in place of the message's.
    #[inline]
    pub fn put_cells(&mut self, message: &Message<'_>, cells: &mut dyn RowCells, out: &mut Vec<u8>) {
        self.put_head(message, cells, out);
        let line = &mut self.line;
        match message.text {
            Some([] | [b'\n']) => line.drain(out),
            Some(text) => {
                line.byte(b' ');
                line.drain(out);
                put_line_of_text(out, text);
            }
            None => {
                line.byte(b' ');
                self.text.put(line, out, cells);
                line.drain(out);
            }
        }
    }

    /// Appends one message whose text for people is appended by `text`, so that it is not copied.
    #[inline]
    pub fn put_with(
        &mut self,
        message: &Message<'_>,
        cells: &mut dyn RowCells,
        out: &mut Vec<u8>,
        text: impl FnOnce(&mut dyn RowCells, &mut Vec<u8>),
    ) {
        let begin = self.put_with_line(message, cells, out, text);
        settle_text(out, begin);
    }

    /// Appends one message with a text that is known to be one line of UTF-8 without control and deceptive characters,
    /// and is therefore not checked. Returns the text's offset in `out`.
    #[inline]
    pub fn put_with_line(
        &mut self,
        message: &Message<'_>,
        cells: &mut dyn RowCells,
        out: &mut Vec<u8>,
        text: impl FnOnce(&mut dyn RowCells, &mut Vec<u8>),
    ) -> usize {
        self.put_head(message, cells, out);
        self.line.byte(b' ');
        self.line.drain(out);
        let begin = out.len();
        text(cells, out);
        begin
    }

    /// Appends everything before the blank and the text.
    #[inline]
    fn put_head(&mut self, message: &Message<'_>, cells: &mut dyn RowCells, out: &mut Vec<u8>) {
        let (second, us) = (message.time_ns / 1_000_000_000, (message.time_ns / 1000 % 1_000_000) as u32);
        if self.head.second != Some(second) || !std::ptr::eq(self.head.msgid, message.msgid) {
            self.make_head(second, message);
        }
        let digits_at = out.len() + self.head.digits_at;
        out.extend_from_slice(&self.head.text);
        if let Some(place) = out.get_mut(digits_at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = six_digits(us);
        }
        let line = &mut self.line;
        self.params.put(line, out, cells);
        put_piece(line, out, b"][meta sequenceId=\"");
        line.decimal(message.sequence_id.wrapping_sub(1) % SEQUENCE_ID_MAX + 1);
        line.put_short(b"\"]");
    }

    #[inline(never)]
    fn make_head(&mut self, second: u64, message: &Message<'_>) {
        let msgid = message.msgid;
        let fits = (1..=WORD_MAX).contains(&msgid.len()) && msgid.bytes().all(|byte| byte.is_ascii_graphic());
        let time = self.times.text(message.time_ns);
        let parts: [&[u8]; 5] = [
            &self.before_time,
            time.get(..MICROSECONDS).unwrap_or_default(),
            &self.behind_time,
            if fits { msgid.as_bytes() } else { b"-" },
            &self.element,
        ];
        let digits_at = self.before_time.len() + MICROSECONDS - DIGITS;
        self.head = Head { second: Some(second), msgid, text: parts.concat(), digits_at };
    }
}

/// Writes six digits with leading zeros.
#[inline]
fn six_digits(n: u32) -> [u8; 6] {
    let pair = |n: u32| (b'0' + (n / 10) as u8, b'0' + (n % 10) as u8);
    let ((a, b), (c, d), (e, f)) = (pair(n / 10_000 % 100), pair(n / 100 % 100), pair(n % 100));
    [a, b, c, d, e, f]
}

/// Returns the name of a column in the element.
fn param_name(column: &Column, is_log: bool) -> Option<&str> {
    match &*column.name {
        "iif" if is_log => Some("in"),
        "oif" if is_log => Some("out"),
        name => Some(name),
    }
}
