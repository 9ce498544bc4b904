//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// Longest wait. A healthy condition holds within milliseconds; the bound is for a
/// machine that builds something else at the same time.
const BOUND: Duration = Duration::from_secs(60);

/// Pause between two looks: short enough not to be felt, long enough not to steal the CPU.
const PAUSE: Duration = Duration::from_micros(500);

/// Returns as soon as `holds` does; panics with `what` after 20 s.
///
/// # Panics
/// When the condition never held.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut looks = 0_u64;
    loop {
        looks += 1;
        if holds() {
            return;
        }
        assert!(start.elapsed() < BOUND, "waited {BOUND:?} in vain for: {what} ({looks} looks)");
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_at_once_when_it_holds() {
        let mut looks = 0;
        wait_until("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }
}
