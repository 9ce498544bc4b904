//! `netwren doctor path [FILTER]`: shows time and loss of packets between netfilter's hooks.

use super::super::counters::window;
use super::super::table;
use crate::command::{Command, ParsedWords, Prepared};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use engine::Windows;
use lookups::asked::with_asked;
use lookups::long_work;
use lookups::session::Session;
use profile::{ProfileError, StageProbe, StageSource};
use record::rows::PathStages;
use record::{Accounting, Lookups, Source, SourceError};
use runtime::messages::print_message;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tables::{Intervals, Repeat, RoundTime, SourceProvider};

/// Default duration of the measurement.
const WINDOW: Duration = Duration::from_secs(2);

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "doctor path",
    about: "Time and losses of packets in each netfilter stage",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).without(Scope::ALL_NETNS).without(Scope::LASTS).and(Scope::PATH),
    tables: &[tables::PATH_STAGES],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren doctor path                             this network namespace, for two seconds
  netwren doctor path --for 5 'lost > 0'          stages in which packets are lost
  netwren doctor path --for 5 'hook = forward or hook = postrouting' -o wide
  netwren doctor path --for 1 --all --netns /proc/self/ns/net -o json
While it runs, each packet of the namespace takes 0.1 to 0.2 us longer at each measured point: 14 points from the wire
to a process or back, 18 through this host. Nothing remains after the command ends, even if it is killed. Needs
Linux 6.4, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN. The confirmation of conntrack entries runs after all points
that programs can attach to; it is not measured.
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    let provider = StageProvider {
        all: words.has("all"),
        windows: Windows {
            once: window(words, &request)?.unwrap_or(WINDOW),
            period: request.repeat.period(),
            ends_ns: request.ends_ns,
        },
        probe: RefCell::default(),
        is_said: Cell::new(false),
    };
    table::prepare(request, |_| Ok(provider))
}

/// Measures once per round.
struct StageProvider {
    all: bool,
    windows: Windows,
    /// The BPF programs of the round.
    probe: RefCell<Option<StageProbe>>,
    /// True once the cost was reported.
    is_said: Cell<bool>,
}

impl Intervals for StageProvider {
    fn wait(&self, session: &Session, repeat: Repeat) -> Result<RoundTime, SourceError> {
        if session.host().is_replay() {
            return Ok(RoundTime::Moment);
        }
        let (window, is_last) = self.windows.begin(sys::clock::monotonic_ns());
        let mut probe = StageProbe::open().map_err(ProfileError::of_stages)?;
        let end_ns = sys::clock::monotonic_ns().saturating_add(u64::try_from(window.as_nanos()).unwrap_or(u64::MAX));
        probe.count_until(end_ns).map_err(ProfileError::of_stages)?;
        if !self.is_said.replace(true) {
            print_message(
                "while this runs, packets of this network namespace take 0.1 to 0.2 us longer at each measured point",
            );
        }
        let is_once = repeat == Repeat::Once;
        let _line = is_once.then(|| long_work::progress(session, "following packets", Some(window), String::new));
        let goes_on = session.sleep_until(end_ns);
        self.probe.replace(Some(probe));
        Ok(RoundTime::of_interval(is_last || !goes_on))
    }
}

impl SourceProvider<PathStages> for StageProvider {
    fn intervals(&self) -> Option<&dyn Intervals> {
        Some(self)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<PathStages>) -> R,
    ) -> R {
        let source = StageSource::new(session.host(), session.netns_id(), self.all, &self.probe);
        with_asked(session.host(), &source, then)
    }
}
