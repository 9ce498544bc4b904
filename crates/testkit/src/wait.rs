//! Waiting for a condition instead of for a time.

use crate::loud;
use crate::tasks::children;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Longest wait. A healthy condition holds within milliseconds; the bound is for a
/// machine that builds something else at the same time.
const BOUND: Duration = Duration::from_secs(60);

/// Pause between two looks: short enough not to be felt, long enough not to steal the CPU.
const PAUSE: Duration = Duration::from_micros(500);

/// Returns as soon as `holds` does; panics with `what` after a minute.
///
/// # Panics
/// When the condition never held.
#[track_caller]
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_or_tell(what, String::new, holds);
}

/// As [`wait_until`]; where it waited in vain, `told` is added, how things stand then.
///
/// # Panics
/// When the condition never held.
#[track_caller]
pub(crate) fn wait_or_tell(what: &str, told: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut looks = 0_u64;
    while !holds() {
        looks += 1;
        if start.elapsed() >= BOUND {
            let (told, children) = (told(), children());
            panic!("waited {BOUND:?} in vain for: {what} ({looks} looks){told}\n{children}");
        }
        std::thread::sleep(PAUSE);
    }
}

/// What `run` returns. If that takes half of the longest wait, the programs that run then are told.
pub fn told_if_late<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (running, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(BOUND / 2) == Err(RecvTimeoutError::Timeout) {
                loud(&format!("{what} has not ended after {:?}\n{}", BOUND / 2, children()));
            }
        });
        let returned = run();
        drop(running);
        returned
    })
}

/// How often two programs that show the same moving thing are asked before a difference is one.
const ROUNDS: usize = 20;

/// What `both` programs say once it is `equal`, or what they say after as many rounds as show that it will not be.
///
/// Between two runs a timer fires, an entry ends, another test's table is resized, a child of another test holds our
/// sockets until its exec: that goes by. A difference between the programs does not.
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
    fn a_difference_that_stays_is_told() {
        let mut rounds = 0;
        let counted = || {
            rounds += 1;
            rounds
        };
        assert_eq!(until_equal(counted, |said| *said == 3), 3);
        assert_eq!(until_equal(|| 7, |_| false), 7);
    }
}
