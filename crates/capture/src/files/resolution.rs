//! Units of time stamps.

use record::FarTime;

/// Converts time stamps of a file to ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolution {
    /// A unit is `times / over` ns.
    times: u64,
    over: u64,
    /// Seconds to add to each time stamp.
    pub(super) offset_s: i64,
}

const S: u64 = 1_000_000_000;

impl Resolution {
    pub(super) const MICROSECONDS: Resolution = Resolution { times: 1000, over: 1, offset_s: 0 };

    /// The unit in the option `if_tsresol`: a power of ten, or with the top bit set a power of two. Units too small for
    /// 64 bits are treated as the smallest that fits.
    pub(super) fn of(byte: u8) -> Resolution {
        let power = u32::from(byte & 0x7f);
        let units = match byte & 0x80 {
            0 => 10u64.checked_pow(power).unwrap_or(10u64.pow(19)),
            _ => 1u64.checked_shl(power).unwrap_or(1 << 63),
        };
        if S % units == 0 {
            Resolution { times: S / units, over: 1, offset_s: 0 }
        } else {
            Resolution { times: S, over: units, offset_s: 0 }
        }
    }

    /// Nanoseconds since 1970, rounded down.
    #[inline]
    pub(super) fn ns(self, stamp: u64) -> Result<u64, FarTime> {
        if let (1, 0, Some(ns)) = (self.over, self.offset_s, stamp.checked_mul(self.times)) {
            return Ok(ns);
        }
        let ns = i128::from(stamp) * i128::from(self.times) / i128::from(self.over);
        FarTime::split(ns + i128::from(self.offset_s) * i128::from(S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_ten_or_two() {
        for (byte, stamp, ns) in [
            (6, 1_700_000_000_000_001, 1_700_000_000_000_001_000),
            (9, 1_700_000_000_000_000_001, 1_700_000_000_000_000_001),
            (3, 1_500, 1_500_000_000),
            (0, 2, 2_000_000_000),
            (0x80 | 1, 3, 1_500_000_000),
            (0x80 | 10, 1024, 1_000_000_000),
            (12, 1_999, 1),
            (127, u64::MAX, 1_844_674_407),
            (0xff, 1 << 63, 1_000_000_000),
        ] {
            assert_eq!(Resolution::of(byte).ns(stamp), Ok(ns), "{byte:#x}");
        }
        let moved = |offset_s| Resolution { offset_s, ..Resolution::of(6) };
        assert_eq!(moved(3).ns(5), Ok(3_000_005_000));
        let far = |resolution: Resolution, stamp| resolution.ns(stamp).map_err(FarTime::nanoseconds);
        assert_eq!(far(moved(-1), 5), Err(-999_995_000));
        assert_eq!(far(moved(i64::MIN), 5), Err(i128::from(i64::MIN) * i128::from(S) + 5000));
        assert_eq!(far(moved(i64::MAX), 5), Err(i128::from(i64::MAX) * i128::from(S) + 5000));
        assert_eq!(far(Resolution::of(0), 1 << 40), Err((1 << 40) * i128::from(S)));
        assert_eq!(far(Resolution::of(6), u64::MAX), Err(i128::from(u64::MAX) * 1000));
    }
}
