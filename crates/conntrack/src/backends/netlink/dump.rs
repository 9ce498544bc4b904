//! The netlink backend: requests whole tables and decodes the answers into rows.
//!
//! For any dump the kernel walks the hash table of the whole host, at 50 ns a bucket, and evicts the expired entries
//! that it passes, in every namespace. So a kernel filter saves the building of messages, not the walk.
use std::ops::ControlFlow;

use netlink::{AnswerMessage, DecodeError, DumpEnd, DumpError, Query};
use record::rows::{Conntrack, Expectation};
use sys::Host;

use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::backends::netlink::expect::ExpectDecoder;
use crate::kernel_filter::KernelFilter;
use crate::table::{CtTable, NetnsRef};
use crate::uapi::{AF_INET, AF_INET6, NETLINK_NETFILTER};

/// Result of a dump that completed or that the caller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpResult {
    /// Result of the netlink dump itself.
    pub end: DumpEnd,
    /// Number of rows handed out.
    pub rows: u64,
    /// Number of messages that could not be decoded.
    pub malformed: u64,
    /// Error of the first of these messages.
    pub first_error: Option<DecodeError>,
    /// Number of skipped attributes that only newer kernels define.
    pub unknown_attrs: u64,
}

impl DumpResult {
    pub(crate) fn add_failure(&mut self, error: DecodeError) {
        self.malformed += 1;
        self.first_error.get_or_insert(error);
    }
}

/// Name of a table's stream in a recording.
pub fn key(table: CtTable, netns_id: u64, family: u8) -> String {
    let family = match family {
        AF_INET => "/v4",
        AF_INET6 => "/v6",
        _ => "",
    };
    format!("ctnetlink/{}/{netns_id}{family}", table.name())
}

/// Reads `table` (one that holds entries) with one request and calls `each` for every row, in the kernel's order, with
/// the number of the receive buffer that contained it.
///
/// Costs 2.1 to 2.7 µs of kernel time per entry and 50 ns per bucket of the host's table; allocates nothing per row.
/// Needs CAP_NET_ADMIN. `filter` must fit one request: see [`KernelFilter::families`].
pub fn dump_entries(
    host: &Host,
    place: NetnsRef<'_>,
    table: CtTable,
    filter: &KernelFilter,
    note: &str,
    mut each: impl FnMut(&Conntrack<'_>, u64) -> ControlFlow<()>,
) -> Result<DumpResult, DumpError> {
    let (mut decoder, mut dumped) = (CtDecoder::new(place.netns_id), DumpResult::default());
    let end = run_query(host, place, table, filter, note, |part| match decoder.decode(part.payload) {
        Ok(row) => {
            dumped.rows += 1;
            each(&row, part.block)
        }
        Err(error) => {
            dumped.add_failure(error);
            ControlFlow::Continue(())
        }
    })?;
    Ok(DumpResult { end, unknown_attrs: decoder.unknown_attrs, ..dumped })
}

/// Reads the expectations in the same way.
pub fn dump_expectations(
    host: &Host,
    place: NetnsRef<'_>,
    family: u8,
    mut each: impl FnMut(&Expectation<'_>) -> ControlFlow<()>,
) -> Result<DumpResult, DumpError> {
    let (mut decoder, mut dumped) = (ExpectDecoder::new(place.netns_id), DumpResult::default());
    let filter = KernelFilter::default().of_family(family);
    let end = run_query(host, place, CtTable::Expect, &filter, "", |part| match decoder.decode(part.payload) {
        Ok(row) => {
            dumped.rows += 1;
            each(&row)
        }
        Err(error) => {
            dumped.add_failure(error);
            ControlFlow::Continue(())
        }
    })?;
    Ok(DumpResult { end, unknown_attrs: decoder.unknown_attrs(), ..dumped })
}

fn run_query(
    host: &Host,
    place: NetnsRef<'_>,
    table: CtTable,
    filter: &KernelFilter,
    note: &str,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    let request = filter.request(table);
    let key = key(table, place.netns_id, filter.family);
    let ask = Query {
        what: table.description(),
        protocol: NETLINK_NETFILTER,
        request: &request,
        key: &key,
        note,
        netns: place.netns,
    };
    netlink::dump(host, &ask, each)
}
