//! Lookups that stay current while namespaces, interfaces, users, cgroups and processes appear and disappear, for the
//! rows of a stream.

use crate::asked;
use crate::enrich::Enrichment;
use crate::followed_ifaces::FollowedIfaces;
use crate::process_cache::{self, ProcessCache};
use crate::refreshing_lookups::RefreshingLookups;
use crate::session::Session;
use engine::{Plan, RenewedLookups, RowSink, Run, RunError, StreamFeed};
use host::{Containers, ProcessParts, Processes};
use record::{Accounting, LookupId, Lookups, Stream, Table};
use sys::Mode;

/// The lookups of a stream.
pub struct FollowedLookups<'s> {
    session: &'s Session,
    base: Lookups<'s>,
    /// `None` if no row shows an interface.
    ifaces: Option<FollowedIfaces<'s>>,
    refreshing: RefreshingLookups<'s>,
    processes: ProcessCache<'s, Processes>,
    places: ProcessCache<'s, Containers>,
}

impl<'s> FollowedLookups<'s> {
    /// Reads the lookups that are read once, at the start. Interface names are read when rows need them, except in a
    /// replay, which uses the recorded names.
    pub fn read_before(
        session: &'s Session,
        wanted: &[LookupId],
        may_need: &dyn Fn(LookupId) -> bool,
        notes: &mut Accounting,
    ) -> Enrichment<'s> {
        let is_replay = session.host().is_replay();
        let wanted: Vec<LookupId> = wanted.iter().copied().filter(|id| is_replay || *id != LookupId::Ifaces).collect();
        let mut enrichment = Enrichment::read(session, &wanted, notes);
        if is_replay {
            enrichment.add_for_some_rows(session, may_need);
        }
        enrichment
    }

    /// Makes lookups on top of `base`, which was read at the start. `may_need` is true for a lookup that some rows need
    /// although it is not `wanted`.
    pub fn new(
        session: &'s Session,
        base: Lookups<'s>,
        wanted: &[LookupId],
        may_need: &dyn Fn(LookupId) -> bool,
    ) -> FollowedLookups<'s> {
        let is_wanted = wanted.contains(&LookupId::Ifaces);
        let ifaces = (is_wanted || may_need(LookupId::Ifaces)).then(|| FollowedIfaces::new(session, base));
        let is_recording = session.host().mode() == Mode::Recording;
        if is_recording && !is_wanted && ifaces.is_some() {
            asked::note(session.host(), LookupId::Ifaces);
        }
        ifaces.iter().filter(|_| is_wanted || is_recording).for_each(FollowedIfaces::begin);
        FollowedLookups {
            session,
            base,
            ifaces,
            refreshing: RefreshingLookups::new(session.host(), base),
            processes: ProcessCache::processes(session.host(), parts(wanted)),
            places: ProcessCache::places(session.host()),
        }
    }

    /// Reports cells that stayed empty.
    pub fn tell(&self, stats: &mut Accounting) {
        self.ifaces.iter().for_each(|ifaces| ifaces.tell(stats));
        self.refreshing.tell(stats);
        self.processes.tell(stats);
        self.places.tell(stats);
    }
}

impl RenewedLookups for FollowedLookups<'_> {
    fn with(&mut self, then: &mut dyn FnMut(&Lookups<'_>)) {
        self.refreshing.renew();
        let others = self.session.found().take_others();
        if let Some(ifaces) = &mut self.ifaces {
            ifaces.forget_namespaces(&others);
            ifaces.renew();
        }
        self.refreshing.forget_namespaces(others);
        self.processes.renew();
        self.places.renew();
        let base = self.ifaces.as_ref().map_or(self.base, |ifaces| self.base.with_lookup(LookupId::Ifaces, ifaces));
        let refreshing = self.refreshing.over(base);
        let (columns, places) = (self.processes.columns(), self.places.columns(refreshing));
        then(&process_cache::over(process_cache::over(refreshing, &columns), &places));
    }
}

/// The data to read of each process that connects or accepts.
fn parts(wanted: &[LookupId]) -> ProcessParts {
    ProcessParts {
        cmdlines: wanted.contains(&LookupId::Cmdlines),
        container_pids: wanted.contains(&LookupId::ContainerPids),
        ..ProcessParts::default()
    }
}

/// Calls `then` with the lookups for the rows of a stream: those that the plan needs, and `others`. Adds to the run
/// what they lack.
pub fn with_lookups<T: Table>(
    session: &Session,
    plan: &Plan<T>,
    others: &[LookupId],
    then: impl FnOnce(&mut FollowedLookups<'_>, &mut Accounting) -> Result<Run, RunError>,
) -> Result<Run, RunError> {
    let mut notes = Accounting::default();
    session.find_namespaces(None, &mut notes);
    let needs = |id: &LookupId| plan.needs_lookup(*id) || others.contains(id);
    let wanted: Vec<LookupId> = LookupId::ALL.into_iter().filter(needs).collect();
    let wanted = asked::lookups(session.host(), plan.demand(), wanted, &mut notes);
    let may_need = |id| plan.may_need_lookup(id);
    let enrichment = FollowedLookups::read_before(session, &wanted, &may_need, &mut notes);
    let mut lookups = FollowedLookups::new(session, enrichment.lookups(), &wanted, &may_need);
    let mut run = then(&mut lookups, &mut notes)?;
    lookups.tell(&mut notes);
    run.stats.add(&notes);
    Ok(run)
}

/// Hands the rows of a stream and the cells of the plan to `rows`.
pub fn follow_rows<T: Table>(
    session: &Session,
    plan: &Plan<T>,
    stream: &mut dyn Stream<T>,
    rows: &mut dyn RowSink<T>,
) -> Result<Run, RunError> {
    with_lookups(session, plan, &[], |lookups, _| {
        plan.run_rows(&mut StreamFeed::new(stream, lookups, &|| session.is_replay_interrupted()), rows)
    })
}
