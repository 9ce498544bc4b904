//! Limits the lines of each crate, tests excluded.

use super::Findings;
use super::items::{SourceFile, test_files};
use std::collections::BTreeMap;

/// The most lines of a crate: more cannot be known by one person.
const LINES_MAX: usize = 15_000;

/// Crates with limits of their own.
const LIMITS: &[(&str, usize)] = &[
    // Each old tool in it is a folder that nothing else names; faces are mended, not extended.
    ("faces", usize::MAX),
];

pub(super) fn check(sources: &[SourceFile]) -> Findings {
    let too_large = lines(sources).into_iter().filter_map(|(krate, lines)| {
        let limit = LIMITS.iter().find(|(name, _)| *name == krate).map_or(LINES_MAX, |(_, limit)| *limit);
        (lines > limit).then(|| format!("crates/{krate}:1: {lines} lines without tests, at most {limit}"))
    });
    too_large.collect()
}

/// The lines of each crate that is shipped, tests excluded.
pub(super) fn lines(sources: &[SourceFile]) -> BTreeMap<&str, usize> {
    let tests = test_files(sources);
    let mut lines = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product(&tests)) {
        *lines.entry(source.krate()).or_default() += source.lines();
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let parse = |file: &str, source: &str| SourceFile::parse(file.into(), source);
        let code = "// a\n".repeat(LINES_MAX);
        let inline = format!("{code}#[cfg(test)]\nmod tests {{\n    fn b() {{}}\n}}\n#[cfg(test)]\nmod cases;\n");
        let sources = [
            parse("crates/a/src/lib.rs", &inline),
            parse("crates/a/src/cases.rs", "fn c() {}\n"),
            parse("crates/a/src/cases/more.rs", "fn d() {}\n"),
            parse("crates/a/tests/e.rs", "fn e() {}\n"),
            parse("crates/testkit/src/lib.rs", &code.repeat(2)),
        ];
        assert_eq!(lines(&sources), BTreeMap::from([("a", LINES_MAX)]));
        assert!(check(&sources).is_empty());
        let one_more = [parse("crates/a/src/lib.rs", &inline), parse("crates/a/src/b.rs", "fn b() {}\n")];
        assert_eq!(check(&one_more), ["crates/a:1: 15001 lines without tests, at most 15000"]);
    }
}
