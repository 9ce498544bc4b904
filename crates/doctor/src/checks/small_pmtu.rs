//! Path MTUs far below the MTU of the own link.

use record::rows::{Confidence, Severity, iff};

use super::words::state;
use super::{Check, Findings, Probe, Sample};
use record::Addr;

/// Smallest MTU of a link on which a path MTU counts as small: IPv6 needs it everywhere.
const USUAL: u32 = 1280;

pub(super) const CHECK: Check = Check {
    id: "small-pmtu",
    needs: &[Probe::Links, Probe::Sockets],
    area: "routing",
    about: "The path MTU to a peer is far below the link's: each connection sends many tiny segments.",
    rule: "A connection has a path MTU below 1000 bytes, and every interface that is up has an MTU of at least 1280.",
    sources: "tcp_info via sock_diag: pmtu; MTU of interfaces via RTM_GETLINK",
    refuted_by: "a link on the path that is really so small: `ping -M do` with larger packets gets no answer.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let up = sample.around.links.iter().filter(|link| link.name != "lo" && link.flags & iff::UP != 0);
    let Some(link) = up.min_by_key(|link| link.mtu).filter(|link| link.mtu >= USUAL) else { return };
    let paths = &sample.after.pace.small_paths;
    let Some((peer, path)) = paths.iter().max_by_key(|(_, path)| path.connections) else { return };
    let further = if paths.len() > 1 { format!(", and to {} more peers", paths.len() - 1) } else { String::new() };
    let (mtu, is_v6) = (path.mtu, matches!(peer.addr, Addr::V6(_)));
    let title = format!("the path MTU to {peer} is {mtu} bytes, far below the {} of the link{further}", link.mtu);
    let one = |(peer, path): (&_, &crate::seen::SmallPath)| {
        let of =
            if path.connections == 1 { "a connection".into() } else { format!("{} connections", path.connections) };
        state(format!("path MTU of {of} to {peer}"), path.mtu, Some(link.mtu.into()))
    };
    let flush = if is_v6 { "ip -6 route flush cache" } else { "ip route flush cache" };
    let draft = found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(peer.to_string())
        .proof(paths.iter().take(4).map(one))
        .cost(format!("{:.1} times as many packets for the same data", f64::from(link.mtu) / f64::from(mtu.max(1))))
        .remedy(
            format!("ip route get {}", peer.addr),
            "shows `cache expires` if an ICMP message set the MTU, otherwise a route has it",
            "",
        )
        .remedy(flush, "forgets learned MTUs: if this one comes back, a router or a forger sends it again", "");
    if !is_v6 {
        draft.remedy(
            format!("sysctl -w net.ipv4.route.min_pmtu={USUAL}"),
            "makes the kernel ignore ICMP messages about smaller MTUs",
            "connections through a link that is really so small then lose their large packets",
        );
    }
}
