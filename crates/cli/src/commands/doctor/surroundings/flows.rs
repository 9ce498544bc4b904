//! Tracked flows: those without an answer, and queries of DNS.

use super::Samples;
use crate::commands::doctor::lacks::note;
use crate::session::Session;
use conntrack::{AllNetnsConntrack, ConntrackSource, Options};
use doctor::checks::{FlowCensus, Sample};
use record::rows::{Conntrack, CounterSource, CtState, CtStatus, Nat, ip_proto};
use record::{Accounting, Demand, Next, Source, field_index};

/// TCP_CONNTRACK_SYN_SENT, include/uapi/linux/netfilter/nf_conntrack_tcp.h.
const SYN_SENT: CtState = CtState::Tcp(1);

/// The fields of entries that the census needs.
const OF_ENTRIES: &[&str] = &["proto", "state", "status", "timeout_s", "orig_dst", "orig_dport"];

/// Adds the flows of the namespaces whose table has entries: one pass over it.
pub(super) fn add(session: &Session, samples: &mut Samples, stats: &mut Accounting) {
    let has_entries = |sample: &Sample| {
        let entries = sample.counter(CounterSource::Conntrack, "entries");
        entries.is_some_and(|entries| entries.after > 0)
    };
    let filled: Vec<u64> =
        samples.values().filter(|sample| has_entries(sample)).filter_map(|sample| sample.netns_id).collect();
    if filled.is_empty() {
        return;
    }
    let fields: Vec<usize> = OF_ENTRIES.iter().filter_map(|name| field_index::<Nat>(name)).collect();
    let demand = Demand::new(&fields, Vec::new());
    let options = Options::new(session.netns_id());
    let namespaces = session.namespaces();
    let mut add = |row: &Conntrack<'_>| {
        if let Some(sample) = samples.get_mut(&Some(row.netns_id)) {
            add_flow(sample, row);
        }
        Next::More
    };
    let read = match namespaces.as_deref() {
        None => {
            let source = ConntrackSource::new(session.host(), options).with_cache(session.cache());
            source.run(&demand, &mut add)
        }
        Some(namespaces) => {
            let mut ways = session.ways(Some(namespaces));
            ways.retain(|way| filled.contains(&way.netns_id));
            let source = AllNetnsConntrack::new(session.host(), options, ways).with_cache(session.cache());
            source.run(&demand, &mut add)
        }
    };
    match read {
        Ok(read) => note(stats, &read),
        Err(error) => {
            stats.incomplete = true;
            stats.add_reason(1, format!("tracked flows are not checked: {error}"));
        }
    }
    let over: u64 = samples.values().map(|sample| sample.around.flows.over).sum();
    if over > 0 {
        stats.incomplete = true;
        stats.add_reason(over, "tracked flows towards more than 4,096 destinations are not checked");
    }
}

/// Adds an entry. Whether it was used within the window tells its time: what is left of it grows with each packet.
fn add_flow(sample: &mut Sample, row: &Conntrack<'_>) {
    sample.around.flows.entries += 1;
    let Some(status) = row.status else { return };
    let is_answered = status.has(CtStatus::SEEN_REPLY);
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
    if is_answered {
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
