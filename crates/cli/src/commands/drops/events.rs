//! `netwren drops --events`: each dropped packet, as it comes.

use super::scope;
use crate::commands::follow::{self, StreamNotes};
use crate::flags::request::Request;
use crate::outcome::Outcome;
use ::drops::{DropStream, FollowDrops};
use engine::{Plan, RunError};
use record::rows::DropEvents;

/// Follows drops until the time is over or somebody ends it; `all`: those that are routine, too.
pub(super) fn followed(request: &Request, plan: &Plan<DropEvents>, all: bool) -> Outcome {
    let end_ns = request.sample.map(|time| {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sys::clock::monotonic_ns().saturating_add(time_ns)
    });
    follow::run(request, plan, |session, then| {
        let is_late = || end_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns);
        let stop = || is_late() || follow::is_over(request, session);
        let follow = FollowDrops { scope: scope(session), all, stop: &stop };
        let mut stream = DropStream::open(session.host(), plan.demand(), follow).map_err(RunError::Source)?;
        then(&mut stream, StreamNotes::default())
    })
}
