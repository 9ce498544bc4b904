//! The kernel's counters under their attribute numbers, for callers that print all of them, including those that newer
//! kernels add.
use std::ops::ControlFlow;

use netlink::{Attrs, DumpError, Query, Request, prefix};
use sys::Host;

use crate::table::{CtTable, NetnsRef};
use crate::uapi::{NETLINK_NETFILTER, NFGENMSG, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, msg};

const WHAT: &str = "counters of connection tracking";

/// `CTA_STATS_GLOBAL_ENTRIES`
const ENTRIES: u16 = 1;

/// Number of entries in the table; `None` if the kernel does not report it. One request, regardless of the table's
/// size.
pub fn count_entries(host: &Host, place: NetnsRef<'_>) -> Result<Option<u32>, DumpError> {
    let mut request = Request::for_one(NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_STATS);
    request.append(&[0; NFGENMSG]);
    let mut entries = None;
    let key = format!("ctnetlink/count/{}", place.netns_id);
    let ask =
        Query { what: WHAT, protocol: NETLINK_NETFILTER, request: &request, key: &key, note: "", netns: place.netns };
    netlink::exchange(host, &ask, |part| {
        each_number(part.payload, |kind, number| {
            if kind == ENTRIES {
                entries = Some(number);
            }
        });
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

/// Passes the counters of every CPU to `each`: the CPU's number, and the counters by attribute number (`CTA_STATS_…`,
/// or `CTA_STATS_EXP_…` for the table of expectations), in the kernel's order.
pub fn cpu_counters(
    host: &Host,
    place: NetnsRef<'_>,
    table: CtTable,
    mut each: impl FnMut(u16, &[(u16, u32)]),
) -> Result<(), DumpError> {
    let kind = match table {
        CtTable::Expect => NFNL_SUBSYS_CTNETLINK_EXP << 8 | msg::EXP_GET_STATS_CPU,
        _ => NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_STATS_CPU,
    };
    let mut request = Request::dump(kind);
    request.append(&[0; NFGENMSG]);
    let mut numbers = Vec::new();
    let key = format!("ctnetlink/counters/{}/{}", table.name(), place.netns_id);
    let ask =
        Query { what: WHAT, protocol: NETLINK_NETFILTER, request: &request, key: &key, note: "", netns: place.netns };
    netlink::dump(host, &ask, |part| {
        numbers.clear();
        each_number(part.payload, |kind, number| numbers.push((kind, number)));
        // `nfgenmsg.res_id` is the CPU.
        if let Some(cpu) = prefix::be16_at(part.payload, 2) {
            each(cpu, &numbers);
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn each_number(payload: &[u8], mut each: impl FnMut(u16, u32)) {
    for attr in Attrs::new(payload.get(NFGENMSG..).unwrap_or_default()).map_while(Result::ok) {
        if let Ok(number) = attr.be32() {
            each(attr.kind, number);
        }
    }
}
