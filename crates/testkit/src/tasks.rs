//! Describes the processes of a test, for messages about one that does not respond.

use std::fmt::Write;
use std::fs;

/// Maximum depth to which child processes are followed.
const DEPTH_MAX: usize = 4;
/// Maximum number of lines of a thread's kernel stack.
const FRAMES_MAX: usize = 8;

/// The threads of process `pid`: tid, name (a test's thread has the name of the test), state, system call, and the
/// kernel stack if it is readable.
pub(crate) fn threads(pid: u32) -> String {
    let mut told = String::new();
    for task in numbers_in(&format!("/proc/{pid}/task")) {
        let of = |file: &str| read(&format!("/proc/{pid}/task/{task}/{file}"));
        let (name, status, call, stack) = (of("comm"), of("status"), of("syscall"), of("stack"));
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or("gone").trim();
        // Writing to a string cannot fail.
        let _ = writeln!(told, "{task} {}: {state}, system call {call}", name.escape_debug());
        for frame in stack.lines().take(FRAMES_MAX) {
            let _ = writeln!(told, "    {frame}");
        }
    }
    told
}

/// The child processes of this process and their children, each with its threads and the targets of its first
/// descriptors.
pub(crate) fn children() -> String {
    let mut told = String::new();
    add_children(std::process::id(), &mut told, 0);
    told
}

fn add_children(parent: u32, told: &mut String, depth: usize) {
    if depth == DEPTH_MAX {
        return;
    }
    for task in numbers_in(&format!("/proc/{parent}/task")) {
        let list = read(&format!("/proc/{parent}/task/{task}/children"));
        for pid in list.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
            let words = read(&format!("/proc/{pid}/cmdline")).replace('\0', " ");
            let _ = writeln!(told, "process {pid} {}", words.trim_end().escape_debug());
            for number in 0..3 {
                let link = fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap_or_default();
                let _ = writeln!(told, "  descriptor {number}: {}", link.display());
            }
            told.push_str(&threads(pid));
            add_children(pid, told, depth + 1);
        }
    }
}

fn numbers_in(dir: &str) -> Vec<u32> {
    let list = fs::read_dir(dir).into_iter().flatten().flatten();
    list.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Text of a file without the last newline; empty if it is unreadable.
fn read(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn every_thread_is_named() {
        let named = std::thread::Builder::new().name("i-am-here".to_owned());
        let said = named.spawn(|| threads(std::process::id())).unwrap().join().unwrap();
        assert!(said.contains(" i-am-here: R"), "{said}");
    }

    #[test]
    fn a_waiting_program_is_reported() {
        let mut child = Command::new("cat").arg("-").stdin(Stdio::piped()).spawn().unwrap();
        let begin = format!("process {} cat -\n  descriptor 0: pipe:", child.id());
        crate::wait_until("it waits", || {
            let told = children();
            told.contains(&begin) && told.contains(" cat: S (sleeping), system call ")
        });
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
