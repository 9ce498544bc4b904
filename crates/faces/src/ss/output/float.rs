//! Decimal numbers in C's formats (`%g`, `%.0f`), and rates.

use crate::pieces::{Padded, put};
use std::io::Write;

/// Significant digits of `%g`.
const DIGITS: usize = 6;

/// A buffer for digits, to avoid an allocation. The longest text is `{:.0}` of a double, 309 digits; rates are far
/// shorter.
struct Scratch {
    bytes: [u8; 64],
    len: usize,
}

impl Scratch {
    fn of(text: std::fmt::Arguments<'_>) -> Scratch {
        let mut scratch = Scratch { bytes: [0; 64], len: 0 };
        let mut rest = scratch.bytes.as_mut_slice();
        let room = rest.len();
        // Text that does not fit is cut, but our numbers are never that long.
        let _ = rest.write_fmt(text);
        scratch.len = room - rest.len();
        scratch
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Appends `n` thousandths with six significant digits: microseconds as milliseconds.
pub(super) fn put_thousandths(out: &mut Vec<u8>, n: u32) {
    if n >= 1_000_000 {
        return put_g(out, f64::from(n) / 1000.0, DIGITS);
    }
    // At most three digits before the point and three after it: exact.
    let start = out.len();
    put!(out, n / 1000, ".", Padded(n % 1000, 3));
    out.truncate(start + without_zeros(out.get(start..).unwrap_or_default()).len());
}

/// Appends `%g`, with six significant digits.
pub(super) fn put_general(out: &mut Vec<u8>, x: f64) {
    put_g(out, x, DIGITS);
}

/// Appends `%.*g`: the shorter of fixed and scientific, without trailing zeros.
fn put_g(out: &mut Vec<u8>, x: f64, digits: usize) {
    let scientific = Scratch::of(format_args!("{:.*e}", digits - 1, x));
    let mut parts = scientific.as_bytes().splitn(2, |&b| b == b'e');
    let mantissa = parts.next().unwrap_or_default();
    let exponent =
        parts.next().and_then(|e| std::str::from_utf8(e).ok()).and_then(|e| e.parse::<i32>().ok()).unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        out.extend_from_slice(without_zeros(mantissa));
        return put!(out, if exponent < 0 { "e-" } else { "e+" }, Padded(exponent.unsigned_abs(), 2));
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    out.extend_from_slice(without_zeros(Scratch::of(format_args!("{x:.decimals$}")).as_bytes()));
}

/// Returns digits without trailing zeros after the point, and without the point if nothing is left after it.
fn without_zeros(digits: &[u8]) -> &[u8] {
    if !digits.contains(&b'.') {
        return digits;
    }
    let end = digits.iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
    let cut = digits.get(..end).unwrap_or_default();
    cut.strip_suffix(b".").unwrap_or(cut)
}

/// Appends one decimal: `%.1f`.
pub(super) fn put_tenths(out: &mut Vec<u8>, x: f64) {
    out.extend_from_slice(Scratch::of(format_args!("{x:.1}")).as_bytes());
}

/// Appends a rate in bit/s: an integer with `-n`, otherwise three digits and a decimal prefix.
pub(super) fn put_rate(out: &mut Vec<u8>, bits: f64, numeric: bool) {
    /// Above this, a double cannot represent every integer, and its exact digits are needed.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if numeric {
        if bits < EXACT && bits.fract() == 0.0 {
            return put!(out, bits as u64);
        }
        return out.extend_from_slice(Scratch::of(format_args!("{bits:.0}")).as_bytes());
    }
    for (unit, letter) in [(1e12, b'T'), (1e9, b'G'), (1e6, b'M'), (1e3, b'k')] {
        if bits >= unit {
            put_g(out, bits / unit, 3);
            return out.push(letter);
        }
    }
    put_general(out, bits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn as_c_prints_them() {
        for (x, expected) in [
            (0.0, "0"),
            (0.066, "0.066"),
            (2.88672, "2.88672"),
            (1.0, "1"),
            (100000.0, "100000"),
            (1000000.0, "1e+06"),
            (4294967.295, "4.29497e+06"),
            (1234.5678, "1234.57"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (999999.5, "1e+06"),
            (2.89, "2.89"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(text(|o| put_general(o, x)), expected, "{x}");
        }
    }

    #[test]
    fn thousandths_have_a_short_way_that_agrees() {
        let of = |n: u32| (text(|o| put_thousandths(o, n)), text(|o| put_general(o, f64::from(n) / 1000.0)));
        for n in (0..3_000).chain((0..1_100_000).step_by(997)).chain([999_999, 1_000_000, 1_234_565, u32::MAX]) {
            let (short, long) = of(n);
            assert_eq!(short, long, "{n}");
        }
    }

    #[test]
    fn rates_with_and_without_prefix() {
        for (bits, numeric, plain) in [
            (1755151515.15, "1755151515", "1.76G"),
            (5015961656.0, "5015961656", "5.02G"),
            (999.0, "999", "999"),
            (1000.0, "1000", "1k"),
            (1e12, "1000000000000", "1T"),
            (123456789.0, "123456789", "123M"),
            (2.5, "2", "2.5"),
            (3.4e38 / 1e19, "34000000000000000000", "3.4e+07T"),
        ] {
            assert_eq!(text(|o| put_rate(o, bits, true)), numeric, "{bits}");
            assert_eq!(text(|o| put_rate(o, bits, false)), plain, "{bits}");
        }
        assert_eq!(text(|o| put_tenths(o, 33.35)), "33.4");
        assert_eq!(text(|o| put_tenths(o, 0.25)), "0.2");
    }
}
