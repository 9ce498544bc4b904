//! Requests to a published port from the network of its server: the answers do not pass through the router that
//! translated the requests.
//!
//! Destination NAT changes only where a request goes. If client and server are in one network, the server answers the
//! client itself, with its own address, which the client has not asked. If client and server are one host, it receives
//! packets with its own source address. With masquerade for such requests, answers pass through the router. A bridge
//! that translates (bridge-nf-call-iptables) must also send packets back through the port that they came in through.

use record::rows::{Confidence, Severity, ip_proto};

use super::dropped::Dropped;
use super::reach::Reach;
use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};

/// Fewest flows or packets for a finding.
const FEW: u64 = 2;
/// Fewest datagram flows for more than a hint: logs need no answer, and a client that waits for one asks again.
const SOME: u32 = 3;

pub(super) const CHECK: Check = Check {
    id: "hairpin",
    needs: &[Probe::Drops, Probe::Flows, Probe::Links, Probe::Neighbours],
    area: "conntrack",
    about: "Clients cannot use a published port (destination NAT) from inside the network of its server.",
    rule: "At least 2 tracked flows with destination NAT that began within the window have no answer, client and real \
           server are in one network of this host, the source is not translated, and the server answers ARP; or a \
           bridge dropped packets for the port that they came in through; or packets of this host came back to it \
           (IP_LOCAL_SOURCE with the same source and destination).",
    sources: "conntrack entries; interfaces and neighbours via rtnetlink; the tracepoint kfree_skb via BPF",
    refuted_by: "answers of the real server in `netwren capture` on this host.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let bridge = Dropped::of(sample.around.drops.as_deref().unwrap_or_default(), |one| one.is_refused_by_bridge());
    if bridge.count >= FEW {
        return add_bridge(sample, found, &bridge);
    }
    let returned = sample.around.dropped("martian").only(|one| one.reason == "IP_LOCAL_SOURCE" && one.is_returned());
    if returned.count >= FEW {
        return add_returned(sample, found, &returned);
    }
    add_published(sample, found);
}

/// A bridge port without hairpin mode.
fn add_bridge(sample: &Sample, found: &mut Findings<'_>, dropped: &Dropped<'_>) {
    let Some((first, (host, _))) = dropped.all.first().and_then(|one| Some((one, one.ends?))) else { return };
    let iface = sample.around.iface(first.ifindex);
    let title = format!(
        "{} cannot reach its own published port: hairpin mode of the bridge port {iface} is off",
        host.unmapped()
    );
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(iface.clone())
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .reach(Reach::part(dropped.count, dropped.count), "")
        .remedy(
            format!("ip link set dev {} type bridge_slave hairpin on", argument(&iface, "IFACE")),
            "lets the bridge send packets back through this port",
            "broadcasts also return to the host behind the port",
        )
        .remedy(
            "sysctl -w net.bridge.bridge-nf-call-iptables=0",
            "routes these packets instead of bridging them, which needs no hairpin mode",
            "rules no longer see packets between ports of a bridge",
        );
}

/// Packets of this host that came back to it.
fn add_returned(sample: &Sample, found: &mut Findings<'_>, dropped: &Dropped<'_>) {
    let Some((first, (host, _))) = dropped.all.first().and_then(|one| Some((one, one.ends?))) else { return };
    let (iface, host) = (sample.around.iface(first.ifindex), host.unmapped());
    let port = first.ports.map_or(String::new(), |(_, port)| format!(" to port {port}"));
    let title =
        format!("packets of {host}{port} come back to it: a router translates their destination, but not their source");
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(iface)
        .proof(dropped.evidence())
        .lost(dropped.count, "packets dropped")
        .reach(Reach::part(dropped.count, dropped.count), "")
        .remedy("", &format!("on the router, masquerade packets from {host} to {host} in postrouting"), "")
        .remedy("", "or let the program use the service's own address instead of the published one", "");
}

/// Flows without an answer inside one network.
fn add_published(sample: &Sample, found: &mut Findings<'_>) {
    let is_down = |server| sample.around.neighbours.iter().any(|one| one.addr.unmapped() == server);
    let all = sample.around.flows.published.iter().filter_map(|(key, of)| Some((key, of, of.example?)));
    let broken = all.filter(|(_, of, (_, server, _))| u64::from(of.hairpins) >= FEW && !is_down(*server));
    let Some((&(l4, asked, port), of, (client, server, dport))) = broken.max_by_key(|(_, of, _)| of.hairpins) else {
        return;
    };
    let proto = ip_proto::name(l4);
    let network =
        sample.around.network_of(server).map_or(client.to_string(), |net| format!("{}/{}", net.addr(), net.len()));
    let title = match client == server {
        true => format!("{client} cannot reach its own published port {asked} port {port} ({proto}): no masquerade"),
        false => format!(
            "answers of {server} to {client} bypass this host: requests to {asked} port {port} ({proto}) are not \
             masqueraded"
        ),
    };
    let reach = match l4 == ip_proto::UDP && of.hairpins < SOME {
        true => Reach::Nobody,
        false => Reach::part(of.hairpins.into(), of.all.into()),
    };
    let count =
        state(format!("flows from the network of {server} without an answer"), of.hairpins, Some(of.all.into()));
    let family = if server.bits() == 32 { "ip" } else { "ip6" };
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(format!("{asked} port {port}"))
        .proof([count])
        .cost(format!("{} of {} flows to this port get no answer", of.hairpins, of.all))
        .reach(reach, "")
        .remedy(
            format!(
                "nft 'add table {family} hairpin; add chain {family} hairpin post {{ type nat hook postrouting \
                 priority srcnat; }}; add rule {family} hairpin post {family} saddr {network} {family} daddr {server} \
                 {proto} dport {dport} ct status dnat masquerade'"
            ),
            "translates the source of these requests, so that answers pass this host",
            "the server sees this host's address instead of its clients' on that network",
        )
        .remedy("", "or let clients inside resolve the name to the server's own address (split DNS)", "");
}
