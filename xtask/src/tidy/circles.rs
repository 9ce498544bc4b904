//! Finds files of a crate that use each other in a circle.
//!
//! File A imports file B if A names an item that B declares, in a `use` or in a path; a re-export leads on to the file
//! that declares the item. Three things are not imports:
//! - code under `#[cfg(test)]`;
//! - `mod child;` and `pub use child::Item;`, which only locate an item;
//! - uses between a module and a module inside it. The outer module contains the inner one, which sees its private
//!   items, so a reader opens both in any case.

use super::Findings;
use super::imports::{Crate, Import};
use super::items::SourceFile;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates of the repository that have sources.
pub(super) fn crates(sources: &[SourceFile]) -> Vec<Crate<'_>> {
    let folders: BTreeSet<PathBuf> = sources.iter().filter_map(|source| source_folder(&source.file)).collect();
    folders.iter().map(|folder| Crate::new(folder, sources)).collect()
}

/// One finding for each circle, listing its imports.
pub(super) fn check(sources: &[SourceFile]) -> Findings {
    crates(sources).iter().flat_map(circles).collect()
}

/// `crates/NAME/src`, `xtask/src`.
fn source_folder(file: &Path) -> Option<PathBuf> {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["crates", name, "src", ..] => Some(Path::new("crates").join(name).join("src")),
        ["xtask", "src", ..] => Some(PathBuf::from("xtask/src")),
        _ => None,
    }
}

fn circles(krate: &Crate<'_>) -> Findings {
    let mut imports = krate.imports();
    imports.retain(|import| !krate.is_inside(import.from, import.to));
    let edges: Vec<(usize, usize)> = imports.iter().map(|import| (import.from, import.to)).collect();
    groups(krate.len(), &edges).iter().map(|circle| describe(krate, &imports, circle)).collect()
}

/// The groups of nodes that lead to each other.
pub(super) fn groups(len: usize, edges: &[(usize, usize)]) -> BTreeSet<BTreeSet<usize>> {
    let reach = reachable(len, edges);
    let group = |(at, leads): (usize, &Vec<bool>)| (0..len).filter(|to| leads[*to] && reach[*to][at]).collect();
    reach.iter().enumerate().map(group).filter(|group: &BTreeSet<usize>| !group.is_empty()).collect()
}

fn describe(krate: &Crate<'_>, imports: &[Import], circle: &BTreeSet<usize>) -> String {
    let first = circle.first().map_or(Path::new(""), |at| krate.file(*at));
    let mut text = format!("{}:1: {} files use each other", first.display(), circle.len());
    let inside = imports.iter().filter(|import| circle.contains(&import.from) && circle.contains(&import.to));
    for import in inside {
        let (from, to) = (krate.file(import.from).display(), krate.file(import.to).display());
        text.push_str(&format!("\n    {from}:{}: {} is in {to}", import.line, import.what));
    }
    text
}

/// Which node leads to which, directly or through other nodes.
fn reachable(len: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; len]; len];
    edges.iter().for_each(|(from, to)| reach[*from][*to] = true);
    for through in 0..len {
        let further = reach[through].clone();
        for from in reach.iter_mut().filter(|from| from[through]) {
            from.iter_mut().zip(&further).for_each(|(to, leads)| *to |= leads);
        }
    }
    reach
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// The findings for a crate with these files.
    fn found(files: &[(&str, &str)]) -> Findings {
        let parse = |(file, source): &(&str, &str)| SourceFile::parse(Path::new("crates/x/src").join(file), source);
        check(&files.iter().map(parse).collect::<Vec<_>>())
    }

    #[test]
    fn two_files_in_a_circle() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let uses_b = ("a.rs", "use crate::b::B;\npub struct A;\n");
        let findings = found(&[lib, uses_b, ("b.rs", "pub struct B;\nfn f() { super::a::A; }\n")]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].contains("a.rs:1: crate::b::B is in crates/x/src/b.rs"), "{findings:?}");
        assert!(findings[0].contains("b.rs:2: super::a::A is in crates/x/src/a.rs"), "{findings:?}");
        assert!(
            found(&[lib, uses_b, ("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n")]).is_empty()
        );
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_declares() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
        let a = ("a/mod.rs", "mod one;\nmod two;\npub use one::One;\npub use two::{Two, self as second};\n");
        let c = ("c.rs", "pub struct C;\n");
        let b = ("b.rs", "use crate::a::{One, second};\npub struct B;\nfn f() { second::two() }\n");
        let two = "pub struct Two;\npub fn two() {}\n";
        assert!(found(&[lib, a, b, c, ("a/one.rs", "pub struct One;\n"), ("a/two.rs", two)]).is_empty());
        let one = ("a/one.rs", "pub struct One;\nuse crate::b::*;\n");
        assert_eq!(found(&[lib, a, b, c, one, ("a/two.rs", two)]).len(), 1);
        let two = ("a/two.rs", "use crate::b;\npub struct Two;\npub fn two() { b::B; }\n");
        assert_eq!(found(&[lib, a, b, c, ("a/one.rs", "pub struct One;\n"), two]).len(), 1);
    }

    #[test]
    fn a_module_and_what_is_inside_are_no_circle() {
        let lib = ("lib.rs", "mod a;\n");
        let a = ("a/mod.rs", "mod one;\nuse one::One;\npub struct A(One);\n");
        assert!(found(&[lib, a, ("a/one.rs", "use super::A;\npub struct One;\n")]).is_empty());
    }
}
