//! Entries of many network namespaces as one table, read one namespace after the other.
use record::rows::Nat;
use record::{Accounting, Demand, Each, Next, Offer, Source, SourceError};
use sys::Host;

use crate::everywhere::{Way, in_each};
use crate::source::{CtSource, Options};

/// The entries of several namespaces, in the order of the ways into them.
#[derive(Debug)]
pub struct EveryCt<'h> {
    host: &'h Host,
    options: Options,
    ways: Vec<Way<'h>>,
}

impl<'h> EveryCt<'h> {
    /// Entries of all namespaces that `ways` lead into; what `options` say of the namespace is not used. Entering needs
    /// CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, options: Options, ways: Vec<Way<'h>>) -> EveryCt<'h> {
        EveryCt { host, options, ways }
    }

    fn source(&self, netns_id: u64) -> CtSource<'h> {
        CtSource::new(self.host, Options { netns_id, ..self.options })
    }
}

impl Source<Nat> for EveryCt<'_> {
    fn offer(&self, demand: &Demand<Nat>) -> Offer {
        let Some(first) = self.ways.first() else { return Offer::default() };
        let mut offer = self.source(first.netns_id).offer(demand);
        let many = self.ways.len();
        // The first line is about the door; others are about this one namespace.
        offer.explain.truncate(1);
        offer.explain.push(format!("in each of {many} network namespaces, one after the other, each by its own size"));
        // Each namespace chooses its own door: what one does not push the engine must do for all.
        offer.pushed.clear();
        offer
    }

    fn run(&mut self, demand: &Demand<Nat>, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let (mut stopped, mut books) = (false, Accounting::default());
        let entered = in_each(self.host, &self.ways, &mut |netns_id, _| {
            if stopped {
                return Ok(());
            }
            let mut each = |row: &record::rows::Conntrack<'_>| {
                let next = each(row);
                stopped |= next == Next::Stop;
                next
            };
            books.add(&self.source(netns_id).run(demand, &mut each)?);
            Ok(())
        })?;
        books.add(&entered);
        Ok(books)
    }
}
