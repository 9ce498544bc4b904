//! RFC 3164: messages in the format of BSD syslog, for receivers that support only that.

use super::pairs::{Pairs, Style};
use super::words::{name, put_line_of_text};
use super::{APP_NAME, Message, Origin};
use crate::Clock;
use crate::native::put_piece;
use record::Columns;
use record::RowCells;
use record::text::{Line, put_u64};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const HOSTNAME_MAX: usize = 255;

/// Writes rows as messages of RFC 3164: `<29>Nov 21 12:43:54 host netwren[7]: text`.
///
/// The time is local and has no year. A message may be longer than the RFC's 1,024 bytes: no receiver in use today
/// stops there.
pub struct Rfc3164<C> {
    /// `<29>`
    before_time: Vec<u8>,
    /// ` host netwren[7]: `
    behind_time: Vec<u8>,
    text: Pairs,
    clock: C,
    /// The second of `time`; `None` before the first message.
    second: Option<u64>,
    /// `Nov 21 12:43:54`
    time: Vec<u8>,
    line: Line,
}

impl<C: Clock> Rfc3164<C> {
    /// A writer of rows with these columns. An empty host name is omitted, like on the socket of the local syslog.
    pub fn new(origin: &Origin<'_>, columns: &Columns, clock: C) -> Rfc3164<C> {
        let mut behind_time = b" ".to_vec();
        if !origin.hostname.is_empty() {
            behind_time.extend(name(origin.hostname, HOSTNAME_MAX));
            behind_time.push(b' ');
        }
        behind_time.extend_from_slice(format!("{APP_NAME}[{}]: ", origin.pid).as_bytes());
        Rfc3164 {
            before_time: format!("<{}>", origin.priority.number()).into_bytes(),
            behind_time,
            text: Pairs::new(Style::Text, columns, |column| Some(&*column.name).filter(|name| *name != "time")),
            clock,
            second: None,
            time: Vec::new(),
            line: Line::new(),
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
        let second = message.time_ns / 1_000_000_000;
        if self.second != Some(second) {
            self.begin_second(second);
        }
        let line = &mut self.line;
        put_piece(line, out, &self.before_time);
        put_piece(line, out, &self.time);
        put_piece(line, out, &self.behind_time);
        if message.text.is_none() {
            self.text.put(line, out, cells);
        }
        line.drain(out);
        put_line_of_text(out, message.text.unwrap_or_default());
    }

    #[cold]
    fn begin_second(&mut self, second: u64) {
        self.second = Some(second);
        self.time.clear();
        let local = i64::try_from(second).ok().and_then(|second| self.clock.local(second));
        let month = local.and_then(|local| MONTHS.get(usize::from(local.month).wrapping_sub(1)));
        let (Some(local), Some(month)) = (local, month) else {
            return self.time.extend_from_slice(b"Jan  1 00:00:00");
        };
        self.time.extend_from_slice(month.as_bytes());
        for (before, pad, n) in
            [(b' ', b' ', local.day), (b' ', b'0', local.hour), (b':', b'0', local.minute), (b':', b'0', local.second)]
        {
            self.time.push(before);
            if n < 10 {
                self.time.push(pad);
            }
            put_u64(&mut self.time, n.into());
        }
    }
}
