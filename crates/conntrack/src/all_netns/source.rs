//! Entries of many network namespaces as one table: in one pass of the walk, or one namespace after the other.
use std::cell::RefCell;

use record::rows::Nat;
use record::{Accounting, Demand, Each, Next, Offer, RowCache, Source, SourceError};
use sys::{Host, NetnsTarget};

use crate::all_netns::in_each_for;
use crate::backends::bpf::cache::{self as bpf, BackendCache};
use crate::backends::bpf::chains::Chains;
use crate::backends::netlink::dump::CtTable;
use crate::backends::seen::HandedOut;
use crate::choose::{BPF_LACKS, Via};
use crate::source::{ConntrackSource, Options};

/// The entries of several namespaces, in the order of the ways into them.
#[derive(Debug)]
pub struct AllNetnsConntrack<'h> {
    host: &'h Host,
    options: Options,
    ways: Vec<NetnsTarget<'h>>,
    cache: Option<&'h BackendCache>,
    /// What the last run met.
    chains: Option<Chains>,
}

impl<'h> AllNetnsConntrack<'h> {
    /// Entries of all namespaces that `ways` lead into; what `options` say of the namespace is not used. Entering needs
    /// CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, options: Options, ways: Vec<NetnsTarget<'h>>) -> AllNetnsConntrack<'h> {
        AllNetnsConntrack { host, options, ways, cache: None, chains: None }
    }

    /// With backends that stay open from one reading to the next, and by which all may be read in one pass.
    pub fn with_cache(mut self, cache: &'h BackendCache) -> AllNetnsConntrack<'h> {
        self.cache = Some(cache);
        self
    }

    /// Lengths of the hash table's chains, as the last run met them; `None` if it was not the one pass for all.
    pub fn chains(&self) -> Option<Chains> {
        self.chains
    }

    // One pass for all, if that is possible: nothing needs to be entered, and namespaces are found that nothing leads
    // into. Each of the others would look into every bucket of the host.
    fn walk(&self, demand: &Demand<Nat>) -> Option<ConntrackSource<'h>> {
        if self.host.is_replay() {
            return self.host.holds(&bpf::key(0, true)).then(|| self.source(0).of_all());
        }
        let wanted = match self.options.via {
            Some(via) => via == Via::Bpf,
            None => self.ways.len() > 1 && self.cache.is_some_and(|cache| cache.why_not().is_none()),
        };
        let has_all = demand.need & BPF_LACKS == 0 || self.options.via.is_some();
        let possible = wanted && has_all && self.options.table == CtTable::Conntrack;
        possible.then(|| self.source(0).of_all())
    }

    // Whether each namespace is read by itself where a walk of all broke off. In a replay that is so if it was so then.
    fn is_followed(&self) -> bool {
        match self.host.is_replay() {
            true => self.ways.iter().any(|way| self.source(way.netns_id).is_followed()),
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

impl Source<Nat> for AllNetnsConntrack<'_> {
    fn offer(&self, demand: &Demand<Nat>) -> Offer {
        if let Some(walk) = self.walk(demand) {
            return walk.offer(demand);
        }
        let Some(first) = self.ways.first() else { return Offer::default() };
        let mut offer = self.source(first.netns_id).offer(demand);
        let many = self.ways.len();
        // The first line is about the backend; others are about this one namespace.
        offer.explain.truncate(1);
        offer.explain.push(format!("in each of {many} network namespaces, one after the other, each by its own size"));
        // Each namespace chooses its own backend: what one does not push the engine must do for all.
        offer.pushed.clear();
        offer
    }

    // Only in the one pass for all are rows shown as bytes.
    fn read(
        &mut self,
        demand: &Demand<Nat>,
        cache: Option<&dyn RowCache>,
        each: &mut Each<'_, Nat>,
    ) -> Result<Accounting, SourceError> {
        let mut stats = Accounting::default();
        self.chains = None;
        let handed_out = RefCell::new(if self.is_followed() { HandedOut::noting() } else { HandedOut::default() });
        if let Some(walk) = self.walk(demand) {
            let mut walk = walk.sharing(&handed_out);
            let walked = walk.read(demand, cache, each);
            self.chains = walk.chains();
            match walked {
                // What nothing leads into is read by the walk alone.
                Ok(walked) if handed_out.borrow().is_finishing() => {
                    stats = walked;
                    stats.incomplete = true;
                    stats.add_reason(0, "of network namespaces that nothing leads into entries may be missing");
                }
                // One after the other, if the walk cannot be had after all.
                Err(error) if self.options.via.is_none() && !self.host.is_replay() => {
                    stats.add_reason(0, format!("read one namespace after the other: {error}"));
                }
                walked => return walked,
            }
        }
        let is_rest = handed_out.borrow().is_finishing();
        let entered = in_each_for(self.host, &self.ways, self.options.table.purpose(), &mut |netns_id, _| {
            let mut wants = Next::More;
            let mut each = |row: &record::rows::Conntrack<'_>| {
                wants = each(row);
                wants
            };
            let mut source = match is_rest {
                true => {
                    let options = Options { netns_id, via: Some(Via::Netlink), ..self.options };
                    ConntrackSource::new(self.host, options).sharing(&handed_out)
                }
                false => self.source(netns_id),
            };
            stats.add(&source.run(demand, &mut each)?);
            Ok(wants)
        })?;
        stats.add(&entered);
        Ok(stats)
    }
}
