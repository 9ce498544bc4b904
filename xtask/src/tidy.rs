//! Rules that no compiler checks. Every finding begins with `file:line: what is wrong`.

mod budget;
mod circles;
mod code;
mod fixtures;
mod folders;
mod imports;
mod items;
mod kernels;
mod layers;
mod licences;
mod names;
mod phrases;
mod report;
mod scan;
mod security;
mod sizes;
mod width;
mod words;
mod wrappers;

use crate::findings::Findings;
use crate::{generate, objects, root};
use anyhow::{Result, bail};
use items::SourceFile;
use phrases::Rates;
use serde_json::Value;

/// Runs all checks, prints every finding, and fails if there is one; with `only_report`, prints figures instead.
pub(crate) fn run(only_report: bool) -> Result<()> {
    let metadata = metadata()?;
    let files = root::files()?;
    let sources = SourceFile::read_all(&files)?;
    let rates = Rates::read(&files, &sources)?;
    if only_report {
        report::print(&sources, &rates);
        return Ok(());
    }
    let checks: [(&str, Findings); 18] = [
        ("layers", layers::check(&metadata)),
        ("dependency counts", budget::check()?),
        ("licences", licences::check(&metadata)?),
        ("functions and unsafe", code::check(&files)?),
        ("import circles", circles::check(&sources)),
        ("circles of folders", folders::check(&sources)),
        ("lines of crates", sizes::check(&sources)),
        ("odd phrases", phrases::check(&rates)),
        ("line widths", width::check(&files)?),
        ("retired words", words::check_retired(&sources)?),
        ("type names", words::check_types(&sources)),
        ("fixtures have their HOW", fixtures::check(&files)),
        ("file names", names::check_names(&files)),
        ("words", names::check_words(&files)?),
        ("tests that SECURITY.md names", security::check(&files)?),
        ("kernels of docs/interfaces.md", kernels::check()?),
        ("generated files", generate::check()?),
        ("BPF objects", objects::check()?),
    ];
    let failed = checks.iter().filter(|(name, findings)| !passes(name, findings)).count();
    if failed > 0 {
        bail!("tidy: {failed} checks failed");
    }
    Ok(())
}

/// Prints the findings of one check; true if there are none.
fn passes(name: &str, findings: &[String]) -> bool {
    match findings.len() {
        0 => println!("tidy: {name}: ok"),
        count => println!("tidy: {name}: {count}"),
    }
    findings.iter().for_each(|finding| println!("  {finding}"));
    findings.is_empty()
}

/// `cargo metadata`, without network access.
fn metadata() -> Result<Value> {
    let json = root::output(&root::cargo(), &["metadata", "--offline", "--locked", "--format-version", "1"])?;
    Ok(serde_json::from_str(&json)?)
}

/// The packages of the workspace.
fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    packages(metadata).filter(|package| package["source"].is_null())
}

/// All packages of the lock file.
fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}
