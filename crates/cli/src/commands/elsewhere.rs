//! Hints at `--all-netns`, where a filter finds nothing in one network namespace, and where a recording has several.

use super::rounds::RoundReader;
use super::source_provider::{SourceProvider, Subject};
use crate::flags::request::{Repeat, Request};
use crate::session::{Session, SessionTarget};
use engine::{Ended, Plan, Run};
use record::{Accounting, Columns, Next, Round, Sink, SinkError, Table, Value};

/// The words of the hints.
pub(super) struct Hints {
    /// Where the filter asks for a container.
    container: &'static str,
    /// Where the filter asks for an address that only other namespaces have.
    address: &'static str,
}

impl Hints {
    /// Of a command that shows, of one namespace or of all.
    pub(super) const OF_LISTS: Hints = Hints {
        container: "nothing matches in this network namespace; most containers have one of their own: --all-netns \
                    reads these, too",
        address: "nothing matches in this network namespace, but in others: --all-netns shows it",
    };
    /// Of a command that acts, which does so in one namespace.
    pub(super) const OF_ACTIONS: Hints = Hints {
        container: "nothing matches in this network namespace; most containers have one of their own: the list shows \
                    them with --all-netns, --netns NAME acts in one",
        address: "nothing matches in this network namespace, but in others: the list shows it with --all-netns, \
                  --netns NAME acts in one",
    };

    /// Adds the hint at containers if nothing was found in the one namespace that was read. Reads nothing.
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

    /// Adds the hint at addresses if nothing was found in the caller's namespace and another one has a matching row.
    /// Reads all namespaces to know that, but only for a run of one round that reads what is here now.
    pub(super) fn add_address<T: Table>(
        &self,
        run: &mut Run,
        request: &Request,
        plan: &Plan<T>,
        provider: &impl SourceProvider<T>,
    ) {
        let is_narrow = request.netns.is_some() || request.all_netns || request.repeat != Repeat::Once;
        if is_narrow || request.record.is_some() || request.replay.is_some() {
            return;
        }
        if is_empty(run) && asks_for(plan, provider, Subject::Address) && is_in_others(request, plan, provider) {
            run.stats.add_reason(0, self.address);
        }
    }
}

/// Says that rows of a recording are of several network namespaces, where no column tells of which: a replay shows all
/// that was recorded.
pub(super) fn add_replay_note(run: &mut Run, request: &Request, session: &Session) {
    let recorded = session.namespaces().filter(|_| session.host().is_replay() && !request.all_netns);
    if let Some(count) = recorded.map(|namespaces| namespaces.list().len()).filter(|count| *count > 1) {
        let words = format!("rows are of all {count} network namespaces of the recording: --all-netns shows of which");
        run.stats.add_reason(0, words);
    }
}

/// True if everything was read and no row was shown.
fn is_empty(run: &Run) -> bool {
    run.ended == Ended::Whole && run.stats.emitted + run.stats.grouped == 0
}

fn asks_for<T: Table>(plan: &Plan<T>, provider: &impl SourceProvider<T>, subject: Subject) -> bool {
    subject.is_in::<T>(&plan.demand().conjuncts) || provider.tests(subject)
}

/// True if some network namespace has a row of this plan. Where namespaces cannot be read the answer is false.
fn is_in_others<T: Table>(request: &Request, plan: &Plan<T>, provider: &impl SourceProvider<T>) -> bool {
    let all = SessionTarget { all_netns: true, owners_via: request.owners_via, ..SessionTarget::default() };
    let Ok(session) = Session::open(all) else { return false };
    let mut run = Run { stats: Accounting::default(), ended: Ended::Whole };
    let read = RoundReader::new(request, &session, plan, provider).read(&mut FirstRow, None, None, &mut run);
    read.is_ok() && run.stats.emitted + run.stats.grouped > 0
}

/// A sink that needs one row and writes none.
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
