//! The time at the beginning of each line.

use super::frame::CapturedBytes;
use super::options::{Stamp, TcpdumpOptions};
use record::FarTime;
use record::text::put_u64;

const NS: u64 = 1_000_000_000;
const SECONDS_OF_DAY: u128 = 86_400;

/// Writes the times of packets. The text of a second is formatted once.
#[derive(Debug)]
pub(super) struct Stamps {
    second: u64,
    text: Vec<u8>,
    first: Option<i128>,
    previous: Option<i128>,
}

impl Stamps {
    pub(super) fn new() -> Stamps {
        Stamps { second: u64::MAX, text: Vec::with_capacity(32), first: None, previous: None }
    }

    /// Appends the time of a packet and a blank.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, options: &TcpdumpOptions, packet: &CapturedBytes<'_>) {
        let time_ns = packet.time_ns;
        let whole = || packet.far.map_or(time_ns.into(), FarTime::nanoseconds);
        match (options.stamp, packet.far) {
            (Stamp::None, _) => return,
            (Stamp::Epoch, Some(far)) => {
                let ns = far.nanoseconds().unsigned_abs();
                out.extend_from_slice(if far.is_before_1970() { b"-" } else { b"" });
                // Seconds of a far time have 64 bits.
                put_u64(out, (ns / u128::from(NS)) as u64);
                put_fraction(out, options, (ns % u128::from(NS)) as u64);
            }
            (Stamp::TimeOfDay | Stamp::Date, Some(far)) => {
                put_second(out, options, far.second());
                put_fraction(out, options, far.nanos().into());
            }
            (Stamp::Epoch, None) => {
                put_u64(out, time_ns / NS);
                put_fraction(out, options, time_ns % NS);
            }
            (Stamp::TimeOfDay | Stamp::Date, None) => {
                if self.second != time_ns / NS {
                    self.begin_second(options, time_ns / NS);
                }
                out.extend_from_slice(&self.text);
                put_fraction(out, options, time_ns % NS);
            }
            (Stamp::SincePrevious, _) => {
                let since = self.previous.replace(whole()).unwrap_or_else(whole);
                put_difference(out, options, since, whole());
            }
            (Stamp::SinceFirst, _) => {
                let since = *self.first.get_or_insert_with(whole);
                put_difference(out, options, since, whole());
            }
        }
        out.push(b' ');
    }

    #[cold]
    fn begin_second(&mut self, options: &TcpdumpOptions, second: u64) {
        self.second = second;
        self.text.clear();
        // 64 bits of nanoseconds have fewer seconds.
        put_second(&mut self.text, options, second as i64);
    }
}

/// Appends the local time at `second`, with its date if that is asked for.
fn put_second(out: &mut Vec<u8>, options: &TcpdumpOptions, second: i64) {
    let Some(local) = (options.zone)(second) else { return out.extend_from_slice(b"[Error converting time]") };
    if options.stamp == Stamp::Date {
        match u64::from(local.year.unsigned_abs()) {
            year @ 0..10_000 => put_padded(out, year, 4),
            year => put_u64(out, year),
        }
        out.push(b'-');
        put_padded(out, local.month.into(), 2);
        out.push(b'-');
        put_padded(out, local.day.into(), 2);
        out.push(b' ');
    }
    put_clock(out, local.hour.into(), local.minute.into(), local.second.into());
}

/// Appends `␠00:00:00.000013`, with `-` instead of the blank if the clock went back.
fn put_difference(out: &mut Vec<u8>, options: &TcpdumpOptions, since: i128, time_ns: i128) {
    out.push(if time_ns < since { b'-' } else { b' ' });
    // Digits that are not shown do not count: both times are cut to the shown digits before the subtraction.
    let unit = if options.nanoseconds { 1 } else { 1000 };
    let ns = time_ns.div_euclid(unit).abs_diff(since.div_euclid(unit)) * unit.unsigned_abs();
    let (seconds, ns) = (ns / u128::from(NS) % SECONDS_OF_DAY, (ns % u128::from(NS)) as u64);
    let seconds = seconds as u64;
    put_clock(out, seconds / 3600, seconds / 60 % 60, seconds % 60);
    put_fraction(out, options, ns);
}

fn put_clock(out: &mut Vec<u8>, hours: u64, minutes: u64, seconds: u64) {
    put_padded(out, hours, 2);
    out.push(b':');
    put_padded(out, minutes, 2);
    out.push(b':');
    put_padded(out, seconds, 2);
}

fn put_fraction(out: &mut Vec<u8>, options: &TcpdumpOptions, ns: u64) {
    out.push(b'.');
    if options.nanoseconds { put_padded(out, ns, 9) } else { put_padded(out, ns / 1000, 6) }
}

/// Appends `n`, padded with zeros to `digits` digits (at most nine are padded).
fn put_padded(out: &mut Vec<u8>, n: u64, digits: usize) {
    let mut text = [b'0'; 9];
    let mut rest = n;
    for place in text.iter_mut().rev().take(digits) {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(text.get(9 - digits.min(9)..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::LinkType;
    use sinks::LocalTime;

    /// The hour of the day, of a zone where each year begins at 0.
    fn zone(second: i64) -> Option<LocalTime> {
        let hour = (second.rem_euclid(86_400) / 3600) as u8;
        let year = i32::try_from(1970 + second.div_euclid(31_557_600)).ok()?;
        Some(LocalTime { year, month: 1, day: 1, hour, minute: 0, second: 0, weekday: 0, utc_offset_s: 0 })
    }

    #[test]
    fn far_times_are_shown_and_compared() {
        for (stamp, expected) in [
            (Stamp::Epoch, ["-0.500000 ", "0.000000 ", "320000000000.000000 "]),
            (
                Stamp::Date,
                ["1969-01-01 23:00:00.500000 ", "1970-01-01 00:00:00.000000 ", "12110-01-01 16:00:00.000000 "],
            ),
            (Stamp::TimeOfDay, ["23:00:00.500000 ", "00:00:00.000000 ", "16:00:00.000000 "]),
            (Stamp::SincePrevious, [" 00:00:00.000000 ", " 00:00:00.500000 ", " 16:53:20.000000 "]),
            (Stamp::SinceFirst, [" 00:00:00.000000 ", " 00:00:00.500000 ", " 16:53:20.500000 "]),
        ] {
            let options = TcpdumpOptions { stamp, ..TcpdumpOptions::new(zone) };
            let mut stamps = Stamps::new();
            for (ns, expected) in [-500_000_000, 0, 320_000_000_000_000_000_000].into_iter().zip(expected) {
                let far = FarTime::split(ns).err();
                let time_ns = FarTime::split(ns).unwrap_or_else(FarTime::nearest_ns);
                let mut out = Vec::new();
                let packet = CapturedBytes { link_type: LinkType::ETHERNET, bytes: b"x", len: 1, time_ns, far };
                stamps.put(&mut out, &options, &packet);
                assert_eq!(String::from_utf8_lossy(&out), expected, "{stamp:?} {ns}");
            }
        }
    }
}
