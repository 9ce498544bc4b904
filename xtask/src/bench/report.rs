//! Turns rounds into numbers: JSON for machines, Markdown for people.

use super::{Contestant, Outcome, Weight};
use crate::root;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;

/// Median, minimum and maximum of a list of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
        let (n, middle) = (values.len(), values.len() / 2);
        let median = if n % 2 == 1 { at(middle) } else { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 };
        Spread { median, min: at(0), max: at(n.wrapping_sub(1)) }
    }

    pub(super) fn json(self) -> Value {
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        json!({"median": round(self.median), "min": round(self.min), "max": round(self.max)})
    }
}

/// One of our programs compared with one peer.
struct Ratio {
    peer: &'static str,
    spread: Spread,
    at_least: Option<f64>,
}

impl Ratio {
    fn reached(&self) -> Option<bool> {
        self.at_least.map(|at_least| self.spread.median >= at_least)
    }
}

/// Prints the table and, except in a smoke test, writes bench/runs/DATE-NAME.json and .md.
pub(super) fn write(name: &str, outcomes: &[Outcome<'_>], about: &Value, keep: bool) -> Result<()> {
    let all = json!({"name": name, "about": about, "outcomes": outcomes.iter().map(json_of).collect::<Vec<_>>()});
    save(name, &all, &markdown(name, outcomes, about)?, keep)
}

/// Prints the table and, if `keep` is true, writes bench/runs/DATE-NAME.json and .md.
pub(crate) fn save(name: &str, all: &Value, markdown: &str, keep: bool) -> Result<()> {
    let stem = format!("{}-{name}", all["about"]["date"].as_str().unwrap_or("undated"));
    println!("\n{markdown}");
    if !keep {
        return Ok(());
    }
    let folder = root::path().join("bench/runs");
    std::fs::create_dir_all(&folder)?;
    for (ending, text) in [("json", serde_json::to_string_pretty(all)? + "\n"), ("md", markdown.to_owned())] {
        let file = folder.join(format!("{stem}.{ending}"));
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

fn cpu(weights: &[Weight]) -> Spread {
    Spread::of(weights.iter().map(|w| w.cpu_us as f64 / 1000.0).collect())
}

fn rss(weights: &[Weight]) -> Spread {
    Spread::of(weights.iter().map(|w| w.rss_kib as f64 / 1024.0).collect())
}

/// The peer's CPU divided by ours, round by round.
fn ratios(outcome: &Outcome<'_>, ours: &Contestant, weights: &[Weight]) -> Vec<Ratio> {
    let is_peer = |other: &Contestant| other.peer && (!other.is_before || other.label == ours.label);
    let peers = outcome.weights.iter().filter(|(other, _)| is_peer(other) && !ours.peer);
    peers
        .map(|(peer, theirs)| {
            let pairs = theirs.iter().zip(weights);
            let spread =
                Spread::of(pairs.map(|(theirs, ours)| theirs.cpu_us as f64 / ours.cpu_us.max(1) as f64).collect());
            let goals = outcome.task.ratios.iter();
            let goal =
                goals.filter(|g| g.0 == ours.label && g.1 == peer.label && g.2 == outcome.rows).map(|g| g.3).next();
            Ratio { peer: if peer.is_before { "before" } else { peer.label }, spread, at_least: goal }
        })
        .collect()
}

/// The maximum of MiB allowed for this contestant at this size.
fn memory_goal(outcome: &Outcome<'_>, contestant: &Contestant) -> Option<f64> {
    let goals = outcome.task.memory.iter().filter(|_| !contestant.peer);
    goals.filter(|goal| goal.0 == contestant.label && goal.1 == outcome.rows).map(|goal| goal.2).next()
}

fn json_of(outcome: &Outcome<'_>) -> Value {
    let contestants = outcome.weights.iter().map(|(contestant, weights)| {
        let ratios = ratios(outcome, contestant, weights).into_iter().map(|ratio| {
            json!({"against": ratio.peer, "ratio": ratio.spread.json(), "at_least": ratio.at_least,
                "reached": ratio.reached()})
        });
        let most = memory_goal(outcome, contestant);
        json!({
            "label": contestant.label, "command": contestant.shown(), "peer": contestant.peer,
            "cpu_ms": cpu(weights).json(), "rss_mib": rss(weights).json(), "rss_mib_at_most": most,
            "rss_reached": most.map(|most| rss(weights).median <= most),
            "ratios": ratios.collect::<Vec<_>>(),
            "runs": weights.iter().map(run_json).collect::<Vec<_>>(),
        })
    });
    json!({
        "task": outcome.task.id, "title": outcome.task.title, "rows": outcome.rows, "rows_agreed": outcome.agreed,
        "generator": outcome.load, "skipped": outcome.skipped, "contestants": contestants.collect::<Vec<_>>(),
    })
}

fn run_json(weight: &Weight) -> Value {
    json!({
        "cpu_us": weight.cpu_us, "user_us": weight.user_us, "wall_us": weight.wall_us,
        "rss_kib": weight.rss_kib, "bytes": weight.bytes,
    })
}

fn markdown(name: &str, outcomes: &[Outcome<'_>], about: &Value) -> Result<String> {
    let mut out = String::new();
    let text =
        |pointer: &str| about.pointer(pointer).map_or_else(String::new, |v| v.to_string().trim_matches('"').to_owned());
    writeln!(out, "# bench {name}, {}\n", text("/date"))?;
    writeln!(
        out,
        "{} CPUs ({}), {} GiB, Linux {}, {}; {} ({}), {}, {}, {}.\n",
        text("/machine/cpus"),
        text("/machine/cpu"),
        text("/machine/memory_gib"),
        text("/machine/kernel"),
        text("/machine/os"),
        text("/versions/netwren"),
        text("/versions/commit"),
        text("/versions/ss"),
        text("/versions/netstat"),
        text("/versions/lstf"),
    )?;
    writeln!(
        out,
        "CPU = user + sys of the whole process; all programs in turn in one run; median (min–max). Ratios pair by \
            pair.\n"
    )?;
    writeln!(out, "| task | sockets | program | CPU ms | ns/row | RSS MiB | ratio | wanted |")?;
    writeln!(out, "|---|--:|---|--:|--:|--:|---|---|")?;
    for outcome in outcomes {
        for (contestant, weights) in &outcome.weights {
            row(&mut out, outcome, contestant, weights)?;
        }
    }
    for line in outcomes.iter().flat_map(|outcome| &outcome.skipped) {
        writeln!(out, "\n{line}")?;
    }
    Ok(out)
}

fn row(out: &mut String, outcome: &Outcome<'_>, contestant: &Contestant, weights: &[Weight]) -> Result<()> {
    let (cpu, rss) = (cpu(weights), rss(weights));
    let per_row = cpu.median * 1e6 / outcome.agreed.max(1) as f64;
    let ratios = ratios(outcome, contestant, weights);
    let shown =
        ratios.iter().map(|r| format!("{:.2}x ({:.2}–{:.2}) {}", r.spread.median, r.spread.min, r.spread.max, r.peer));
    let mark = |reached| if reached { "reached" } else { "**missed**" };
    let mut wanted: Vec<String> =
        ratios.iter().filter_map(|r| Some(format!("{}x: {}", r.at_least?, mark(r.reached()?)))).collect();
    wanted.extend(memory_goal(outcome, contestant).map(|most| format!("≤ {most} MiB: {}", mark(rss.median <= most))));
    let digits = if cpu.median < 10.0 { 2 } else { 1 };
    writeln!(
        out,
        "| {} | {} | `{}` | {:.digits$} ({:.digits$}–{:.digits$}) | {per_row:.0} | {:.1} | {} | {} |",
        outcome.task.title,
        outcome.rows,
        contestant.shown(),
        cpu.median,
        cpu.min,
        cpu.max,
        rss.median,
        shown.collect::<Vec<_>>().join("; "),
        wanted.join("; ")
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn spread_of_odd_and_even_lists() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert!(Spread::of(Vec::new()).median.is_nan());
    }
}
