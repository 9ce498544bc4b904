//! The loaded program that walks the connection-tracking table, kept from one scan to the next.
use std::cell::Cell;

use netlink::DecodeError;
use record::RowVisitor;
use record::rows::{Nat, nat_need as need};
#[cfg(feature = "bpf")]
use sys::netns;
use sys::{Blocks, Host, NetNs, ProgramCache, SysError, WITHOUT_BPF, WalkError, lacks_bpf_rights};

use crate::backends::bpf::chains::{self, Chains};
use crate::backends::bpf::rows::{EntryBytes, decode_block, part};
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::choose::Via;

#[cfg(feature = "bpf")]
use bpf::conntrack_walk::CtWalk as TableWalk;
#[cfg(not(feature = "bpf"))]
type TableWalk = std::convert::Infallible;

/// Resources that are expensive to open, kept for the whole run: `--watch` loads its program once.
#[derive(Debug, Default)]
pub struct BackendCache {
    walk: ProgramCache<TableWalk>,
    /// The backend of the first round. A recording keeps using it, because a table must not change its recorded stream.
    first: Cell<Option<Via>>,
}

/// Receives the entries of a walk.
pub(crate) trait Visitor: for<'b> RowVisitor<Nat, EntryBytes<'b>, DecodeError> {}

impl<V: for<'b> RowVisitor<Nat, EntryBytes<'b>, DecodeError>> Visitor for V {}

/// Parameters of a walk.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) struct WalkParameters<'k> {
    /// Network namespace of the entries; `None` is the calling thread's.
    pub(crate) netns: Option<&'k NetNs>,
    /// True for the entries of every namespace.
    pub(crate) all: bool,
    /// Parts of a row (`rows::part`).
    pub(crate) parts: u32,
    pub(crate) filter: &'k WalkFilter,
    /// True to include expired entries.
    pub(crate) expired: bool,
    /// Note of the stream in the recording.
    pub(crate) note: &'k str,
    /// Number of the namespace: names the stream, and fills rows whose block does not contain it.
    pub(crate) netns_id: u64,
}

/// Result of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WalkResult {
    /// Chain lengths, if the whole table was walked and its size did not change during the walk.
    pub(crate) chains: Option<Chains>,
}

/// Name of the stream in the recording; `all` for all namespaces.
pub(crate) fn key(netns_id: u64, all: bool) -> String {
    if all { "bpf/conntrack/all".to_owned() } else { format!("bpf/conntrack/{netns_id}") }
}

/// The row parts that contain the demanded fields.
pub(crate) fn parts_for(demanded: u64, all: bool) -> u32 {
    let each = [
        (need::COUNTERS, part::COUNTERS),
        (need::TIMES, part::TIMES),
        (need::LABELS, part::LABELS),
        (need::HELPER, part::HELPER),
    ];
    let always = part::REPLY | part::STATE | if all { part::NETNS } else { 0 };
    each.iter().filter(|(need, _)| demanded & need != 0).fold(always, |parts, (_, part)| parts | part)
}

impl BackendCache {
    /// A cache without a loaded program.
    pub fn new() -> BackendCache {
        BackendCache::default()
    }

    /// A cache that behaves as on a kernel that refuses the walk, for tests of the fallback.
    #[doc(hidden)]
    pub fn without_walk() -> BackendCache {
        BackendCache { walk: ProgramCache::new_refused("the walk is not wanted"), ..BackendCache::default() }
    }

    /// The error, if loading the program was tried and failed.
    pub fn refusal(&self) -> Option<Box<str>> {
        self.walk.refusal()
    }

    pub(crate) fn first_backend(&self) -> &Cell<Option<Via>> {
        &self.first
    }

    /// Why the walk cannot be used, in words; `None` if it may be tried. A replay needs no privileges.
    pub fn why_not(&self) -> Option<Box<str>> {
        let lacks_rights = || if cfg!(feature = "bpf") { lacks_bpf_rights() } else { Some(WITHOUT_BPF) };
        self.refusal().or_else(|| lacks_rights().map(Into::into))
    }

    /// Passes every row of the table to `visitor`.
    pub(crate) fn walk(
        &self,
        host: &Host,
        ask: &WalkParameters<'_>,
        visitor: &mut impl Visitor,
    ) -> Result<WalkResult, WalkError> {
        if !host.is_replay() {
            return self.walk_kernel(host, ask, visitor);
        }
        let key = key(ask.netns_id, ask.all);
        let blocks = host.stream(&key, ask.note, || Err(not_recorded()))?;
        rows(host, blocks, ask, visitor)?;
        Ok(WalkResult { chains: chains::record_or_replay(host, &key, None) })
    }

    /// True if a loaded program covers the request.
    #[cfg(feature = "bpf")]
    pub(crate) fn is_loaded(&self, ask: &WalkParameters<'_>) -> bool {
        let wanted = ask.filter.wanted_entries(ask.all, ask.expired);
        self.walk.has_program(|walk| walk.covers(ask.parts, &wanted))
    }

    #[cfg(feature = "bpf")]
    fn walk_kernel(
        &self,
        host: &Host,
        ask: &WalkParameters<'_>,
        visitor: &mut impl Visitor,
    ) -> Result<WalkResult, WalkError> {
        let wanted = || ask.filter.wanted_entries(ask.all, ask.expired);
        let load = || TableWalk::load(host, ask.parts, &wanted());
        let walk = self.walk.get(|walk| walk.covers(ask.parts, &wanted()), load)?;
        // Only the start happens inside the namespace: after it the program knows whose entries are wanted.
        let walking = netns::run_within(ask.netns, || walk.read(host, wanted()))?.map_err(WalkError::unavailable)?;
        let key = key(ask.netns_id, ask.all);
        let blocks = host.stream(&key, ask.note, || Ok(Box::new(walking) as Box<dyn Blocks>))?;
        rows(host, blocks, ask, visitor)?;
        let walked = walk.complete_counts().map(|counts| Chains { longest: counts.longest, nodes: counts.nodes });
        Ok(WalkResult { chains: chains::record_or_replay(host, &key, walked) })
    }

    #[cfg(not(feature = "bpf"))]
    pub(crate) fn is_loaded(&self, _: &WalkParameters<'_>) -> bool {
        false
    }

    #[cfg(not(feature = "bpf"))]
    fn walk_kernel(&self, _: &Host, _: &WalkParameters<'_>, _: &mut impl Visitor) -> Result<WalkResult, WalkError> {
        Err(WalkError::unavailable(WITHOUT_BPF))
    }
}

/// Exists if the kernel tracks DCCP states (CONFIG_NF_CT_PROTO_DCCP, up to Linux 6.16). Otherwise DCCP entries use the
/// generic tracker, and the bytes at the place of the state belong to something else.
const DCCP_TIMEOUT: &str = "/proc/sys/net/netfilter/nf_conntrack_dccp_timeout_open";

fn rows<'a>(
    host: &Host,
    mut blocks: Box<dyn Blocks + 'a>,
    ask: &WalkParameters<'_>,
    visitor: &mut impl Visitor,
) -> Result<(), WalkError> {
    let tracks_dccp = ask.parts & part::STATE != 0 && host.read_file(DCCP_TIMEOUT, &mut Vec::new()).is_ok();
    while let Some(block) = blocks.next()? {
        if decode_block(block, ask.netns_id, tracks_dccp, visitor).is_break() {
            break;
        }
    }
    Ok(())
}

fn not_recorded() -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", sys::Errno::NOSYS)
}
