//! Checks the names of files and forbids certain words in all files.

use super::Findings;
use crate::root;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Such names say nothing about the content, so they attract everything.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "types", "helpers", "helper", "misc"];

pub(super) fn check_names(files: &[PathBuf]) -> Findings {
    let code = files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs" || ext == "sh"));
    let parts = code.flat_map(|file| file.iter().map(move |part| (file, part.to_string_lossy())));
    let empty = parts.filter(|(_, part)| EMPTY_NAMES.contains(&part.trim_end_matches(".rs").trim_end_matches(".sh")));
    empty.map(|(file, _)| format!("{}: a name by topic, not by kind", file.display())).collect()
}

/// Words that belong to a workplace and not to the project. They are split, so that this file passes its own check.
fn workplace() -> Vec<String> {
    vec![["/wo", "rk/"].concat(), [".lib", "rary/"].concat(), ["arti", "factory"].concat()]
}

pub(super) fn check_words(files: &[PathBuf]) -> Result<Findings> {
    let words = workplace();
    let mut findings = Vec::new();
    for file in files {
        let path = root::path().join(file);
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let found = words.iter().filter(|word| names(line, word));
            findings.extend(found.map(|word| format!("{}:{}: names `{word}`", file.display(), number + 1)));
        }
    }
    Ok(findings)
}

/// True if `line` contains `word`; a word that begins with a slash counts only at the beginning of a path.
fn names(line: &str, word: &str) -> bool {
    let lower = line.to_lowercase();
    lower.match_indices(word).any(|(at, _)| {
        let before = lower.get(..at).and_then(|text| text.chars().next_back());
        !word.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "-_.~}*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn names_by_kind_are_found() {
        let files = ["crates/a/src/utils.rs", "crates/a/src/common/x.rs", "crates/a/src/tuple.rs"].map(PathBuf::from);
        assert_eq!(check_names(&files).len(), 2);
    }

    #[test]
    fn places_are_found_and_parts_of_paths_are_not() {
        let place = &workplace()[0];
        assert!(names(&format!("see {place}x"), place));
        assert!(!names(&format!("home{place}x"), place));
    }
}
