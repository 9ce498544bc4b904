//! Data connections that rules drop because no conntrack helper follows their control connection.
//!
//! Since Linux 4.7 no helper (nf_conntrack_ftp, nf_conntrack_tftp) follows a connection by itself
//! (`nf_conntrack_helper` is 0; the setting was removed in 6.0): a rule must assign it. If a firewall lets FTP through
//! with `ct state related`, a kernel update or a lost rule therefore breaks it: the login works, but lists and files
//! hang.
//!
//! Numbers can prove only little, and the check reports only that. A control connection without a helper proves
//! nothing: passive FTP works through NAT on the client's side, and a firewall may open the passive ports. A data
//! connection that never arrives proves nothing either: if an address inside the control connection is not rewritten,
//! the packets go elsewhere and no host on the way sees them. But packets that a rule drops between the very hosts
//! that have a control connection open, to ports that only the control connection could have negotiated, are two facts
//! with one usual cause. The opposite case, a helper without room for its expectations (`nf_conntrack_expect_max`),
//! appears only in the kernel's log and in no counter. SIP and H.323 name hosts that have no control connection: the
//! same comparison would be a guess.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};
use crate::seen::{Control, ControlKind, DropSeen};

/// Fewest packets for a finding.
const FEW: u64 = 3;
/// The port from which servers of active FTP send data.
const FTP_DATA: u16 = 20;
/// The lowest port that control connections negotiate.
const FIRST_AGREED: u16 = 1024;

pub(super) const CHECK: Check = Check {
    id: "ct-helper",
    needs: &[Probe::Controls, Probe::Drops],
    area: "conntrack",
    about: "Rules drop data connections of FTP or TFTP, because no conntrack helper inspects the control connection: \
            they are new, not `related`.",
    rule: "Within the window, rules dropped at least 3 packets between the hosts of a tracked connection to port 21 \
           (TCP) or 69 (UDP) without a helper: from the client to a port of 1,024 or higher, from the server's port \
           20, or for TFTP to the client's port. The first packet of each kind of drop is compared.",
    sources: "the tracepoint kfree_skb via BPF: NETFILTER_DROP; conntrack entries: helper",
    refuted_by: "`conntrack -L -p tcp --dport 21` with `helper=ftp`, or another program that uses the dropped port.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let dropped = sample.around.dropped("rule-drop");
    let of = |one: &&DropSeen| sample.around.controls.iter().find(|control| is_data(one, control));
    let all: Vec<(&DropSeen, &Control)> = dropped.all.iter().filter_map(|one| Some((*one, of(one)?))).collect();
    let count = all.iter().fold(0, |sum: u64, (one, _)| sum.saturating_add(one.count));
    let Some((first, control)) = all.first().filter(|_| count >= FEW) else { return };
    let Control { kind, client, server, .. } = control;
    let (name, proto, port) = (kind.name(), kind.proto(), kind.port());
    let title = format!(
        "rules drop data of {} between {} and {}: no helper inspects the connection to port {port}",
        name.to_uppercase(),
        client.unmapped(),
        server.unmapped()
    );
    let ports = first.ports.map_or(0, |(_, to)| to);
    let of_drops = all.iter().take(4).map(|(one, _)| {
        let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
        state(format!("drops: {}{packet}", one.at()), i64::try_from(one.count).unwrap_or(i64::MAX), None)
    });
    let without = sample.around.controls.iter().filter(|other| other.kind == *kind).count();
    let without = i64::try_from(without).unwrap_or(i64::MAX);
    found
        .add(Severity::Warning, Confidence::Likely, title)
        .object(format!("{} to {} port {ports}", client.unmapped(), server.unmapped()))
        .proof(of_drops)
        .proof([state(format!("tracked connections to port {port} without a helper"), without, None)])
        .lost(count, "packets dropped")
        .remedy(
            format!("nft '{}'", helper_table(name, proto, port)),
            "makes a helper inspect new connections, so that `ct state related` accepts their data",
            "the helper opens ports that either end names: restrict it to known hosts",
        )
        .remedy(
            "",
            "or accept the ports in a separate rule, which TLS requires: helpers cannot read encrypted connections",
            "",
        );
}

/// A table that assigns the helper to forwarded and own connections, after connection tracking (priority -200).
fn helper_table(name: &str, proto: &str, port: u16) -> String {
    let chain = |hook: &str| {
        format!(
            "chain {hook} {{ type filter hook {hook} priority -150; {proto} dport {port} ct helper set \"{name}\"; }};"
        )
    };
    let helper = format!("ct helper {name} {{ type \"{name}\" protocol {proto}; }};");
    format!("table inet {name}_helper {{ {helper} {} {} }}", chain("prerouting"), chain("output"))
}

/// True if the packet belongs to a data connection that this control connection can have negotiated.
fn is_data(one: &DropSeen, control: &Control) -> bool {
    let (Some((from, to)), Some((sport, dport))) = (one.ends, one.ports) else { return false };
    let (from, to) = (from.unmapped(), to.unmapped());
    let is_server = |addr| [control.server, control.real_server].contains(&addr);
    let is_client = |addr| [control.client, control.outside].contains(&addr);
    let (is_there, is_back) = (is_client(from) && is_server(to), is_server(from) && is_client(to));
    let is_agreed = dport >= FIRST_AGREED;
    match control.kind {
        _ if one.proto != control.kind.proto() => false,
        ControlKind::Ftp => is_agreed && (is_there && sport >= FIRST_AGREED || is_back && sport == FTP_DATA),
        ControlKind::Tftp => is_back && sport >= FIRST_AGREED && control.client_ports.contains(&dport),
    }
}
