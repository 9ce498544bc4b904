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
    stay_on(FIRST)
}

/// Keeps the calling thread, and what it starts, on the second CPU, where there is one.
pub(super) fn stay_on_second() -> Result<()> {
    if has_second() { stay_on(SECOND) } else { Ok(()) }
}

fn stay_on(cpu: &str) -> Result<()> {
    let link = std::fs::read_link("/proc/thread-self")?;
    let thread = link.file_name().and_then(|name| name.to_str()).context("/proc/thread-self ends with a number")?;
    taskset(&["-cp", cpu, thread])
}

/// Keeps all threads of a process, and what they start, on the second CPU, where there is one.
pub(super) fn keep_on_second(pid: u32) -> Result<()> {
    if has_second() { taskset(&["-acp", SECOND, &pid.to_string()]) } else { Ok(()) }
}

/// True unless there is one CPU only.
fn has_second() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

fn taskset(words: &[&str]) -> Result<()> {
    let status = Command::new("taskset").args(words).stdout(Stdio::null()).status().context("taskset")?;
    ensure!(status.success(), "taskset {}: {status}", words.join(" "));
    Ok(())
}
