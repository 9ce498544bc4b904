//! Cells for people: bytes, rates and durations in readable units, times by the local clock.
//!
//! A filter accepts the same units, so displayed values can be typed. Omitted digits are cut off, not rounded.

use super::cell::Form;
use crate::LocalTime;
use record::text::{put_i64, put_u64};
use record::{Column, Kind, Value};

/// The local clock. It is read only for cells that are times.
#[derive(Clone, Copy, Debug)]
pub struct LocalClock {
    /// Returns the present time in seconds since 1970.
    pub now_s: fn() -> i64,
    /// Returns the local date and time of a time in seconds since 1970; `None` if it is unknown.
    pub local: fn(i64) -> Option<LocalTime>,
}

/// The unit of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// Unscaled numbers.
    Exact,
    /// Bytes, scaled by powers of 1024.
    Bytes,
    BytesPerSecond,
    /// Durations; the number is the column's unit in microseconds.
    Duration(u64),
    BitsPerSecond,
}

/// The form of a column's cells.
#[derive(Clone, Copy)]
pub(super) struct Human {
    form: Form,
    unit: Unit,
    clock: LocalClock,
}

impl Human {
    /// Returns the form of a column, with units.
    pub(super) fn from_column(form: Form, column: &Column, clock: LocalClock) -> Human {
        let unit = match column.kind {
            Kind::Bytes if column.name.ends_with("_per_s") => Unit::BytesPerSecond,
            Kind::Bytes => Unit::Bytes,
            Kind::DurationUs => Unit::Duration(1),
            Kind::DurationMs => Unit::Duration(1_000),
            Kind::DurationS => Unit::Duration(1_000_000),
            Kind::BitsPerSecond => Unit::BitsPerSecond,
            _ => Unit::Exact,
        };
        Human { form, unit, clock }
    }

    /// Appends the cell, escaped.
    pub(super) fn put(&self, out: &mut Vec<u8>, cell: Value<'_>) {
        match cell {
            Value::U64(n) if self.unit != Unit::Exact => self.put_number(out, n),
            Value::I64(n) if self.unit != Unit::Exact => {
                if n < 0 {
                    out.push(b'-');
                }
                self.put_number(out, n.unsigned_abs());
            }
            Value::Time(ns) if self.put_time(out, ns) => {}
            exact => self.form.put(out, exact),
        }
    }

    fn put_number(&self, out: &mut Vec<u8>, n: u64) {
        match self.unit {
            Unit::Exact => put_u64(out, n),
            Unit::Bytes => put_scaled(out, n),
            Unit::BytesPerSecond => out.extend_from_slice(byte_rate(n).as_bytes()),
            Unit::BitsPerSecond => out.extend_from_slice(bit_rate(n).as_bytes()),
            Unit::Duration(us) => put_duration(out, n.saturating_mul(us)),
        }
    }

    /// Appends `10:22:33`, with microseconds if there are any, and with the date if it is another day. Returns false,
    /// and appends nothing, if the local time is unknown.
    fn put_time(&self, out: &mut Vec<u8>, ns: u64) -> bool {
        let local = |seconds| (self.clock.local)(seconds);
        let Some(at) = i64::try_from(ns / 1_000_000_000).ok().and_then(local) else { return false };
        let today = local((self.clock.now_s)());
        if today.is_none_or(|now| (now.year, now.month, now.day) != (at.year, at.month, at.day)) {
            put_i64(out, at.year.into());
            put_padded(out, b"-", at.month.into(), 2);
            put_padded(out, b"-", at.day.into(), 2);
            out.push(b' ');
        }
        put_padded(out, b"", at.hour.into(), 2);
        put_padded(out, b":", at.minute.into(), 2);
        put_padded(out, b":", at.second.into(), 2);
        let us = ns / 1000 % 1_000_000;
        if us > 0 {
            put_padded(out, b".", us, 6);
        }
        true
    }
}

/// Appends `before`, then a number of at least `digits` digits, with leading zeros.
fn put_padded(out: &mut Vec<u8>, before: &[u8], n: u64, digits: u32) {
    out.extend_from_slice(before);
    let missing = (1..digits).filter(|place| n < 10u64.pow(*place)).count();
    out.resize(out.len() + missing, b'0');
    put_u64(out, n);
}

/// Returns the column's heading without the unit that its cells have.
pub(super) fn name_of(column: &Column) -> &str {
    let unit = match column.kind {
        Kind::DurationUs => "_us",
        Kind::DurationMs => "_ms",
        Kind::DurationS => "_s",
        Kind::BitsPerSecond => "_bps",
        _ => "",
    };
    column.name.strip_suffix(unit).unwrap_or(&column.name)
}

/// Appends `9999`, `12.0KiB`, `1.2GiB`.
fn put_scaled(out: &mut Vec<u8>, n: u64) {
    if n < 10_000 {
        return put_u64(out, n);
    }
    let (one, unit) = scale(n, 1024, ["KiB", "MiB", "GiB", "TiB"]);
    put_decimals(out, n, one, unit);
}

/// Returns the largest unit that is at most `n`, and its name; the smallest unit if `n` is below all of them.
fn scale(n: u64, base: u64, units: [&str; 4]) -> (u64, &str) {
    let (mut one, mut unit) = (base, "");
    for (place, name) in units.into_iter().enumerate() {
        unit = name;
        if n / one < base || place + 1 == units.len() {
            break;
        }
        one *= base;
    }
    (one, unit)
}

/// Formats bytes per second, as for flows and processes: `413 B/s`, `1.9 MB/s`, `190 MB/s`. Uses powers of 1000 and at
/// most nine columns below a petabyte. All screens use this notation.
pub fn byte_rate(bytes: u64) -> String {
    rate(bytes, "B/s", ["kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Formats bits per second, as for interfaces: `413 bit/s`, `20.1 Mbit/s`. Like [`byte_rate`], but up to eleven
/// columns.
pub fn bit_rate(bits: u64) -> String {
    rate(bits, "bit/s", ["kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

fn rate(n: u64, unit: &str, units: [&str; 4]) -> String {
    if n < 1000 {
        return format!("{n} {unit}");
    }
    let (one, unit) = scale(n, 1000, units);
    match n / one {
        whole @ 0..100 => format!("{whole}.{} {unit}", n % one / (one / 10)),
        whole => format!("{whole} {unit}"),
    }
}

/// Appends a number in units of `one`, with three digits, or with all digits before the point if there are more.
fn put_decimals(out: &mut Vec<u8>, n: u64, one: u64, unit: &str) {
    let (whole, rest) = (n / one, u128::from(n % one));
    put_u64(out, whole);
    let decimals = match whole {
        _ if rest == 0 => 0,
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    if decimals > 0 {
        let fraction = rest * 10u128.pow(decimals) / u128::from(one);
        put_padded(out, b".", u64::try_from(fraction).unwrap_or(0), decimals);
    }
    out.extend_from_slice(unit.as_bytes());
}

/// Appends `413us`, `20.5ms`, `1.5s`, `2m13s`, `3h05m`, `12d04h`.
fn put_duration(out: &mut Vec<u8>, us: u64) {
    const SECOND: u64 = 1_000_000;
    let seconds = us / SECOND;
    let (large, unit, small, small_unit): (u64, &[u8], u64, u8) = match seconds {
        0 if us < 1_000 => return put_decimals(out, us, 1, if us == 0 { "s" } else { "us" }),
        0 => return put_decimals(out, us, 1_000, "ms"),
        1..60 => return put_decimals(out, us, SECOND, "s"),
        60..3_600 => (seconds / 60, b"m", seconds % 60, b's'),
        3_600..86_400 => (seconds / 3_600, b"h", seconds / 60 % 60, b'm'),
        _ => (seconds / 86_400, b"d", seconds / 3_600 % 24, b'h'),
    };
    put_u64(out, large);
    put_padded(out, unit, small, 2);
    out.push(small_unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon(seconds: i64) -> Option<LocalTime> {
        let day = u8::try_from(seconds / 86_400 + 1).ok()?;
        let part = |n: i64| u8::try_from(n).unwrap_or(0);
        let (hour, minute, second) = (part(seconds / 3600 % 24), part(seconds / 60 % 60), part(seconds % 60));
        Some(LocalTime { year: 1970, month: 1, day, hour, minute, second, weekday: 0, utc_offset_s: 0 })
    }

    fn shown(kind: Kind, cell: Value<'_>) -> String {
        shown_as("x", kind, cell)
    }

    fn shown_as(name: &str, kind: Kind, cell: Value<'_>) -> String {
        let clock = LocalClock { now_s: || 86_400, local: noon };
        let columns = record::Columns(vec![Column { name: name.into(), kind }]);
        let form = Form::from_columns(&columns, |_| "-").remove(0);
        let mut out = Vec::new();
        Human::from_column(form, &columns.0[0], clock).put(&mut out, cell);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn numbers_have_units() {
        for (kind, n, text) in [
            (Kind::Bytes, 0, "0"),
            (Kind::Bytes, 9_999, "9999"),
            (Kind::Bytes, 10_240, "10KiB"),
            (Kind::Bytes, 12_345, "12.0KiB"),
            (Kind::Bytes, 1_300_000, "1.23MiB"),
            (Kind::Bytes, 1023 * 1024 + 1023, "1023KiB"),
            (Kind::Bytes, u64::MAX, "16777215TiB"),
            (Kind::BitsPerSecond, 9_400_000_000, "9.4 Gbit/s"),
            (Kind::DurationUs, 0, "0s"),
            (Kind::DurationUs, 413, "413us"),
            (Kind::DurationUs, 1_234, "1.23ms"),
            (Kind::DurationUs, 20_500, "20.5ms"),
            (Kind::DurationUs, 1_000_000, "1s"),
            (Kind::DurationMs, 59_999, "59.9s"),
            (Kind::DurationMs, 60_000, "1m00s"),
            (Kind::DurationS, 299, "4m59s"),
            (Kind::DurationS, 432_000, "5d00h"),
            (Kind::DurationS, 11_100, "3h05m"),
            (Kind::Count, 123_456, "123456"),
        ] {
            assert_eq!(shown(kind, Value::U64(n)), text, "{kind:?} {n}");
        }
        assert_eq!(shown(Kind::DurationMs, Value::I64(-1_500)), "-1.50s");
        assert_eq!(shown(Kind::DurationS, Value::Null), "-");
        assert_eq!(shown(Kind::DurationS, Value::U64(u64::MAX)), "213503982d08h");
    }

    #[test]
    fn a_stream_has_one_notation_on_every_screen() {
        let of_flow = |n| shown_as("bytes_in_per_s", Kind::Bytes, Value::U64(n));
        for (n, bytes, bits) in [
            (0, "0 B/s", "0 bit/s"),
            (999, "999 B/s", "999 bit/s"),
            (1_000, "1.0 kB/s", "1.0 kbit/s"),
            (1_999_999, "1.9 MB/s", "1.9 Mbit/s"),
            (20_100_000, "20.1 MB/s", "20.1 Mbit/s"),
            (999_999_999, "999 MB/s", "999 Mbit/s"),
            (u64::MAX, "18446744 TB/s", "18446744 Tbit/s"),
        ] {
            assert_eq!((of_flow(n).as_str(), byte_rate(n).as_str(), bit_rate(n).as_str()), (bytes, bytes, bits));
            assert_eq!(shown(Kind::BitsPerSecond, Value::U64(n)), bits);
        }
        assert_eq!(shown_as("sum_recv_q", Kind::Bytes, Value::U64(2_000_000)), "1.90MiB", "memory");
    }

    #[test]
    fn times_are_local_and_have_a_date_on_other_days() {
        let at = |seconds: u64, us: u64| shown(Kind::Time, Value::Time(seconds * 1_000_000_000 + us * 1000));
        assert_eq!(at(86_400 + 3_600 * 10 + 61, 0), "10:01:01");
        assert_eq!(at(86_400 + 61, 42), "00:01:01.000042");
        assert_eq!(at(61, 0), "1970-01-01 00:01:01");
        assert_eq!(shown(Kind::Time, Value::Time(u64::MAX)), "2554-07-21T23:34:33.709551615Z", "no local time");
    }

    #[test]
    fn units_stand_in_cells_and_not_in_headings() {
        let name = |name: &str, kind| name_of(&Column { name: name.into(), kind }).to_owned();
        assert_eq!(name("rtt_us", Kind::DurationUs), "rtt");
        assert_eq!(name("bytes_in_per_s", Kind::Bytes), "bytes_in_per_s");
        assert_eq!(name("pacing_bps", Kind::BitsPerSecond), "pacing");
    }
}
