//! Entries of many network namespaces as one table: in one pass of the walk, or one namespace after the other.
use std::cell::RefCell;

use record::rows::Nat;
use record::{Accounting, Demand, Each, Next, Offer, RowCache, Scan, Source, SourceError};
use sys::{Host, NetnsTarget};

use crate::all_netns::in_each_for;
use crate::backends::bpf::cache::{self as bpf, BackendCache};
use crate::backends::bpf::chains::Chains;
use crate::backends::seen::HandedOut;
use crate::choose::{BPF_LACKS, Via};
use crate::options::Options;
use crate::source::{ConntrackScan, ConntrackSource};
use crate::table::CtTable;

/// The entries of several namespaces, in the order of `targets`.
#[derive(Debug)]
pub struct AllNetnsConntrack<'h> {
    host: &'h Host,
    options: Options,
    targets: Vec<NetnsTarget<'h>>,
    cache: Option<&'h BackendCache>,
}

impl<'h> AllNetnsConntrack<'h> {
    /// Entries of all namespaces in `targets`; the namespace in `options` is not used. Entering needs CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, options: Options, targets: Vec<NetnsTarget<'h>>) -> AllNetnsConntrack<'h> {
        AllNetnsConntrack { host, options, targets, cache: None }
    }

    /// Keeps backends open from one reading to the next, which also makes it possible to read all namespaces in one
    /// pass.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> AllNetnsConntrack<'h> {
        self.cache = Some(cache);
        self
    }

    // One pass for all namespaces, if possible: it enters none, finds those that no path leads into, and visits the
    // host's buckets once instead of once per namespace.
    fn walk(&self, demand: &Demand<Nat>) -> Option<ConntrackSource<'h>> {
        if self.host.is_replay() {
            return self.host.contains(&bpf::key(0, true)).then(|| self.source(0).of_all());
        }
        let wanted = match self.options.via {
            Some(via) => via == Via::Bpf,
            None => self.targets.len() > 1 && self.cache.is_some_and(|cache| cache.why_not().is_none()),
        };
        let has_all = demand.need & BPF_LACKS == 0 || self.options.via.is_some();
        let possible = wanted && has_all && self.options.table == CtTable::Conntrack;
        possible.then(|| self.source(0).of_all())
    }

    // Whether each namespace is read separately after an interrupted walk of all. A replay does what the recorded run
    // did.
    fn is_followed(&self) -> bool {
        match self.host.is_replay() {
            true => self.targets.iter().any(|target| self.source(target.netns_id).is_followed()),
            false => self.options.via.is_none(),
        }
    }

    fn source(&self, netns_id: u64) -> ConntrackSource<'h> {
        let source = ConntrackSource::new(self.host, Options { netns_id, ..self.options });
        match self.cache {
            Some(cache) => source.with_cache(cache),
            None => source,
        }
    }
}

impl<'h> AllNetnsConntrack<'h> {
    /// Chooses between one pass for all namespaces and a reading of each.
    pub fn scan(&self, demand: &Demand<Nat>) -> AllNetnsScan<'_, 'h> {
        let walk = self.walk(demand).map(|walk| walk.scan(demand));
        AllNetnsScan { all: self, demand: demand.clone(), walk, chains: None }
    }
}

impl Source<Nat> for AllNetnsConntrack<'_> {
    fn prepare(&self, demand: &Demand<Nat>) -> Box<dyn Scan<Nat> + '_> {
        Box::new(self.scan(demand))
    }
}

/// A prepared reading of all namespaces. If each is read separately, its own scan is prepared inside it when its turn
/// comes, because the sizes of the tables differ.
#[derive(Debug)]
pub struct AllNetnsScan<'s, 'h> {
    all: &'s AllNetnsConntrack<'h>,
    demand: Demand<Nat>,
    /// The single pass for all namespaces, if possible.
    walk: Option<ConntrackScan<'h>>,
    /// Chain lengths found by the last run.
    chains: Option<Chains>,
}

impl Scan<Nat> for AllNetnsScan<'_, '_> {
    fn offer(&self) -> Offer {
        if let Some(walk) = &self.walk {
            return walk.offer();
        }
        let Some(first) = self.all.targets.first() else { return Offer::default() };
        let mut offer = self.all.source(first.netns_id).scan(&self.demand).offer();
        let many = self.all.targets.len();
        // The first line describes the backend; the others describe this one namespace.
        offer.explain.truncate(1);
        offer
            .explain
            .push(format!("in each of {many} network namespaces, one after the other, chosen by the size of each"));
        // Each namespace chooses its own backend, so the engine must apply the whole filter.
        offer.pushdown.clear();
        offer
    }

    fn run(&mut self, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        self.read(None, each)
    }

    // Rows have bytes to compare only in the single pass for all.
    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let walk = self.walk.as_ref();
        let cache = walk.is_some_and(|walk| walk.may_show_bytes(cache)).then_some(cache);
        self.read(cache, each)
    }
}

impl AllNetnsScan<'_, '_> {
    /// Chain lengths of the hash table, measured by the last run. All namespaces share the table, so any walk of the
    /// whole table measures them. `None` without such a walk, or if the size of the table changed during it.
    pub fn chains(&self) -> Option<Chains> {
        self.chains
    }

    fn read(&mut self, cache: Option<&dyn RowCache>, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let all = self.all;
        let mut stats = Accounting::default();
        self.chains = None;
        let handed_out =
            RefCell::new(if all.is_followed() { HandedOut::new_recording() } else { HandedOut::default() });
        if let Some(walk) = &mut self.walk {
            let walked = walk.read(cache, each, &handed_out);
            self.chains = walk.chains();
            match walked {
                // Only the walk reads namespaces that no path leads into.
                Ok(walked) if handed_out.borrow().is_finishing() => {
                    stats = walked;
                    stats.incomplete(0, "entries of network namespaces that cannot be reached may be missing");
                }
                // Falls back to one namespace after the other if the walk turns out to be unavailable.
                Err(error) if all.options.via.is_none() && !all.host.is_replay() => {
                    stats.add_reason(0, format!("read one namespace after the other: {error}"));
                }
                walked => return walked,
            }
        }
        let is_rest = handed_out.borrow().is_finishing();
        let chains = &mut self.chains;
        let entered = in_each_for(all.host, &all.targets, all.options.table.purpose(), &mut |netns_id, _| {
            let mut wants = Next::More;
            let mut each = |row: &record::rows::Conntrack<'_>| {
                wants = each(row);
                wants
            };
            let read = if is_rest {
                let options = Options { netns_id, via: Some(Via::Netlink), ..all.options };
                ConntrackSource::new(all.host, options).scan(&self.demand).read(None, &mut each, &handed_out)
            } else {
                let mut scan = all.source(netns_id).scan(&self.demand);
                let read = scan.run(&mut each);
                *chains = scan.chains().or(*chains);
                read
            };
            stats.add(&read?);
            Ok(wants)
        })?;
        stats.add(&entered);
        Ok(stats)
    }
}
