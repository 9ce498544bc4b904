//! `netwren doctor [AREA]`: finds problems in this host's network, and their remedies.
//!
//! It observes the host (`probes`), lets `doctor` judge, and shows findings as text (`text`) or as rows of a table.
//! Its subcommands `softirq` and `path` show where time is spent.

mod baseline;
mod explain;
pub(crate) mod path;
pub(crate) mod softirq;
mod text;

use super::counters::window;
use super::plan::PlanError;
use super::table;
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::{Format, Request};
use crate::screen;
use doctor::checks::{CHECKS, Check, Probe, probes_of};
use engine::{Plan, Predicate};
use lookups::session::Session;
use probes::Watch;
use record::rows::{Findings, Severity};
use record::{Accounting, LookupId, Lookups, Operand, Sink, Source, Table, Test, full_scan};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::cell::Cell;
use std::time::Duration;
use tables::SourceProvider;
use tables::counters::window_of;

/// Default duration of the observation.
const WINDOW: Duration = Duration::from_secs(3);

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "doctor",
    about: "Diagnose this host's network: findings with their evidence and remedies",
    examples: EXAMPLES,
    scope: Scope::TABLE.without(Scope::NAMES).without(Scope::MATCHES).without(Scope::LASTS).and(Scope::DOCTOR),
    tables: &[tables::FINDINGS, tables::BASELINE_CHANGES],
    recorded: Some(SavedPart { rows: None, is_large: false, open: || Box::new(probes::save) }),
    other_table: &["baseline"],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren doctor                                  findings, the most severe first, each with the command that fixes it
  netwren doctor tcp conntrack --all-netns        only these areas, in all network namespaces
  netwren doctor --for 1 -o json                  findings with their evidence, for programs
  netwren doctor 'severity = critical' --for 1
  netwren doctor --explain listen-overflow        how the check works, and what would refute its finding
  netwren doctor --explain                        all checks
  netwren doctor --for 1 --exit-code=critical || echo something is lost
  netwren record --for 5 sick.nw && netwren doctor --replay sick.nw
  netwren doctor --record well.nw; netwren doctor --baseline well.nw    changes since the recording
Checks use the changes during the window and the current state: old counter values cause no finding. A finding that
another one explains follows it and names it.
A window of 3 s misses slow faults: a resolver that times out after 5 s, a segment that is retransmitted every 6 s.
--for 30 shows more of them. Others take minutes: keepalive probes, a multicast network without an IGMP querier.
";

/// Columns for the text output.
const TEXT_COLUMNS: &str = "severity,id,netns,title,cost,confidence,evidence,remedy,since,explained_by";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    let mut request = Request::of(words)?;
    let window = window(words, &request)?;
    if let Some(file) = words.file("baseline") {
        if words.is_given("exit-code") {
            return Err("--exit-code applies to findings, which --baseline does not show".to_owned().into());
        }
        return baseline::prepare(request, file, window);
    }
    if let Some(unknown) = unknown(&request.shown.filter) {
        let areas: std::collections::BTreeSet<&str> = CHECKS.iter().map(|check| check.area).collect();
        let areas = areas.into_iter().collect::<Vec<_>>().join(", ");
        return Err(format!("unknown area or check `{}`; the areas are {areas}", unknown.escape_debug()).into());
    }
    let chosen = chosen(&request.shown.filter);
    let is_chosen = chosen.is_some();
    let chosen = chosen.unwrap_or_default();
    if is_chosen {
        request.shown.filter.clear();
    }
    if request.explain && (is_chosen || request.shown.filter.is_empty()) {
        return ready(move || print::print(&explain::text(&chosen)).into());
    }
    let level = level(words)?;
    let wants_text = wants_text(&request);
    if wants_text {
        request.shown.columns = Some(TEXT_COLUMNS.to_owned());
    }
    let plan = super::plan::of_request(&request)?;
    let provider = DoctorProvider::new(&request, &plan, window, chosen)?;
    ready(move || {
        let outcome = run(&request, &plan, &provider, wants_text);
        with_code(outcome, level, provider.worst.get())
    })
}

/// Shows the findings, as text or as rows.
fn run(request: &Request, plan: &Plan<Findings>, provider: &DoctorProvider, wants_text: bool) -> Outcome {
    table::show_through(request, plan, provider, |session, mut sink, rounds| {
        if !wants_text {
            return rounds(&mut *sink);
        }
        let scope = text::ChecksShown {
            checks: chosen_checks(&provider.chosen).count(),
            is_filtered: !request.shown.filter.is_empty(),
        };
        let prose = |to| Box::new(text::FindingText::new(to, scope, &provider.compared)) as Box<dyn Sink>;
        rounds(&mut *screen::draw_rounds(request, session, Box::new(prose)))
    })
}

/// The exit code with `--exit-code`: a finding of the required severity takes precedence over missing data.
fn with_code(outcome: Outcome, level: Option<Severity>, worst: Option<Severity>) -> Outcome {
    let is_found = level.zip(worst).is_some_and(|(level, worst)| worst <= level);
    match outcome.exit {
        Exit::Ok | Exit::Partial if is_found => Outcome { exit: Exit::NoMatch, ..outcome },
        _ => outcome,
    }
}

/// The severity in `--exit-code`; None without it.
fn level(words: &ParsedWords<'_>) -> Result<Option<Severity>, String> {
    let Some(written) = words.value("exit-code").filter(|_| words.is_given("exit-code")) else { return Ok(None) };
    match Severity::ALL.into_iter().find(|severity| severity.name() == written) {
        Some(severity) => Ok(Some(severity)),
        None => Err(format!("--exit-code takes critical, warning or hint, not `{written}`")),
    }
}

/// The areas and checks named by the words, if they contain nothing else.
fn chosen(words: &str) -> Option<Vec<&'static str>> {
    let known = |word| CHECKS.iter().find_map(|check| [check.id, check.area].into_iter().find(|name| *name == word));
    let names: Option<Vec<&'static str>> = words.split_whitespace().map(known).collect();
    names.filter(|names| !names.is_empty())
}

/// The first word that is neither an area nor a check, unless the words are a filter.
fn unknown(words: &str) -> Option<&str> {
    let is_plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let joins = |word: &str| ["and", "or", "not", "in"].contains(&word);
    let all: Vec<&str> = words.split_whitespace().collect();
    let are_names = all.iter().all(|word| is_plain(word) && !joins(word));
    all.into_iter().find(|word| chosen(word).is_none()).filter(|_| are_names)
}

/// Rejects comparisons with the name of an unknown check or area, which would never match a finding.
fn known_names(plan: &Plan<Findings>) -> Result<(), PlanError> {
    let mut wrong = None;
    let mut look = |test: &Test| {
        let (Operand::Words(words), Some(field)) = (&test.operand, Findings::FIELDS.get(test.field)) else { return };
        let name_of: fn(&doctor::checks::Check) -> &'static str = match field.name {
            "id" => |check| check.id,
            "area" => |check| check.area,
            _ => return,
        };
        let is_known = |word: &[u8]| CHECKS.iter().any(|check| name_of(check).as_bytes() == word);
        if let Some(word) = words.iter().find(|word| !is_known(word)) {
            let word = String::from_utf8_lossy(word);
            let hint = engine::find_nearest(&word, CHECKS.iter().map(|check| name_of(check)));
            wrong = Some(PlanError::NoSuchName { field: field.name, name: word.into(), hint });
        }
    };
    plan.demand().conjuncts.iter().for_each(|part| part.for_each_test(&mut look));
    wrong.map_or(Ok(()), Err)
}

/// The checks that the user chose; all without a choice.
fn chosen_checks<'c>(chosen: &'c [&str]) -> impl Iterator<Item = &'static Check> + use<'c> {
    CHECKS.iter().copied().filter(|check| is_chosen(chosen, check.id, check.area))
}

/// True if the user chose this check, or made no choice.
fn is_chosen(chosen: &[&str], id: &str, area: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|name| [id, area].contains(name))
}

/// True if the user requests the plain text of findings.
fn wants_text(request: &Request) -> bool {
    let shown = &request.shown;
    let others = [&shown.columns, &shown.by, &shown.sort].into_iter().any(Option::is_some);
    request.format == Format::Table && request.ship.is_none() && !shown.wide && !others
}

/// Observes the host once per round.
struct DoctorProvider {
    watch: Watch,
    /// True if a probe needs the processes of sockets.
    needs_owners: bool,
    /// The chosen areas and checks; empty for all.
    chosen: Vec<&'static str>,
    filter: Predicate<Findings>,
    /// The worst severity found so far.
    worst: Cell<Option<Severity>>,
    /// The data examined in the round.
    compared: Cell<text::Compared>,
}

impl DoctorProvider {
    /// Chooses the probes. Fails if the filter compares with the name of an unknown check or area.
    fn new(
        request: &Request,
        plan: &Plan<Findings>,
        window: Option<Duration>,
        chosen: Vec<&'static str>,
    ) -> Result<DoctorProvider, PlanError> {
        known_names(plan)?;
        let filter =
            Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))?;
        let counters = window_of(&request.table(), window, WINDOW).announced("watching this host");
        // A recording holds the data of all checks.
        let probes = probes_of(chosen_checks(if request.record.is_some() { &[] } else { &chosen }));
        Ok(DoctorProvider {
            needs_owners: probes.contains(&Probe::Sockets),
            watch: Watch::new(counters, probes),
            chosen,
            filter,
            worst: Cell::new(None),
            compared: Cell::default(),
        })
    }
}

impl SourceProvider<Findings> for DoctorProvider {
    fn needs_lookup(&self, id: LookupId) -> bool {
        id == LookupId::Owners && self.needs_owners
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<Findings>) -> R,
    ) -> R {
        then(&Diagnosis { provider: self, session, lookups })
    }
}

/// The findings of one round.
struct Diagnosis<'d> {
    provider: &'d DoctorProvider,
    session: &'d Session,
    lookups: Lookups<'d>,
}

impl Source<Findings> for Diagnosis<'_> {
    fn prepare(&self, _: &record::Demand<Findings>) -> Box<dyn record::Scan<Findings> + '_> {
        let explain =
            "two readings of the kernel's counters and sockets, compared by the checks of `netwren doctor --explain`";
        full_scan::<Findings, _>("netwren", explain, |each| self.read(each))
    }
}

impl Diagnosis<'_> {
    fn read(&self, each: &mut record::Each<'_, Findings>) -> Result<Accounting, record::SourceError> {
        let DoctorProvider { watch, chosen, filter, worst, compared, .. } = self.provider;
        let mut stats = Accounting::default();
        let begun_ns = probes::begun_ns(self.session.host());
        let samples = watch.samples(self.session, &self.lookups, &mut stats)?;
        let window_ns = samples.iter().map(|sample| sample.window_ns).max().unwrap_or(0);
        compared.set(text::Compared { samples: samples.len(), window_ns });
        for mut finding in doctor::checks::diagnose(&samples) {
            if !is_chosen(chosen, finding.id, finding.area) {
                continue;
            }
            let began = finding.evidence.first().is_some_and(|one| one.before == Some(0) && one.after > 0);
            finding.since_ns = began.then_some(begun_ns);
            if filter.matches(&finding, &self.lookups) {
                worst.set(Some(worst.get().map_or(finding.severity, |worst| worst.min(finding.severity))));
            }
            stats.seen += 1;
            if each(&finding) == record::Next::Stop {
                break;
            }
        }
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn areas_checks_and_filters() {
        assert_eq!(chosen("tcp ct-full"), Some(vec!["tcp", "ct-full"]));
        assert_eq!((chosen(""), chosen("severity = critical"), chosen("tcp and")), (None, None, None));
        assert_eq!((unknown("tcp nat"), unknown("softirqs")), (Some("nat"), Some("softirqs")));
        for filter in ["", "tcp ct-full", "severity = critical", "not tcp", "severity=hint"] {
            assert_eq!(unknown(filter), None, "{filter}");
        }
    }

    #[test]
    fn owners_are_read_only_for_checks_of_sockets() {
        let needs_owners = |line: &str| {
            let of = |words: &ParsedWords<'_>| {
                let mut request = Request::of(words)?;
                let chosen = chosen(&std::mem::take(&mut request.shown.filter)).unwrap_or_default();
                let plan = super::super::plan::of_request(&request).map_err(|wrong| wrong.to_string())?;
                DoctorProvider::new(&request, &plan, None, chosen).map_err(|wrong| wrong.to_string())
            };
            parser::parse_line(&COMMAND, line, of).unwrap().needs_lookup(LookupId::Owners)
        };
        for (line, needs) in [
            ("", true),
            ("tcp", true),
            ("fd-limit", true),
            ("ct-full", false),
            ("softnet-drop ct-full", false),
            ("ct-full --record x", true),
        ] {
            assert_eq!(needs_owners(line), needs, "{line}");
        }
    }

    #[test]
    fn exit_codes() {
        let of = |line: &str| parser::parse_line(&COMMAND, line, level);
        assert_eq!(of("tcp").unwrap(), None);
        assert_eq!(of("--exit-code").unwrap(), Some(Severity::Warning));
        assert_eq!(of("--exit-code=critical tcp").unwrap(), Some(Severity::Critical));
        assert!(of("--exit-code=bad").unwrap_err().to_string().contains("critical, warning or hint"));
        let code = |exit: Exit, level, worst| with_code(exit.into(), level, worst).exit;
        let (critical, warning) = (Some(Severity::Critical), Some(Severity::Warning));
        assert_eq!(code(Exit::Partial, warning, critical), Exit::NoMatch);
        assert_eq!(code(Exit::Ok, critical, warning), Exit::Ok);
        assert_eq!(code(Exit::Partial, critical, None), Exit::Partial);
        assert_eq!(code(Exit::Failed, warning, critical), Exit::Failed);
        assert_eq!(code(Exit::Ok, None, critical), Exit::Ok);
    }
}
