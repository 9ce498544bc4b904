//! Tracked flows: those without a reply, DNS queries, and those that differ from the rules of NAT.

use doctor::seen::{COMPARED_MAX, DESTINATIONS_MAX, DropSeen, FlowCensus, Sample, TrackedFlow};
use host::nat_rules::NatRules;
use record::Accounting;
use record::rows::{Conntrack, CtState, CtStatus, ip_proto};
use std::collections::BTreeSet;
use sys::{Errno, Host};

use crate::counter_window::Samples;
use crate::entries::EntriesPass;
use crate::nat::SnatRules;
use crate::nat::stale::{has_legacy_rules, stale_flows};
use crate::probe::{ProbeReader, Round, keep_first};

/// TCP_CONNTRACK_SYN_SENT, TCP_CONNTRACK_ESTABLISHED, include/uapi/linux/netfilter/nf_conntrack_tcp.h.
const SYN_SENT: CtState = CtState::Tcp(1);
const ESTABLISHED: CtState = CtState::Tcp(3);

/// Maximum number of namespaces whose rules are listed; the host's own comes first.
///
/// Bound: namespaces whose flows `doctor` compares with the rules of NAT. Beyond: further namespaces are counted (exit
/// code 3). By: the owners of namespaces.
const LISTED_MAX: usize = 8;

/// The entries that the census needs.
const ENTRIES: EntriesPass = EntriesPass {
    fields: &[
        "proto",
        "state",
        "status",
        "timeout_s",
        "orig_src",
        "orig_sport",
        "orig_dst",
        "orig_dport",
        "reply_src",
        "reply_sport",
        "reply_dst",
        "zone",
    ],
    filter: "",
    lack: "tracked flows are not checked",
};

/// Counts the flows of namespaces whose table has entries.
pub(crate) struct FlowReader;

impl ProbeReader for FlowReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        ENTRIES.run(round.session, samples, |_| true, add_flow, stats);
        let over: u64 = samples.values().map(|sample| sample.around.flows.over).sum();
        if over > 0 {
            let text = format!("tracked flows to more than {DESTINATIONS_MAX} destinations are not checked");
            stats.incomplete(over, text);
        }
        let over: u64 = samples.values().map(|sample| sample.around.flows.not_compared).sum();
        if over > 0 {
            let text = format!("UDP flows after the first {COMPARED_MAX} are not compared with the rules of NAT");
            stats.incomplete(over, text);
        }
        compare_with_rules(round, samples, stats);
    }
}

/// Compares flows with the rules of NAT, in the first namespaces that have such flows.
fn compare_with_rules(round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
    let session = round.session;
    let has_flows = |sample: &&Sample| {
        let flows = &sample.around.flows;
        let is_own = sample.netns_id == Some(session.netns_id());
        let has_connections = flows.connections.iter().any(|one| is_own || one.is_dnat);
        !flows.tracked.is_empty() || has_connections || has_late_answers(sample)
    };
    let mut wanted: Vec<u64> = samples.values().filter(has_flows).filter_map(|sample| sample.netns_id).collect();
    wanted.sort_by_key(|netns_id| *netns_id != session.netns_id());
    keep_first(&mut wanted, LISTED_MAX, "NAT rules of network namespaces", stats);
    let (wanted, rules): (BTreeSet<u64>, _) = (wanted.into_iter().collect(), SnatRules::default());
    if wanted.is_empty() {
        return;
    }
    session.in_each_namespace(&mut |netns_id| {
        let Some(sample) = samples.get_mut(&Some(netns_id)).filter(|_| wanted.contains(&netns_id)) else { return };
        let host: &Host = session.host();
        let unknown = match rules.listing(host, &format!("nft nat rules@{netns_id}")) {
            Ok(listing) => match NatRules::parse(&listing) {
                Some(rules) => {
                    sample.around.flows.has_source_nat = rules.has_source_nat();
                    sample.around.flows.stale = stale_flows(&sample.around, &rules, has_legacy_rules(host, netns_id));
                    if !rules.is_exhausted() {
                        return;
                    }
                    "they are too many, or lead to each other too often".to_owned()
                }
                None => "its listing is malformed, or too long".to_owned(),
            },
            // Recordings of earlier versions do not contain them.
            Err(error) if error.errno == Errno::NOT_RECORDED => return,
            Err(error) => error.to_string(),
        };
        stats.incomplete(1, format!("tracked flows are not compared with the rules of NAT: {unknown}"));
    });
}

/// True if this host forwards, and received packets that may be for a client of its source NAT.
fn has_late_answers(sample: &Sample) -> bool {
    let is_router = sample.setting("ipv4/ip_forward", 0) == Some(1);
    is_router && sample.around.drops.iter().flatten().any(DropSeen::may_be_for_nat)
}

/// Adds an entry. Its timeout shows whether it was used within the window, because each packet resets it.
fn add_flow(sample: &mut Sample, row: &Conntrack<'_>) {
    sample.around.flows.entries += 1;
    let Some(status) = row.status else { return };
    let is_answered = status.contains(CtStatus::SEEN_REPLY);
    let (setting, usual) = match row.orig.proto {
        ip_proto::UDP => ("netfilter/nf_conntrack_udp_timeout", 30),
        ip_proto::TCP => ("netfilter/nf_conntrack_tcp_timeout_syn_sent", 120),
        _ => return,
    };
    let whole = sample.setting(setting, 0).unwrap_or(usual);
    let window_s = i64::try_from(sample.window_ns / 1_000_000_000).unwrap_or(i64::MAX).saturating_add(1);
    let is_used = row.timeout_s.is_some_and(|left| i64::from(left).saturating_add(window_s) >= whole);
    let is_query = row.orig.proto == ip_proto::UDP && row.orig.dport() == Some(53);
    if !is_used {
        if is_query && sample.around.has_address(row.orig.src) {
            sample.around.flows.add_earlier(row.orig.dst.unmapped(), is_answered);
        }
        return;
    }
    add_translated(sample, row, status);
    let to = row.orig.dst.unmapped();
    let flows: &mut FlowCensus = &mut sample.around.flows;
    if is_query {
        flows.add_query(to, is_answered);
    }
    // A TFTP server answers from another port, so its requests never have a reply.
    let is_tftp = row.orig.proto == ip_proto::UDP && row.orig.dport() == Some(69);
    if is_answered || is_tftp {
        return;
    }
    match (row.orig.proto, row.state) {
        (ip_proto::TCP, Some(SYN_SENT)) => {
            flows.unanswered += 1;
            // The host that should answer: with destination NAT, another one than the client asks.
            flows.add_silent(row.reply.src.unmapped());
        }
        (ip_proto::UDP, _) => flows.unanswered += 1,
        _ => {}
    }
}

/// Adds an entry that NAT rewrites, or may have to rewrite.
fn add_translated(sample: &mut Sample, row: &Conntrack<'_>, status: CtStatus) {
    let (Some(sport), Some(dport), Some(real)) = (row.orig.sport(), row.orig.dport(), row.reply.sport()) else {
        return;
    };
    let flow = TrackedFlow {
        l4: row.orig.proto,
        client: (row.orig.src.unmapped(), sport),
        asked: (row.orig.dst.unmapped(), dport),
        server: (row.reply.src.unmapped(), real),
        source: row.reply.dst.unmapped(),
        is_dnat: status.contains(CtStatus::DST_NAT),
        is_snat: status.contains(CtStatus::SRC_NAT),
        is_answered: status.contains(CtStatus::SEEN_REPLY),
    };
    let is_udp = flow.l4 == ip_proto::UDP;
    let (client, server) = (flow.client.0, flow.server.0);
    let around = &mut sample.around;
    if flow.is_dnat {
        let is_begun = is_udp || row.state == Some(SYN_SENT);
        let is_near = || around.iface_of(client).is_some_and(|iface| around.iface_of(server) == Some(iface));
        let is_own = around.has_address(client) || around.has_address(server);
        let is_hairpin = !flow.is_answered && is_begun && flow.source == client && !is_own && is_near();
        around.flows.add_published((flow.l4, flow.asked.0, dport), is_hairpin.then_some((client, server, real)));
    }
    if flow.is_snat {
        around.flows.add_translated((flow.l4, server, real, flow.source), flow.is_answered);
    }
    let is_exempt = flow.asked.0.is_multicast() || flow.client.0.is_loopback() || status.contains(CtStatus::EXPECTED);
    let compared = match (is_udp, row.state) {
        _ if is_exempt || row.zone.is_some() => return,
        (true, _) if flow.is_dnat || !flow.is_answered => &mut around.flows.tracked,
        (false, Some(ESTABLISHED)) => &mut around.flows.connections,
        _ => return,
    };
    match compared.len() < COMPARED_MAX {
        true => compared.push(flow),
        // TCP connections are a sample: those that differ from the rules are a hint.
        false => around.flows.not_compared += u64::from(is_udp),
    }
}
