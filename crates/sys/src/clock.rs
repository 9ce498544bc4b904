//! Clocks: monotonic, wall clock, broken-down local time, RFC 3339 text.
mod jiffies;

use std::ffi::CStr;
use std::fmt;

pub use jiffies::jiffies_per_second;

/// Nanoseconds of CLOCK_MONOTONIC. No system call if the vDSO works.
pub fn monotonic_ns() -> u64 {
    nanoseconds(read(libc::CLOCK_MONOTONIC))
}

/// Nanoseconds of CLOCK_BOOTTIME, the clock of process start times. No system call if the vDSO works.
pub fn boottime_ns() -> u64 {
    nanoseconds(read(libc::CLOCK_BOOTTIME))
}

/// CPU time of the calling thread in nanoseconds. One system call.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// Nanoseconds by which international atomic time is ahead of the wall clock: whole seconds, 37 s if a time service
/// has set the kernel's offset, otherwise 0. No system call if the vDSO works.
pub fn tai_offset_ns() -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let ahead = nanoseconds(read(libc::CLOCK_TAI)).saturating_sub(wall_ns());
    // Some time passes between the two readings.
    (ahead + SECOND / 2) / SECOND * SECOND
}

fn nanoseconds(time: WallTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.nanos.into())
}

/// A point in time of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct WallTime {
    /// Seconds since 1970-01-01 00:00 UTC.
    pub seconds: i64,
    /// Nanoseconds, below 1 000 000 000.
    pub nanos: u32,
}

/// The current wall clock time.
pub fn wall() -> WallTime {
    read(libc::CLOCK_REALTIME)
}

/// Wall clock nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    wall().since_1970_ns()
}

impl WallTime {
    /// Nanoseconds since 1970; 0 before, `u64::MAX` after 2554.
    pub fn since_1970_ns(self) -> u64 {
        nanoseconds(self)
    }

    /// `2026-11-21T14:45:52.123456789Z`.
    pub fn rfc3339(self) -> Rfc3339 {
        Rfc3339(self)
    }
}

/// Displays a point in time as RFC 3339 in UTC with nanoseconds (`{:.3}` for milliseconds, `{:.0}` for whole seconds).
#[derive(Debug, Clone, Copy)]
pub struct Rfc3339(WallTime);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.seconds.div_euclid(86_400);
        let second = self.0.seconds.rem_euclid(86_400);
        let (year, month, day) = civil(days);
        write!(f, "{year:04}-{month:02}-{day:02}T")?;
        write!(f, "{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)?;
        let digits = f.precision().unwrap_or(9).min(9);
        if digits > 0 {
            let fraction = format!("{:09}", self.0.nanos);
            write!(f, ".{}", fraction.get(..digits).unwrap_or(&fraction))?;
        }
        f.write_str("Z")
    }
}

/// Days since 1970-01-01 as year, month, day. The computation uses years that begin in March, so that the leap day is
/// the last of its year and months have a regular length pattern (153 days in five months).
fn civil(days: i64) -> (i64, i64, i64) {
    let from_era = days + 719_468; // days since 0000-03-01
    let era = from_era.div_euclid(146_097);
    let day_of_era = from_era.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153; // 0 = March
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Broken-down local time (TZ).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
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
    /// 0 is Sunday.
    pub weekday: u8,
    /// Seconds east of UTC.
    pub utc_offset_s: i32,
}

fn broken_down(seconds: i64) -> Option<libc::tm> {
    let seconds = libc::time_t::try_from(seconds).ok()?;
    // SAFETY: tm holds integers and a pointer, for which all bits zero (null) is a value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right type; the result is only compared with null.
    let done = unsafe { !libc::localtime_r(&seconds, &mut tm).is_null() };
    done.then_some(tm)
}

/// Maximum length of a text of [`format_local`].
const FORMATTED_MAX: usize = 4096;

/// Local time of `seconds` since 1970 in a format of strftime(3); `None` if the text is longer than 4,095 bytes, or
/// empty though the format is not.
pub fn format_local(format: &CStr, seconds: i64) -> Option<Vec<u8>> {
    let tm = broken_down(seconds)?;
    let mut text = vec![0_u8; FORMATTED_MAX];
    // SAFETY: `text` has the stated length; `format` and `tm` are live.
    let length = unsafe { libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &raw const tm) };
    text.truncate(length);
    (length > 0 || format.is_empty()).then_some(text)
}

/// Local time of `seconds` since 1970; `None` if the C library cannot express it.
pub fn local_time(seconds: i64) -> Option<LocalTime> {
    let tm = broken_down(seconds)?;
    let small = |n: i32| u8::try_from(n).unwrap_or(0);
    Some(LocalTime {
        year: tm.tm_year.saturating_add(1900),
        month: small(tm.tm_mon + 1),
        day: small(tm.tm_mday),
        hour: small(tm.tm_hour),
        minute: small(tm.tm_min),
        second: small(tm.tm_sec),
        weekday: small(tm.tm_wday),
        utc_offset_s: i32::try_from(tm.tm_gmtoff).unwrap_or(0),
    })
}

fn read(clock: libc::clockid_t) -> WallTime {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec for the kernel to fill. The clocks used here always exist; if the call failed,
    // `time` would stay zero.
    unsafe { libc::clock_gettime(clock, &mut time) };
    // time_t and long are 32 bits wide on some targets.
    #[allow(clippy::useless_conversion)]
    WallTime { seconds: i64::from(time.tv_sec), nanos: u32::try_from(time.tv_nsec).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn known_moments() {
        let at = |seconds, nanos| WallTime { seconds, nanos }.rfc3339().to_string();
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(at(951_827_696, 5), "2000-02-29T12:34:56.000000005Z");
        assert_eq!(at(4_107_542_399, 0), "2100-02-28T23:59:59.000000000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000000Z");
        assert_eq!(at(-1, 999_999_999), "1969-12-31T23:59:59.999999999Z");
        let t = WallTime { seconds: 1_700_000_000, nanos: 123_456_789 };
        assert_eq!(format!("{:.3} {:.0}", t.rfc3339(), t.rfc3339()), "2023-11-14T22:13:20.123Z 2023-11-14T22:13:20Z");
    }

    #[test]
    fn clocks_move_forward() {
        let (a, b) = (monotonic_ns(), monotonic_ns());
        assert!(a > 0 && b >= a && boottime_ns() >= b);
        assert!(wall().seconds > 1_600_000_000);
    }

    #[test]
    fn formats_are_those_of_strftime() {
        let now = wall().seconds;
        let local = local_time(now).unwrap();
        let text = |format| format_local(format, now).map(|text| String::from_utf8(text).unwrap());
        let date = format!("a-{:04}{:02}{:02}%", local.year, local.month, local.day);
        assert_eq!(text(c"a-%Y%m%d%%").unwrap(), date);
        assert_eq!(text(c"%s").unwrap(), now.to_string());
        let long = std::ffi::CString::new("x".repeat(5000)).unwrap();
        assert_eq!((text(c"").as_deref(), text(&long)), (Some(""), None));
    }

    #[test]
    fn local_time_agrees_with_its_offset() {
        let now = wall().seconds;
        let local = local_time(now).unwrap();
        let shifted = (now + i64::from(local.utc_offset_s)).rem_euclid(86_400);
        let seconds = i64::from(local.hour) * 3600 + i64::from(local.minute) * 60 + i64::from(local.second);
        assert_eq!(seconds, shifted);
        assert!(local.weekday < 7 && local.month >= 1 && local.day >= 1);
    }
}
