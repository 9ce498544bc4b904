//! Checks the names of items and files: no retired words, and no type name that is used for many types.

use super::Findings;
use super::items::{Kind, SourceFile};
use crate::root;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

const GLOSSARY: &str = "docs/glossary.md";
/// The heading above the table to read.
const HEADING: &str = "## Retired words";

/// A type name may be used for this many types.
const SAME_NAMES_MAX: usize = 3;

/// A row of the glossary's table.
struct Retired {
    word: String,
    instead: String,
    /// The prefix of the paths where the word is retired; empty means everywhere.
    inside: String,
}

/// Finds names of items and files that contain a retired word.
pub(super) fn check_retired(sources: &[SourceFile]) -> Result<Findings> {
    let page = std::fs::read_to_string(root::path().join(GLOSSARY)).context(GLOSSARY)?;
    let table = table(&page);
    let mut findings = Findings::new();
    for source in sources {
        let here: Vec<&Retired> = table.iter().filter(|one| source.file.starts_with(&one.inside)).collect();
        let file = source.file.display();
        findings.extend(
            first_hit(&here, &stem(&source.file), false).map(|why| format!("{file}:1: the file's name: {why}")),
        );
        for item in &source.items {
            let found = first_hit(&here, &item.name, item.kind == Kind::Type);
            findings.extend(found.map(|why| format!("{file}:{}: `{}`: {why}", item.line, item.name)));
        }
    }
    Ok(findings)
}

/// Finds names of types that more than [`SAME_NAMES_MAX`] modules of the product declare.
pub(super) fn check_types(sources: &[SourceFile]) -> Findings {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_product(&source.file)) {
        for item in source.items.iter().filter(|item| item.kind == Kind::Type && item.is_top_level) {
            places.entry(&item.name).or_default().push(format!("{}:{}", source.file.display(), item.line));
        }
    }
    // A single letter is an alias that is used only in its own file.
    let many = places.into_iter().filter(|(name, places)| name.len() > 1 && places.len() > SAME_NAMES_MAX);
    many.map(|(name, places)| {
        let first = places.first().map_or("", String::as_str);
        format!("{first}: {} types are named `{name}`, at most {SAME_NAMES_MAX}: {}", places.len(), places.join(" "))
    })
    .collect()
}

/// True for sources of a crate that are not test files.
fn is_product(file: &Path) -> bool {
    let mut parts = file.iter().filter_map(|part| part.to_str());
    parts.next() == Some("crates") && parts.nth(1) == Some("src") && !parts.any(|part| part.starts_with("tests"))
}

/// The file name without its suffix.
fn stem(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The rows of the glossary's table of retired words.
fn table(page: &str) -> Vec<Retired> {
    let lines = page.lines().skip_while(|line| *line != HEADING).filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
        Some(Retired { word: cells.next()?, instead: cells.next()?, inside: cells.next()? })
    };
    lines.filter_map(row).collect()
}

/// The replacement to suggest if `name` contains a retired word.
fn first_hit(table: &[&Retired], name: &str, is_type: bool) -> Option<String> {
    let parts = parts(name);
    let hit = table.iter().find(|one| {
        let names_types = one.word.starts_with(char::is_uppercase);
        if names_types { is_type && one.word == name } else { parts.contains(&one.word) }
    })?;
    Some(format!("`{}` is retired, use `{}`", hit.word, hit.instead))
}

/// The words of a name in lower case: `BpfDoor` and `bpf_door` both give `bpf` and `door`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn retired_words_in_names() {
        let page = "| `before` | x | |\n## Retired words\n\n| retired | use | in |\n|---|---|---|\n| `door` | backend \
            | |\n| `Pen` | `LineWriter` | `crates/a` |\n";
        let table = table(page);
        let all: Vec<&Retired> = table.iter().collect();
        for name in ["BpfDoor", "bpf_door", "DOOR_MAX", "Pen"] {
            assert!(first_hit(&all, name, true).is_some(), "{name}");
        }
        for name in ["Doorway", "PenWriter", "pen", "before"] {
            assert!(first_hit(&all, name, true).is_none(), "{name}");
        }
        assert!(first_hit(&all, "Pen", false).is_none());
        assert_eq!(table[1].inside, "crates/a");
    }

    #[test]
    fn the_glossary_has_its_table() {
        let page = std::fs::read_to_string(root::path().join(GLOSSARY)).unwrap();
        assert!(table(&page).len() > 10);
    }

    #[test]
    fn one_name_for_many_types() {
        let parse = |file: &str, source: &str| SourceFile::parse(PathBuf::from(file), source);
        let of = |name: &str| {
            parse(&format!("crates/{name}/src/lib.rs"), "struct Place;\nimpl X for Y {\n    type Item = u8;\n}\n")
        };
        let mut sources: Vec<SourceFile> = ["a", "b", "c"].map(of).into();
        sources.push(parse("crates/d/src/tests.rs", "struct Place;\n"));
        sources.push(parse("crates/d/src/x.rs", "#[cfg(test)]\nmod tests {\n    struct Place;\n}\n"));
        assert!(check_types(&sources).is_empty());
        sources.push(of("e"));
        assert_eq!(check_types(&sources).len(), 1);
    }
}
