//! Rules that no compiler checks. Every finding is one line: `file:line: what is wrong`.

mod budget;
mod code;
mod fixtures;
mod layers;
mod licences;
mod names;
mod scan;
mod security;

use crate::{generate, objects, root};
use anyhow::{Result, bail};
use serde_json::Value;

/// What one check found; empty is good.
pub(crate) type Findings = Vec<String>;

/// Runs all checks, prints every finding, fails if there was one.
pub(crate) fn run() -> Result<()> {
    let metadata = metadata()?;
    let files = root::files()?;
    let checks: [(&str, Findings); 10] = [
        ("layers", layers::check(&metadata)),
        ("dependency counts", budget::check()?),
        ("licences", licences::check(&metadata)?),
        ("functions and unsafe", code::check(&files)?),
        ("fixtures have their HOW", fixtures::check(&files)),
        ("file names", names::check_names(&files)),
        ("words", names::check_words(&files)?),
        ("tests that SECURITY.md names", security::check(&files)?),
        ("generated files", generate::check()?),
        ("BPF objects", objects::check()?),
    ];
    let mut total = 0;
    for (name, findings) in checks {
        println!("tidy: {name}: {}", if findings.is_empty() { "ok".to_owned() } else { findings.len().to_string() });
        findings.iter().for_each(|finding| println!("  {finding}"));
        total += findings.len();
    }
    if total > 0 {
        bail!("tidy: {total} findings");
    }
    Ok(())
}

/// `cargo metadata`, without touching the network.
fn metadata() -> Result<Value> {
    let json = root::output(&root::cargo(), &["metadata", "--offline", "--locked", "--format-version", "1"])?;
    Ok(serde_json::from_str(&json)?)
}

/// The packages of the workspace itself.
fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    packages(metadata).filter(|package| package["source"].is_null())
}

/// All packages of the lock file.
fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}
