//! Waits for conditions instead of fixed times.

use crate::print_loud;
use crate::tasks::children;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Maximum wait. A condition normally holds within milliseconds; the limit is for a machine that is compiling at the
/// same time.
const BOUND: Duration = Duration::from_secs(60);

/// Pause between checks: too short to notice, and long enough to save CPU time.
const CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// Returns as soon as `holds` is true; panics with `what` after a minute.
///
/// # Panics
/// If the condition did not hold in time.
#[track_caller]
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_or_panic(what, String::new, holds);
}

/// Like [`wait_until`]; the panic message includes the result of `told`, which describes the current state.
///
/// # Panics
/// If the condition did not hold in time.
#[track_caller]
pub(crate) fn wait_or_panic(what: &str, told: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut looks = 0_u64;
    while !holds() {
        looks += 1;
        if start.elapsed() >= BOUND {
            let (told, children) = (told(), children());
            panic!("waited {BOUND:?} in vain for: {what} ({looks} looks){told}\n{children}");
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Returns the result of `run`. If it takes half of the maximum wait, prints the programs that are running then.
pub fn report_if_late<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(BOUND / 2) == Err(RecvTimeoutError::Timeout) {
                print_loud(&format!("{what} has not ended after {:?}\n{}", BOUND / 2, children()));
            }
        });
        let returned = run();
        drop(running);
        returned
    })
}

/// Number of times that two programs are run on changing data before a difference counts.
const ROUNDS: usize = 20;

/// The results of `both` programs once they are `equal`, or the last results after the maximum number of rounds.
///
/// Between two runs a timer may fire, an entry may end, another test's table may be resized, or a child of another
/// test may hold sockets until its exec. Such differences disappear; a difference between the programs does not.
pub fn until_equal<T>(mut both: impl FnMut() -> T, mut equal: impl FnMut(&T) -> bool) -> T {
    for _ in 1..ROUNDS {
        let said = both();
        if equal(&said) {
            return said;
        }
    }
    both()
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

    #[test]
    fn a_lasting_difference_is_reported() {
        let mut rounds = 0;
        let counted = || {
            rounds += 1;
            rounds
        };
        assert_eq!(until_equal(counted, |said| *said == 3), 3);
        assert_eq!(until_equal(|| 7, |_| false), 7);
    }
}
