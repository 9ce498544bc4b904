//! The tables of connection tracking.

use crate::error::TableError;
use crate::plan;
use crate::provider::SourceProvider;
use crate::request::{Repeat, TableRequest};
use crate::rounds;
use conntrack::stats::{StatMemory, StatOptions, StatSource};
use engine::Run;
use lookups::asked::with_asked;
use lookups::session::Session;
use record::rows::NatStats;
use record::{Accounting, Lookups, Sink, Source};
use std::cell::RefCell;

/// Reads the counters and settings of a request into a sink.
pub fn read_stats(session: &Session, request: &TableRequest<'_>, sink: &mut dyn Sink) -> Result<Run, TableError> {
    let plan = plan::of_request::<NatStats>(request).map_err(TableError::Plan)?;
    let provider = StatsProvider::new(StatOptions::default(), request.repeat);
    rounds::read(session, request, &plan, &provider, sink).map_err(TableError::Run)
}

/// Makes the source of counters and settings, once per round.
pub struct StatsProvider {
    options: StatOptions,
    /// State kept between rounds, if there are several.
    memory: Option<RefCell<StatMemory>>,
}

impl StatsProvider {
    /// Makes a provider; with rounds it keeps the counters of the round before.
    pub fn new(options: StatOptions, repeat: Repeat) -> StatsProvider {
        StatsProvider { options, memory: (repeat != Repeat::Once).then(RefCell::default) }
    }
}

impl SourceProvider<NatStats> for StatsProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _lookups: Lookups<'_>,
        _stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<NatStats>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let ways = session.ways(namespaces.as_deref());
        let source = StatSource::new(session.host(), ways, self.options, self.memory.as_ref());
        with_asked(session.host(), &source, then)
    }
}
