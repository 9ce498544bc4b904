//! Programs that lose netlink messages of the kernel.

use record::rows::{Confidence, Severity};

use super::losers::{Loser, losers};
use super::remedy::larger;
use super::{Check, Findings, Probe, Sample};

pub(super) const CHECK: Check = Check {
    id: "netlink-overrun",
    needs: &[Probe::Drops, Probe::Sockets],
    area: "netlink",
    about: "A program reads kernel messages too slowly and misses some: its view is out of date from then on.",
    rule: "The drops of a netlink socket grew, or messages were dropped because such a socket was full.",
    sources: "drops of each netlink socket via netlink_diag (SK_MEMINFO); the tracepoint kfree_skb via BPF",
    refuted_by: "drops that do not grow in `netwren sockets 'proto = netlink and socket_drops > 0' --watch`.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let all = losers(&sample.before.netlink, &sample.after.netlink);
    let lost: u64 = all.iter().map(|one| u64::from(one.grown)).sum();
    let dropped = sample.around.dropped(CHECK.id);
    if lost == 0 && dropped.count == 0 {
        return;
    }
    let is_netfilter = all.first().is_some_and(|one| one.socket.name.contains("netfilter"));
    let what = if is_netfilter { "netfilter log records, events or packets" } else { "kernel messages" };
    let title = match all.first() {
        Some(one) => format!("{} misses {what}: its socket buffer is full", one.socket.words()),
        None => "a program misses kernel messages: the buffer of its netlink socket is full".to_owned(),
    };
    found
        .add(Severity::Warning, Confidence::Certain, title)
        .socket(all.first().map(|one| one.socket))
        .proof(all.iter().take(8).map(Loser::evidence))
        .proof(dropped.evidence())
        .lost(lost.max(dropped.count), "messages missed")
        .remedy("", "make the program read faster, or request a larger buffer (SO_RCVBUFFORCE)", "")
        .remedy(
            format!("sysctl -w net.core.rmem_max={}", larger(sample.setting("core/rmem_max", 0), 8_388_608)),
            "allows programs buffers of this size",
            "each buffer may take that much memory",
        );
}
