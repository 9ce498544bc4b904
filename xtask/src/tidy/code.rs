//! Checks the length of functions, the use of `unsafe`, and syntax newer than the oldest supported compiler.

use super::Findings;
use super::scan::{code_only, line_of, words};
use crate::root;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A function that does not fit on a screen is hard to understand.
const LINES_MAX: usize = 70;

/// Paths where `unsafe` is allowed, with SAFETY comments; it is forbidden elsewhere. Tests that count allocations use
/// `testkit::allocator::Counting` and need no `unsafe`. Nothing of testkit is part of the product.
const UNSAFE_HERE: &[&str] = &["crates/sys/", "crates/testkit/src/sandbox.rs"];

/// Standard library functions that open a file for writing. They follow links and do not check who owns the file.
const WRITERS: &[&str] = &["OpenOptions", "File::create", "File::options", "fs::write", "fs::copy"];

/// Code that may use them: `sys`, whose `outfile` all other code uses, programs for tests and development, and code
/// that writes only to kernel files (tracefs, /proc).
const WRITERS_HERE: &[&str] = &[
    "crates/sys/",
    "crates/testkit/",
    "crates/drops/src/trace/instance.rs",
    "crates/runtime/src/helper_process.rs",
    "crates/probes/src/nat/apply.rs",
];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs")) {
        let source = std::fs::read_to_string(root::path().join(file)).with_context(|| file.display().to_string())?;
        let code = code_only(&source);
        findings.extend(long_functions(file, &source, &code));
        findings.extend(unsafe_code(file, &source, &code));
        findings.extend(unguarded(file, &source));
        findings.extend(let_chains(file, &code));
        findings.extend(other_ways_to_write(file, &code));
    }
    Ok(findings)
}

/// Finds `… && let …`, which needs Rust 1.88; clippy does not report it although it knows our `rust-version`.
fn let_chains(file: &Path, code: &str) -> Findings {
    let chained =
        words(code, "let").filter(|at| code.get(..*at).is_some_and(|before| before.trim_end().ends_with("&&")));
    chained.map(|at| format!("{}:{}: a chain of let needs Rust 1.88", file.display(), line_of(code, at))).collect()
}

/// Finds code in a crate that opens a file for writing without `sys::outfile`; tests may do so.
fn other_ways_to_write(file: &Path, code: &str) -> Findings {
    let name = file.to_string_lossy();
    let is_product = name.starts_with("crates/") && name.contains("/src/") && !name.ends_with("tests.rs");
    if !is_product || name.contains("/tests/") || WRITERS_HERE.iter().any(|place| name.starts_with(place)) {
        return Vec::new();
    }
    let product = code.split("#[cfg(test)]").next().unwrap_or(code);
    // `OutputFile::create` is a different function.
    let is_whole = |at: usize| !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
    let found = WRITERS.iter().flat_map(|way| product.match_indices(way)).filter(|(at, _)| is_whole(*at));
    found
        .map(|(at, way)| format!("{name}:{}: {way} opens files unchecked; use sys::outfile", line_of(code, at)))
        .collect()
}

fn long_functions(file: &Path, source: &str, code: &str) -> Findings {
    let lines: Vec<&str> = source.lines().collect();
    let long = function_lengths(code).filter(|(first, length)| *length > LINES_MAX && !excused(&lines, *first));
    long.map(|(first, length)| {
        format!(
            "{}:{first}: function of {length} lines, at most {LINES_MAX} (or `// long: reason` above)",
            file.display()
        )
    })
    .collect()
}

/// The first line of each function, and the number of its lines.
pub(super) fn function_lengths(code: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    words(code, "fn").filter_map(|at| {
        let (first, last) = (line_of(code, at), line_of(code, body_end(code, at)?));
        Some((first, last - first + 1))
    })
}

/// Offset of the brace that closes the function beginning at `at`; `None` if it has no body.
fn body_end(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(i),
            b'}' => depth = depth.checked_sub(1)?,
            // `fn name(…);` in a trait, and fn pointers. A semicolon in brackets belongs to a type such as `[u8; 4]`.
            b';' if depth == 0 && !in_brackets(&code[at..i]) => return None,
            b',' | b')' | b'=' | b'>' if depth == 0 && is_pointer(&code[at..i]) => return None,
            _ => {}
        }
    }
    None
}

fn in_brackets(text: &str) -> bool {
    text.matches('[').count() > text.matches(']').count()
}

/// `fn(` is a type, `fn name` a function.
fn is_pointer(text: &str) -> bool {
    text.strip_prefix("fn").is_some_and(|rest| rest.trim_start().starts_with('('))
}

/// True if the comments and attributes right above contain `// long:` with a reason.
fn excused(lines: &[&str], first: usize) -> bool {
    let above = lines.iter().take(first - 1).rev().map(|line| line.trim_start());
    let mut above = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
    above.any(|line| line.strip_prefix("// long:").is_some_and(|reason| !reason.trim().is_empty()))
}

fn unsafe_code(file: &Path, source: &str, code: &str) -> Findings {
    let lines: Vec<&str> = source.lines().collect();
    let name = file.to_string_lossy();
    let allowed = UNSAFE_HERE.iter().any(|place| name.starts_with(place));
    let wrong = words(code, "unsafe").filter_map(|at| {
        let line = line_of(code, at);
        if !allowed {
            return Some(format!("{name}:{line}: unsafe outside {}", UNSAFE_HERE[0]));
        }
        let next = code[at + "unsafe".len()..].trim_start();
        let proves = next.starts_with('{') || next.starts_with("impl");
        (proves && !has_safety(&lines, line)).then(|| format!("{name}:{line}: unsafe without a `// SAFETY:` above"))
    });
    wrong.collect()
}

/// True if the statement or the comment right above it contains SAFETY; the search ends at the next empty line.
fn has_safety(lines: &[&str], line: usize) -> bool {
    let above = lines.iter().take(line).rev().take(15);
    above.take_while(|text| !text.trim().is_empty()).any(|text| text.contains("SAFETY:"))
}

/// The root of a crate must forbid unsafe, so that no module can allow it again.
fn unguarded(file: &Path, source: &str) -> Findings {
    let name = file.to_string_lossy();
    let parts: Vec<&str> = name.split('/').collect();
    let is_root =
        matches!(parts.as_slice(), ["crates", _, "src", "lib.rs" | "main.rs"] | ["tests", "all.rs" | "lib.rs"]);
    let has_unsafe_file = name == "crates/testkit/src/lib.rs";
    let guarded = source.contains("#![forbid(unsafe_code)]")
        || name.starts_with(UNSAFE_HERE[0])
        || has_unsafe_file && source.contains("#![deny(unsafe_code)]");
    if is_root && !guarded { vec![format!("{name}:1: no #![forbid(unsafe_code)]")] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn found(name: &str, source: &str) -> Findings {
        let code = code_only(source);
        let file = Path::new(name);
        [long_functions(file, source, &code), unsafe_code(file, source, &code), unguarded(file, source)].concat()
    }

    #[test]
    fn chains_of_let_are_too_young() {
        let code = "if a\n    && let Some(b) = c {}\nlet both = a && b;\nif let Some(d) = e {}";
        assert_eq!(let_chains(Path::new("x.rs"), code), ["x.rs:2: a chain of let needs Rust 1.88"]);
    }

    #[test]
    fn files_are_opened_for_writing_in_one_way() {
        let code = "fn a() {\n    fs::write(path, text)\n}\n#[cfg(test)]\nmod tests { fn b() { File::create(path) } }";
        let of = |name: &str| other_ways_to_write(Path::new(name), code);
        let place = "crates/cli/src/a.rs";
        assert_eq!(of(place), ["crates/cli/src/a.rs:2: fs::write opens files unchecked; use sys::outfile"]);
        for name in ["crates/sys/src/a.rs", "crates/cli/src/tests.rs", "crates/cli/tests/a.rs", "tests/a.rs"] {
            assert!(of(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn length_counts_from_fn_to_brace() {
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    a();\n".repeat(lines - 2));
        assert!(found("x.rs", &body(70)).is_empty());
        assert_eq!(found("x.rs", &body(71)).len(), 1);
        assert!(found("x.rs", &format!("// long: one table\n{}", body(90))).is_empty());
        assert!(found("x.rs", &format!("// long: one table\n#[test]\n{}", body(90))).is_empty());
        assert_eq!(found("x.rs", &format!("// long:\n{}", body(90))).len(), 1);
        assert_eq!(
            found("x.rs", &format!("type A = fn(u8) -> u8;\ntrait T {{ fn t(a: [u8; 4]); }}\n{}", body(71))).len(),
            1
        );
    }

    #[test]
    fn unsafe_has_its_place_and_its_proof() {
        let with = "fn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}\n";
        let without = "fn f() {\n\n    unsafe { g() }\n}\n";
        assert!(found("crates/sys/src/a.rs", with).is_empty());
        assert_eq!(found("crates/sys/src/a.rs", without).len(), 1);
        assert_eq!(found("crates/host/src/a.rs", with).len(), 1);
        assert!(found("crates/host/src/a.rs", "// unsafe is a word\nlet a = \"unsafe\";\n").is_empty());
    }

    #[test]
    fn roots_forbid() {
        assert_eq!(found("crates/host/src/lib.rs", "//! Host.\n").len(), 1);
        assert!(found("crates/host/src/lib.rs", "//! Host.\n#![forbid(unsafe_code)]\n").is_empty());
        assert!(found("crates/sys/src/lib.rs", "//! Sys.\n").is_empty());
        assert!(found("crates/testkit/src/lib.rs", "#![deny(unsafe_code)]\n").is_empty());
        assert_eq!(found("crates/host/src/lib.rs", "#![deny(unsafe_code)]\n").len(), 1);
    }
}
