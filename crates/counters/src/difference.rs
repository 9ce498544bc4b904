//! The difference between two readings of a counter.
//!
//! A counter that is smaller than before has wrapped, or it was reset: a new interface, queueing discipline or
//! namespace got the same name. Only the size of the step distinguishes the two, so a difference is shown only if a
//! host could have counted that many in the time.

use record::rows::{CounterKind, CounterNote};

use crate::reading::Width;

/// Maximum steps per second of a 32-bit counter on a real host; a faster counter was reset.
const STEPS_PER_S_MAX: u64 = 100_000_000;

/// The difference, and a note about it.
pub(crate) fn compute_difference(
    kind: CounterKind,
    width: Width,
    before: i128,
    now: i128,
    window_ns: u64,
) -> (Option<i128>, Option<CounterNote>) {
    if now >= before || kind == CounterKind::Gauge {
        return (now.checked_sub(before), None);
    }
    let step = i128::from(u32::MAX) + 1 - before + now;
    let seconds = window_ns.div_ceil(1_000_000_000).max(1);
    let most = i128::from(STEPS_PER_S_MAX) * i128::from(seconds);
    if width == Width::Bits32 && (0..=most.min(u32::MAX.into())).contains(&step) {
        return (Some(step), Some(CounterNote::Wrapped));
    }
    (None, Some(CounterNote::Reset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_counter_that_wraps_or_restarts() {
        let of = |width, before, now| compute_difference(CounterKind::Counter, width, before, now, 1_000_000_000);
        let end = i128::from(u32::MAX);
        assert_eq!(of(Width::Bits64, 5, 7), (Some(2), None));
        assert_eq!(of(Width::Bits32, end, 0), (Some(1), Some(CounterNote::Wrapped)));
        assert_eq!(of(Width::Bits32, end - 10, 20), (Some(31), Some(CounterNote::Wrapped)));
        assert_eq!(of(Width::Bits32, 3_000_000_000, 10), (None, Some(CounterNote::Reset)), "1.3 G in a second");
        assert_eq!(of(Width::Bits32, 7, 5), (None, Some(CounterNote::Reset)));
        assert_eq!(of(Width::Bits64, end, 0), (None, Some(CounterNote::Reset)));
        assert_eq!(of(Width::Bits32, end + 9, 0), (None, Some(CounterNote::Reset)), "no value of 32 bits");
        let gauge = compute_difference(CounterKind::Gauge, Width::Bits32, 7, 5, 1);
        assert_eq!(gauge, (Some(-2), None));
    }

    proptest! {
        #[test]
        fn no_difference_is_invented(before: u32, step in 0u32..1_000_000) {
            let now = before.wrapping_add(step);
            let (delta, note) =
                compute_difference(CounterKind::Counter, Width::Bits32, before.into(), now.into(), 1_000_000_000);
            prop_assert_eq!(delta, Some(step.into()));
            prop_assert_eq!(note.is_some(), now < before);
        }
    }
}
