//! Processes that do not run, although connections or data wait for them.

use record::Proto;
use record::rows::{Confidence, Evidence, Severity};

use super::accepting::idle_listeners;
use super::reach::Reach;
use super::unread::UnreadOf;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Hold, Holder, ProcessSeen, Queue, UnixKind};

pub(super) const CHECK: Check = Check {
    id: "process-stopped",
    needs: &[Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "services",
    about: "A process with waiting connections or data does not run: it is stopped, frozen, or hangs in the kernel.",
    rule: "A process owns a socket with a queue, and is stopped (state T or t), in a frozen control group, or its \
           first thread is in uninterruptible sleep (D), and nothing was taken from the queue within the window. It is \
           a hint if it serves no port and no path.",
    sources: "/proc/PID/stat and wchan; queues via sock_diag and unix_diag",
    refuted_by: "a STAT other than T, t or D in `ps -o pid,stat,wchan,comm -p PID`.",
    run,
};

/// Returns why the owner of a socket does not run; `None` if it does, or if other processes also hold the socket.
pub(super) fn hold_of(sample: &Sample, owner: &Holder) -> Option<Hold> {
    let process = sample.around.processes.iter().find(|one| Some(one.pid) == owner.pid && !owner.is_shared)?;
    process.hold.filter(|hold| !waits(sample, process.pid, *hold).evidence.is_empty())
}

/// The queues of a process, as evidence.
#[derive(Default)]
struct Waits {
    evidence: Vec<Evidence>,
    /// True if it serves others.
    serves: bool,
}

impl Waits {
    fn add(&mut self, name: String, count: u64, serves: bool) {
        self.evidence.push(state(name, i64::try_from(count).unwrap_or(i64::MAX), None));
        self.serves |= serves;
    }
}

/// Returns the queues of a process from which nothing was taken within the window: any process waits for a disk, or for
/// a tracer, now and then. One that is stopped may have been stopped within the window.
fn waits(sample: &Sample, pid: u32, hold: Hold) -> Waits {
    let is_own = |owner: &Holder| owner.pid == Some(pid) && !owner.is_shared;
    let is_sure = matches!(hold, Hold::Stopped | Hold::Frozen);
    let not_less = |now: &Queue, before: &[Queue]| {
        before.iter().find(|old| old.cookie == now.cookie).is_none_or(|old| old.queue <= now.queue)
    };
    let mut waits = Waits::default();
    let idle = if is_sure { Vec::new() } else { idle_listeners(sample) };
    for one in sample.after.listeners.iter().filter(|one| is_own(&one.owner)) {
        let is_idle = || idle.iter().any(|idle| idle.listener.cookie == one.cookie);
        if is_sure && not_less(one, &sample.before.listeners) || is_idle() {
            waits.add(format!("connections waiting in the accept queue of {}", one.name), one.queue.into(), true);
        }
    }
    let unread = UnreadOf::new(sample);
    for (port, (owner, name)) in sample.after.waiting.readers.iter().filter(|(_, (owner, _))| is_own(owner)) {
        let of = unread.of_port(*port);
        if of.read == 0 && (is_sure || of.stale > 0) {
            let serves = sample.after.served.contains(&(Proto::Tcp, *port));
            let name = format!("connections of {owner} with unread data, such as {name}");
            waits.add(name, of.all.into(), serves);
        }
    }
    let not_read = |one: &&Queue| is_sure && one.queue > 0 && not_less(one, &sample.before.udp);
    for one in sample.after.udp.iter().filter(|one| is_own(&one.owner)).filter(not_read) {
        let serves = sample.after.served.contains(&(Proto::Udp, one.port));
        waits.add(format!("unread bytes of {} (udp)", one.name), one.queue.into(), serves);
    }
    for one in sample.around.unix.iter().filter(|one| is_own(&one.owner) && (is_sure || one.is_same_first)) {
        let what = match one.kind {
            UnixKind::Listener => "connections waiting at",
            UnixKind::Datagrams => "bytes of the first datagram at",
            UnixKind::Streams => "connections with unread data at",
        };
        waits.add(format!("{what} {} (unix)", one.name), one.queue.1.into(), true);
    }
    waits
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for process in &sample.around.processes {
        let Some(hold) = process.hold else { continue };
        let waits = waits(sample, process.pid, hold);
        if waits.evidence.is_empty() {
            continue;
        }
        let confidence = if hold == Hold::Uninterruptible { Confidence::Likely } else { Confidence::Certain };
        let (command, effect) = mend(process, hold);
        found
            .add(Severity::Critical, confidence, format!("{} {}: it reads nothing", process.name, why(process, hold)))
            .object(process.name.clone())
            .proof(waits.evidence.into_iter().take(8))
            .cost("its clients and peers wait until it runs again")
            .reach(if waits.serves { Reach::part(1, 1) } else { Reach::Nobody }, "")
            .remedy(command, effect, "")
            .remedy("", "find out who stopped it: a shell, a debugger, a container runtime, a storage that hangs", "");
    }
}

fn why(process: &ProcessSeen, hold: Hold) -> String {
    match hold {
        Hold::Stopped => "is stopped by a signal (state T)".to_owned(),
        Hold::Traced => "is stopped by a debugger (state t)".to_owned(),
        Hold::Frozen => "is frozen by its control group".to_owned(),
        Hold::Uninterruptible if process.sleeps_in.is_empty() => "hangs in the kernel (state D)".to_owned(),
        Hold::Uninterruptible => format!("hangs in the kernel (state D, {})", process.sleeps_in),
    }
}

/// The command that mends it or shows more, and its effect.
fn mend(process: &ProcessSeen, hold: Hold) -> (String, &'static str) {
    let pid = process.pid;
    match hold {
        Hold::Stopped => (format!("kill -CONT {pid}"), "lets it continue"),
        Hold::Traced => (format!("grep TracerPid /proc/{pid}/status"), "shows the debugger that stopped it"),
        Hold::Frozen => (
            format!("cat /proc/{pid}/cgroup"),
            "shows its control group: `docker unpause`, or 0 in its cgroup.freeze, lets it continue",
        ),
        Hold::Uninterruptible => (format!("cat /proc/{pid}/stack"), "shows what it waits for, such as a disk or NFS"),
    }
}
