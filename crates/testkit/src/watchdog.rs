//! If a test hangs, prints where and ends its process, because otherwise the whole run would only be killed from
//! outside.
use crate::tasks::{children, threads};
use std::sync::Once;
use std::time::Duration;

/// Maximum number of seconds for a test process; `./netwren.sh test` sets it. Unset means no limit.
const LIMIT: &str = "NETWREN_TEST_LIMIT_S";

/// Starts the watchdog for this process, once.
pub(crate) fn watch() {
    static STARTED: Once = Once::new();
    let Some(limit) = std::env::var(LIMIT).ok().and_then(|seconds| seconds.parse().ok()) else { return };
    STARTED.call_once(|| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(limit));
            let (threads, children) = (threads(std::process::id()), children());
            crate::print_loud(&format!("after {limit} s these tests are not over ({LIMIT}):\n{threads}{children}"));
            std::process::abort();
        });
    });
}
