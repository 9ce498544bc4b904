//! `netwren drops --events`, `-w FILE`: each dropped packet as it occurs.

use super::file::DropFile;
use crate::commands::follow::{self, StreamNotes, Then};
use crate::flags::request::Request;
use ::drops::{DropStream, DropsVia, FollowDrops};
use engine::{Plan, Run, RunError};
use lookups::followed::follow_rows;
use lookups::owners::readings::SessionReadings;
use lookups::rules::{DroppingRules, OpenRules};
use lookups::session::Session;
use owners::SocketOwners;
use probes::drop_scope;
use record::rows::{DropEvents, drop_need};
use record::{Accounting, Annotate, Stream, annotated};
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use std::path::PathBuf;

/// Options for following single drops.
pub(super) struct EventRequest {
    /// True to include routine drops.
    pub(super) all: bool,
    /// The file to write packets to, and the number of bytes of each.
    pub(super) file: Option<(PathBuf, u32)>,
    /// `--via`
    pub(super) via: Option<DropsVia>,
}

/// Follows drops until the time is over or the run is ended.
pub(super) fn followed(request: &Request, plan: &Plan<DropEvents>, events: &EventRequest) -> Outcome {
    let end_ns = request.sample.map(|time| {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sys::clock::monotonic_ns().saturating_add(time_ns)
    });
    follow::run(request, plan, |session, then| {
        let is_late = || end_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns);
        let stop = || is_late() || follow::is_over(request, session);
        let snaplen = events.file.as_ref().map(|(_, snaplen)| *snaplen);
        let follow = FollowDrops { scope: drop_scope(session), all: events.all, snaplen, via: events.via, stop: &stop };
        let mut stream = DropStream::open(session.host(), plan.demand(), follow).map_err(RunError::Source)?;
        let to = Destination { request, plan, events, session };
        let needs = |bit: u64| plan.demand().need & bit != 0;
        if !needs(drop_need::RULE | drop_need::OWNERS) {
            return to.read(&mut stream, then);
        }
        // Errors are reported when lookups are read.
        session.find_namespaces(None, &mut Accounting::default());
        let rules = OpenRules::default();
        let mut annotators: Vec<Box<dyn Annotate<DropEvents> + '_>> = Vec::new();
        if needs(drop_need::RULE) {
            rules.open(session);
            annotators.push(Box::new(DroppingRules::new(session, &rules)));
        }
        if needs(drop_need::OWNERS) {
            annotators.push(Box::new(SocketOwners::new(SessionReadings::new(session))));
        }
        to.read(&mut *annotated(&mut stream, annotators), then)
    })
}

/// The destination of drops.
struct Destination<'d> {
    request: &'d Request,
    plan: &'d Plan<DropEvents>,
    events: &'d EventRequest,
    session: &'d Session,
}

impl Destination<'_> {
    fn read(&self, stream: &mut dyn Stream<DropEvents>, then: &mut Then<'_, DropEvents>) -> Result<Run, RunError> {
        let Some((path, _)) = self.events.file.as_ref().filter(|_| !self.request.explain) else {
            return then(stream, StreamNotes::default());
        };
        let mut file = DropFile::create(path, self.plan)?;
        let mut run = follow_rows(self.session, self.plan, stream, &mut file)?;
        print_message(&file.finish(&mut run));
        Ok(run)
    }
}
