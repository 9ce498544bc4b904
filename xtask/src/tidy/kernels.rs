//! Checks the claims of docs/interfaces.md about kernels against the results of `cargo xtask kernels`
//! (docs/kernels.json).
//!
//! A table row that lists the kernels on which it was run, including an emulated one, has a comment in its first cell:
//! `<!-- kernels: NAME -->` with the name of the attempt. The row must then agree with the results:
//! - on the kernels of "run on" it worked;
//! - on kernels older than the first kernel that the row names it did not work;
//! - on later kernels it worked.

use super::Findings;
use crate::kernels::seen::{self, Outcome, SeenKernels};
use crate::{kernels, root};
use anyhow::Result;

const PAGE: &str = "docs/interfaces.md";
/// The comment that names the attempt.
const MARK: &str = "<!-- kernels: ";

pub(super) fn check() -> Result<Findings> {
    let page = std::fs::read_to_string(root::path().join(PAGE))?;
    Ok(findings(&page, &seen::read()?))
}

fn findings(page: &str, seen: &SeenKernels) -> Findings {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let of_row = |(number, line): (usize, &str)| {
        let found = of_row(line, seen);
        found.into_iter().map(move |what| format!("{PAGE}:{}: {what}", number + 1))
    };
    rows.flat_map(of_row).collect()
}

/// The errors in a row.
fn of_row(line: &str, seen: &SeenKernels) -> Vec<String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return Vec::new() };
    let claims = Claims::of(last);
    let marked = first.split_once(MARK).and_then(|(_, rest)| Some(rest.split_once(" -->")?.0));
    let Some(name) = marked else {
        let emulated = claims.run_on.iter().find(|kernel| kernels::NAMES.contains(&kernel.as_str()));
        let what = |kernel| format!("a run on {kernel} without `{MARK}NAME -->` in the first cell");
        return emulated.map(what).into_iter().collect();
    };
    if !seen.values().any(|kernel| kernel.outcomes.contains_key(name)) {
        return vec![format!("nothing called `{name}` is in {}", seen::FILE)];
    }
    let wrong = |kernel: &&str| {
        let outcome = seen.get(*kernel).and_then(|seen| seen.outcomes.get(name)).copied();
        claims.contradiction(kernel, outcome)
    };
    kernels::NAMES.iter().filter_map(wrong).collect()
}

/// The claims in the last cell of a row.
#[derive(Debug, Default, PartialEq)]
struct Claims {
    /// The first version that it names, unless that version only appears in "run on".
    since: Option<(u32, u32)>,
    /// Kernels on which it was run.
    run_on: Vec<String>,
}

impl Claims {
    fn of(cell: &str) -> Claims {
        let (before, runs) = cell.split_once("run on ").unwrap_or((cell, ""));
        let runs = runs.split(';').next().unwrap_or_default();
        let words = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| c.is_whitespace() || ",;()".contains(c));
            words.filter(|word| version(word).is_some()).map(str::to_owned).collect()
        };
        Claims { since: words(before).first().and_then(|word| version(word)), run_on: words(runs) }
    }

    /// The contradiction between the claims and the result on this kernel.
    fn contradiction(&self, kernel: &str, outcome: Option<Outcome>) -> Option<String> {
        let is_run = self.run_on.iter().any(|name| name == kernel);
        let is_there = outcome == Some(Outcome::Works);
        let since = self.since.zip(version(kernel));
        match outcome {
            None if is_run => Some(format!("a run on {kernel} that {} does not hold", seen::FILE)),
            Some(_) if is_run && !is_there => Some(format!("a run on {kernel}, where it did not work")),
            Some(_) if is_there && since.is_some_and(|(since, of)| of < since) => {
                Some(format!("a later kernel than {kernel}, where it worked"))
            }
            Some(_) if !is_there && since.is_some_and(|(since, of)| of >= since) => {
                Some(format!("an earlier kernel than {kernel}, where it did not work"))
            }
            _ => None,
        }
    }
}

/// `6.12` as numbers that can be compared.
fn version(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::seen::Seen;

    fn seen(outcomes: &[(&str, Outcome)]) -> SeenKernels {
        let of = |(kernel, outcome): &(&str, Outcome)| {
            let outcomes = [("walk".to_owned(), *outcome)].into();
            ((*kernel).to_owned(), Seen { version: (*kernel).to_owned(), outcomes })
        };
        outcomes.iter().map(of).collect()
    }

    #[test]
    fn claims_that_the_kernels_contradict() {
        let all = seen(&[("5.10", Outcome::Absent), ("6.1", Outcome::Absent), ("6.12", Outcome::Works)]);
        let found = |last: &str| findings(&format!("\n| BPF <!-- kernels: walk --> | x | {last} |"), &all);
        assert_eq!(found("6.9, run on 6.12 and 6.18; CAP_BPF"), Findings::new());
        assert_eq!(found("6.9 *(read)*"), Findings::new());
        assert_eq!(found("6.9, run on 6.1 and 6.12"), ["docs/interfaces.md:2: a run on 6.1, where it did not work"]);
        assert_eq!(found("5.12"), ["docs/interfaces.md:2: an earlier kernel than 6.1, where it did not work"]);
        assert_eq!(found("6.15"), ["docs/interfaces.md:2: a later kernel than 6.12, where it worked"]);
    }

    #[test]
    fn claims_without_what_proves_them() {
        let all = seen(&[("6.12", Outcome::Works)]);
        let bare = |last: &str| findings(&format!("| BPF | x | {last} |"), &all);
        assert!(bare("run on 6.12")[0].contains("a run on 6.12 without"), "{:?}", bare("run on 6.12"));
        assert_eq!(bare("5.10, run on 6.18"), Findings::new(), "that is no emulated kernel");
        let other = findings("| BPF <!-- kernels: other --> | run on 6.12 |", &all);
        assert_eq!(other, ["docs/interfaces.md:1: nothing called `other` is in docs/kernels.json"]);
        let missing = findings("| BPF <!-- kernels: walk --> | run on 6.1 and 6.12 |", &all);
        assert_eq!(missing, ["docs/interfaces.md:1: a run on 6.1 that docs/kernels.json does not hold"]);
        assert_eq!(Claims::of("Linux 6.4 with X; no BTF").since, Some((6, 4)));
    }
}
