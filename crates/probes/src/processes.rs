//! The state of processes that own sockets with a queue.

use doctor::seen::{Hold, Holder, ProcessSeen, Sample};
use host::processes::Identity;
use record::Accounting;
use std::collections::BTreeMap;
use sys::{Host, SysError};

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round, keep_first};

/// Maximum number of processes to read per network namespace.
///
/// Bound: processes with waiting connections or data whose state `doctor` reads in a namespace. Beyond: the state of
/// further ones is unknown, counted (exit code 3). By: a local user with as many processes.
const PROCESSES_MAX: usize = 64;

/// Kernel functions in which the threads of a frozen control group sleep: kernel/signal.c, where the first may be
/// inlined, and kernel/freezer.c.
const FREEZERS: [&str; 3] = ["do_freezer_trap", "get_signal", "__refrigerator"];

/// Reads the state of processes for which something waits.
pub(crate) struct ProcessReader;

impl ProbeReader for ProcessReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        for sample in samples.values_mut() {
            // A process that has ended, or that a recording does not hold, is unknown: nothing else depends on it.
            let read = |(pid, name)| read(round.session.host(), pid, name, round.owners_ns).ok().flatten();
            let mut owners: Vec<(u32, String)> = owners(sample).into_iter().collect();
            keep_first(&mut owners, PROCESSES_MAX, "states of processes for which something waits", stats);
            sample.around.processes = owners.into_iter().filter_map(read).collect();
        }
    }
}

/// The processes that own sockets with a queue: pid and name.
fn owners(sample: &Sample) -> BTreeMap<u32, String> {
    let after = &sample.after;
    let queues = after.listeners.iter().chain(&after.unread).chain(after.udp.iter().filter(|one| one.queue > 0));
    let readers = after.waiting.readers.values().map(|(owner, _)| owner);
    let unix = sample.around.unix.iter().map(|one| &one.owner);
    let all = queues.map(|one| &one.owner).chain(readers).chain(unix);
    all.filter_map(|owner: &Holder| Some((owner.pid?, owner.process()))).collect()
}

/// Reads a process. Returns `None` if the pid now belongs to a process that started after `seen_ns`.
fn read(host: &Host, pid: u32, name: String, seen_ns: u64) -> Result<Option<ProcessSeen>, SysError> {
    if Identity::read(host, pid)?.started_after(seen_ns) {
        return Ok(None);
    }
    let (mut stat, mut wchan) = (Vec::new(), Vec::new());
    host.read_file(&format!("/proc/{pid}/task/{pid}/stat"), &mut stat)?;
    // The kernel writes 0 if this process may not trace the other.
    let sleeps_in = match host.read_file(&format!("/proc/{pid}/wchan"), &mut wchan) {
        Ok(()) if wchan != b"0" => String::from_utf8_lossy(&wchan).trim_end().to_owned(),
        _ => String::new(),
    };
    let hold = match state(&stat) {
        Some(b'T') => Some(Hold::Stopped),
        Some(b't') => Some(Hold::Traced),
        _ if FREEZERS.contains(&&*sleeps_in) => Some(Hold::Frozen),
        Some(b'D') => Some(Hold::Uninterruptible),
        _ => None,
    };
    Ok(Some(ProcessSeen { pid, name, hold, sleeps_in }))
}

/// The letter of the state in proc_pid_stat(5). The name before it may contain anything.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 1..)?.iter().copied().find(|byte| *byte != b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_as_the_kernel_writes_them() {
        assert_eq!(state(b"7 (sh) T 1 7 7 0 -1"), Some(b'T'));
        assert_eq!(state(b"7 (a) S (b) D 1 7 7 0 -1"), Some(b'D'));
        assert_eq!(state(b"7 (sh"), None);
    }
}
