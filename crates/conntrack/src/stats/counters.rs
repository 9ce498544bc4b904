//! Counters via ctnetlink: IPCTNL_MSG_CT_GET_STATS, IPCTNL_MSG_CT_GET_STATS_CPU, IPCTNL_MSG_EXP_GET_STATS_CPU.
use std::ops::ControlFlow;

use netlink::{Attrs, DumpError, Query, Request, prefix};
use record::rows::{StatCounter, StatCounts};
use sys::Host;

use crate::uapi::{NETLINK_NETFILTER, NFGENMSG, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, msg};

const WHAT: &str = "counters of connection tracking";

/// `enum ctattr_stats_global`: the number of entries, and since 4.18 its maximum; u32, big-endian.
const GLOBAL_ENTRIES: u16 = 1;
const GLOBAL_MAX: u16 = 2;

/// `enum ctattr_stats_cpu`, u32, big-endian. Only kernels before 4.9 or 2.6 send 1 and 3 to 7.
const OF_ENTRIES: &[(u16, StatCounter)] = &[
    (2, StatCounter::Found),
    (3, StatCounter::New),
    (4, StatCounter::Invalid),
    (5, StatCounter::Ignore),
    (6, StatCounter::Delete),
    (8, StatCounter::Insert),
    (9, StatCounter::InsertFailed),
    (10, StatCounter::Drop),
    (11, StatCounter::EarlyDrop),
    (12, StatCounter::Error),
    (13, StatCounter::SearchRestart),
    (14, StatCounter::ClashResolve),
    (15, StatCounter::ChainTooLong),
];
/// The last attribute of 6.18.
const LAST_OF_ENTRIES: u16 = 15;

/// `enum ctattr_expect_stats`.
const OF_EXPECTATIONS: &[(u16, StatCounter)] =
    &[(1, StatCounter::ExpectNew), (2, StatCounter::ExpectCreate), (3, StatCounter::ExpectDelete)];
const LAST_OF_EXPECTATIONS: u16 = 3;

/// Maximum number of CPUs: NR_CPUS of the largest distribution kernels. No kernel's answer has more.
///
/// Bound: CPUs whose counters are read. Beyond: the counters of further CPUs are left out. By: a broken kernel.
pub(super) const CPUS_MAX: usize = 8192;

/// The counters of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuCounts {
    /// Number of the CPU.
    pub cpu: u32,
    /// Its counters.
    pub counts: StatCounts,
}

/// The counters of all CPUs, and the number of skipped attributes.
#[derive(Debug, Default)]
pub(super) struct PerCpu {
    pub(super) cpus: Vec<CpuCounts>,
    pub(super) unknown_attrs: u64,
}

/// The content of an IPCTNL_MSG_CT_GET_STATS answer.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) entries: Option<u64>,
    pub(super) max: Option<u64>,
}

/// Adds up counters; `None` for counters that no CPU has.
pub(super) fn sum<'c>(cpus: impl Iterator<Item = &'c StatCounts>) -> StatCounts {
    let mut sum = StatCounts::default();
    for counts in cpus {
        for counter in StatCounter::ALL {
            if let Some(more) = counts.get(counter) {
                sum.set(counter, Some(sum.get(counter).unwrap_or(0).saturating_add(more)));
            }
        }
    }
    sum
}

pub(super) fn totals(host: &Host, netns_id: u64) -> Result<Totals, DumpError> {
    let mut request = Request::for_one(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_STATS);
    request.append(&[0; NFGENMSG]);
    let mut totals = Totals::default();
    let key = format!("ctnetlink/stats/{netns_id}");
    let ask = Query { what: WHAT, protocol: NETLINK_NETFILTER, request: &request, key: &key, note: "", netns: None };
    netlink::exchange(host, &ask, |part| {
        for attr in Attrs::new(part.payload.get(NFGENMSG..).unwrap_or_default()).map_while(Result::ok) {
            match attr.kind {
                GLOBAL_ENTRIES => totals.entries = attr.be32().ok().map(u64::from),
                GLOBAL_MAX => totals.max = attr.be32().ok().map(u64::from),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(totals)
}

pub(super) fn per_cpu(host: &Host, netns_id: u64) -> Result<PerCpu, DumpError> {
    let mut all = PerCpu::default();
    let kind = NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_STATS_CPU;
    dump(host, kind, &format!("ctnetlink/stats-cpu/{netns_id}"), &mut |payload| all.add(payload))?;
    Ok(all)
}

/// Adds the counters of expectations to the existing ones.
pub(super) fn add_expectations(host: &Host, netns_id: u64, all: &mut PerCpu) -> Result<(), DumpError> {
    let kind = NFNL_SUBSYS_CTNETLINK_EXP << 8 | msg::EXP_GET_STATS_CPU;
    dump(host, kind, &format!("ctnetlink/stats-exp/{netns_id}"), &mut |payload| {
        let mut counts = StatCounts::default();
        let cpu = decode(payload, OF_EXPECTATIONS, LAST_OF_EXPECTATIONS, &mut counts, &mut all.unknown_attrs);
        let Some(known) = all.cpus.iter_mut().find(|known| Some(known.cpu) == cpu) else { return };
        OF_EXPECTATIONS.iter().for_each(|(_, counter)| known.counts.set(*counter, counts.get(*counter)));
    })
}

fn dump(host: &Host, kind: u16, key: &str, each: &mut dyn FnMut(&[u8])) -> Result<(), DumpError> {
    let mut request = Request::dump(kind);
    request.append(&[0; NFGENMSG]);
    let ask = Query { what: WHAT, protocol: NETLINK_NETFILTER, request: &request, key, note: "", netns: None };
    netlink::dump(host, &ask, |part| {
        each(part.payload);
        ControlFlow::Continue(())
    })?;
    Ok(())
}

impl PerCpu {
    /// Adds one message of the answer.
    pub(super) fn add(&mut self, payload: &[u8]) {
        let mut counts = StatCounts::default();
        let cpu = decode(payload, OF_ENTRIES, LAST_OF_ENTRIES, &mut counts, &mut self.unknown_attrs);
        if let (Some(cpu), true) = (cpu, self.cpus.len() < CPUS_MAX) {
            self.cpus.push(CpuCounts { cpu, counts });
        }
    }
}

/// The CPU (`nfgenmsg.res_id`) and its counters; `None` if the message is malformed.
fn decode(
    payload: &[u8],
    known: &[(u16, StatCounter)],
    last: u16,
    counts: &mut StatCounts,
    unknown: &mut u64,
) -> Option<u32> {
    let cpu = prefix::be16_at(payload, 2)?;
    for attr in Attrs::new(payload.get(NFGENMSG..)?).map_while(Result::ok) {
        match known.iter().find(|(kind, _)| *kind == attr.kind) {
            Some((_, counter)) => counts.set(*counter, attr.be32().ok().map(u64::from)),
            None if attr.kind > last => *unknown += 1,
            // An attribute of old kernels that never had a meaning.
            None => {}
        }
    }
    Some(cpu.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_by_its_bytes() {
        let mut payload = vec![0, 0, 0, 1];
        for (kind, value) in [(10u16, 7u32), (15, 3), (99, 1), (7, 5)] {
            payload.extend_from_slice(&8u16.to_ne_bytes());
            payload.extend_from_slice(&kind.to_ne_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut all = PerCpu::default();
        all.add(&payload);
        assert_eq!((all.cpus[0].cpu, all.unknown_attrs), (1, 1));
        let counts = all.cpus[0].counts;
        assert_eq!((counts.get(StatCounter::Drop), counts.get(StatCounter::ChainTooLong)), (Some(7), Some(3)));
        assert_eq!(counts.get(StatCounter::Found), None, "what was not sent is unknown");
    }

    proptest! {
        #[test]
        fn any_bytes(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut all = PerCpu::default();
            all.add(&payload);
            prop_assert!(all.cpus.len() <= 1);
        }
    }
}
