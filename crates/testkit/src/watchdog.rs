//! A test that hangs says where, and ends its process: else a run of all tests would only be cut off by whoever waits
//! for it.
use std::fmt::Write;
use std::path::Path;
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
            crate::loud(&format!("after {limit} s these tests are not over ({LIMIT}); every thread:\n{}", threads()));
            std::process::abort();
        });
    });
}

/// Name, state and place of every thread of this process, as far as the kernel tells. A thread is called as its test.
fn threads() -> String {
    let mut text = String::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let ask = |file: &str| std::fs::read_to_string(Path::new(&task.path()).join(file)).unwrap_or_default();
        let state = ask("status").lines().find_map(|line| line.strip_prefix("State:").map(|s| s.trim().to_owned()));
        let (name, syscall, stack) = (ask("comm"), ask("syscall"), ask("stack"));
        let _ = writeln!(
            text,
            "{} {}: {}, system call {}",
            task.file_name().to_string_lossy(),
            name.trim_end(),
            state.unwrap_or_default(),
            syscall.trim_end()
        );
        for line in stack.lines().take(8) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_is_named() {
        let named = std::thread::Builder::new().name("i-am-here".to_owned());
        let said = named.spawn(threads).unwrap().join().unwrap();
        assert!(said.contains(" i-am-here: R"), "{said}");
    }
}
