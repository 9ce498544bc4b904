//! UDP sockets whose receive buffer is full.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::{Confidence, Evidence, Severity};

use super::{Check, Findings, Queue, Sample};

pub(super) const CHECK: Check = Check {
    id: "udp-rcvbuf",
    area: "udp",
    about: "Datagrams are dropped because the receive buffer of their socket is full: its program reads too slowly.",
    rule: "UdpRcvbufErrors or Udp6RcvbufErrors grew; the socket is the one whose own count of drops grew.",
    sources: "/proc/net/snmp, snmp6: RcvbufErrors, MemErrors; drops of each socket by sock_diag",
    refuted_by: "`netwren counters 'name ~ RcvbufErrors' --watch` that stands still.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let lost = sample.grown(Snmp, "UdpRcvbufErrors") + sample.grown(Snmp6, "Udp6RcvbufErrors");
    if lost == 0 {
        return;
    }
    let mut losers: Vec<(u32, &Queue, Option<u32>)> = sample
        .after
        .udp
        .iter()
        .filter_map(|one| {
            let before = sample.before.udp.iter().find(|before| before.cookie == one.cookie && one.cookie != 0);
            let before = before.map_or(Some(0), |before| before.drops);
            let grown = one.drops?.checked_sub(before?)?;
            (grown > 0).then_some((grown, one, before))
        })
        .collect();
    losers.sort_by_key(|(grown, ..)| std::cmp::Reverse(*grown));
    let title = match losers.first() {
        Some((_, one, _)) => format!("{} reads too slowly: its receive buffer is full", one.words()),
        None => "a receive buffer of UDP is full: its program reads too slowly".to_owned(),
    };
    let of_sockets = losers.iter().take(8).map(|(_, one, before)| Evidence {
        counter: format!("drops of {}", one.name),
        before: before.map(i64::from),
        after: one.drops.unwrap_or(0).into(),
        limit: None,
    });
    let of_all = [
        sample.evidence(Snmp, "UdpRcvbufErrors", None),
        sample.evidence(Snmp6, "Udp6RcvbufErrors", None),
        sample.evidence(Snmp, "UdpMemErrors", None),
    ];
    found
        .add(Severity::Critical, Confidence::Certain, title)
        .object(losers.first().map_or_else(String::new, |(_, one, _)| one.name.clone()))
        .proof(of_all.into_iter().flatten())
        .proof(of_sockets)
        .lost(lost, "datagrams dropped")
        .remedy("", "let the program read faster, or ask for a larger buffer (SO_RCVBUF)", "")
        .remedy(
            "sysctl -w net.core.rmem_default=1048576 net.core.rmem_max=4194304",
            "larger buffers for sockets that are opened from now on; rmem_max is what programs may ask for",
            "each socket may take that much memory",
        );
}
