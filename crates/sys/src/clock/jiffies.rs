//! The rate of the kernel's tick counter, which the kernel does not report.

/// The possible rates (CONFIG_HZ).
const RATES: [u32; 10] = [100, 250, 300, 1000, 128, 256, 1024, 24, 48, 1200];

/// Computes the ticks per second from the tick counter and the monotonic clock, read at the same moment.
///
/// Ticks start 300 seconds before they overflow 32 bits (INITIAL_JIFFIES, include/linux/jiffies.h). The ticks and the
/// monotonic clock stop together.
pub fn jiffies_per_second(jiffies: u64, monotonic_ns: u64) -> u32 {
    let ticks = jiffies as f64 - (1u64 << 32) as f64;
    let seconds = monotonic_ns as f64 / 1e9 - 300.0;
    let off = |rate: u32| (seconds * f64::from(rate) - ticks).abs();
    RATES.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(250)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_from_the_ticks() {
        for hz in [100u32, 250, 300, 1000] {
            for seconds in [1u64, 200, 400, 86_400, 40_000_000] {
                let ticks = (1 << 32) - 300 * u64::from(hz) + u64::from(hz) * seconds;
                assert_eq!(jiffies_per_second(ticks, seconds * 1_000_000_000 + 3_000_000), hz, "{hz} Hz, {seconds} s");
            }
        }
        let _ = jiffies_per_second(u64::MAX, u64::MAX);
    }
}
