//! Compares the licences of everything in the lock file with the list in deny.toml.

use super::{Findings, packages};
use crate::root;
use anyhow::{Context, Result};
use serde_json::Value;

pub(super) fn check(metadata: &Value) -> Result<Findings> {
    let deny = std::fs::read_to_string(root::path().join("deny.toml"))?;
    let allowed = allowed(&deny).context("deny.toml: no list `allow` under [licenses]")?;
    let wrong = packages(metadata).filter_map(|package| {
        let licence = package["license"].as_str().unwrap_or("none given");
        let name = package["name"].as_str().unwrap_or_default();
        (!fits(licence, &allowed)).then(|| format!("{name}: licence {licence} is not among those in deny.toml"))
    });
    Ok(wrong.collect())
}

/// The strings of `allow = […]` in `[licenses]`. This is not a TOML parser; it reads one form, which our own file has.
fn allowed(deny: &str) -> Option<Vec<&str>> {
    let (_, section) = deny.split_once("[licenses]")?;
    let (_, list) = section.split_once("allow = [")?;
    let (list, _) = list.split_once(']')?;
    Some(list.split('"').skip(1).step_by(2).collect())
}

/// True if the SPDX expression can be satisfied with licences from `allowed`.
fn fits(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    any_of(&mut words.as_slice(), allowed)
}

fn any_of(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut fits = all_of(words, allowed);
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        // Both sides are parsed, because the cursor must advance.
        fits |= all_of(words, allowed);
    }
    fits
}

fn all_of(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut fits = one(words, allowed);
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        fits &= one(words, allowed);
    }
    fits
}

fn one(words: &mut &[&str], allowed: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    *words = rest;
    if *first == "(" {
        let fits = any_of(words, allowed);
        *words = words.get(1..).unwrap_or_default();
        return fits;
    }
    if words.first() == Some(&"WITH") {
        // An exception only adds permissions.
        *words = words.get(2..).unwrap_or_default();
    }
    allowed.contains(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn expressions() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        let fits = |expression| fits(expression, &allowed);
        assert!(fits("MIT"));
        assert!(fits("MIT/Apache-2.0"));
        assert!(fits("LGPL-2.1 OR MIT"));
        assert!(fits("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(fits("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        assert!(!fits("LGPL-2.1"));
        assert!(!fits("MIT AND GPL-3.0"));
        assert!(!fits("none given"));
        assert!(!fits(""));
    }

    #[test]
    fn list_in_deny_toml() {
        let text = "[licenses]\n# why\nallow = [\n  \"MIT\", # x\n  \"ISC\",\n]\n";
        assert_eq!(allowed(text), Some(vec!["MIT", "ISC"]));
    }
}
