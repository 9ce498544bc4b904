//! Times in lines: ages, and local dates in the form of ctime(3).

use super::line_writer::{Element, LineWriter};
use crate::pieces::{LineBuffer, Padded, Right, list, put};
use sinks::{Clock, LocalTime};

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Converts a kernel time in ns to seconds.
pub(super) fn seconds(ns: u64) -> i64 {
    i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Returns how many seconds an entry has lived. The kernel's clock and ours may differ: an entry that seems to begin
/// in the future is 0 seconds old; the old tool prints 2^64 - 1.
pub(super) fn age_s(start_s: i64, end_s: i64, bug_compatible: bool) -> u64 {
    let age = end_s.wrapping_sub(start_s);
    if bug_compatible { age as u64 } else { u64::try_from(age).unwrap_or(0) }
}

/// Appends a time in the form of ctime(3), without the newline: `Sat Nov 21 12:42:50 2026`.
pub fn put_moment(out: &mut Vec<u8>, at: LocalTime) {
    put_civil(out, at);
}

/// Appends `Sat Nov 21 12:42:50 2026`.
pub(super) fn put_ctime(line: &mut LineWriter<'_>, clock: &dyn Clock, seconds: i64) {
    match clock.local(seconds) {
        Some(at) => put_civil(line, at),
        None => put!(line, "?"),
    }
}

fn put_civil(line: &mut impl LineBuffer, at: LocalTime) {
    let name = |names: &'static [&'static str], index: u8| names.get(usize::from(index)).copied().unwrap_or("???");
    put!(
        line,
        name(&WEEKDAYS, at.weekday),
        " ",
        name(&MONTHS, at.month.wrapping_sub(1)),
        " ",
        Right(u64::from(at.day), 2)
    );
    put!(line, " ", Padded(at.hour, 2), ":", Padded(at.minute, 2), ":", Padded(at.second, 2));
    put!(line, " ", u64::try_from(at.year).unwrap_or(0));
}

/// Appends the parts of the present time as elements.
pub(super) fn put_when(line: &mut LineWriter<'_>, clock: &dyn Clock) {
    let Some(at) = clock.local(clock.now_s()) else { return };
    let (minute, second) = (Element("min", Padded(at.minute, 2)), Element("sec", Padded(at.second, 2)));
    let day = list!(Element("wday", u64::from(at.weekday) + 1), Element("day", at.day), Element("month", at.month));
    let year = Element("year", u64::try_from(at.year).unwrap_or(0));
    put!(line, Element("when", list!(Element("hour", at.hour), minute, second, day, year)));
}
