//! `cargo xtask incidents --healthy` runs `netwren doctor` on healthy hosts under load and expects no warning.

use super::loads::{LOADS, Load};
use super::play::{Answer, Watch, play};
use super::{Part, at_once, write_part};
use crate::bench::binary;
use crate::incidents::scenes::{Incident, NONE};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::Instant;

/// Seconds that `doctor` watches: its default.
const WATCHES_S: &str = "3";

/// A load and the findings about it.
struct Outcome {
    load: &'static Load,
    answer: Answer,
}

impl Outcome {
    /// True if `doctor` ran and did not warn.
    fn is_calm(&self) -> bool {
        self.answer.found.iter().all(|one| one.severity == "hint")
    }
}

/// Plays the loads whose name contains one of the words of `only`, or the quick ones; with neither, plays all of them
/// and writes their table in docs.
pub(super) fn run(only: &[String], is_quick: bool) -> Result<()> {
    let (binary, begun) = (binary()?, Instant::now());
    let is_called = |one: &&Load| only.is_empty() || only.iter().any(|word| one.name.contains(word.as_str()));
    let chosen = LOADS.iter().filter(is_called).filter(|one| one.is_quick || !is_quick);
    let outcomes = play_all(chosen.collect(), &binary);
    ensure!(!outcomes.is_empty(), "no load is called so");
    println!("in {} s", begun.elapsed().as_secs());
    let alarms = outcomes.iter().filter(|one| !one.is_calm()).count();
    if only.is_empty() && !is_quick {
        write_part(Part::Healthy, &table(&outcomes))?;
    }
    ensure!(alarms == 0, "false alarms on {alarms} of {} healthy loads", outcomes.len());
    Ok(())
}

fn play_all(chosen: Vec<&'static Load>, binary: &Path) -> Vec<Outcome> {
    let mut outcomes = at_once(chosen, |load| {
        let outcome = play_load(load, binary);
        println!("{}", line(&outcome).trim_end());
        outcome
    });
    outcomes.sort_by_key(|one| LOADS.iter().position(|other| other.name == one.load.name));
    outcomes
}

/// Plays a load. A load that could not be played counts as an alarm; the reason is printed to stderr.
fn play_load(load: &'static Load, binary: &Path) -> Outcome {
    let Load { name, at, set_up, traffic, .. } = *load;
    let host = Incident { name, at, set_up, traffic, ..NONE };
    let watch = Watch { binary, seconds: WATCHES_S, tape: None };
    let answer = play(&host, false, &watch).unwrap_or_else(|error| {
        eprintln!("{name}: {error:#}");
        Answer::not_played()
    });
    Outcome { load, answer }
}

/// A row of the table.
fn line(outcome: &Outcome) -> String {
    let found: Vec<String> =
        outcome.answer.found.iter().map(|one| format!("{} ({}): {}", one.id, one.severity, one.title)).collect();
    let found = if found.is_empty() { "–".to_owned() } else { found.join("; ").replace('|', "\\|") };
    format!("| {} | {:?} | {found} |\n", outcome.load.name, outcome.load.at)
}

fn table(outcomes: &[Outcome]) -> String {
    let calm = outcomes.iter().filter(|one| one.is_calm()).count();
    let mut text = format!(
        "`cargo xtask incidents --healthy` makes lively traffic without a fault, runs `netwren doctor --for \
         {WATCHES_S}` on the host\n\
         in the second column and writes this table. Only hints are allowed (docs/adr/0041).\n\n\
         | healthy load | host | findings |\n|---|---|---|\n"
    );
    outcomes.iter().for_each(|outcome| text.push_str(&line(outcome)));
    text + &format!("\nLoads without a warning: {calm} of {}.\n", outcomes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_loads_are_distinct() {
        for (at, one) in LOADS.iter().enumerate() {
            assert!(LOADS.iter().skip(at + 1).all(|other| other.name != one.name), "{}", one.name);
        }
        assert!(LOADS.len() >= 40);
    }

    #[test]
    fn root_no_warning_about_healthy_hosts() {
        testkit::require_root!();
        let binary = testkit::program::netwren();
        for mut outcome in play_all(LOADS.iter().filter(|one| one.is_quick).collect(), binary) {
            // With other tests running at the same time, a healthy host may be too slow; retry twice.
            for _ in 0..2 {
                if !outcome.is_calm() {
                    outcome = play_load(outcome.load, binary);
                }
            }
            assert!(outcome.is_calm(), "{}", line(&outcome));
        }
    }
}
