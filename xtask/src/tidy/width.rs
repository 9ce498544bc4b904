//! Finds lines that are too long to show two files side by side.

use super::Findings;
use crate::root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The longest line in columns, including strings and comments.
const COLUMNS_MAX: usize = 120;

/// Suffixes of files that contain code.
const CODE: &[&str] = &["rs", "c", "h", "sh"];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| is_code(file)) {
        let text = std::fs::read_to_string(root::path().join(file)).with_context(|| file.display().to_string())?;
        findings.extend(wide(file, &text));
    }
    Ok(findings)
}

fn is_code(file: &Path) -> bool {
    file.extension().and_then(|suffix| suffix.to_str()).is_some_and(|suffix| CODE.contains(&suffix))
}

fn wide<'a>(file: &'a Path, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let widths = text.lines().map(|line| line.chars().count()).zip(1..);
    let wide = widths.filter(|(columns, _)| *columns > COLUMNS_MAX);
    wide.map(|(columns, number)| format!("{}:{number}: {columns} columns, at most {COLUMNS_MAX}", file.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn columns_are_characters() {
        let text = format!("{}\n{}\n", "→".repeat(120), "x".repeat(121));
        let found: Vec<String> = wide(Path::new("a.sh"), &text).collect();
        assert_eq!(found, ["a.sh:2: 121 columns, at most 120"]);
    }
}
