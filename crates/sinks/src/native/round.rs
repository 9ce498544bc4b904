//! What stands between the rounds of a repeated table, and its time.

use record::{Round, text};

/// Appends an empty line and a line with the time in front of every round but the first.
pub(super) fn put_separator(out: &mut Vec<u8>, round: Option<Round>, line_end: &[u8]) {
    let Some(round) = round else { return };
    if round.n > 1 {
        out.extend_from_slice(line_end);
        put_time(out, round.time_s);
        out.extend_from_slice(line_end);
    }
}

/// Appends seconds since 1970 as RFC 3339 in UTC: `2026-11-21T15:04:05Z`.
pub(super) fn put_time(out: &mut Vec<u8>, time_s: i64) {
    let (year, month, day) = civil(time_s.div_euclid(86_400));
    let second = time_s.rem_euclid(86_400) as u64;
    if year < 0 {
        out.push(b'-');
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
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(text::u64_len(n))));
    text::put_u64(out, n);
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar without end.
///
/// Counted in years that begin in March, so that the leap day is the last: then every month's first day follows from
/// 153 days per five months.
fn civil(day: i64) -> (i64, u64, u64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    const FROM_YEAR_0_TO_1970: i64 = 719_468;
    let day = day + FROM_YEAR_0_TO_1970;
    let (era, of_era) = (day.div_euclid(DAYS_IN_400_YEARS), day.rem_euclid(DAYS_IN_400_YEARS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month as u64, of_month as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(time_s: i64) -> String {
        let mut out = Vec::new();
        put_time(&mut out, time_s);
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
        }
    }

    #[test]
    fn the_end_of_time_is_no_fault() {
        time(i64::MAX / 2);
        time(i64::MIN / 2);
        time(i64::MAX);
        time(i64::MIN);
    }
}
