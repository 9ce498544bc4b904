//! Listeners whose program accepts nothing, although their queue has room.

use record::rows::CounterSource::Netstat;
use record::rows::{Confidence, Evidence, Severity};

use super::accepting::{Idle, idle_listeners};
use super::fd_limit::is_near_limit;
use super::process_stopped::Held;
use super::reach::Reach;
use super::words::{look_at, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest waiting connections for more than a hint if none arrived within the window.
const SOME: u32 = 3;

pub(super) const CHECK: Check = Check {
    id: "not-accepting",
    needs: &[Probe::Descriptors, Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "tcp",
    about: "A program accepts no connections: they wait in its accept queue, which is not full yet.",
    rule: "Connections wait in a listener's accept queue at both readings, not fewer at the second, and those of the \
           first still wait. It is critical if connections arrived within the window and no other listener has the \
           port; a hint if fewer than 3 wait and none arrived.",
    sources: "accept queues of listeners, and established connections without an owner, via sock_diag",
    refuted_by: "an accept queue that becomes shorter in `netwren sockets 'state = listen' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let held = Held::new(sample);
    for one in idle_listeners(sample).iter().filter(|one| !is_reported(sample, one, &held)) {
        let (listener, before) = (one.listener, one.before);
        let grown = listener.queue - before;
        let others = sample.after.waiting.listeners.get(&listener.port).copied().unwrap_or(1).saturating_sub(1);
        let hurt = u64::from(grown > 0 || listener.queue >= SOME);
        let reach = Reach::part(hurt, if others > 0 || grown == 0 { 10 } else { 1 });
        let beside = match others {
            0 => String::new(),
            1 => "; another listener has the same port".to_owned(),
            more => format!("; {more} other listeners have the same port"),
        };
        let title =
            format!("{} does not accept connections: {} wait in its accept queue", listener.words(), listener.queue);
        found
            .add(Severity::Critical, Confidence::Likely, title)
            .socket(listener)
            .proof([Evidence {
                counter: format!("accept queue of {}", listener.name),
                before: Some(before.into()),
                after: listener.queue.into(),
                limit: listener.limit.map(i64::from),
            }])
            .proof([state("connections that waited at the first reading and have not been accepted", before, None)])
            .cost(format!("its clients wait for an answer, {grown} more than at the first reading{beside}"))
            .reach(reach, "")
            .remedy(look_at(listener.owner.pid), "shows where its threads wait: a lock, a disk, another host", "")
            .remedy("", "a restart of the program drops the waiting connections, and its clients can try again", "");
    }
}

/// True if another check reports it, or the reason for it.
fn is_reported(sample: &Sample, one: &Idle<'_>, held: &Held) -> bool {
    let listener = one.listener;
    let is_full = |queue: u32| listener.limit.is_some_and(|limit| queue > limit);
    let overflows = sample.grown(Netstat, "TcpExtListenOverflows") > 0;
    let is_out_of_files = sample.descriptors.iter().any(|of| Some(of.pid) == listener.owner.pid && is_near_limit(of));
    is_full(listener.queue) && (overflows || is_full(one.before)) || is_out_of_files || held.has(&listener.owner)
}
