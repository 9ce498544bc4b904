//! A test that hangs says where, and ends its process: else a run of all tests would only be cut off by whoever waits
//! for it.
use crate::tasks::{children, threads};
use std::sync::Once;
use std::time::Duration;

/// Seconds that a process of tests may take; `./netwren.sh test` sets it. Without it nobody watches.
const LIMIT: &str = "NETWREN_TEST_LIMIT_S";

/// Watches this process from now on, once.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    let Some(limit) = std::env::var(LIMIT).ok().and_then(|seconds| seconds.parse().ok()) else { return };
    WATCHED.call_once(|| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(limit));
            let (threads, children) = (threads(std::process::id()), children());
            crate::loud(&format!("after {limit} s these tests are not over ({LIMIT}):\n{threads}{children}"));
            std::process::abort();
        });
    });
}
