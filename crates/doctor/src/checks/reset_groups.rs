//! Groups of resets, summed over peers or programs.

use record::Addr;
use record::rows::CounterSource::{Netstat, Snmp};
use record::rows::Evidence;
use std::collections::BTreeMap;

use super::Sample;
use super::words::state;
use crate::seen::{Holder, ResetCount, ResetGroup, ResetKind};

/// Counters of resets: proof that does not depend on BPF.
const OF_NETSTAT: &[&str] =
    &["TcpExtTCPAbortOnClose", "TcpExtTCPAbortOnData", "TcpExtTCPAbortOnTimeout", "TcpExtTCPAbortOnMemory"];
const OF_SNMP: &[&str] = &["TcpEstabResets", "TcpOutRsts"];

/// Resets of connections of one program.
pub(super) struct Resets<'s> {
    /// True if this host serves the port; false if the peer does.
    pub(super) is_service: bool,
    /// The port of the service.
    pub(super) port: u16,
    /// The peer; the one with most resets if there are several.
    pub(super) peer: Addr,
    /// The program of this host.
    pub(super) owner: &'s Holder,
    /// Their number and properties.
    pub(super) sum: ResetCount,
    /// Resets of that peer.
    most: u64,
}

/// Returns the resets of one kind: of each program and port of this host, or of each program and service of a peer. The
/// largest number comes first.
pub(super) fn resets_of(sample: &Sample, kind: ResetKind) -> Vec<Resets<'_>> {
    let mut all: BTreeMap<(bool, u16, Option<Addr>, &Holder), Resets<'_>> = BTreeMap::new();
    let groups = sample.around.resets.iter().flat_map(|census| &census.groups);
    for (group, count) in groups.filter(|(group, _)| group.kind == kind) {
        let ResetGroup { is_service, port, peer, owner, .. } = group;
        let key = (*is_service, *port, (!is_service).then_some(*peer), owner);
        let first =
            || Resets { is_service: *is_service, port: *port, peer: *peer, owner, sum: ResetCount::default(), most: 0 };
        let of = all.entry(key).or_insert_with(first);
        if count.count > of.most {
            (of.most, of.peer) = (count.count, *peer);
        }
        of.sum.add(count);
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.sum.count));
    all
}

impl Resets<'_> {
    /// The port that connections lead to: `port 80`, or `192.0.2.1 port 80` for a peer's.
    pub(super) fn target(&self) -> String {
        if self.is_service { format!("port {}", self.port) } else { format!("{} port {}", self.peer, self.port) }
    }

    /// Their number as evidence, and the counters that grew with them.
    pub(super) fn evidence(&self, sample: &Sample) -> Vec<Evidence> {
        let count = i64::try_from(self.sum.count).unwrap_or(i64::MAX);
        let name = format!("connections reset: {} and {}", self.target(), self.peer);
        let name = if self.is_service { name } else { format!("connections reset: {}", self.target()) };
        let mut all = vec![state(name, count, None)];
        all.extend(counters(sample));
        all
    }
}

/// The counters of resets that grew.
pub(super) fn counters(sample: &Sample) -> impl Iterator<Item = Evidence> {
    let of_netstat = OF_NETSTAT.iter().filter_map(|name| sample.evidence(Netstat, name, None));
    of_netstat.chain(OF_SNMP.iter().filter_map(|name| sample.evidence(Snmp, name, None)))
}
