//! The items that a file declares, and its text without tests.

use super::scan::{code_only, is_word, line_of, words};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One Rust file of the repository.
pub(super) struct SourceFile {
    pub(super) file: PathBuf,
    /// The text with comments, strings and test-only code blanked out.
    pub(super) code: String,
    /// Test-only modules in files of their own.
    pub(super) test_modules: Vec<String>,
    /// The offsets of test-only items.
    pub(super) tests: Vec<Range<usize>>,
    pub(super) items: Vec<Item>,
}

/// A declared name.
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) line: usize,
    /// False inside an impl, a function or an inline module.
    pub(super) is_top_level: bool,
}

/// The kind of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A function, module, constant or static.
    Value,
    /// A struct, enum, union, trait or alias.
    Type,
    /// A field of a struct, or a variant of an enum.
    Member,
}

/// Keywords that begin a declaration.
const KEYWORDS: &[(&str, Kind)] = &[
    ("fn", Kind::Value),
    ("mod", Kind::Value),
    ("const", Kind::Value),
    ("static", Kind::Value),
    ("struct", Kind::Type),
    ("enum", Kind::Type),
    ("union", Kind::Type),
    ("trait", Kind::Type),
    ("type", Kind::Type),
    ("macro_rules!", Kind::Value),
];

impl SourceFile {
    /// Reads every Rust file among `files`.
    pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<SourceFile>> {
        let rust = files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs"));
        let read = rust.map(|file| {
            let path = crate::root::path().join(file);
            let source = std::fs::read_to_string(path).with_context(|| file.display().to_string())?;
            Ok(SourceFile::parse(file.clone(), &source))
        });
        read.collect()
    }

    pub(super) fn parse(file: PathBuf, source: &str) -> SourceFile {
        let mut code = code_only(source).into_bytes();
        let (test_modules, tests) = blank_tests(&mut code);
        let code = String::from_utf8_lossy(&code).into_owned();
        let items = items(&code);
        SourceFile { file, code, test_modules, tests, items }
    }

    /// The number of lines that are not for tests.
    pub(super) fn lines(&self) -> usize {
        let tests = self.tests.iter().filter_map(|range| self.code.get(range.clone()));
        self.code.lines().count() - tests.map(|text| text.lines().count()).sum::<usize>()
    }

    /// True if the file belongs to what is shipped: a source of a crate that is not for tests.
    pub(super) fn is_product(&self, test_files: &BTreeSet<PathBuf>) -> bool {
        let mut parts = self.file.iter().filter_map(|part| part.to_str());
        let is_source =
            parts.next() == Some("crates") && parts.next() != Some("testkit") && parts.next() == Some("src");
        let is_test = |path: &Path| test_files.contains(path) || test_files.contains(&path.with_extension(""));
        is_source && !self.file.ancestors().any(is_test)
    }

    /// The name of the file's crate; empty outside of `crates`.
    pub(super) fn krate(&self) -> &str {
        let name = self.file.strip_prefix("crates").ok().and_then(|rest| rest.iter().next());
        name.and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// The files and folders of test-only modules, without suffix.
pub(super) fn test_files(sources: &[SourceFile]) -> BTreeSet<PathBuf> {
    let of_file = |source: &SourceFile| {
        let is_root = source.file.file_stem().is_some_and(|stem| stem == "mod" || stem == "lib" || stem == "main");
        let folder =
            if is_root { source.file.parent().map(PathBuf::from) } else { Some(source.file.with_extension("")) };
        source.test_modules.iter().filter_map(move |name| Some(folder.as_ref()?.join(name))).collect::<Vec<_>>()
    };
    sources.iter().flat_map(of_file).collect()
}

/// Blanks every item under `#[cfg(test)]`; returns the names of test modules in files of their own, and the offsets of
/// the items.
fn blank_tests(code: &mut [u8]) -> (Vec<String>, Vec<Range<usize>>) {
    let (mut modules, mut ranges) = (Vec::new(), Vec::new());
    let mut from = 0;
    while let Some(at) = find(&code[from..], b"#[cfg(test)]").map(|at| from + at) {
        let end = item_end(code, at + "#[cfg(test)]".len());
        let text = String::from_utf8_lossy(&code[at..end]).into_owned();
        if let Some(name) = words(&text, "mod").next().map(|at| word_at(&text, at + 3)).filter(|_| text.ends_with(';'))
        {
            modules.push(name.to_owned());
        }
        code[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        ranges.push(at..end);
        from = end;
    }
    (modules, ranges)
}

fn find(code: &[u8], what: &[u8]) -> Option<usize> {
    code.windows(what.len()).position(|window| window == what)
}

/// Offset after the item that begins at `at`: after its `;`, its `,`, or its closing brace.
fn item_end(code: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    for (i, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' if depth <= 1 => return i + usize::from(depth == 1) + usize::from(code.get(i + 1) == Some(&b';')),
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return i + 1,
            // A field or a variant; in a function, a comma between the types of its signature.
            b',' if depth == 0 && !is_function(&code[at..i]) => return i + 1,
            _ => {}
        }
    }
    code.len()
}

fn is_function(code: &[u8]) -> bool {
    words(&String::from_utf8_lossy(code), "fn").next().is_some()
}

/// The identifier at or after `at`.
pub(super) fn word_at(code: &str, at: usize) -> &str {
    let rest = code.get(at..).unwrap_or_default().trim_start();
    let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

fn items(code: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for (keyword, kind) in KEYWORDS {
        for at in words(code, keyword) {
            let after = at + keyword.len();
            let name = word_at(code, after);
            // `fn(` is a type, `const {` a block, `*const T` a pointer, `const fn` and `_` have no name of their own.
            let is_pointer = code.get(..at).is_some_and(|before| before.ends_with('*'));
            let is_declared = !name.is_empty() && !is_pointer && !["fn", "_", "unsafe", "mut"].contains(&name);
            if is_declared && code.get(after..).is_some_and(|rest| rest.starts_with(char::is_whitespace)) {
                let is_top_level = is_top_level(code, at);
                items.push(Item { kind: *kind, name: name.to_owned(), line: line_of(code, at), is_top_level });
            }
            if ["struct", "enum"].contains(keyword) {
                items.extend(members(code, after, *keyword == "struct"));
            }
        }
    }
    items
}

/// True if the line of `at` begins in the first column.
fn is_top_level(code: &str, at: usize) -> bool {
    let line = code.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    !line.starts_with(' ')
}

/// Fields or variants of the type whose name begins at `at`.
fn members(code: &str, at: usize, are_fields: bool) -> Vec<Item> {
    let Some(open) = code[at..].find(['{', ';', '(']).map(|n| at + n).filter(|open| code[*open..].starts_with('{'))
    else {
        return Vec::new();
    };
    let end = item_end(code.as_bytes(), open);
    let mut members = Vec::new();
    let mut next = open + 1;
    while next + 1 < end {
        let part_end = item_end(code.as_bytes(), next).clamp(next + 1, end);
        members.extend(member(code, next, part_end, are_fields));
        next = part_end;
    }
    members
}

/// The name of one field or variant, after attributes and visibility; a field must have a type.
fn member(code: &str, from: usize, to: usize, is_field: bool) -> Option<Item> {
    let mut text = code.get(from..to)?.trim_start();
    while text.starts_with('#') {
        text = text.split_once(']')?.1.trim_start();
    }
    if let Some(rest) = text.strip_prefix("pub") {
        text = rest.trim_start();
        text = text.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(text, |(_, rest)| rest.trim_start());
    }
    let name = word_at(text, 0);
    let at = to - text.len();
    // The part after the comma in `Map<K, V>` is not a field.
    let has_type = text[name.len()..].starts_with(':') && !text[name.len()..].starts_with("::");
    (!name.is_empty() && (has_type || !is_field)).then(|| Item {
        kind: Kind::Member,
        name: name.to_owned(),
        line: line_of(code, at),
        is_top_level: false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let parsed = SourceFile::parse(PathBuf::from("x.rs"), source);
        parsed.items.iter().map(|item| format!("{}:{}", item.line, item.name)).collect()
    }

    #[test]
    fn declared_names() {
        let source = "fn a(f: fn(u8), p: *const u8) {}\nconst fn b() {}\npub(crate) struct C<'a> {\n    #[x(y)]\n    \
            pub(super) d: Map<u8, u8>,\n    e: [u8; 4],\n}\nenum F {\n    G(u8, u8),\n    H { i: u8 },\n}\nstruct \
            J(u8);\n";
        let mut found = names(source);
        found.sort();
        assert_eq!(found, ["10:H", "12:J", "1:a", "2:b", "3:C", "5:d", "6:e", "8:F", "9:G"]);
    }

    #[test]
    fn what_is_for_tests_is_no_code() {
        let parsed = SourceFile::parse(
            PathBuf::from("x.rs"),
            "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod inline { fn f() {} }\n#[cfg(test)]\nuse a::{b, c};\nfn g() \
                {}\n",
        );
        assert_eq!(parsed.test_modules, ["tests"]);
        assert_eq!(parsed.items.len(), 1);
        assert_eq!(parsed.code.trim(), "fn g() {}");
    }
}
