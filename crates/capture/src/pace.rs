//! Decides when to wait for a wake-up, and when to sleep.
//!
//! A wake-up costs several µs on both sides for each packet, but only if a thread waits for it. So the reader polls
//! while packets are rare, and hands over each as soon as it arrives; while there are many, it sleeps for a short time
//! and then takes all that have arrived. There is one ring, no packet is repeated, and order is kept (figures:
//! docs/adr/0023).

use std::time::Duration;

/// With more packets than this in the time of a sleep, sleeping is cheaper than waking up.
const MANY: u64 = 8;
/// With fewer packets than this in a sleep, packets count as rare again.
const FEW: u64 = 4;

/// How packets get from the kernel to the reader.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Each packet as soon as it arrives, as far as the pace allows: for lines and streams that a reader waits for.
    AtOnce(Pacing),
    /// Many together, once a block of the ring is full or after a timeout: for files. The cheapest way.
    InBlocks {
        /// Timeout of a block in milliseconds, at least 1.
        retire_ms: u32,
    },
}

/// Chooses how to wait. Does no I/O itself.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// Duration of a sleep; `None` to always poll.
    sleep: Option<Duration>,
    is_dense: bool,
    /// Start of the interval in which packets are counted, on any clock in ns.
    window_ns: u64,
    in_window: u64,
}

/// How to wait for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Wait until the kernel reports a packet.
    Poll,
    /// Sleep for this time, then take all packets that have arrived.
    Sleep(Duration),
}

impl Pacing {
    /// The default: under load each packet is delayed by 0.1 to 0.4 ms, with a thirtieth of the wake-ups.
    pub const AUTO: Duration = Duration::from_micros(330);

    /// Sleeps for this time while there are many packets; `None` to never sleep.
    pub fn new(sleep: Option<Duration>) -> Pacing {
        Pacing { sleep, is_dense: false, window_ns: 0, in_window: 0 }
    }

    /// How to wait, given the number of packets since the last call.
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
