//! Tracked flows: those without a reply, and DNS queries.

use doctor::seen::{DESTINATIONS_MAX, FlowCensus, Sample};
use record::Accounting;
use record::rows::{Conntrack, CtState, CtStatus, ip_proto};

use crate::counter_window::Samples;
use crate::entries::EntriesPass;
use crate::probe::{ProbeReader, Round};

/// TCP_CONNTRACK_SYN_SENT, include/uapi/linux/netfilter/nf_conntrack_tcp.h.
const SYN_SENT: CtState = CtState::Tcp(1);

/// The entries that the census needs.
const ENTRIES: EntriesPass = EntriesPass {
    fields: &["proto", "state", "status", "timeout_s", "orig_dst", "orig_dport"],
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
    }
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
    if !is_used {
        return;
    }
    let flows: &mut FlowCensus = &mut sample.around.flows;
    let to = row.orig.dst.unmapped();
    if row.orig.proto == ip_proto::UDP && row.orig.dport() == Some(53) {
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
            flows.add_silent(to);
        }
        (ip_proto::UDP, _) => flows.unanswered += 1,
        _ => {}
    }
}
