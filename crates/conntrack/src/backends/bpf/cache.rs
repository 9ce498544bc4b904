//! The walk of the connection-tracking table as a backend: what is loaded is kept here from one reading to the next.
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;

use record::rows::nat_need as need;
#[cfg(feature = "bpf")]
use sys::caps::{self, CapSet};
use sys::{Blocks, Host, NetNs, SysError};

use crate::backends::bpf::chains::{self, Chains};
use crate::backends::bpf::rows::{RowVisitor, decode_block, part};
use crate::backends::bpf::walk_filter::WalkFilter;
use crate::choose::Via;

/// A backend that is dear to open: kept for as long as a session lasts, so that `--watch` opens it once.
#[derive(Debug, Default)]
pub struct BackendCache {
    #[cfg(feature = "bpf")]
    walk: RefCell<Option<bpf::conntrack_walk::Walk>>,
    /// Why the walk could not be loaded, when it was tried.
    refused: RefCell<Option<Box<str>>>,
    /// The backend of the first round, while a recording is made: a table must not change its stream on the tape.
    first: Cell<Option<Via>>,
}

/// What is read.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) struct Ask<'k> {
    /// Whose entries; `None` is the calling thread's namespace.
    pub(crate) netns: Option<&'k NetNs>,
    /// Those of every namespace instead.
    pub(crate) all: bool,
    /// Parts of a row (`rows::part`).
    pub(crate) parts: u32,
    pub(crate) filter: &'k WalkFilter,
    /// Those whose time is over, too.
    pub(crate) expired: bool,
    /// Note of the stream on the tape.
    pub(crate) note: &'k str,
    /// Number of the namespace: names the stream, and stands in rows whose block does not tell.
    pub(crate) netns_id: u64,
}

/// Why the walk ended before its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum WalkError {
    /// The program could not be loaded, or the table not be found: no row came.
    Unavailable(Box<dyn Error + Send + Sync>),
    /// The reading broke off.
    Broken(SysError),
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalkError::Unavailable(error) => error.fmt(f),
            WalkError::Broken(error) => error.fmt(f),
        }
    }
}

/// What a reading met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Lengths of the chains, if the whole table was walked while its size stayed.
    pub(crate) chains: Option<Chains>,
}

/// Name of the stream on the tape. Of all namespaces: `all`.
pub(crate) fn key(netns_id: u64, all: bool) -> String {
    if all { "bpf/conntrack/all".to_owned() } else { format!("bpf/conntrack/{netns_id}") }
}

/// The parts that the demanded fields are made of.
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
    /// Closed.
    pub fn new() -> BackendCache {
        BackendCache::default()
    }

    /// As on a kernel that refuses the walk: for tests of what stands in for it.
    #[doc(hidden)]
    pub fn without_walk() -> BackendCache {
        BackendCache { refused: RefCell::new(Some("the walk is not wanted".into())), ..BackendCache::default() }
    }

    /// Why the program could not be loaded, if it was tried in vain.
    pub fn refused(&self) -> Option<Box<str>> {
        self.refused.borrow().clone()
    }

    pub(crate) fn first(&self) -> &Cell<Option<Via>> {
        &self.first
    }

    /// Why the walk is not to be tried here, in words; `None` if it may be. A replay needs no rights.
    pub fn why_not(&self) -> Option<Box<str>> {
        self.refused().or_else(|| lacks_rights().map(Into::into))
    }

    /// True if there is a program already that will do.
    #[cfg(feature = "bpf")]
    pub(crate) fn is_loaded(&self, ask: &Ask<'_>) -> bool {
        let wanted = ask.filter.wanted(ask.all, ask.expired);
        self.walk.borrow().as_ref().is_some_and(|walk| walk.covers(ask.parts, &wanted))
    }

    /// Reads the table; `visitor` gets every row.
    #[cfg(feature = "bpf")]
    pub(crate) fn walk(&self, host: &Host, ask: &Ask<'_>, visitor: &mut impl RowVisitor) -> Result<Walked, WalkError> {
        let key = key(ask.netns_id, ask.all);
        if host.is_replay() {
            let blocks = host.stream(&key, ask.note, || Err(not_here())).map_err(WalkError::Broken)?;
            rows(host, blocks, ask, visitor)?;
            return Ok(Walked { chains: chains::kept(host, &key, None) });
        }
        self.load(host, ask)?;
        let kept = self.walk.borrow();
        let Some(walk) = kept.as_ref() else { return Err(WalkError::Broken(not_here())) };
        // Only the beginning is done inside: from then on the program knows whose entries are meant.
        let inside = ask.netns.map(NetNs::enter).transpose().map_err(WalkError::Broken)?;
        let walking = walk.read(host, ask.filter.wanted(ask.all, ask.expired));
        if let Some(inside) = inside {
            inside.leave().map_err(WalkError::Broken)?;
        }
        let walking = walking.map_err(|error| WalkError::Unavailable(Box::new(error)))?;
        let blocks = host.stream(&key, ask.note, || Ok(Box::new(walking) as Box<dyn Blocks>));
        rows(host, blocks.map_err(WalkError::Broken)?, ask, visitor)?;
        let walked = walk.whole().map(|counts| Chains { longest: counts.longest, nodes: counts.nodes });
        Ok(Walked { chains: chains::kept(host, &key, walked) })
    }

    #[cfg(feature = "bpf")]
    fn load(&self, host: &Host, ask: &Ask<'_>) -> Result<(), WalkError> {
        if self.is_loaded(ask) {
            return Ok(());
        }
        if let Some(why) = self.refused() {
            return Err(WalkError::Unavailable(why.into_string().into()));
        }
        match bpf::conntrack_walk::Walk::load(host, ask.parts, &ask.filter.wanted(ask.all, ask.expired)) {
            Ok(walk) => {
                *self.walk.borrow_mut() = Some(walk);
                Ok(())
            }
            Err(error) => {
                *self.refused.borrow_mut() = Some(error.to_string().into());
                Err(WalkError::Unavailable(Box::new(error)))
            }
        }
    }

    #[cfg(not(feature = "bpf"))]
    pub(crate) fn is_loaded(&self, _: &Ask<'_>) -> bool {
        false
    }

    /// Without BPF a recording can still be read.
    #[cfg(not(feature = "bpf"))]
    pub(crate) fn walk(&self, host: &Host, ask: &Ask<'_>, visitor: &mut impl RowVisitor) -> Result<Walked, WalkError> {
        if !host.is_replay() {
            return Err(WalkError::Unavailable(WITHOUT_BPF.into()));
        }
        let key = key(ask.netns_id, ask.all);
        let blocks = host.stream(&key, ask.note, || Err(not_here())).map_err(WalkError::Broken)?;
        rows(host, blocks, ask, visitor)?;
        Ok(Walked { chains: chains::kept(host, &key, None) })
    }
}

#[cfg(not(feature = "bpf"))]
pub(crate) const WITHOUT_BPF: &str = "this netwren was built without BPF";

fn lacks_rights() -> Option<&'static str> {
    #[cfg(not(feature = "bpf"))]
    return Some(WITHOUT_BPF);
    #[cfg(feature = "bpf")]
    {
        let may = caps::effective().is_ok_and(CapSet::may_trace);
        (!may).then_some("bpf needs CAP_BPF and CAP_PERFMON")
    }
}

/// Exists where the kernel tracks states of DCCP (CONFIG_NF_CT_PROTO_DCCP, up to Linux 6.16). Elsewhere an entry of
/// DCCP is one of the generic kind, and the bytes that would be its state belong to something else.
const DCCP_TIMEOUT: &str = "/proc/sys/net/netfilter/nf_conntrack_dccp_timeout_open";

fn rows<'a>(
    host: &Host,
    mut blocks: Box<dyn Blocks + 'a>,
    ask: &Ask<'_>,
    visitor: &mut impl RowVisitor,
) -> Result<(), WalkError> {
    let tracks_dccp = ask.parts & part::STATE != 0 && host.read_file(DCCP_TIMEOUT, &mut Vec::new()).is_ok();
    while let Some(block) = blocks.next().map_err(WalkError::Broken)? {
        if decode_block(block, ask.netns_id, tracks_dccp, visitor).is_break() {
            break;
        }
    }
    Ok(())
}

fn not_here() -> SysError {
    SysError::new("bpf_prog_run", "the walk of the connection-tracking table", sys::Errno::NOSYS)
}
