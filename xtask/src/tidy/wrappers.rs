//! Finds types that implement `Source` or `Stream` by wrapping another implementation.

use super::items::{SourceFile, test_files, word_at};
use super::scan::{is_word, words};
use std::collections::BTreeSet;

/// The traits of `record` that rows come through.
const TRAITS: &[&str] = &["Source", "Stream"];

/// Their names with the crate of each, sorted.
pub(super) fn names(sources: &[SourceFile]) -> BTreeSet<String> {
    let tests = test_files(sources);
    let product: Vec<&SourceFile> = sources.iter().filter(|source| source.is_product(&tests)).collect();
    let found = product.iter().flat_map(|source| implementers(&source.code).map(move |one| (source, one)));
    let found: Vec<(&&SourceFile, Implementer<'_>)> = found.collect();
    let all: BTreeSet<&str> = found.iter().map(|(_, one)| one.name).collect();
    let wraps = |(source, one): &&(&&SourceFile, Implementer<'_>)| {
        let fields = fields(&source.code, one.name);
        words_of(fields).any(|word| TRAITS.contains(&word) || one.inner.contains(&word) || all.contains(word))
    };
    found.iter().filter(wraps).map(|(source, one)| format!("{}::{}", source.krate(), one.name)).collect()
}

/// A type that implements one of the traits.
struct Implementer<'c> {
    name: &'c str,
    /// Its parameters that stand for another implementer.
    inner: Vec<&'c str>,
}

fn implementers(code: &str) -> impl Iterator<Item = Implementer<'_>> {
    words(code, "impl").filter_map(|at| {
        let head = code.get(at..)?.split('{').next()?;
        let (before, after) = head.split_once(" for ")?;
        let is_one = |part: &str| TRAITS.iter().any(|name| has_trait(part, name));
        // The trait is the last word before `for`, after the parameters.
        let parameters = before.strip_prefix("impl<").map_or("", |rest| rest.split("> ").next().unwrap_or(rest));
        if !is_one(before.get("impl".len() + parameters.len()..)?) {
            return None;
        }
        let bounds = head.strip_prefix("impl<").unwrap_or(head).split(',').flat_map(|part| part.split("where "));
        let bounds = bounds.filter(|part| part.contains(": ") && is_one(part));
        let inner = bounds.map(|bound| word_at(bound, 0)).collect();
        Some(Implementer { name: word_at(after, 0), inner })
    })
}

/// True if a text has the trait with its parameter: `Stream<`.
fn has_trait(text: &str, name: &str) -> bool {
    words(text, name).any(|at| text.get(at + name.len()..).is_some_and(|rest| rest.starts_with('<')))
}

/// The fields of a struct; empty if the file does not declare it.
fn fields<'c>(code: &'c str, name: &str) -> &'c str {
    let declared = words(code, "struct").find(|at| word_at(code, at + "struct".len()) == name);
    let Some(rest) = declared.and_then(|at| code.get(at..)) else { return "" };
    let is_tuple = rest.find('(').is_some_and(|at| at < rest.find(['{', ';']).unwrap_or(rest.len()));
    let (open, close) = if is_tuple { ('(', ';') } else { ('{', '}') };
    let from = rest.find(open).unwrap_or(rest.len());
    rest.get(from..).and_then(|body| body.split(close).next()).unwrap_or_default()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !u8::try_from(c).is_ok_and(is_word)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn wrappers_hold_another_stream() {
        let source = "struct Plain { rows: u8 }\nimpl Stream<Rows> for Plain {}\n\
            struct Dyn<'s> { inner: &'s mut dyn Stream<Rows> }\nimpl Stream<Rows> for Dyn<'_> {}\n\
            struct Generic<S>(S, u8);\nimpl<S: Source<Rows>> Source<Rows> for Generic<S> {}\n\
            struct Typed { first: Plain }\nimpl Source<Rows> for Typed {}\n\
            struct Other { stream: Plain }\nimpl Drop for Other {}\n";
        let found = names(&[SourceFile::parse("crates/a/src/lib.rs".into(), source)]);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a::Dyn", "a::Generic", "a::Typed"]);
    }
}
