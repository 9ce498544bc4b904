//! TimestampWriter as text: RFC 3339 with nanoseconds, written once a second and patched in between.
use super::WallTime;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Writes moments of a stream, `2026-11-21T14:45:52.123456789Z`.
#[derive(Debug)]
pub struct TimestampWriter {
    /// The second that `text` is about.
    second: u64,
    text: Vec<u8>,
}

impl Default for TimestampWriter {
    fn default() -> TimestampWriter {
        TimestampWriter::new()
    }
}

impl TimestampWriter {
    /// Nothing written yet.
    pub fn new() -> TimestampWriter {
        TimestampWriter { second: u64::MAX, text: Vec::with_capacity(32) }
    }

    /// The text of `ns` nanoseconds since 1970.
    pub fn text(&mut self, ns: u64) -> &[u8] {
        let (second, nanos) = (ns / NANOS_PER_SECOND, ns % NANOS_PER_SECOND);
        if second != self.second {
            self.second = second;
            let time = WallTime { seconds: i64::try_from(second).unwrap_or(i64::MAX), nanos: 0 };
            self.text = time.rfc3339().to_string().into_bytes();
        }
        // Behind the digits of the fraction stands the Z.
        let mut rest = nanos;
        for digit in self.text.iter_mut().rev().skip(1).take(9) {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn agrees_with_the_clock() {
        let mut moments = TimestampWriter::new();
        for (seconds, nanos) in [(1_700_000_000, 1), (1_700_000_000, 999_999_999), (1_700_000_061, 0), (0, 5)] {
            let expected = WallTime { seconds, nanos }.rfc3339().to_string();
            let ns = seconds as u64 * NANOS_PER_SECOND + u64::from(nanos);
            assert_eq!(std::str::from_utf8(moments.text(ns)).unwrap(), expected);
        }
        assert!(!moments.text(u64::MAX).is_empty());
    }
}
