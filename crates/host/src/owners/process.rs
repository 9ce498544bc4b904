//! Decides which of a socket's holders uses it.
//!
//! Many sockets have several holders: a server that forks workers holds its listener, and so do the workers; systemd
//! holds the sockets that it passes to a service. netwren shows the first holder.
use record::Comm;
use sys::Host;

/// A child with its parent's name counts as a worker from this age on: a younger child may be about to run another
/// program.
const WORKER_AGE_NS: u64 = 1_000_000_000;

/// Facts about a process, except its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Process {
    /// Start time in ns since boot; 0 if unknown.
    pub(super) started_ns: u64,
    /// Pid of the parent; 0 if unknown.
    pub(super) parent: u32,
    /// True if the process only waits for its children, for a signal or for a time.
    pub(super) only_waits: bool,
}

impl Process {
    /// Reads this process from /proc, which takes 15 µs. Returns the default if the process has ended or is hidden.
    pub(super) fn read(host: &Host, pid: u32) -> Process {
        let Ok(stat) = crate::processes::Stat::read(host, pid) else { return Process::default() };
        let mut call = Vec::new();
        let only_waits =
            stat.threads == 1 && host.read_file(&format!("/proc/{pid}/syscall"), &mut call).is_ok() && is_wait(&call);
        Process { started_ns: stat.started_ns, parent: stat.parent, only_waits }
    }
}

/// True if a thread's `syscall` file begins with the number of wait4, waitid, pause, rt_sigsuspend, rt_sigtimedwait,
/// nanosleep or clock_nanosleep.
fn is_wait(call: &[u8]) -> bool {
    let numbers: &[i64] = if cfg!(target_arch = "x86_64") {
        &[61, 247, 34, 130, 128, 35, 230]
    } else if cfg!(target_arch = "aarch64") {
        &[260, 95, 133, 137, 101, 115]
    } else {
        &[]
    };
    let first = call.split(u8::is_ascii_whitespace).next().and_then(|word| std::str::from_utf8(word).ok());
    first.and_then(|word| word.parse().ok()).is_some_and(|number| numbers.contains(&number))
}

/// A descriptor table with its process and thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FdTable {
    pub(super) pid: u32,
    /// Differs from `pid` if a thread has its own table.
    pub(super) tid: u32,
    pub(super) comm: Comm,
    pub(super) process: Process,
}

impl FdTable {
    /// True if this holder only passes the socket on to `other`: it is an init, a parent that only waits, or a parent
    /// whose child has the same name and is old enough at `now_ns`.
    fn passes_on_to(&self, other: &FdTable, now_ns: u64) -> bool {
        let is_worker = || {
            let age_ns = now_ns.saturating_sub(other.process.started_ns);
            other.comm == self.comm && age_ns >= WORKER_AGE_NS
        };
        other.pid != self.pid
            && (self.pid == 1
                || self.comm.as_bytes() == b"systemd"
                || other.process.parent == self.pid && (self.process.only_waits || is_worker()))
    }

    /// Returns a sort key: holders that only pass the socket on come last, and the oldest of the others comes first.
    /// `holders` are the tables that hold the socket.
    pub(super) fn rank<'t>(
        &self,
        holders: impl IntoIterator<Item = &'t FdTable>,
        now_ns: u64,
    ) -> (bool, bool, u64, u32) {
        let passes_on = holders.into_iter().any(|other| self.passes_on_to(other, now_ns));
        let started_ns = self.process.started_ns;
        (passes_on, started_ns == 0, started_ns, self.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32, comm: &str, parent: u32, started_s: u64, only_waits: bool) -> FdTable {
        let process = Process { started_ns: started_s * 1_000_000_000, parent, only_waits };
        FdTable { pid, tid: pid, comm: Comm::new(comm.as_bytes()), process }
    }

    fn first(holders: &[FdTable]) -> u32 {
        let rank = |holder: &&FdTable| holder.rank(holders, 100_000_000_000);
        holders.iter().min_by_key(rank).map_or(0, |holder| holder.pid)
    }

    #[test]
    fn the_holder_that_is_shown() {
        let service = holder(50, "service", 1, 10, false);
        assert_eq!(first(&[holder(1, "init", 0, 1, false), service]), 50, "pid 1 passes it on");
        assert_eq!(first(&[holder(9, "systemd", 1, 1, false), service]), 50, "and so does a user's systemd");
        let worker = |pid, started_s| holder(pid, "nginx", 60, started_s, false);
        assert_eq!(first(&[holder(60, "nginx", 1, 10, false), worker(61, 20), worker(62, 30)]), 61, "workers accept");
        assert_eq!(first(&[holder(60, "nginx", 1, 10, false), worker(5, 100)]), 60, "a child just forked");
        assert_eq!(first(&[holder(70, "app", 1, 10, false), holder(71, "sh", 70, 20, false)]), 70, "a leak");
        assert_eq!(first(&[holder(70, "manager", 1, 10, true), holder(71, "app", 70, 20, false)]), 71, "it only waits");
        assert_eq!(first(&[holder(70, "app", 1, 10, true), holder(71, "sh", 1, 20, false)]), 70, "not for that one");
        assert_eq!(first(&[holder(9000, "a", 1, 10, false), holder(300, "b", 1, 20, false)]), 9000, "the oldest");
        assert_eq!(first(&[holder(9, "a", 1, 0, false), holder(10, "b", 1, 20, false)]), 10, "a known start");
        assert_eq!(first(&[holder(1, "init", 0, 1, false)]), 1, "nobody else");
    }

    #[test]
    fn calls_that_wait() {
        assert!(!is_wait(b"running\n") && !is_wait(b"") && !is_wait(b"-1 0x0 0x0\n"));
        #[cfg(target_arch = "x86_64")]
        assert!(is_wait(b"61 0xffff 0x7ffd 0x0 0x0 0x0 0x0 0x7ffd 0x7f\n") && !is_wait(b"288 0x3 0x0\n"));
    }
}
