//! Checks that every claim in SECURITY.md has a test: each test named in its tables must exist.

use super::Findings;
use crate::root;
use anyhow::Result;
use std::path::{Path, PathBuf};

const PAGE: &str = "SECURITY.md";
const BOUNDS: &str = "docs/bounds.md";
/// The heading of a column of tests.
const COLUMN: &str = "test";

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let page = std::fs::read_to_string(root::path().join(PAGE))?;
    let code: Vec<(PathBuf, String)> = files
        .iter()
        .filter(|file| file.extension().is_some_and(|ext| ext == "rs"))
        .filter_map(|file| Some((file.clone(), std::fs::read_to_string(root::path().join(file)).ok()?)))
        .collect();
    let bounds = std::fs::read_to_string(root::path().join(BOUNDS))?;
    Ok(findings(&page, &code).into_iter().chain(of_bounds(&bounds, &code)).collect())
}

/// Tests that the page of bounds names, and that no file has.
fn of_bounds(page: &str, code: &[(PathBuf, String)]) -> Findings {
    let lines = page.lines().enumerate();
    let named = lines.flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |word| (number + 1, word)));
    let absent = named.filter(|(_, word)| word.contains("::") && !exists(word, code));
    absent.map(|(number, name)| format!("{BOUNDS}:{number}: no test `{name}`")).collect()
}

/// Rows whose test column is empty or names a test that does not exist.
fn findings(page: &str, code: &[(PathBuf, String)]) -> Findings {
    let mut findings = Findings::new();
    let mut column = None;
    for (number, line) in page.lines().enumerate() {
        let cells = cells(line);
        if cells.is_empty() {
            column = None;
        } else if column.is_none() {
            column = Some(cells.iter().position(|cell| *cell == COLUMN));
        } else if cells.iter().skip(1).all(|cell| cell.is_empty()) {
            // A heading between rows.
        } else if let Some(tests) = column.flatten().and_then(|at| cells.get(at)).filter(|cell| !is_rule(cell)) {
            let missing = missing(tests, code);
            findings.extend(missing.into_iter().map(|what| format!("{PAGE}:{}: {what}", number + 1)));
        }
    }
    findings
}

/// The cells of a table's line; empty for any other line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

/// True for the line below a table's heading.
fn is_rule(cell: &str) -> bool {
    cell.starts_with("---") || cell.starts_with(":--")
}

fn missing(cell: &str, code: &[(PathBuf, String)]) -> Vec<String> {
    // Every second piece is between backticks.
    let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
    if named.is_empty() {
        return vec!["a claim without a test".to_owned()];
    }
    let absent = named.into_iter().filter(|name| !exists(name, code));
    absent.map(|name| format!("no test `{name}`")).collect()
}

/// True if `module::function` (or `function` alone) is a function of a file in a folder or file with that name.
fn exists(name: &str, code: &[(PathBuf, String)]) -> bool {
    let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
    let head = format!("fn {function}(");
    let below = |file: &Path| module.split("::").all(|part| part.is_empty() || file.iter().any(|p| is_named(p, part)));
    code.iter().any(|(file, text)| below(file) && text.contains(&head))
}

fn is_named(part: &std::ffi::OsStr, module: &str) -> bool {
    part.to_str().is_some_and(|part| part.strip_suffix(".rs").unwrap_or(part) == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_needs_a_test_that_exists() {
        let code = [(PathBuf::from("tests/kill.rs"), "fn root_kills_the_right_one() {".to_owned())];
        let page = "words | words\n\n| threat | test |\n|---|---|\n| **heading** | |\n| a | \
            `kill::root_kills_the_right_one` |\n\
                    | b | `kill::gone` |\n| c | by reading |\n\n| limit | reach |\n|---|---|\n| `d` | e |\n";
        let findings = findings(page, &code);
        assert_eq!(findings, ["SECURITY.md:7: no test `kill::gone`", "SECURITY.md:8: a claim without a test"]);
        let page = "| `ROWS` | (`kill::root_kills_the_right_one`) |\n| 3 | `kill::gone` |\n";
        assert_eq!(of_bounds(page, &code), ["docs/bounds.md:2: no test `kill::gone`"]);
    }
}
