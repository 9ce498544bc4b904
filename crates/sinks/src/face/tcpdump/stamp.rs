//! The time at the beginning of each line.

use super::super::ulogd::{LocalTime, Zone};
use super::options::{Stamp, TcpdumpOptions};
use record::text::put_u64;

const NS: u64 = 1_000_000_000;

/// Writes the times of packets. The text of a second is formatted once.
#[derive(Debug)]
pub(super) struct Stamps {
    second: u64,
    text: Vec<u8>,
    first: Option<u64>,
    previous: Option<u64>,
}

impl Stamps {
    pub(super) fn new() -> Stamps {
        Stamps { second: u64::MAX, text: Vec::with_capacity(32), first: None, previous: None }
    }

    /// Appends the time of a packet and a blank.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, options: &TcpdumpOptions, time_ns: u64) {
        match options.stamp {
            Stamp::None => return,
            Stamp::Epoch => {
                put_u64(out, time_ns / NS);
                put_fraction(out, options, time_ns % NS);
            }
            Stamp::TimeOfDay | Stamp::Date => {
                if self.second != time_ns / NS {
                    self.begin_second(options, time_ns / NS);
                }
                out.extend_from_slice(&self.text);
                put_fraction(out, options, time_ns % NS);
            }
            Stamp::SincePrevious => {
                let since = self.previous.replace(time_ns).unwrap_or(time_ns);
                put_difference(out, options, since, time_ns);
            }
            Stamp::SinceFirst => {
                let since = *self.first.get_or_insert(time_ns);
                put_difference(out, options, since, time_ns);
            }
        }
        out.push(b' ');
    }

    #[cold]
    fn begin_second(&mut self, options: &TcpdumpOptions, second: u64) {
        self.second = second;
        self.text.clear();
        let Some(local) = local(options.zone, second) else {
            return self.text.extend_from_slice(b"[Error converting time]");
        };
        if options.stamp == Stamp::Date {
            put_padded(&mut self.text, u64::from(local.year.unsigned_abs()), 4);
            self.text.push(b'-');
            put_padded(&mut self.text, local.month.into(), 2);
            self.text.push(b'-');
            put_padded(&mut self.text, local.day.into(), 2);
            self.text.push(b' ');
        }
        put_clock(&mut self.text, local.hour.into(), local.minute.into(), local.second.into());
    }
}

fn local(zone: Zone, second: u64) -> Option<LocalTime> {
    i64::try_from(second).ok().and_then(zone)
}

/// Appends `␠00:00:00.000013`, with `-` instead of the blank if the clock went back.
fn put_difference(out: &mut Vec<u8>, options: &TcpdumpOptions, since: u64, time_ns: u64) {
    out.push(if time_ns < since { b'-' } else { b' ' });
    // Digits that are not shown do not count: both times are cut to the shown digits before the subtraction.
    let unit = if options.nanoseconds { 1 } else { 1000 };
    let ns = (time_ns / unit).abs_diff(since / unit) * unit;
    let seconds = ns / NS;
    put_clock(out, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    put_fraction(out, options, ns % NS);
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
