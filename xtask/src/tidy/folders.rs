//! Finds folders of a crate that use each other in a circle.
//!
//! A folder is a module with the modules inside it. Modules next to each other form a circle if files of each lead to
//! files of all others: no folder among them can be read first. The imports are those of `circles.rs`, which reports
//! circles of single files.

use super::Findings;
use super::circles::{crates, groups};
use super::imports::{Crate, Import};
use super::items::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// One finding for each circle, listing its imports.
pub(super) fn check(sources: &[SourceFile]) -> Findings {
    crates(sources).iter().flat_map(circles).collect()
}

/// An import between two modules of the same folder, or between files inside them.
struct Edge<'c> {
    from: &'c str,
    to: &'c str,
    import: Import,
}

fn circles(krate: &Crate<'_>) -> Findings {
    let mut folders: BTreeMap<&[String], Vec<Edge<'_>>> = BTreeMap::new();
    for import in krate.imports() {
        let (from, to) = (krate.path(import.from), krate.path(import.to));
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
            folders.entry(&from[..common]).or_default().push(Edge { from: a, to: b, import });
        }
    }
    folders.values().flat_map(|edges| of_folder(krate, edges)).collect()
}

/// The circles among the modules of one folder.
fn of_folder(krate: &Crate<'_>, edges: &[Edge<'_>]) -> Findings {
    let names: BTreeSet<&str> = edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let index = |name: &str| names.binary_search(&name).unwrap_or_default();
    let pairs: Vec<(usize, usize)> = edges.iter().map(|edge| (index(edge.from), index(edge.to))).collect();
    let circles = groups(names.len(), &pairs);
    circles
        .iter()
        .filter_map(|circle| {
            let inside = |name| circle.contains(&index(name));
            let inside: Vec<&Edge<'_>> = edges.iter().filter(|edge| inside(edge.from) && inside(edge.to)).collect();
            describe(krate, circle.iter().map(|at| names[*at]).collect(), &inside)
        })
        .collect()
}

/// The finding of a circle; `None` if files form the same circle, which `circles.rs` reports.
fn describe(krate: &Crate<'_>, names: Vec<&str>, edges: &[&Edge<'_>]) -> Option<String> {
    let files: BTreeSet<usize> = edges.iter().flat_map(|edge| [edge.import.from, edge.import.to]).collect();
    if files.len() <= names.len() {
        return None;
    }
    let first = krate.file(edges.first()?.import.from).display();
    let mut text = format!("{first}:1: {} folders use each other: {}", names.len(), names.join(", "));
    for Edge { import, .. } in edges {
        let (from, to) = (krate.file(import.from).display(), krate.file(import.to).display());
        text.push_str(&format!("\n    {from}:{}: {} is in {to}", import.line, import.what));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::path::Path;

    fn found(files: &[(&str, &str)]) -> Findings {
        let parse = |(file, source): &(&str, &str)| SourceFile::parse(Path::new("crates/x/src").join(file), source);
        check(&files.iter().map(parse).collect::<Vec<_>>())
    }

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\n");
    const A: (&str, &str) = ("a/mod.rs", "mod one;\nmod two;\npub use two::Two;\n");
    const B: (&str, &str) = ("b/mod.rs", "pub mod three;\npub struct B;\n");

    #[test]
    fn folders_in_a_circle_without_a_circle_of_files() {
        let one = ("a/one.rs", "use crate::b::three::Three;\n");
        let (two, three) =
            (("a/two.rs", "pub struct Two;\n"), ("b/three.rs", "use crate::a::Two;\npub struct Three;\n"));
        let findings = found(&[LIB, A, B, one, two, three]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].contains("2 folders use each other: a, b"), "{findings:?}");
        assert!(findings[0].contains("b/three.rs:1: crate::a::Two is in crates/x/src/a/two.rs"), "{findings:?}");
        assert!(found(&[LIB, A, B, one, two, ("b/three.rs", "pub struct Three;\n")]).is_empty());
    }

    #[test]
    fn circles_of_files_and_uses_inside_a_folder_are_no_circles_of_folders() {
        let (a, b) = (("a.rs", "use crate::b::B;\npub struct A;\n"), ("b.rs", "use crate::a::A;\npub struct B;\n"));
        assert!(found(&[LIB, a, b]).is_empty());
        let (one, two) = (("a/one.rs", "use super::Two;\n"), ("a/two.rs", "pub struct Two;\n"));
        assert!(found(&[LIB, A, one, two]).is_empty());
    }
}
