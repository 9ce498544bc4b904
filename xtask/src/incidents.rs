//! `cargo xtask incidents` causes real faults in namespaces, each with a healthy twin, and runs `netwren doctor` on
//! both.
//!
//! The first finding must be the cause. The twin has the same traffic without the fault, and doctor must find nothing
//! in it. With `--healthy` the hosts have no fault and much traffic ([`healthy`]).

mod healthy;
mod loads;
mod play;
mod remedies;
mod scenes;

use crate::bench::binary;
use crate::root;
use anyhow::{Context, Result, ensure};
use play::{Answer, Watch, play};
use remedies::Tried;
use scenes::{At, Incident, incidents};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Incidents played at the same time; incidents that change a setting of the whole machine are played alone.
const AT_ONCE: usize = 3;

/// The folder with recordings of the twins, a pair for each finding.
const FIXTURES: &str = "fixtures/incidents/6.18";

/// Seconds that `doctor` watches.
const WATCHES_S: &str = "2";

/// The page that this command writes, and the heading that begins its second part.
const PAGE: &str = "docs/incidents.md";
const HEALTHY: &str = "\n## Healthy loads\n\n";

/// A part of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Incidents,
    Healthy,
}

/// The result of an incident.
struct Outcome {
    incident: &'static Incident,
    ill: Answer,
    healthy: Answer,
}

impl Outcome {
    /// The rank of the expected finding, from 1; 0 if it is missing.
    fn rank(&self) -> usize {
        self.ill.found.iter().position(|one| one.id == self.incident.expected).map_or(0, |at| at + 1)
    }
}

/// The hosts to play.
pub(crate) struct Choice {
    /// Words of names or findings; all without words.
    pub(crate) only: Vec<String>,
    /// Healthy loads instead of incidents.
    pub(crate) is_healthy: bool,
    /// Only those that the tests play.
    pub(crate) is_quick: bool,
    /// Writes recordings instead of the table.
    pub(crate) records: bool,
}

/// Plays the incidents whose name or finding contains one of the words, or the quick ones; with neither, plays all of
/// them and writes the table in docs.
pub(crate) fn run(Choice { only, is_healthy, is_quick, records }: Choice) -> Result<()> {
    ensure!(testkit::root::is_privileged(), "incidents need root: they make network namespaces");
    if is_healthy {
        return healthy::run(&only, is_quick);
    }
    let (binary, begun) = (binary()?, Instant::now());
    let is_all = only.is_empty() && !is_quick;
    let is_called = |one: &Incident| {
        only.is_empty()
            || only.iter().any(|word| one.name.contains(word.as_str()) || one.expected.contains(word.as_str()))
    };
    let chosen = incidents().filter(|one| is_called(one) && (one.is_quick || !is_quick));
    if records {
        return chosen.filter(|one| is_first(one)).try_for_each(|one| record(one, &binary));
    }
    let outcomes = play_all(chosen.collect(), &binary);
    ensure!(!outcomes.is_empty(), "no incident is called so");
    let table = table(&outcomes);
    println!("{table}\nin {} s", begun.elapsed().as_secs());
    if is_all {
        write_part(Part::Incidents, &table)?;
    }
    ensure!(outcomes.iter().all(|one| one.rank() == 1), "not every cause was named first");
    let are_fine = outcomes.iter().all(|one| !matches!(one.ill.tried, Tried::Fails(_)));
    ensure!(are_fine, "not every remedy mends the fault");
    Ok(())
}

/// True for the first incident of a finding, if a recording of one namespace contains everything about it.
fn is_first(incident: &Incident) -> bool {
    let first = incidents().find(|one| one.expected == incident.expected && one.at != At::Machine);
    let first = first.filter(|one| !["fd-limit", "neigh-full"].contains(&one.expected));
    first.is_some_and(|first| first.name == incident.name)
}

/// Records both twins.
fn record(incident: &Incident, binary: &Path) -> Result<()> {
    let folder = root::path().join(FIXTURES);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (is_ill, twin) in [(true, "ill"), (false, "well")] {
        let file = folder.join(format!("{}.{twin}.tape", incident.expected));
        let _ = std::fs::remove_file(&file);
        let watch = Watch { binary, seconds: WATCHES_S, tape: Some(&file) };
        let answer = play(incident, is_ill, &watch)?;
        println!("{}: {}", file.display(), answer.ids().join(", "));
    }
    Ok(())
}

/// The content of a mutex, even after a thread has panicked.
fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces one part of the page.
fn write_part(part: Part, text: &str) -> Result<()> {
    let path = root::path().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (incidents, healthy) = page.split_once(HEALTHY).unwrap_or((&page, ""));
    let page = match part {
        Part::Incidents => format!("{text}{HEALTHY}{healthy}"),
        Part::Healthy => format!("{incidents}{HEALTHY}{text}"),
    };
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}

/// Does `work` for each item, [`AT_ONCE`] at the same time. The results have no order.
fn at_once<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (waiting, results) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    // The lock must be released before the work begins.
    let next = || open(&waiting).next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                std::iter::from_fn(next).for_each(|item| {
                    let result = work(item);
                    open(&results).push(result);
                })
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Plays incidents, [`AT_ONCE`] at the same time; the outcomes are in the order of the list.
fn play_all(chosen: Vec<&'static Incident>, binary: &Path) -> Vec<Outcome> {
    let (alone, together): (Vec<_>, Vec<_>) = chosen.iter().copied().partition(|one| !one.knobs.is_empty());
    let play = |incident: &'static Incident| {
        let outcome = twins(incident, binary);
        println!("{}", line(&outcome).trim_end());
        outcome
    };
    let mut outcomes = at_once(together, play);
    outcomes.extend(alone.into_iter().map(play));
    outcomes.sort_by_key(|one| incidents().position(|other| other.name == one.incident.name));
    outcomes
}

/// Plays both twins. A twin that could not be played has no finding; the reason is printed to stderr.
fn twins(incident: &'static Incident, binary: &Path) -> Outcome {
    let answer = |is_ill| {
        play(incident, is_ill, &Watch { binary, seconds: WATCHES_S, tape: None }).unwrap_or_else(|error| {
            eprintln!("{}: {error:#}", incident.name);
            Answer::not_played()
        })
    };
    Outcome { incident, ill: answer(true), healthy: answer(false) }
}

/// A row of the table.
fn line(outcome: &Outcome) -> String {
    let list = |answer: &Answer| if answer.found.is_empty() { "–".to_owned() } else { answer.ids().join(", ") };
    let Outcome { incident, ill, healthy } = outcome;
    format!(
        "| {} | {:?} | {} | {} | {} | {} | {} | {} |\n",
        incident.name,
        incident.at,
        incident.expected,
        match outcome.rank() {
            0 => "–".to_owned(),
            rank => rank.to_string(),
        },
        list(ill),
        ill.found.first().map_or("–".to_owned(), |first| first.title.replace('|', "\\|")),
        ill.tried,
        list(healthy)
    )
}

fn table(outcomes: &[Outcome]) -> String {
    let count = |is_it: &dyn Fn(&Outcome) -> bool| outcomes.iter().filter(|one| is_it(one)).count();
    let (all, first, found) = (outcomes.len(), count(&|one| one.rank() == 1), count(&|one| one.rank() > 0));
    let (quiet, false_alarms) = (
        count(&|one| one.healthy.found.is_empty()),
        count(&|one| one.healthy.found.iter().any(|found| found.id == one.incident.expected)),
    );
    let share = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
    let mut text = String::from(
        "# Incidents

`cargo xtask incidents` causes real faults in network namespaces (a client, a router and a server), runs
`netwren doctor --for 2` on the host in the second column and writes this page. A healthy twin has the same traffic
without the fault. The rank is the position of the expected finding. The commands that the first finding proposes are
run where it proposes them: after a command that mends, the finding is gone or its loss is halved.

| incident | host | expected | rank | findings | first sentence | remedy | findings of the healthy twin |
|---|---|---|--:|---|---|---|---|
",
    );
    outcomes.iter().for_each(|outcome| text.push_str(&line(outcome)));
    let _ = write!(
        text,
        "\nThe cause is the first finding: {first} of {all} ({:.1} %). Recall (the cause is among the findings): \
         {found} of {all} ({:.1} %).\nPrecision (the healthy twin lacks the expected finding): {:.1} %. Healthy twins \
         without findings: {quiet} of {all}.\n",
        share(first, all),
        share(found, all),
        share(found, found + false_alarms),
    );
    let tried = |is_it: fn(&Tried) -> bool| count(&|one| is_it(&one.ill.tried));
    let _ = writeln!(
        text,
        "Commands that mend the fault where they are proposed: {}; that say where to run them: {}; that fail: {}.",
        tried(|one| matches!(one, Tried::Mends | Tried::MendsElsewhere)),
        tried(|one| *one == Tried::SaysWhere),
        tried(|one| matches!(one, Tried::Fails(_))),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_checks_are_known() {
        for (at, one) in incidents().enumerate() {
            assert!(incidents().skip(at + 1).all(|other| other.name != one.name), "{}", one.name);
        }
        assert!(incidents().count() >= 40);
    }

    #[test]
    fn root_causes_are_named_first_and_healthy_twins_are_quiet() {
        testkit::require_root!();
        let binary = testkit::program::netwren();
        let quick = incidents().filter(|one| one.is_quick).collect();
        let is_right = |one: &Outcome| {
            one.rank() == 1 && one.healthy.found.is_empty() && !matches!(one.ill.tried, Tried::Fails(_))
        };
        for mut outcome in play_all(quick, binary) {
            // With other tests running at the same time, a healthy host may be too slow as well; retry twice.
            for _ in 0..2 {
                if !is_right(&outcome) {
                    outcome = twins(outcome.incident, binary);
                }
            }
            assert!(is_right(&outcome), "{}", line(&outcome));
        }
    }
}
