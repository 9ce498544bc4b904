//! Services that do not read their datagrams, before their buffer overflows.

use record::Proto;
use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Evidence, Severity};

use super::accepting::{by_identity, is_long};
use super::process_stopped::Held;
use super::reach::Reach;
use super::words::look_at;
use super::{Check, Findings, Probe, Sample};
use crate::seen::Queue;

pub(super) const CHECK: Check = Check {
    id: "udp-unread",
    needs: &[Probe::Processes, Probe::Sockets, Probe::Unix],
    area: "udp",
    about: "A service does not read its datagrams: its receive buffer fills, and will overflow.",
    rule: "Unread bytes of a UDP socket at a fixed port grew, and no program of the network namespace read a datagram \
           within the window. It is a hint until a quarter of the buffer is full: a program may read in batches. The \
           check `udp-rcvbuf` reports sockets that drop some.",
    sources: "receive queues via sock_diag; /proc/net/snmp and snmp6: InDatagrams, which count those that were read",
    refuted_by: "a queue that becomes shorter in `netwren sockets 'proto = udp and recv_q > 0' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let read = sample.grown(Snmp, "UdpInDatagrams").saturating_add(sample.grown(Snmp6, "Udp6InDatagrams"));
    if read > 0 || !is_long(sample) {
        return;
    }
    let [first, last] = [0, 1].map(|at| sample.setting("ipv4/ip_local_port_range", at));
    let is_fixed = |one: &Queue| {
        let is_chosen = first.is_some_and(|first| first <= one.port.into()) && last >= Some(one.port.into());
        !is_chosen && sample.after.served.contains_key(&(Proto::Udp, one.port))
    };
    let (held, old) = (Held::new(sample), by_identity(&sample.before.udp));
    for one in sample.after.udp.iter().filter(|one| is_fixed(one)) {
        let grows = |before: &&Queue| before.queue > 0 && before.queue < one.queue && before.drops == one.drops;
        let before = old.get(&one.identity).copied().filter(grows).filter(|_| !held.has(&one.owner));
        let Some(before) = before else { continue };
        found
            .add(Severity::Warning, Confidence::Likely, format!("{} does not read its datagrams", one.words()))
            .socket(one)
            .proof([Evidence {
                counter: format!("unread bytes of {}", one.name),
                before: Some(before.queue.into()),
                after: one.queue.into(),
                limit: one.limit.map(i64::from),
            }])
            .cost("its clients wait for an answer; when its buffer is full, datagrams are lost")
            .reach(if is_filling(one) { Reach::part(1, 10) } else { Reach::Nobody }, "")
            .remedy(look_at(one.owner.pid), "shows where its threads wait: a lock, a disk, another host", "");
    }
}

/// True if a quarter of the receive buffer is full.
fn is_filling(one: &Queue) -> bool {
    one.limit.is_some_and(|limit| one.queue >= limit / 4)
}
