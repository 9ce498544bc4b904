//! Counts phrases that a native speaker would hardly write, per 1,000 lines, and limits them.
//!
//! Not every hit is wrong. The rates show where readers have to translate; well-known Rust projects have 3 to 12.

use super::Findings;
use super::items::{SourceFile, test_files};
use super::scan::strings;
use crate::root;
use anyhow::{Context, Result};
use regex::Regex;
use std::path::{Path, PathBuf};

/// Hits in 1,000 lines of comments.
const COMMENTS_MAX: f64 = 25.0;
/// Hits in 1,000 lines of a document.
const DOCUMENT_MAX: f64 = 20.0;
/// Hits in 1,000 lines of text that users see.
const USER_TEXT_MAX: f64 = 5.0;
/// Pages that users see; string literals are counted as well.
const USER_PAGES: &[&str] = &["docs/man", "docs/schema.md", "docs/cookbook.md", "docs/incidents.md"];
/// A line of a string literal is prose from this number of words on.
const PROSE_WORDS: usize = 3;

/// A kind of phrase.
struct Phrase {
    name: &'static str,
    pattern: &'static str,
    /// A match that also matches this, from its first character on, is fine.
    except: &'static str,
}

const fn phrase(name: &'static str, pattern: &'static str) -> Phrase {
    Phrase { name, pattern, except: "" }
}

const PHRASES: &[Phrase] = &[
    Phrase {
        name: "a question word begins the sentence",
        pattern: r"(?:^|[.:;] )(?:Wh(?:at|o|ere|ose)|Wh(?:o|at)ever) [a-z]",
        except: r"^(?:[.:;] )?\w+ if\b",
    },
    phrase("-ever: use `any`, `every`", r"\b[Ww]h(?:o|at|ich)ever\b"),
    phrase("`Of` begins the sentence", r"(?:^|[.:;] )Of [a-z]"),
    phrase("facts do not tell", r"\bt(?:old|ells?)\b"),
    phrase("facts do not say", r"\b(?:are|be|is|was) said\b|\bsays? of\b"),
    Phrase { name: "things do not stand", pattern: r"\bstands?\b", except: r"^stands? for" },
    phrase("`behind` for `after`", r"\bbehind\b"),
    // The check `nflog-nobody` keeps its name.
    phrase("nobody: name the absent", r"(?:^|[^-])\b(?:no|some)body\b"),
    phrase("`is none`, `is no`", r"\b(?:are|has|have|is) none\b|\bis no [a-z]+\b"),
    phrase("`so many` points back", r"\bso (?:large|late|long|many|much|old)\b"),
    phrase("old adverbs", r"\b(?:anew|beside|meanwhile)\b"),
    phrase("`, too` for `also`", r", too\b"),
    phrase("`is to be`, `shall` for `must`", r"\b(?:are|is) to be\b|\bshall\b"),
    phrase("`that of` stands in for a noun", r"\b(?:another one|th(?:at|ose) of|the one that)\b"),
    phrase(
        "a line without a verb",
        r"^(?:All|As|Both|By|From|In|No|None|Not|Nothing|The same|Those|With|Without)\b[^.]{0,60}\.$",
    ),
];

/// Compiles a pattern with ASCII classes: the Unicode tables of `regex` are not built in.
fn compile(pattern: &str) -> Result<Regex> {
    Ok(Regex::new(&pattern.replace(r"\b", r"(?-u:\b)").replace(r"\w", "[0-9A-Za-z_]"))?)
}

/// The compiled table.
pub(super) struct Phrases(Vec<(&'static str, Regex, Option<Regex>)>);

/// Hits and lines of some text.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Rate {
    hits: usize,
    lines: usize,
}

impl Rate {
    /// Hits in 1,000 lines.
    pub(super) fn per_thousand(self) -> f64 {
        self.hits as f64 * 1000.0 / self.lines.max(1) as f64
    }
}

impl Phrases {
    pub(super) fn new() -> Result<Phrases> {
        let compiled = PHRASES.iter().map(|phrase| {
            let except = if phrase.except.is_empty() { None } else { Some(compile(phrase.except)?) };
            Ok((phrase.name, compile(phrase.pattern)?, except))
        });
        Ok(Phrases(compiled.collect::<Result<_>>()?))
    }

    /// The names of the phrases in a line.
    fn found<'p>(&'p self, line: &'p str) -> impl Iterator<Item = &'static str> + 'p {
        let is_odd = |pattern: &Regex, except: &Option<Regex>| {
            let is_fine = |at: usize| except.as_ref().is_some_and(|except| except.is_match(&line[at..]));
            pattern.find_iter(line).any(|hit| !is_fine(hit.start()))
        };
        self.0.iter().filter(move |(_, pattern, except)| is_odd(pattern, except)).map(|(name, ..)| *name)
    }

    fn rate<'l>(&self, lines: impl Iterator<Item = &'l str>) -> Rate {
        let lines = lines.map(str::trim).filter(|line| !line.is_empty());
        lines.fold(Rate::default(), |rate, line| Rate {
            hits: rate.hits + self.found(line).count(),
            lines: rate.lines + 1,
        })
    }
}

/// The rates of the whole repository, each with its limit.
pub(super) struct Rates {
    pub(super) comments: (Rate, f64),
    pub(super) documents: Vec<(String, Rate, f64)>,
    /// Texts that users see.
    pub(super) user_texts: Vec<(String, Rate, f64)>,
}

impl Rates {
    /// Reads all files.
    pub(super) fn read(files: &[PathBuf], sources: &[SourceFile]) -> Result<Rates> {
        let phrases = Phrases::new()?;
        let text =
            |file: &Path| std::fs::read_to_string(root::path().join(file)).with_context(|| file.display().to_string());
        let rust: Vec<String> = sources.iter().map(|source| text(&source.file)).collect::<Result<_>>()?;
        let comments = phrases.rate(rust.iter().flat_map(|text| text.lines()).filter_map(comment));
        let mut documents = Vec::new();
        for file in files.iter().filter(|file| is_document(file)) {
            documents.push((file.display().to_string(), phrases.rate(text(file)?.lines()), DOCUMENT_MAX));
        }
        let mut user_texts = Vec::new();
        for place in USER_PAGES {
            let inside = files.iter().filter(|file| file.starts_with(place));
            let pages = inside.map(|file| text(file).map(|page| plain(&page))).collect::<Result<Vec<_>>>()?;
            let rate = phrases.rate(pages.iter().flat_map(|page| page.lines()));
            user_texts.push(((*place).to_owned(), rate, USER_TEXT_MAX));
        }
        let tests = test_files(sources);
        let product = sources.iter().zip(&rust).filter(|(source, _)| source.is_product(&tests));
        let literals: Vec<String> = product.flat_map(|(source, text)| prose(source, text)).collect();
        let rate = phrases.rate(literals.iter().map(String::as_str));
        user_texts.push(("string literals".to_owned(), rate, USER_TEXT_MAX));
        Ok(Rates { comments: (comments, COMMENTS_MAX), documents, user_texts })
    }
}

/// One finding for each text with more phrases than its limit.
pub(super) fn check(rates: &Rates) -> Findings {
    let comments = [("comments".to_owned(), rates.comments.0, rates.comments.1)];
    let all = comments.iter().chain(&rates.documents).chain(&rates.user_texts);
    all.filter(|(_, rate, limit)| rate.per_thousand() > *limit)
        .map(|(name, rate, limit)| {
            let odd = rate.per_thousand();
            format!("{name}:1: {odd:.1} odd phrases in 1,000 lines, at most {limit} (table: xtask/src/tidy/phrases.rs)")
        })
        .collect()
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text))
}

/// True for pages that contributors read; pages for users have limits of their own.
fn is_document(file: &Path) -> bool {
    let is_user_text = USER_PAGES.iter().any(|place| file.starts_with(place));
    let is_page = file.extension().is_some_and(|suffix| suffix == "md");
    let folder = file.parent().unwrap_or(Path::new(""));
    let is_here = [Path::new(""), Path::new("docs"), Path::new("docs/adr")].contains(&folder);
    is_page && is_here && !is_user_text
}

/// A man page without its markup; other pages stay as they are.
fn plain(page: &str) -> String {
    let lines = page.lines().filter(|line| !line.starts_with('.'));
    let lines = lines.map(|line| line.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace("\\-", "-"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of prose in the string literals of a file, tests excluded.
fn prose(source: &SourceFile, text: &str) -> Vec<String> {
    let shipped = |at: &usize| !source.tests.iter().any(|range| range.contains(at));
    let literals = strings(text).filter(|(at, _)| shipped(at)).map(|(_, literal)| unescaped(literal));
    let lines = literals.flat_map(|literal| literal.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.split_whitespace().count() >= PROSE_WORDS).collect()
}

/// The text of a literal: continued lines are joined, `\n` breaks lines.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal.trim_matches('"');
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        rest = match after.chars().next() {
            Some('\n') => after.trim_start(),
            Some('n') => {
                text.push('\n');
                &after[1..]
            }
            Some(other) => {
                text.push(other);
                &after[other.len_utf8()..]
            }
            None => after,
        };
    }
    text + rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn each_kind_is_found_and_plain_sentences_are_not() {
        let phrases = Phrases::new().unwrap();
        for (line, count) in [
            ("What is left goes to a map.", 1),
            ("What if it fails?", 0),
            ("It ends. Who waits is woken.", 1),
            ("whoever holds it", 1),
            ("Of drivers five are shown.", 1),
            ("The process is told by the send.", 1),
            ("That is said on stderr.", 1),
            ("It stands here.", 1),
            ("It stands for a name.", 0),
            ("The filter goes behind it.", 1),
            ("It has none; nobody waits.", 2),
            ("Nobody waits for nflog-nobody.", 0),
            ("nobody waits", 1),
            ("so many are kept, too", 2),
            ("It is opened anew.", 1),
            ("It shall be read.", 1),
            ("the name of a row and that of a group", 1),
            ("None of them.", 1),
            ("netwren counts the rows that it could not read and exits with 3.", 0),
        ] {
            assert_eq!(phrases.found(line).count(), count, "{line}: {:?}", phrases.found(line).collect::<Vec<_>>());
        }
    }

    #[test]
    fn comments_and_literals_are_lines() {
        assert_eq!(
            ["/// A b.", "    // c", "//! d", "e // f"].map(comment),
            [Some(" A b."), Some(" c"), Some(" d"), None]
        );
        let code = "fn f() { g(\"one two \\\n    three\\nfour five six\"); h(\"short\"); }\n\
                    #[cfg(test)]\nmod tests { const A: &str = \"a text of tests\"; }\n";
        let source = SourceFile::parse("crates/a/src/lib.rs".into(), code);
        assert_eq!(prose(&source, code), ["one two three", "four five six"]);
        assert_eq!(plain(".SH NAME\n\\fBa\\fR \\-b\n"), "a -b");
    }

    #[test]
    fn a_rate_above_its_limit_is_a_finding() {
        let phrases = Phrases::new().unwrap();
        let rate = phrases.rate("it is told\n\nfine\n".lines());
        assert_eq!(rate, Rate { hits: 1, lines: 2 });
        let rates = |limit| Rates { comments: (rate, limit), documents: Vec::new(), user_texts: Vec::new() };
        assert!(check(&rates(500.0)).is_empty());
        assert_eq!(check(&rates(499.0)).len(), 1);
    }
}
