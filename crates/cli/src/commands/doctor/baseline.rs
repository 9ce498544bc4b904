//! `netwren doctor --baseline FILE`: reports changes since the host was recorded.

use crate::command::{Prepared, ready};
use crate::commands::plan;
use crate::commands::sockets::LISTENERS;
use crate::commands::table;
use crate::flags::request::Request;
use doctor::checks::Probe;
use engine::Plan;
use lookups::pillars;
use lookups::session::{Session, SessionTarget};
use probes::Watch;
use probes::baseline::{Baseline, BaselineSource, LISTENER_COLUMNS};
use record::rows::{BaselineChanges, Sockets};
use record::{Accounting, Lookups, Source};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use std::path::Path;
use std::time::Duration;
use tables::counters::window_of;
use tables::{Repeat, Selection, SourceProvider};

/// Prepares a comparison of the host with the recording, which shows the changes.
pub(super) fn prepare(request: Request, file: &Path, window: Option<Duration>) -> Prepared<'_> {
    let plan = plan::of_request::<BaselineChanges>(&request)?;
    let listeners =
        Selection { columns: Some(LISTENER_COLUMNS.to_owned()), filter: LISTENERS.to_owned(), ..Selection::default() };
    let listeners = plan::of_request::<Sockets>(&Request { shown: listeners, ..request.clone() })?;
    let counters = window_of(&request.table(), window, super::WINDOW).announced("watching this host");
    let watch = Watch::new(counters, Probe::ALL.into());
    ready(move || match read_recording(&request, file, &listeners) {
        Ok(baseline) => table::run(&request, &plan, &BaselineProvider { baseline, watch, listeners }),
        Err(outcome) => outcome,
    })
}

/// Reads the recorded state of the host.
fn read_recording(request: &Request, file: &Path, listeners: &Plan<Sockets>) -> Result<Baseline, Outcome> {
    let target = SessionTarget { replay: Some(file.to_owned()), ..SessionTarget::default() };
    let session = Session::open(target).map_err(|error| Outcome::with_message(error.exit(), error))?;
    let mut stats = Accounting::default();
    session.host().begin_round();
    pillars::find_namespaces(&session, false, &mut stats);
    let once = Request { repeat: Repeat::Once, ..request.clone() };
    let watch = Watch::new(window_of(&once.table(), None, super::WINDOW), Probe::ALL.into());
    let baseline = Baseline::read(&session, &watch, listeners, stats);
    baseline.map_err(|error| Outcome::with_message(Exit::Failed, format!("the baseline cannot be used: {error}")))
}

/// Compares once per round.
struct BaselineProvider {
    baseline: Baseline,
    watch: Watch,
    listeners: Plan<Sockets>,
}

impl SourceProvider<BaselineChanges> for BaselineProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<BaselineChanges>) -> R,
    ) -> R {
        let BaselineProvider { baseline, watch, listeners } = self;
        then(&BaselineSource { baseline, watch, listeners, session })
    }
}
