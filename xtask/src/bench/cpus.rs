//! Keeps the sender of packets and their reader on different CPUs while a burst is timed. The scheduler has them share
//! a CPU in one round and not in the next, and a reader that is kept waiting is woken less often.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// The CPU of the sender.
const FIRST: &str = "0";
/// The CPU of the reader.
const SECOND: &str = "1";

/// Keeps the calling thread, and what it starts, on the first CPU.
pub(super) fn stay_on_first() -> Result<()> {
    let link = std::fs::read_link("/proc/thread-self")?;
    let thread = link.file_name().and_then(|name| name.to_str()).context("/proc/thread-self ends with a number")?;
    taskset(&["-cp", FIRST, thread])
}

/// Keeps all threads of a process, and what they start, on the second CPU, where there is one.
pub(super) fn keep_on_second(pid: u32) -> Result<()> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return Ok(());
    }
    taskset(&["-acp", SECOND, &pid.to_string()])
}

fn taskset(words: &[&str]) -> Result<()> {
    let status = Command::new("taskset").args(words).stdout(Stdio::null()).status().context("taskset")?;
    ensure!(status.success(), "taskset {}: {status}", words.join(" "));
    Ok(())
}
