//! Tests that expect to be shown as the holder of their sockets.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs of a test at most.
const RUNS: usize = 5;

/// Runs a test that expects this process to be the first holder of its sockets, again if another one may have been.
///
/// Until its exec a child of another test holds our sockets, too. Of several holders the one with the lowest number is
/// shown, and that is the child once the kernel has begun its numbers anew.
///
/// # Panics
/// As `test` does, if no child can have a lower number or after five runs.
pub fn as_first_holder(test: impl Fn()) {
    for _ in 1..RUNS {
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(()) => return,
            Err(failed) if !numbers_began_anew() => resume_unwind(failed),
            Err(_) => {}
        }
    }
    test();
}

/// True if the newest process has a lower number than this one.
fn numbers_began_anew() -> bool {
    let loads = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let newest = loads.split_whitespace().last().and_then(|number| number.parse::<u32>().ok());
    newest.is_some_and(|newest| newest < std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_holds_runs_once() {
        let runs = Cell::new(0);
        as_first_holder(|| runs.set(runs.get() + 1));
        assert_eq!(runs.get(), 1);
    }

    #[test]
    fn what_never_holds_fails() {
        let runs = Cell::new(0);
        let test = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() == 0, "as ever");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| as_first_holder(test))).is_err());
        assert!((1..=RUNS).contains(&runs.get()));
    }
}
