//! IPsec policies and the number of their states.

use doctor::seen::{IpsecDirection, IpsecPolicy, Sample};
use host::ipsec::{self, IPSEC_MAX, IpsecState};
use host::{HostError, ipsec::IpsecPolicy as HostPolicy};
use record::rows::{CounterSource, ip_proto};
use record::{Accounting, Prefix};

use crate::probe::{InNetns, ProbeReader, note_error};

/// Reads the policies of namespaces in which IPsec dropped packets within the window.
pub(crate) struct IpsecReader;

impl ProbeReader for IpsecReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let is_loss = |source, grown: u64| source == CounterSource::Xfrm && grown > 0;
        if !sample.counters().any(|(source, _, _, moved)| is_loss(source, moved.grown())) {
            return;
        }
        let policies = note(ipsec::policies(netns.host(), netns.netns_id), stats);
        let states = note(ipsec::states(netns.host(), netns.netns_id), stats);
        sample.around.ipsec = policies.iter().filter_map(|policy| seen(policy, &states)).collect();
    }
}

/// Notes errors, and entries beyond the maximum. Without CAP_NET_ADMIN, and in earlier recordings, policies are
/// unknown: the counters still show the loss.
fn note<T>(read: Result<(Vec<T>, u64), HostError>, stats: &mut Accounting) -> Vec<T> {
    let is_old = read.as_ref().is_err_and(HostError::is_not_recorded);
    let (found, over) = if is_old { (Vec::new(), 0) } else { note_error(read, stats).unwrap_or_default() };
    if over > 0 {
        stats.incomplete(over, format!("IPsec policies and states after the first {IPSEC_MAX} are not checked"));
    }
    found
}

/// A policy that protects or blocks packets.
fn seen(policy: &HostPolicy, states: &[IpsecState]) -> Option<IpsecPolicy> {
    let template = policy.template;
    if !policy.blocks && template.is_none() {
        return None;
    }
    let count = |is_established: bool| {
        let fits = |state: &&IpsecState| {
            state.is_established == is_established && template.is_some_and(|template| template.is_met_by(state))
        };
        u32::try_from(states.iter().filter(fits).count()).unwrap_or(u32::MAX)
    };
    Some(IpsecPolicy {
        direction: match policy.direction {
            0 => IpsecDirection::In,
            1 => IpsecDirection::Out,
            _ => IpsecDirection::Forward,
        },
        from: Prefix::new(policy.from.0, policy.from.1)?,
        to: Prefix::new(policy.to.0, policy.to.1)?,
        proto: if policy.proto == 0 { "" } else { ip_proto::name(policy.proto) },
        dport: policy.dport,
        priority: policy.priority,
        index: policy.index,
        blocks: policy.blocks,
        tunnel: template.filter(|one| one.mode == 1).map_or(String::new(), |one| format!("{} to {}", one.from, one.to)),
        states: count(true),
        larval: count(false),
    })
}
