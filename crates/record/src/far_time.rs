//! Points in time that 64 bits of nanoseconds since 1970 cannot hold.

/// Nanoseconds of a second.
const SECOND_NS: i128 = 1_000_000_000;

/// A point in time before 1970-01-01 or after 2554-07-21, where an unsigned number of 64 bits that counts nanoseconds
/// since 1970 ends. Only files of packets have such times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FarTime {
    second: i64,
    nanos: u32,
}

impl FarTime {
    /// Returns `ns`, nanoseconds since 1970, as 64 bits, or as a far time if it does not fit. Seconds that do not fit
    /// into 64 bits, 292 billion years from now, become the nearest that do.
    pub fn split(ns: i128) -> Result<u64, FarTime> {
        u64::try_from(ns).map_err(|_| {
            let nearest = if ns < 0 { i64::MIN } else { i64::MAX };
            let second = i64::try_from(ns.div_euclid(SECOND_NS)).unwrap_or(nearest);
            FarTime { second, nanos: ns.rem_euclid(SECOND_NS) as u32 }
        })
    }

    /// Nanoseconds since 1970.
    pub fn nanoseconds(self) -> i128 {
        i128::from(self.second) * SECOND_NS + i128::from(self.nanos)
    }

    /// Seconds since 1970, rounded down.
    pub fn second(self) -> i64 {
        self.second
    }

    /// Nanoseconds since the beginning of that second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// True for a time before 1970; false for one after 2554.
    pub fn is_before_1970(self) -> bool {
        self.second < 0
    }

    /// The nearest time that 64 bits hold, in nanoseconds since 1970.
    pub fn nearest_ns(self) -> u64 {
        if self.is_before_1970() { 0 } else { u64::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_that_do_not_fit_are_far() {
        for ns in [0, 1, i128::from(u64::MAX)] {
            assert_eq!(FarTime::split(ns).map(i128::from), Ok(ns));
        }
        let far = |ns: i128| FarTime::split(ns).err().map(|far| (far.second(), far.nanos(), far.nearest_ns()));
        assert_eq!(far(-1), Some((-1, 999_999_999, 0)));
        assert_eq!(far(i128::from(u64::MAX) + 1), Some((18_446_744_073, 709_551_616, u64::MAX)));
        assert_eq!(far(i128::MAX).map(|far| far.0), Some(i64::MAX));
        assert_eq!(far(i128::MIN).map(|far| far.0), Some(i64::MIN));
        for ns in [-1, -1_000_000_000, -1_000_000_001, i128::from(u64::MAX) + 1, 1 << 90] {
            assert_eq!(FarTime::split(ns).map_err(FarTime::nanoseconds), Err(ns));
        }
    }

    #[test]
    fn far_times_have_an_order() {
        let far = |ns| FarTime::split(ns).err();
        assert!(far(-2_000_000_001) < far(-2_000_000_000) && far(-1) < far(1 << 70) && far(1 << 70) < far(1 << 71));
    }
}
