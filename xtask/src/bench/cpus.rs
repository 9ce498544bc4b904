//! Pins the sender of packets and their reader to different CPUs while a burst is timed. Otherwise the scheduler would
//! have them share a CPU in some rounds and not in others, and a reader that has to wait is woken less often.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// The CPU of the sender.
const FIRST: &str = "0";
/// The CPU of the reader.
const SECOND: &str = "1";

/// Pins the calling thread, and the threads and processes it starts, to the first CPU.
pub(super) fn stay_on_first() -> Result<()> {
    stay_on(FIRST)
}

/// Pins the calling thread, and the threads and processes it starts, to the second CPU if the machine has one.
pub(super) fn stay_on_second() -> Result<()> {
    if has_second() { stay_on(SECOND) } else { Ok(()) }
}

fn stay_on(cpu: &str) -> Result<()> {
    let link = std::fs::read_link("/proc/thread-self")?;
    let thread = link.file_name().and_then(|name| name.to_str()).context("/proc/thread-self ends with a number")?;
    taskset(&["-cp", cpu, thread])
}

/// Pins all threads of a process, and the processes they start, to the second CPU if the machine has one.
pub(super) fn keep_on_second(pid: u32) -> Result<()> {
    if has_second() { taskset(&["-acp", SECOND, &pid.to_string()]) } else { Ok(()) }
}

/// True if the machine has more than one CPU.
fn has_second() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

fn taskset(words: &[&str]) -> Result<()> {
    let status = Command::new("taskset").args(words).stdout(Stdio::null()).status().context("taskset")?;
    ensure!(status.success(), "taskset {}: {status}", words.join(" "));
    Ok(())
}
