//! Points in time in filters: `10:30`, `-5m`, `now`, `2026-11-22`, `2026-11-22T10:30:00Z`.
//!
//! A time without an offset from UTC is local time; a time without a date is on the current day. [`resolve_times`]
//! replaces both with RFC 3339 in UTC, so that a bound filter depends on no clock.

use super::ast::{Ast, Comparison, Literal, Node};
use super::literal::{Unit, has_unit, parse_quantity};
use record::{Kind, Schema, text};
use std::sync::Arc;

const NS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// The years 0000 to 9999 in seconds since 1970.
const YEARS_S: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;
/// Durations in ns.
const UNIT: Unit = Unit::Time(1);

/// The clock that relative times in a filter refer to. It is read only if a filter needs it.
pub trait Clock {
    /// The current time in ns since 1970; in a replay the time of the recording.
    fn now_ns(&self) -> u64;
    /// Seconds that local time is ahead of UTC at `at_s` seconds since 1970.
    fn utc_offset_s(&self, at_s: i64) -> i64;
}

/// Returns the filter with absolute times where it compares fields of `table` that are times. A malformed time stays
/// and [`bind`](super::bind) refuses it.
pub fn resolve_times(table: Schema, ast: &Ast, clock: &dyn Clock) -> Ast {
    Ast { text: Arc::clone(&ast.text), root: node(table, &ast.root, clock) }
}

/// Returns the tree with absolute times in place of relative and local ones.
fn node(table: Schema, from: &Node, clock: &dyn Clock) -> Node {
    let all = |parts: &[Node]| parts.iter().map(|part| node(table, part, clock)).collect();
    match from {
        Node::And(parts) => Node::And(all(parts)),
        Node::Or(parts) => Node::Or(all(parts)),
        Node::Not(part) => Node::Not(Box::new(node(table, part, clock))),
        Node::Test(test) if is_time(table, test) => {
            let values = test.values.iter().map(|value| resolve_time(value, clock)).collect();
            Node::Test(Comparison { values, ..test.clone() })
        }
        Node::Test(test) => Node::Test(test.clone()),
    }
}

/// True if the compared field is a point in time.
fn is_time(table: Schema, test: &Comparison) -> bool {
    table.find_field(&test.name).is_some_and(|field| field.kind == Kind::Time)
}

/// Returns a time as an absolute one, and any other value unchanged.
fn resolve_time(value: &Literal, clock: &dyn Clock) -> Literal {
    let ns = value.as_str().and_then(TimeNotation::parse).and_then(|written| written.to_ns(clock));
    let Some(ns) = ns else { return value.clone() };
    let mut bytes = Vec::new();
    text::put_time(&mut bytes, ns);
    Literal { bytes: bytes.into(), ..value.clone() }
}

/// Reads RFC 3339: date, time and offset from UTC. The result is in ns since 1970; `None` for any other text.
pub(super) fn parse_rfc3339(text: &str) -> Option<i128> {
    match TimeNotation::parse(text)? {
        TimeNotation::Absolute { second, nanos } => ns_since_1970(second, nanos),
        _ => None,
    }
}

/// Nanoseconds since 1970; `None` for a year that has not four digits.
fn ns_since_1970(second: i64, nanos: u64) -> Option<i128> {
    let ns = i128::from(second) * i128::from(NS_PER_SECOND) + i128::from(nanos);
    Some(ns).filter(|_| YEARS_S.contains(&second))
}

/// A point in time in the user's notation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TimeNotation {
    /// A time with an offset from UTC: seconds since 1970.
    Absolute { second: i64, nanos: u64 },
    /// Local time with a date: seconds since 1970-01-01 00:00 local time.
    Local { second: i64, nanos: u64 },
    /// Local time of the current day: seconds since midnight.
    Today { second: i64, nanos: u64 },
    /// `-5m`: ns before now.
    Before(u64),
    /// `+5m`, `now`: ns after now.
    After(u64),
}

impl TimeNotation {
    fn parse(text: &str) -> Option<TimeNotation> {
        if text.eq_ignore_ascii_case("now") {
            return Some(TimeNotation::After(0));
        }
        let duration = |text: &str| parse_quantity(UNIT, text).ok().filter(|_| has_unit(UNIT, text));
        if let Some(text) = text.strip_prefix('-') {
            return duration(text).map(TimeNotation::Before);
        }
        if let Some(text) = text.strip_prefix('+') {
            return duration(text).map(TimeNotation::After);
        }
        let mut parts = TimeCursor(text.as_bytes());
        let written = match parts.date() {
            Some(day) => parts.rest_of_day(day)?,
            None => {
                let (second, nanos) = parts.clock()?;
                TimeNotation::Today { second, nanos }
            }
        };
        parts.0.is_empty().then_some(written)
    }

    /// The point in time in ns since 1970; `None` for a year that has not four digits.
    fn to_ns(self, clock: &dyn Clock) -> Option<i128> {
        match self {
            TimeNotation::Absolute { second, nanos } => ns_since_1970(second, nanos),
            TimeNotation::Local { second, nanos } => ns_since_1970(utc_of(second, clock), nanos),
            TimeNotation::Today { second, nanos } => {
                let now_s = (clock.now_ns() / NS_PER_SECOND) as i64;
                let day = (now_s + clock.utc_offset_s(now_s)).div_euclid(SECONDS_PER_DAY);
                ns_since_1970(utc_of(day * SECONDS_PER_DAY + second, clock), nanos)
            }
            TimeNotation::Before(ns) => Some(i128::from(clock.now_ns()) - i128::from(ns)),
            TimeNotation::After(ns) => Some(i128::from(clock.now_ns()) + i128::from(ns)),
        }
    }
}

/// Returns seconds since 1970 for a local time. The offset at the result may differ from the one at the first guess
/// (summer time begins or ends between them), so it is computed twice.
fn utc_of(local_s: i64, clock: &dyn Clock) -> i64 {
    let guess = local_s - clock.utc_offset_s(local_s);
    local_s - clock.utc_offset_s(guess)
}

/// The bytes of a time that are not parsed yet. If a part does not fit, they stay unchanged.
struct TimeCursor<'t>(&'t [u8]);

impl TimeCursor<'_> {
    fn take_byte(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first().filter(|(first, _)| bytes.contains(first))?;
        self.0 = rest;
        Some(*first)
    }

    /// Parses a number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let len = self.0.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(len).filter(|_| len >= min)?;
        self.0 = rest;
        Some(digits.iter().fold(0, |n, digit| n * 10 + i64::from(digit - b'0')))
    }

    /// Parses a number of two digits that is at most `max`.
    fn take_two_digits(&mut self, max: i64) -> Option<i64> {
        self.number(2, 2).filter(|n| *n <= max)
    }

    /// Parses `2026-11-22` as days since 1970.
    fn date(&mut self) -> Option<i64> {
        let mut ahead = TimeCursor(self.0);
        let year = ahead.number(4, 4)?;
        ahead.take_byte(b"-")?;
        let month = ahead.number(2, 2)?;
        ahead.take_byte(b"-")?;
        let day = text::day_since_1970(year, month as u64, ahead.number(2, 2)? as u64)?;
        self.0 = ahead.0;
        Some(day)
    }

    /// Parses the rest after a date: nothing, or a time with or without an offset from UTC.
    fn rest_of_day(&mut self, day: i64) -> Option<TimeNotation> {
        let midnight = day * SECONDS_PER_DAY;
        if self.take_byte(b"Tt ").is_none() {
            return Some(TimeNotation::Local { second: midnight, nanos: 0 });
        }
        let (second, nanos) = self.clock()?;
        let second = midnight + second;
        if self.0.is_empty() {
            return Some(TimeNotation::Local { second, nanos });
        }
        Some(TimeNotation::Absolute { second: second - self.offset()?, nanos })
    }

    /// Parses `9:30`, `10:30:15`, `10:30:15.25` as seconds since midnight and nanoseconds.
    fn clock(&mut self) -> Option<(i64, u64)> {
        let hour = self.number(1, 2).filter(|hour| *hour <= 23)?;
        self.take_byte(b":")?;
        let minute = self.take_two_digits(59)?;
        let mut second = 0;
        let mut nanos = 0;
        if self.take_byte(b":").is_some() {
            // 60 is a leap second, which the kernel's clock counts as the first second of the next minute.
            second = self.take_two_digits(60)?;
            if self.take_byte(b".").is_some() {
                let before = self.0.len();
                let fraction = self.number(1, 9)?;
                nanos = fraction as u64 * 10u64.pow(9 - (before - self.0.len()) as u32);
            }
        }
        Some((hour * 3600 + minute * 60 + second, nanos))
    }

    /// Parses `Z`, `+02:00`, `-0530` as seconds ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.take_byte(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.take_two_digits(23)?;
        self.take_byte(b":");
        Some(sign * (hours * 3600 + self.take_two_digits(59)? * 60))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{bind, parse};
    use super::*;
    use crate::explain::expr_text;
    use proptest::prelude::*;
    use record::rows::NatEvents;

    /// 2026-03-29 12:00 UTC, the day on which summer time begins at 01:00 UTC.
    struct Summer;

    impl Clock for Summer {
        fn now_ns(&self) -> u64 {
            1_774_785_600 * NS_PER_SECOND
        }

        fn utc_offset_s(&self, at_s: i64) -> i64 {
            if at_s < 1_774_746_000 { 3600 } else { 7200 }
        }
    }

    fn bound(filter: &str) -> String {
        let ast = resolve_times(Schema::from_table::<NatEvents>(), &parse(filter).unwrap(), &Summer);
        match bind(Schema::from_table::<NatEvents>(), &ast) {
            Ok(expr) => {
                let printed = expr_text(Schema::from_table::<NatEvents>(), &expr);
                assert_eq!(
                    bind(Schema::from_table::<NatEvents>(), &parse(&printed).unwrap()).unwrap(),
                    expr,
                    "{printed}"
                );
                printed
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn times_by_example() {
        for (written, expected) in [
            ("2026-11-22T10:30:00Z", "2026-11-22T10:30:00.000000000Z"),
            ("2026-11-22t10:30:00.5+02:00", "2026-11-22T08:30:00.500000000Z"),
            ("2026-11-22T10:30:00.123456789-0530", "2026-11-22T16:00:00.123456789Z"),
            ("\"2026-11-22 10:30\"", "2026-11-22T08:30:00.000000000Z"),
            ("2026-11-22", "2026-11-21T22:00:00.000000000Z"),
            ("10:30", "2026-03-29T08:30:00.000000000Z"),
            ("9:05:07", "2026-03-29T07:05:07.000000000Z"),
            ("00:30", "2026-03-28T23:30:00.000000000Z"),
            ("now", "2026-03-29T12:00:00.000000000Z"),
            ("-5m", "2026-03-29T11:55:00.000000000Z"),
            ("-1.5h", "2026-03-29T10:30:00.000000000Z"),
            ("+250ms", "2026-03-29T12:00:00.250000000Z"),
            ("-99999d", "1752-06-14T12:00:00.000000000Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000000Z"),
            ("9999-01-01T00:00:00Z", "9999-01-01T00:00:00.000000000Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(bound(&format!("time > {written}")), format!("time > {expected}"));
        }
    }

    #[test]
    fn what_is_no_time() {
        for written in [
            "10",
            "5m",
            "-5",
            "-0x5a",
            "-",
            "+",
            "10:3",
            "24:00",
            "10:60",
            "10:30:61",
            "10:30:",
            "10:30:00.",
            "1:2:3",
            "2026-13-01",
            "2026-02-29",
            "2026-11-31",
            "2026-1-1",
            "2026-11-22T",
            "2026-11-22T10",
            "2026-11-22T10:30:00+2",
            "2026-11-22T10:30:00Zz",
            "0000-01-01T00:00:00+01:00",
            "-9m9",
            "tomorrow",
        ] {
            let error = bound(&format!("time > {written}"));
            assert!(error.contains("not a time (10:30"), "{written}: {error}");
        }
        assert!(bound("time ~ 2026").contains("`time` is a time"));
    }

    #[test]
    fn equality_lists_and_null() {
        assert_eq!(bound("time = null"), "time = null");
        assert_eq!(bound("time != 2026-11-22T10:30:00Z"), "time != 2026-11-22T10:30:00.000000000Z");
        assert_eq!(
            bound("time in (2026-11-22T10:30:00Z, now)"),
            "time in (2026-11-22T10:30:00.000000000Z, 2026-03-29T12:00:00.000000000Z)"
        );
        assert_eq!(bound("duration > 5m"), "duration_us > 300000000");
    }

    #[test]
    fn without_a_clock_only_absolute_times_bind() {
        let bind = |filter: &str| bind(Schema::from_table::<NatEvents>(), &parse(filter).unwrap());
        assert!(bind("time > 2026-11-22T10:30:00Z").is_ok());
        assert!(bind("time > 10:30").is_err() && bind("time > -5m").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(written in "[-+0-9:.TtZz dhms/]{0,40}", any in ".*") {
            for text in [&written, &any] {
                if let Some(ns) = TimeNotation::parse(text).and_then(|written| written.to_ns(&Summer)) {
                    let mut printed = Vec::new();
                    text::put_time(&mut printed, ns);
                    prop_assert_eq!(parse_rfc3339(std::str::from_utf8(&printed).unwrap()), Some(ns));
                }
            }
        }

        #[test]
        fn what_is_written_is_read(ns in -62_167_219_200_000_000_000_i128..253_402_300_800_000_000_000) {
            let mut printed = Vec::new();
            text::put_time(&mut printed, ns);
            prop_assert_eq!(parse_rfc3339(std::str::from_utf8(&printed).unwrap()), Some(ns));
        }
    }
}
