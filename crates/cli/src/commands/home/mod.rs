//! `netwren` alone, or `netwren home`: the whole host on one screen, after a second.
//!
//! Each look is one row, whose lists come from the tables of other commands; home has no readings of its own. Start
//! reading at [`look`], which determines the order; `probes::home` makes the lists.

mod look;

use super::plan::{self, PlanError};
use super::table;
use crate::command::{Command, ParsedWords, Positional, Prepared, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::{Format, Request};
use doctor::checks::Probe;
use engine::Plan;
use lookups::session::Session;
use probes::Watch;
use probes::home::LIST_MAX;
use record::rows::{Drops, Flows, HomeScreens, Sockets};
use record::{Accounting, Each, Lookups, Source, SourceError, full_scan};
use std::cell::Cell;
use tables::counters::window_of;
use tables::{Selection, SourceProvider};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "home",
    about: "The whole host on one screen; same as `netwren` without a command",
    examples: EXAMPLES,
    scope: Scope::ROWS
        .without(Scope::MATCHES)
        .and(Scope::COLUMNS)
        .and(Scope::WATCH)
        .and(Scope::LASTS)
        .and(Scope::ALL_NETNS)
        .and(Scope::HOME),
    positional: Positional::None,
    tables: &[tables::HOME],
    recorded: Some(SavedPart { rows: None, is_large: false, open: || Box::new(look::save) }),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren                             interfaces, sockets, flows, drops and findings of one second
  netwren --all-netns                 all network namespaces
  netwren -o json | jq '.findings'    as JSON, with longer lists
  netwren --columns conntrack,retransmits -o json
  netwren record --for 2 host.nw && netwren --replay host.nw
Each part shows its worst rows; `netwren flows`, `netwren drops` and `netwren doctor` show all. If a part cannot be
read, the other parts are shown with the reason, and the exit code is 3.
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let mut request = Request::of(words)?;
    let shown = &request.shown;
    if request.format == Format::Table && !shown.wide && shown.columns.is_none() {
        request.format = Format::Home;
    }
    prepare_screen(request)
}

/// Prepares a run that shows the screen.
pub(super) fn prepare_screen(request: Request) -> Prepared<'static> {
    let provider = HomeProvider::new(&request)?;
    table::prepare(request, |_| Ok(provider))
}

/// Looks at the host once per round.
struct HomeProvider {
    watch: Watch,
    flows: Plan<Flows>,
    flow_reader: tables::flows::FlowProvider,
    sockets: Plan<Sockets>,
    drops: Plan<Drops>,
    /// True before the first look, which has no previous readings.
    is_first: Cell<bool>,
}

impl HomeProvider {
    /// Makes the plans of the tables that the screen consists of.
    fn new(request: &Request) -> Result<HomeProvider, PlanError> {
        let of = |shown: Selection| Request { shown, ..request.clone() };
        let columns =
            |members: &[record::Member]| Some(members.iter().map(|member| member.name).collect::<Vec<_>>().join(","));
        let flows = Selection {
            columns: columns(record::rows::HomeScreen::FLOWS),
            order: Some("bytes_per_s:desc,bytes_out_per_s:desc,connections:desc"),
            limit: Some(LIST_MAX),
            ..Selection::default()
        };
        let (flows, flow_reader) = tables::flows::compared(&of(flows).table())?;
        let sockets = Selection { by: Some("proto,state".to_owned()), ..Selection::default() };
        let drops = Selection {
            columns: columns(record::rows::HomeScreen::DROPS),
            order: Some("count:desc"),
            limit: Some(LIST_MAX),
            ..Selection::default()
        };
        Ok(HomeProvider {
            watch: Watch::new(window_of(&request.table(), None, look::WINDOW), Probe::ALL.into()),
            flows,
            flow_reader,
            sockets: plan::of_request(&of(sockets))?,
            drops: plan::of_request(&of(drops))?,
            is_first: Cell::new(true),
        })
    }
}

impl SourceProvider<HomeScreens> for HomeProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<HomeScreens>) -> R,
    ) -> R {
        then(&HomeSource { provider: self, session })
    }
}

/// The source of the single row of a round.
struct HomeSource<'h> {
    provider: &'h HomeProvider,
    session: &'h Session,
}

impl Source<HomeScreens> for HomeSource<'_> {
    fn prepare(&self, _: &record::Demand<HomeScreens>) -> Box<dyn record::Scan<HomeScreens> + '_> {
        let explain = "the tables of sockets, flows, counters, drops and doctor";
        full_scan::<HomeScreens, _>("netwren", explain, |each| self.read(each))
    }
}

impl HomeSource<'_> {
    fn read(&self, each: &mut Each<'_, HomeScreens>) -> Result<Accounting, SourceError> {
        let (screen, mut stats) = look::look(self.provider, self.session);
        stats.seen = 1;
        // The result does not matter, because there are no further rows.
        let _ = each(&screen);
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn every_part_has_a_plan() {
        let planned = |line: &str| {
            parser::parse_line(&COMMAND, line, |words| {
                HomeProvider::new(&Request::of(words)?).map(drop).map_err(|wrong| wrong.to_string())
            })
        };
        for line in ["", "--watch", "--all-netns -o json", "--netns x --columns flows"] {
            planned(line).unwrap();
        }
        assert!(planned("--by host").unwrap_err().to_string().contains("cannot be used with `home`"));
    }
}
