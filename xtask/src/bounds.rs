//! docs/bounds.md: every constant whose doc comment has a `Bound:` paragraph, with its value.
//!
//! The paragraph reads `Bound: PHRASE. Beyond: TEXT. By: TEXT.`: PHRASE continues the number (`bytes of a file`), the
//! texts say what happens beyond the bound and who can reach it. The number comes from the constant's expression, so
//! the page cannot disagree with the program.

mod expression;

use crate::root;
use anyhow::{Context, Result, ensure};
use expression::{Constants, Number};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# Bounds

Every table, buffer, file and wait of netwren has a bound. This page lists the bounds that a user, a peer, the kernel or
the author of a file can reach: the number, the effect beyond it, and who can reach it. A bound costs other users' rows
only where the second column says so. Exit code 3 means that the output is incomplete; the last lines on stderr say what
is missing.

`cargo xtask gen` writes this page from the `Bound:` paragraphs of the constants in the source, with their values.
";

const MARK: &str = "Bound: ";

/// A marked constant.
struct Bound {
    file: PathBuf,
    name: String,
    value: Number,
    phrase: String,
    beyond: String,
    by: String,
}

/// The text of docs/bounds.md. Fails if a paragraph is incomplete, or a value is more than an expression of integers,
/// durations and other constants.
pub(crate) fn page() -> Result<String> {
    let mut page = HEAD.to_owned();
    for (name, bounds) in by_crate()? {
        let _ = write!(page, "\n## {name}\n\n| bound | beyond it | who can reach it | constant |\n|---|---|---|---|\n");
        for bound in bounds {
            let Bound { file, name, value, phrase, beyond, by } = &bound;
            let (limit, file) = (value.with_phrase(phrase), short(file));
            let _ = writeln!(page, "| {limit} | {beyond} | {by} | `{name}` in {file} |");
        }
    }
    Ok(page)
}

/// The path below its crate's folder, without `src`.
fn short(file: &Path) -> String {
    file.display().to_string().split_once('/').map_or_else(String::new, |(_, rest)| rest.replace("/src/", "/"))
}

fn by_crate() -> Result<BTreeMap<String, Vec<Bound>>> {
    let files: Vec<PathBuf> = root::files()?.into_iter().filter(|file| is_product(file)).collect();
    let mut texts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(root::path().join(&file)).with_context(|| file.display().to_string())?;
        texts.push((file, text));
    }
    let constants = Constants::of(&texts);
    let mut crates: BTreeMap<String, Vec<Bound>> = BTreeMap::new();
    for (file, text) in &texts {
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).filter(|at| comment(lines[*at]).is_some_and(|words| words.starts_with(MARK))) {
            let place = || format!("{}:{}", file.display(), at + 1);
            let bound = bound(file, &lines, at, &constants).with_context(place)?;
            let name = file.iter().nth(1).map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            crates.entry(name).or_default().push(bound);
        }
    }
    Ok(crates)
}

fn is_product(file: &Path) -> bool {
    file.starts_with("crates") && file.extension().is_some_and(|ext| ext == "rs")
}

/// The words of a line of a doc comment.
fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("///").map(str::trim)
}

fn bound(file: &Path, lines: &[&str], at: usize, constants: &Constants) -> Result<Bound> {
    let words = lines[at..].iter().map_while(|line| comment(line).filter(|words| !words.is_empty()));
    let paragraph: Vec<&str> = words.collect();
    let [phrase, beyond, by] = parts(&paragraph.join(" "))?;
    let (name, value) = declaration(file, &lines[at + paragraph.len()..], constants)?;
    Ok(Bound { file: file.to_owned(), name, value, phrase, beyond, by })
}

/// The three texts of a paragraph, without the full stop at their ends.
fn parts(paragraph: &str) -> Result<[String; 3]> {
    let rest = paragraph.trim().strip_prefix(MARK).context("not a bound")?;
    let (phrase, rest) = rest.split_once(" Beyond: ").context("a bound without `Beyond:`")?;
    let (beyond, by) = rest.split_once(" By: ").context("a bound without `By:`")?;
    let text = |text: &str| text.trim().trim_end_matches('.').replace('|', "\\|");
    Ok([phrase, beyond, by].map(text))
}

/// The name and value of the first declaration of a constant in these lines.
fn declaration(file: &Path, lines: &[&str], constants: &Constants) -> Result<(String, Number)> {
    let is_beside = |line: &&&str| {
        let line = line.trim();
        line.is_empty() || line.starts_with("//") || line.starts_with("#[")
    };
    let from = lines.iter().take_while(is_beside).count();
    let text = lines.get(from..).unwrap_or_default().join("\n");
    let found = expression::declared(&text).context("no constant below the bound")?;
    let value = constants.value(file, &found)?;
    ensure!(value.amount > 0, "a bound of zero");
    Ok((found.name, value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(file: &str, text: &str) -> Result<String> {
        let files = [(PathBuf::from(file), text.to_owned())];
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.contains(MARK)).unwrap();
        let bound = bound(Path::new(file), &lines, at, &Constants::of(&files))?;
        let limit = bound.value.with_phrase(&bound.phrase);
        Ok(format!("{} = {limit} / {} / {}", bound.name, bound.beyond, bound.by))
    }

    #[test]
    fn a_bound_has_the_value_of_its_constant() {
        let text = "/// Words.\n///\n/// Bound: rows of a\n/// table. Beyond: left out. By: root.\n\
                    #[cfg(x)]\npub(crate) const ROWS_MAX: usize = 1 << 16;\n";
        assert_eq!(read("crates/a/src/b.rs", text).unwrap(), "ROWS_MAX = 65,536 rows of a table / left out / root");
        let text = "const ONE: u64 = 3;\n/// Bound: for an answer. Beyond: given up. By: a peer.\n\
                    const WAIT: Duration = Duration::from_millis(ONE * 500);\n";
        assert_eq!(read("crates/a/src/b.rs", text).unwrap(), "WAIT = 1.5 s for an answer / given up / a peer");
        let text = "/// Bound: bytes of a ring. Beyond: lost. By: users.\nconst RING: u32 = 4 << 20;\n";
        assert_eq!(read("crates/a/src/b.rs", text).unwrap(), "RING = 4 MiB of a ring / lost / users");
    }

    #[test]
    fn a_bound_that_is_incomplete_is_refused() {
        for text in [
            "/// Bound: rows. By: root.\nconst ROWS: u8 = 1;\n",
            "/// Bound: rows. Beyond: gone.\nconst ROWS: u8 = 1;\n",
            "/// Bound: rows. Beyond: gone. By: root.\nfn rows() {}\n",
            "/// Bound: rows. Beyond: gone. By: root.\nconst ROWS: usize = size_of::<u8>();\n",
        ] {
            assert!(read("crates/a/src/b.rs", text).is_err(), "{text}");
        }
    }
}
