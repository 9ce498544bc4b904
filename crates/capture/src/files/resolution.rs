//! Units of time stamps.

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

    /// Time in ns since 1970, limited to the range from 1970 to the year 2554.
    #[inline]
    pub(super) fn ns(self, stamp: u64) -> u64 {
        if (self.over, self.offset_s) == (1, 0) {
            return stamp.saturating_mul(self.times);
        }
        let ns = i128::from(stamp) * i128::from(self.times) / i128::from(self.over);
        let ns = ns + i128::from(self.offset_s) * i128::from(S);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
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
            (0, u64::MAX, u64::MAX),
        ] {
            assert_eq!(Resolution::of(byte).ns(stamp), ns, "{byte:#x}");
        }
        let moved = |offset_s| Resolution { offset_s, ..Resolution::of(6) };
        assert_eq!(moved(3).ns(5), 3_000_005_000);
        assert_eq!(moved(i64::MIN).ns(5), 0);
        assert_eq!(moved(i64::MAX).ns(5), u64::MAX);
    }
}
