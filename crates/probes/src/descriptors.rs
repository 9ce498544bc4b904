//! Open files of processes with waiting connections.

use doctor::seen::{Descriptors, Holder, Queue};
use host::processes::Identity;
use record::Accounting;
use sys::{Errno, Host, SysError};

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round};

/// Maximum number of processes to check: those with the longest queues.
///
/// Bound: processes whose limit of descriptors `doctor` checks: those with the longest accept queues. Beyond: further
/// processes are not checked. By: a local user with as many listeners.
const PROCESSES_MAX: usize = 64;

/// The reason if a recording has no descriptors.
const NOT_RECORDED: &str =
    "the recording does not hold the file descriptors of processes (`doctor --record` records them)";

/// Removes the reason that a recording has no descriptors, which `record` does not save, for callers that show more
/// than findings.
pub fn forgive_missing(stats: &mut Accounting) {
    if stats.why.iter().any(|why| why.text == NOT_RECORDED) {
        stats.why.retain(|why| why.text != NOT_RECORDED);
        stats.unanswered = !stats.why.is_empty();
    }
}

/// Counts the file descriptors of processes that let connections wait.
pub(crate) struct DescriptorReader;

impl ProbeReader for DescriptorReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        for sample in samples.values_mut() {
            sample.descriptors = read(round.session.host(), &sample.after.listeners, round.owners_ns, stats);
        }
    }
}

/// Reads the descriptors of the processes that own `listeners`. The owners were read after `seen_ns`; a process that
/// started later may have reused the pid, and is left out.
fn read(host: &Host, listeners: &[Queue], seen_ns: u64, stats: &mut Accounting) -> Vec<Descriptors> {
    let mut holders: Vec<(u32, u32, &Holder)> =
        listeners.iter().filter_map(|one| Some((one.queue, one.owner.pid?, &one.owner))).collect();
    holders.sort_unstable_by(|a, b| b.cmp(a));
    let mut found: Vec<Descriptors> = Vec::new();
    let mut looked_at = Vec::new();
    for (_, pid, owner) in holders {
        if looked_at.contains(&pid) {
            continue;
        }
        if looked_at.len() == PROCESSES_MAX {
            let text = format!(
                "file descriptors of more than {PROCESSES_MAX} processes with waiting connections are not counted"
            );
            stats.incomplete(1, text);
            break;
        }
        looked_at.push(pid);
        match count(host, pid, seen_ns) {
            Ok(Some((used, (limit, hard_limit)))) => {
                found.push(Descriptors { process: owner.process(), pid, used, limit, hard_limit });
            }
            Ok(None) => {}
            Err(error) if error.errno.is_missing_object() => {}
            Err(error) if error.errno == Errno::NOT_RECORDED => {
                stats.unanswered = true;
                stats.add_reason(0, NOT_RECORDED);
            }
            Err(error) => {
                stats.incomplete(1, format!("file descriptors are not counted: {error}"));
            }
        }
    }
    found
}

/// The number of open descriptors and its limits; `None` if the pid now belongs to another process.
fn count(host: &Host, pid: u32, seen_ns: u64) -> Result<Option<(u64, Limits)>, SysError> {
    let before = Identity::read(host, pid)?;
    let (mut names, mut limits) = (Vec::new(), Vec::new());
    host.read_names(&format!("/proc/{pid}/fd"), &mut names)?;
    host.read_file(&format!("/proc/{pid}/limits"), &mut limits)?;
    let is_same = Identity::read(host, pid)? == before && !before.started_after(seen_ns);
    let used = names.iter().filter(|byte| **byte == 0).count();
    Ok(open_files(&limits).filter(|_| is_same).map(|limits| (used as u64, limits)))
}

/// Soft and hard limit.
type Limits = (u64, u64);

/// The limits on open files in /proc/PID/limits; `None` if the soft one is unlimited.
fn open_files(text: &[u8]) -> Option<Limits> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Max open files"))?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (soft, hard) = (words.next()?.parse().ok()?, words.next()?);
    Some((soft, hard.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_as_the_kernel_writes_them() {
        let text = b"Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             63341                63341                processes \n\
                     Max open files            1024                 524288               files     \n";
        assert_eq!(open_files(text), Some((1024, 524_288)));
        assert_eq!(open_files(b"Max open files            unlimited            unlimited            files\n"), None);
        assert_eq!(
            open_files(b"Max open files            9            unlimited            files\n"),
            Some((9, u64::MAX))
        );
        assert_eq!(open_files(b"Max open files"), None);
    }
}
