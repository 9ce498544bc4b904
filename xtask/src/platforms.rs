//! docs/platforms.md: where netwren was run, from the results of `cargo xtask fresh` and `cargo xtask kernels`.
//!
//! The page shows only what these commands have written.

use crate::kernels::seen::{self, Outcome, Seen};
use crate::root;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The results of `cargo xtask fresh` and `./netwren.sh test ARCH`: system → commands that succeeded.
const FILE: &str = "docs/platforms.json";

/// Adds a command that succeeded on a system. The name of a system with another processor than x86_64 ends with it.
pub(crate) fn note(system: &str, command: &str) -> Result<()> {
    let mut all = read()?;
    all.entry(system.to_owned()).or_default().insert(command.to_owned());
    let of = |(system, commands): (&String, &BTreeSet<String>)| (system.clone(), json!(commands));
    let whole: Map<String, Value> = all.iter().map(of).collect();
    let path = root::path().join(FILE);
    std::fs::write(&path, format!("{:#}\n", Value::Object(whole))).with_context(|| path.display().to_string())
}

fn read() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let text = std::fs::read_to_string(root::path().join(FILE)).context(FILE)?;
    let whole: Value = serde_json::from_str(&text).context(FILE)?;
    let words = |list: &Value| {
        list.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    Ok(whole.as_object().into_iter().flatten().map(|(system, list)| (system.clone(), words(list))).collect())
}

/// The page.
pub(crate) fn page() -> Result<String> {
    let mut text = String::from(
        "# Platforms\n\n`cargo xtask gen` writes this page from the results of `cargo xtask fresh` and \
         `./netwren.sh test aarch64` (docs/platforms.json),\nand of `cargo xtask kernels` (docs/kernels.json).\n\n\
         ## Systems\n\nDebian was newly installed into a folder. qemu-user emulates a processor on the kernel of the \
         host.\n\n| system | processor | what was run there |\n|---|---|---|\n",
    );
    for (system, commands) in read()? {
        let commands: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
        let (system, processor) = match system.rsplit_once(' ') {
            Some((system, "aarch64")) => (system, "aarch64"),
            _ => (system.as_str(), "x86_64"),
        };
        let _ = writeln!(text, "| {system} | {processor} | {} |", commands.join("<br>"));
    }
    text.push_str(
        "\n## Kernels\n\nEach boots in an emulator with the release binary and compares the ways of reading the kernel \
         with each other and with\nthe old tools. `absent`: the kernel lacks the feature, and netwren reports that.\n\n\
         | kernel | processor | works | absent | different |\n|---|---|--:|--:|--:|\n",
    );
    for (name, seen) in seen::read()? {
        let processor = if name.contains("arm64") { "aarch64" } else { "x86_64" };
        let pages = if name.ends_with("-16k") { ", pages of 16 KiB" } else { "" };
        let counts = [Outcome::Works, Outcome::Absent, Outcome::Different].map(|outcome| count(&seen, outcome));
        let [works, absent, different] = counts;
        let _ = writeln!(text, "| {}{pages} | {processor} | {works} | {absent} | {different} |", seen.version);
    }
    text.push_str(
        "\nThe tests of the repository run on x86_64 with Linux 6.18. On aarch64 only what is listed here was run: no \
         real hardware,\nno receiver, no tests of the command line. Pages of 64 KiB were not tried, because no Debian \
         kernel has them.\n",
    );
    Ok(text)
}

fn count(seen: &Seen, outcome: Outcome) -> usize {
    seen.outcomes.values().filter(|one| **one == outcome).count()
}
