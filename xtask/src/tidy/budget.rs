//! Limits the number of crates in a build.

use super::Findings;
use crate::root;
use anyhow::Result;
use std::collections::BTreeSet;

/// A set of features and its maximum number of third-party crates (normal and build dependencies on this host).
struct Budget {
    name: &'static str,
    flags: &'static [&'static str],
    most: usize,
}

/// 55 crates compile within a minute on two cores, and a person can still read the list.
const BUDGETS: &[Budget] = &[
    Budget { name: "default", flags: &[], most: 55 },
    Budget { name: "as released", flags: &["--features", "all-receivers"], most: 80 },
    Budget { name: "without features", flags: &["--no-default-features"], most: 55 },
    Budget { name: "all features", flags: &["--all-features"], most: 210 },
];

pub(super) fn check() -> Result<Findings> {
    let mut findings = Vec::new();
    for budget in BUDGETS {
        let count = outside(budget.flags)?;
        println!("tidy: {count} outside crates, {} (at most {})", budget.name, budget.most);
        if count > budget.most {
            findings.push(format!("{} build: {count} outside crates, at most {}", budget.name, budget.most));
        }
    }
    Ok(findings)
}

fn outside(flags: &[&str]) -> Result<usize> {
    let mut args = vec!["tree", "--offline", "--locked", "--package", "netwren", "--edges", "normal,build"];
    args.extend(["--prefix", "none", "--format", "{p}"]);
    args.extend(flags);
    let tree = root::output(&root::cargo(), &args)?;
    // `name v1.2.3`; our own crates have ` (/path)`, repeated ones ` (*)`.
    let names = tree.lines().filter(|line| !line.contains("(/")).filter_map(|line| line.split_once(" v"));
    Ok(names.map(|(name, rest)| (name, rest.split(' ').next())).collect::<BTreeSet<_>>().len())
}
