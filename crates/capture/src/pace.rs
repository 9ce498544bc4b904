//! When to wait for a wake-up, and when to sleep.
//!
//! A wake-up for each packet costs several µs on both sides, but only if somebody waits for it. So: poll while packets
//! are rare, and each is handed over as soon as it is there; while they are many, sleep for a short time and take all
//! that have come. One ring, no packet twice, none out of order (figures: docs/adr/0023).

use std::time::Duration;

/// More packets than these in the time of a sleep, and a sleep is cheaper than their wake-ups.
const MANY: u64 = 8;
/// Fewer than these in a sleep, and packets are rare again.
const FEW: u64 = 4;

/// How packets get from the kernel to the reader.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Each as soon as it is there, as far as the pace allows: for lines and streams that somebody waits for.
    AtOnce(Pacing),
    /// Many together, once a block of the ring is full or after so many milliseconds: for files. It costs least.
    InBlocks {
        /// From 1 on.
        retire_ms: u32,
    },
}

/// Chooses how to wait. Pure.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// Time of a sleep; `None` to poll always.
    sleep: Option<Duration>,
    is_dense: bool,
    /// Beginning of the time in which packets are counted, on any clock in ns.
    window_ns: u64,
    in_window: u64,
}

/// How to wait for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the kernel says that there is one.
    Poll,
    /// So long, and then take all that have come.
    Sleep(Duration),
}

impl Pacing {
    /// The default: while packets are many, each comes 0.1 to 0.4 ms later, for a thirtieth of the wake-ups.
    pub const AUTO: Duration = Duration::from_micros(330);

    /// Sleeps for so long while packets are many; `None`: never.
    pub fn new(sleep: Option<Duration>) -> Pacing {
        Pacing { sleep, is_dense: false, window_ns: 0, in_window: 0 }
    }

    /// How to wait now that `packets` have come since the last call.
    pub fn next(&mut self, now_ns: u64, packets: u64) -> Wait {
        let Some(sleep) = self.sleep else { return Wait::Poll };
        if self.is_dense {
            self.is_dense = packets >= FEW;
        } else {
            self.in_window += packets;
            let window_ns = u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX);
            if now_ns.saturating_sub(self.window_ns) > window_ns {
                self.is_dense = self.in_window > MANY;
                (self.window_ns, self.in_window) = (now_ns, 0);
            }
        }
        if self.is_dense { Wait::Sleep(sleep) } else { Wait::Poll }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_while_packets_are_many_only() {
        let mut pace = Pacing::new(Some(Pacing::AUTO));
        let sleep = Wait::Sleep(Pacing::AUTO);
        assert_eq!(pace.next(1_000_000, 1), Wait::Poll, "the first");
        for nth in 1..20u64 {
            assert_eq!(pace.next(1_000_000 + nth * 100_000, 1), Wait::Poll, "ten thousand a second");
        }
        let begin = 10_000_000;
        let waits: Vec<Wait> = (0..40).map(|nth| pace.next(begin + nth * 10_000, 1)).collect();
        assert!(waits.contains(&sleep), "a hundred thousand a second");
        assert_eq!(pace.next(20_000_000, 25), sleep);
        assert_eq!(pace.next(20_300_000, 4), sleep);
        assert_eq!(pace.next(20_600_000, 3), Wait::Poll, "rare again");
        assert_eq!(pace.next(20_600_001, 3), Wait::Poll);
    }

    #[test]
    fn without_a_sleep_it_polls() {
        let mut pace = Pacing::new(None);
        assert!((0..100).all(|nth| pace.next(nth, 100) == Wait::Poll));
    }
}
