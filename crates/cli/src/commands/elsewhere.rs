//! Hints at `--all-netns`, if a filter matches nothing in one network namespace or a recording has several.

use crate::flags::request::Request;
use engine::{EndReason, Plan, Run};
use lookups::session::{Session, SessionTarget};
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Table, Value};
use std::time::Duration;
use tables::{Repeat, SourceProvider, Subject, TableRequest};

/// The texts of the hints.
pub(super) struct Hints {
    /// For a filter on containers.
    container: &'static str,
    /// For a filter on an address that only other namespaces have.
    address: &'static str,
}

impl Hints {
    /// Hints of a command that shows rows, from one or all namespaces.
    pub(super) const OF_LISTS: Hints = Hints {
        container: "no match in this network namespace; most containers have their own: --all-netns reads all of them",
        address: "no match in this network namespace, but some in others: --all-netns shows them",
    };
    /// Hints of a command that acts, which works on one namespace only.
    pub(super) const OF_ACTIONS: Hints = Hints {
        container: "no match in this network namespace; most containers have their own: the list shows them with \
                    --all-netns, --netns NAME acts in one",
        address: "no match in this network namespace, but some in others: the list shows them with --all-netns, \
                  --netns NAME acts in one",
    };

    /// Adds the hint at containers if the only namespace read had no match. Reads nothing.
    pub(super) fn add_container<T: Table>(
        &self,
        run: &mut Run,
        session: &Session,
        plan: &Plan<T>,
        provider: &impl SourceProvider<T>,
    ) {
        if is_empty(run) && session.namespaces().is_none() && asks_for(plan, provider, Subject::Container) {
            run.stats.add_reason(0, self.container);
        }
    }

    /// Adds the hint at addresses if the caller's namespace had no match and another namespace has one. Reads all
    /// namespaces to find out, but only for a single round of the live host, and only state: an interval that is over
    /// cannot be read again.
    pub(super) fn add_address<T: Table>(
        &self,
        run: &mut Run,
        request: &Request,
        plan: &Plan<T>,
        provider: &impl SourceProvider<T>,
    ) {
        let is_narrow = request.netns.is_some() || request.all_netns || request.repeat != Repeat::Once;
        let is_of_state = provider.intervals().is_none();
        if is_narrow || !is_of_state || request.record.is_some() || request.replay.is_some() {
            return;
        }
        if is_empty(run) && asks_for(plan, provider, Subject::Address) && is_in_others(request, plan, provider) {
            run.stats.add_reason(0, self.address);
        }
    }
}

/// Notes that the rows of a replay come from several network namespaces, if no column shows which: a replay shows
/// everything that was recorded.
pub(super) fn add_replay_note(run: &mut Run, request: &Request, session: &Session) {
    let recorded = session.namespaces().filter(|_| session.host().is_replay() && !request.all_netns);
    if let Some(count) = recorded.map(|namespaces| namespaces.list().len()).filter(|count| *count > 1) {
        let words = format!(
            "the rows cover all {count} network namespaces of the recording: --all-netns shows the \
            namespace of each"
        );
        run.stats.add_reason(0, words);
    }
}

/// True if everything was read but no row was shown.
fn is_empty(run: &Run) -> bool {
    run.ended == EndReason::Whole && run.stats.emitted + run.stats.grouped == 0
}

fn asks_for<T: Table>(plan: &Plan<T>, provider: &impl SourceProvider<T>, subject: Subject) -> bool {
    subject.is_in::<T>(&plan.demand().conjuncts) || provider.tests(subject)
}

/// True if some network namespace has a row of this plan; false if namespaces cannot be read.
fn is_in_others<T: Table>(request: &Request, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> bool {
    // Delays of packet sockets are not measured again.
    let sample = Some(Duration::ZERO);
    let all = SessionTarget { all_netns: true, owners_via: request.owners_via, sample, ..SessionTarget::default() };
    let Ok(session) = Session::open(all) else { return false };
    let once = TableRequest { resolve: None, ..request.table() };
    let read = tables::rounds::read(&session, &once, plan, provider, &mut FirstRow);
    read.is_ok_and(|run| run.stats.emitted + run.stats.grouped > 0)
}

/// A sink that stops at the first row and writes nothing.
struct FirstRow;

impl Sink for FirstRow {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _: &[Value<'_>]) -> Result<Next, SinkError> {
        Ok(Next::Stop)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}
