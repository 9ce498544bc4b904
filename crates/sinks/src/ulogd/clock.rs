//! Local time in the tool's layouts, formatted once per second.

use crate::LocalTime;

/// Returns the local time of seconds since 1970; `None` if it is unknown. Called once per second.
pub type Zone = fn(i64) -> Option<LocalTime>;

const NS_PER_SECOND: u64 = 1_000_000_000;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// The text of the last requested second.
pub(super) struct SecondText {
    zone: Zone,
    write: fn(&mut Vec<u8>, &LocalTime),
    /// `u64::MAX` before the first.
    second: u64,
    text: Vec<u8>,
}

impl SecondText {
    /// Uses the text that `write` makes of a second.
    pub(super) fn new(zone: Zone, write: fn(&mut Vec<u8>, &LocalTime)) -> SecondText {
        SecondText { zone, write, second: u64::MAX, text: Vec::with_capacity(160) }
    }

    /// Sets the time to a point in ns since 1970; returns true if the text has changed.
    #[inline]
    pub(super) fn advance(&mut self, time_ns: u64) -> bool {
        let second = time_ns / NS_PER_SECOND;
        if second == self.second {
            return false;
        }
        self.begin(second);
        true
    }

    /// Returns the text of the second that was passed to [`SecondText::advance`].
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns that second.
    #[inline]
    pub(super) fn second(&self) -> u64 {
        self.second
    }

    #[cold]
    fn begin(&mut self, second: u64) {
        self.second = second;
        self.text.clear();
        let local = i64::try_from(second).ok().and_then(self.zone);
        (self.write)(&mut self.text, &local.unwrap_or(EPOCH));
    }
}

/// Used if the C library cannot convert to local time.
const EPOCH: LocalTime =
    LocalTime { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0, weekday: 4, utc_offset_s: 0 };

/// Returns the microseconds in the second of a point in time.
#[inline]
pub(super) fn microseconds(time_ns: u64) -> u64 {
    time_ns % NS_PER_SECOND / 1000
}

/// Appends `Nov 21 12:43:54`, the form of ctime(3) without weekday and year.
pub(super) fn put_ctime(out: &mut Vec<u8>, at: &LocalTime) {
    let month = usize::from(at.month).checked_sub(1).and_then(|month| MONTHS.get(month));
    out.extend_from_slice(month.copied().unwrap_or(b"???"));
    out.push(b' ');
    out.push(if at.day < 10 { b' ' } else { b'0' + at.day / 10 % 10 });
    out.push(b'0' + at.day % 10);
    out.push(b' ');
    put_clock(out, at);
}

/// Appends `2026-11-21T12:43:54`.
pub(super) fn put_iso(out: &mut Vec<u8>, at: &LocalTime) {
    put_date(out, at, b'-');
    out.push(b'T');
    put_clock(out, at);
}

/// Appends `2026/11/21-12:43:54`.
pub(super) fn put_slashed(out: &mut Vec<u8>, at: &LocalTime) {
    put_date(out, at, b'/');
    out.push(b'-');
    put_clock(out, at);
}

/// Appends `+0100`.
pub(super) fn put_offset(out: &mut Vec<u8>, at: &LocalTime) {
    let minutes = at.utc_offset_s.unsigned_abs() / 60;
    out.push(if at.utc_offset_s < 0 { b'-' } else { b'+' });
    put_two(out, minutes / 60);
    put_two(out, minutes % 60);
}

fn put_date(out: &mut Vec<u8>, at: &LocalTime, between: u8) {
    let year = at.year.unsigned_abs();
    put_two(out, year / 100);
    put_two(out, year % 100);
    for n in [at.month, at.day] {
        out.push(between);
        put_two(out, n.into());
    }
}

fn put_clock(out: &mut Vec<u8>, at: &LocalTime) {
    put_two(out, at.hour.into());
    for n in [at.minute, at.second] {
        out.push(b':');
        put_two(out, n.into());
    }
}

fn put_two(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&[b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8]);
}
