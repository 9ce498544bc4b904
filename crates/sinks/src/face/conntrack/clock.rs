//! Times in lines: how long ago, and local dates as ctime(3) writes them.

use super::line_writer::LineWriter;
use record::text::Line;

/// A local date and time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// Year, e.g. 2026.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// 0 = Sunday.
    pub weekday: u8,
}

/// Who knows what time it is.
pub trait Clock {
    /// Seconds since 1970. Asked only for entries that have a time.
    fn now_s(&self) -> i64;
    /// A moment (seconds since 1970) in local time; `None` if that cannot be told.
    fn local(&self, seconds: i64) -> Option<Civil>;
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds of a kernel time in ns.
pub(super) fn seconds(ns: u64) -> i64 {
    i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX)
}

/// How many seconds an entry lives or has lived, as text has it. The kernel's and our clock may differ: what has not
/// begun is 0 old, but the old tool says 2^64 - 1.
pub(super) fn age_s(start_s: i64, end_s: i64, bug_compatible: bool) -> u64 {
    let age = end_s.wrapping_sub(start_s);
    if bug_compatible { age as u64 } else { u64::try_from(age).unwrap_or(0) }
}

/// Appends a moment as ctime(3) writes it, without the end of the line: `Sat Nov 21 12:42:50 2026`.
pub fn put_moment(out: &mut Vec<u8>, at: Civil) {
    let mut line = Line::new();
    put_civil(&mut LineWriter::new(&mut line, out, false), at);
    line.drain(out);
}

/// `Sat Nov 21 12:42:50 2026`
pub(super) fn put_ctime(line: &mut LineWriter<'_>, clock: &dyn Clock, seconds: i64) {
    match clock.local(seconds) {
        Some(at) => put_civil(line, at),
        None => line.word("?"),
    }
}

fn put_civil(line: &mut LineWriter<'_>, at: Civil) {
    let name = |names: &'static [&'static str], index: u8| names.get(usize::from(index)).copied().unwrap_or("???");
    line.word(name(&WEEKDAYS, at.weekday));
    line.byte(b' ');
    line.word(name(&MONTHS, at.month.wrapping_sub(1)));
    line.byte(b' ');
    line.padded(b' ', 2, at.day);
    for (between, number) in [(b' ', at.hour), (b':', at.minute), (b':', at.second)] {
        line.byte(between);
        line.padded(b'0', 2, number);
    }
    line.byte(b' ');
    line.number(u64::try_from(at.year).unwrap_or(0));
}

/// The parts of a moment as elements.
pub(super) fn put_when(line: &mut LineWriter<'_>, clock: &dyn Clock) {
    let Some(at) = clock.local(clock.now_s()) else { return };
    line.word("<when><hour>");
    line.number(at.hour.into());
    line.word("</hour><min>");
    line.padded(b'0', 2, at.minute);
    line.word("</min><sec>");
    line.padded(b'0', 2, at.second);
    line.word("</sec><wday>");
    line.number(u64::from(at.weekday) + 1);
    line.word("</wday><day>");
    line.number(at.day.into());
    line.word("</day><month>");
    line.number(at.month.into());
    line.word("</month><year>");
    line.number(u64::try_from(at.year).unwrap_or(0));
    line.word("</year></when>");
}
