//! Processes that do not run, although connections or data wait for them.

use record::Proto;
use record::rows::{Confidence, Evidence, Severity};
use std::collections::{BTreeMap, BTreeSet};

use super::accepting::{by_identity, idle_listeners};
use super::reach::Reach;
use super::unread::UnreadOf;
use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Hold, Holder, ProcessSeen, Queue, UnixKind};

/// Most queues of a process that the evidence names.
const SHOWN_MAX: usize = 8;

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

/// Processes that do not run and have something waiting, by process id.
pub(super) struct Held(BTreeSet<u32>);

impl Held {
    pub(super) fn new(sample: &Sample) -> Held {
        Held(waits(sample).into_keys().collect())
    }

    /// True if the owner of a socket does not run, and no other process also holds the socket.
    pub(super) fn has(&self, owner: &Holder) -> bool {
        !owner.is_shared && owner.pid.is_some_and(|pid| self.0.contains(&pid))
    }
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
        if self.evidence.len() < SHOWN_MAX {
            self.evidence.push(state(name, i64::try_from(count).unwrap_or(i64::MAX), None));
        }
        self.serves |= serves;
    }
}

/// Returns the queues of processes that do not run, from which nothing was taken within the window, by process id: any
/// process waits for a disk, or for a tracer, now and then. One that is stopped may have been so within the window.
fn waits(sample: &Sample) -> BTreeMap<u32, Waits> {
    let held: BTreeMap<u32, Hold> =
        sample.around.processes.iter().filter_map(|one| Some((one.pid, one.hold?))).collect();
    let mut waits: BTreeMap<u32, Waits> = BTreeMap::new();
    if held.is_empty() {
        return waits;
    }
    // The process id, and true if it certainly does not run.
    let of = |owner: &Holder| {
        let pid = owner.pid.filter(|_| !owner.is_shared)?;
        Some((pid, matches!(held.get(&pid)?, Hold::Stopped | Hold::Frozen)))
    };
    let not_less = |now: &Queue, before: &BTreeMap<u64, &Queue>| {
        before.get(&now.identity).is_none_or(|old| old.queue <= now.queue)
    };
    let idle: BTreeSet<u64> = idle_listeners(sample).iter().map(|one| one.listener.identity).collect();
    let before = by_identity(&sample.before.listeners);
    for one in &sample.after.listeners {
        let Some((pid, is_sure)) = of(&one.owner) else { continue };
        if is_sure && not_less(one, &before) || idle.contains(&one.identity) {
            let name = format!("connections waiting in the accept queue of {}", one.name);
            waits.entry(pid).or_default().add(name, one.queue.into(), true);
        }
    }
    let unread = UnreadOf::new(sample);
    for (port, (owner, name)) in &sample.after.waiting.readers {
        let Some((pid, is_sure)) = of(owner) else { continue };
        let of_port = unread.of_port(*port);
        if of_port.read == 0 && (is_sure || of_port.stale > 0) {
            let serves = sample.after.served.contains_key(&(Proto::Tcp, *port));
            let name = format!("connections of {owner} with unread data, such as {name}");
            waits.entry(pid).or_default().add(name, of_port.all.into(), serves);
        }
    }
    let before = by_identity(&sample.before.udp);
    for one in &sample.after.udp {
        let Some((pid, true)) = of(&one.owner) else { continue };
        if one.queue > 0 && not_less(one, &before) {
            let serves = sample.after.served.contains_key(&(Proto::Udp, one.port));
            waits.entry(pid).or_default().add(format!("unread bytes of {} (udp)", one.name), one.queue.into(), serves);
        }
    }
    for one in &sample.around.unix {
        let Some((pid, is_sure)) = of(&one.owner) else { continue };
        if is_sure || one.is_same_first {
            let what = match one.kind {
                UnixKind::Listener => "connections waiting at",
                UnixKind::Datagrams => "bytes of the first datagram at",
                UnixKind::Streams => "connections with unread data at",
            };
            waits.entry(pid).or_default().add(format!("{what} {} (unix)", one.name), one.queue.1.into(), true);
        }
    }
    waits
}

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let mut all = waits(sample);
    for process in &sample.around.processes {
        let Some(hold) = process.hold else { continue };
        let Some(waits) = all.remove(&process.pid) else { continue };
        let confidence = if hold == Hold::Uninterruptible { Confidence::Likely } else { Confidence::Certain };
        let (command, effect) = mend(process, hold);
        found
            .add(Severity::Critical, confidence, format!("{} {}: it reads nothing", process.name, why(process, hold)))
            .object(process.name.clone())
            .proof(waits.evidence)
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
