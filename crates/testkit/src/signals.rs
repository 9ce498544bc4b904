//! Signals to the process of a test.

use std::process::Command;

/// How often the process is stopped, so that other threads are waiting at least once.
const TIMES: usize = 20;

/// Stops this process with all its threads several times and lets it go on. The kernel then ends each waiting call on a
/// socket that has a timeout with EINTR, even without a handler (signal(7)).
///
/// # Panics
/// If `sh` cannot be run.
pub fn stop_and_continue() {
    let id = std::process::id();
    for _ in 0..TIMES {
        let status = Command::new("sh").args(["-c", &format!("kill -STOP {id}; kill -CONT {id}")]).status();
        assert!(status.is_ok_and(|status| status.success()), "the process could not be stopped and continued");
    }
}
