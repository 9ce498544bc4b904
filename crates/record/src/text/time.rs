//! Points in time as text: RFC 3339 in UTC.

use super::decimal::{ASCII_ZEROS, eight_digits};
use super::{put_u64, u64_len};
use crate::FarTime;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// Bytes of `2026-11-21T14:45:52.123456789Z`.
const LEN: usize = 30;
/// Bytes before the digits of the fraction.
const WHOLE: usize = 20;

/// Writes points in time as RFC 3339 in UTC with nanoseconds. Caches the text of the last second: a later point in the
/// same second costs only its nine digits.
#[derive(Clone, Debug)]
pub struct TimestampWriter {
    /// The second that `text` shows; `u64::MAX` before the first one.
    second: u64,
    text: [u8; LEN],
}

impl Default for TimestampWriter {
    fn default() -> TimestampWriter {
        TimestampWriter::new()
    }
}

impl TimestampWriter {
    /// A writer without a cached second.
    pub fn new() -> TimestampWriter {
        TimestampWriter { second: u64::MAX, text: *b"1970-01-01T00:00:00.000000000Z" }
    }

    /// The text of `ns` nanoseconds since 1970: `2026-11-21T14:45:52.123456789Z`. 64 bits end in 2554, so every year
    /// has four digits.
    #[inline]
    pub fn text(&mut self, ns: u64) -> &[u8; LEN] {
        let (second, nanos) = (ns / NS_PER_SECOND, ns % NS_PER_SECOND);
        if second != self.second {
            self.begin_second(second);
        }
        let digits = (eight_digits(nanos / 10) | ASCII_ZEROS).to_le_bytes();
        self.text[WHOLE..WHOLE + 8].copy_from_slice(&digits);
        self.text[WHOLE + 8] = b'0' + (nanos % 10) as u8;
        &self.text
    }

    #[cold]
    fn begin_second(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = civil((second / 86_400) as i64);
        let clock = second % 86_400;
        let mut put = |at: usize, n: u64| {
            self.text[at] = b'0' + (n / 10 % 10) as u8;
            self.text[at + 1] = b'0' + (n % 10) as u8;
        };
        put(0, year.unsigned_abs() / 100);
        put(2, year.unsigned_abs() % 100);
        let parts = [(5, month), (8, day), (11, clock / 3600), (14, clock / 60 % 60), (17, clock % 60)];
        parts.into_iter().for_each(|(at, n)| put(at, n));
    }
}

/// Appends `ns` nanoseconds since 1970 as [`TimestampWriter`] writes them.
pub fn put_timestamp(out: &mut Vec<u8>, ns: u64) {
    out.extend_from_slice(TimestampWriter::new().text(ns));
}

/// Appends any number of nanoseconds since 1970 as [`put_timestamp`] or [`put_far_time`] writes it.
pub fn put_time(out: &mut Vec<u8>, ns: i128) {
    match FarTime::split(ns) {
        Ok(ns) => put_timestamp(out, ns),
        Err(time) => put_far_time(out, time),
    }
}

/// Appends a far time as [`put_timestamp`] writes others. A year of more than four digits has a sign, as ISO 8601 wants
/// it: `+12026-11-21T14:45:52.000000000Z`.
pub fn put_far_time(out: &mut Vec<u8>, time: FarTime) {
    put_seconds(out, time.second());
    out.pop();
    out.push(b'.');
    put_padded(out, time.nanos().into(), 9);
    out.push(b'Z');
}

/// Appends seconds since 1970 as RFC 3339 in UTC: `2026-11-21T15:04:05Z`.
pub fn put_seconds(out: &mut Vec<u8>, time_s: i64) {
    let (year, month, day) = civil(time_s.div_euclid(86_400));
    let second = time_s.rem_euclid(86_400) as u64;
    match year {
        ..0 => out.push(b'-'),
        0..=9999 => {}
        _ => out.push(b'+'),
    }
    put_padded(out, year.unsigned_abs(), 4);
    for (before, n) in
        [(b'-', month), (b'-', day), (b'T', second / 3600), (b':', second / 60 % 60), (b':', second % 60)]
    {
        out.push(before);
        put_padded(out, n, 2);
    }
    out.push(b'Z');
}

fn put_padded(out: &mut Vec<u8>, n: u64, width: usize) {
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(u64_len(n))));
    put_u64(out, n);
}

const DAYS_IN_400_YEARS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const FROM_YEAR_0_TO_1970: i64 = 719_468;

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// The computation uses years that begin in March, so the leap day is the last day of the year. The first day of each
/// month then follows from 153 days per five months.
fn civil(day: i64) -> (i64, u64, u64) {
    let day = day + FROM_YEAR_0_TO_1970;
    let (era, of_era) = (day.div_euclid(DAYS_IN_400_YEARS), day.rem_euclid(DAYS_IN_400_YEARS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month as u64, of_month as u64)
}

/// The day counted from 1970-01-01 of a date in the Gregorian calendar; `None` for a month or a day that does not
/// exist, and for years beyond a million.
pub fn day_since_1970(year: i64, month: u64, day: u64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year.unsigned_abs() > 1_000_000 {
        return None;
    }
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let year_from_march = year - i64::from(month <= 2);
    let (era, of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let found = era * DAYS_IN_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year as i64;
    let found = found - FROM_YEAR_0_TO_1970;
    // A day after the end of its month would be a day of the next month.
    (civil(found) == (year, month, day)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(time_s: i64) -> String {
        let mut out = Vec::new();
        put_seconds(&mut out, time_s);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn times_by_example() {
        for (time_s, words) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_234_567_890, "2009-02-13T23:31:30Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(time(time_s), words);
        }
    }

    #[test]
    fn days_follow_one_another() {
        let mut before = civil(-800_000);
        for day in -799_999..800_000 {
            let today = civil(day);
            assert!(today > before && today.1 >= 1 && today.1 <= 12 && today.2 >= 1 && today.2 <= 31, "day {day}");
            before = today;
            assert_eq!(day_since_1970(today.0, today.1, today.2), Some(day));
        }
    }

    #[test]
    fn a_writer_agrees_with_itself_over_seconds() {
        let mut writer = TimestampWriter::new();
        for (second, nanos, words) in [
            (1_700_000_000, 1, "2023-11-14T22:13:20.000000001Z"),
            (1_700_000_000, 999_999_999, "2023-11-14T22:13:20.999999999Z"),
            (1_700_000_061, 0, "2023-11-14T22:14:21.000000000Z"),
            (0, 123_456_789, "1970-01-01T00:00:00.123456789Z"),
        ] {
            assert_eq!(writer.text(second * NS_PER_SECOND + nanos), words.as_bytes());
        }
        assert_eq!(writer.text(u64::MAX), b"2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn far_times_by_example() {
        for (ns, words) in [
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (-62_167_219_200_000_000_001, "-0001-12-31T23:59:59.999999999Z"),
            (253_402_300_799_000_000_007, "9999-12-31T23:59:59.000000007Z"),
            (253_402_300_800_000_000_000, "+10000-01-01T00:00:00.000000000Z"),
        ] {
            let mut out = Vec::new();
            put_time(&mut out, ns);
            assert_eq!(String::from_utf8_lossy(&out), words);
        }
    }

    proptest! {
        #[test]
        fn a_writer_writes_the_seconds_that_rounds_have(points in proptest::collection::vec(any::<u64>(), 1..20)) {
            let mut writer = TimestampWriter::new();
            for ns in points {
                let mut seconds = Vec::new();
                put_seconds(&mut seconds, (ns / NS_PER_SECOND) as i64);
                let text = writer.text(ns);
                prop_assert_eq!(&text[..19], &seconds[..19]);
                let fraction = format!(".{:09}Z", ns % NS_PER_SECOND);
                prop_assert_eq!(&text[19..], fraction.as_bytes());
            }
        }
    }

    #[test]
    fn dates_that_there_are_not() {
        for (year, month, day) in [
            (2026, 0, 1),
            (2026, 13, 1),
            (2026, 1, 0),
            (2026, 1, 32),
            (2026, 2, 29),
            (2100, 2, 29),
            (2026, 4, 31),
            (i64::MIN, 1, 1),
            (i64::MAX, 1, 1),
            (2026, u64::MAX, 1),
            (2026, 1, u64::MAX),
        ] {
            assert_eq!(day_since_1970(year, month, day), None, "{year}-{month}-{day}");
        }
        assert_eq!(day_since_1970(2000, 2, 29), Some(11_016));
    }

    #[test]
    fn the_end_of_time_is_no_fault() {
        time(i64::MAX / 2);
        time(i64::MIN / 2);
        time(i64::MAX);
        time(i64::MIN);
    }
}
