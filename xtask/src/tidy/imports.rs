//! Finds which file of a crate uses items of which other file of that crate.

use super::items::SourceFile;
use super::scan::{is_word, line_of, words};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of one crate as modules.
pub(super) struct Crate<'s> {
    modules: Vec<Module<'s>>,
    by_path: BTreeMap<Vec<String>, usize>,
}

struct Module<'s> {
    source: &'s SourceFile,
    path: Vec<String>,
    declared: BTreeSet<&'s str>,
    uses: Vec<Use>,
}

/// One name bound by a `use`.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    /// `*` for a glob.
    name: String,
    path: Vec<String>,
    line: usize,
    is_public: bool,
}

/// One file uses an item of another file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Line in the importing file.
    pub(super) line: usize,
    /// The path as written in that file.
    pub(super) what: String,
}

/// Longest chain of names that refer to other names; no chain in the repository is longer.
const CHAIN_MAX: u8 = 8;

impl<'s> Crate<'s> {
    /// The modules below `src`, a crate's source folder, without modules for tests.
    pub(super) fn new(src: &Path, files: &'s [SourceFile]) -> Crate<'s> {
        let inside = files.iter().filter_map(|file| Some((module_path(file.file.strip_prefix(src).ok()?)?, file)));
        let found: BTreeMap<Vec<String>, &SourceFile> = inside.collect();
        let of_tests = |path: &[String]| {
            (1..=path.len()).any(|n| {
                let parent = found.get(&path[..n - 1]);
                parent.is_some_and(|parent| parent.test_modules.contains(&path[n - 1]))
            })
        };
        let shipped = found.iter().filter(|(path, _)| !of_tests(path));
        let modules: Vec<Module<'s>> = shipped.map(|(path, source)| Module::new(path.clone(), source)).collect();
        let by_path = modules.iter().enumerate().map(|(at, module)| (module.path.clone(), at)).collect();
        Crate { modules, by_path }
    }

    /// The number of files.
    pub(super) fn len(&self) -> usize {
        self.modules.len()
    }

    /// The file of module `at`.
    pub(super) fn file(&self, at: usize) -> &'s Path {
        &self.modules[at].source.file
    }

    /// The names that lead from the root of the crate to module `at`.
    pub(super) fn path(&self, at: usize) -> &[String] {
        &self.modules[at].path
    }

    /// True if one of the two modules contains the other.
    pub(super) fn is_inside(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.modules[a].path, &self.modules[b].path);
        a.starts_with(b) || b.starts_with(a)
    }

    /// Every use of an item of another file; for each pair of files, the first line.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut found: BTreeMap<(usize, usize), Import> = BTreeMap::new();
        for from in 0..self.modules.len() {
            for import in self.uses_of(from).chain(self.paths_of(from)) {
                found.entry((from, import.to)).or_insert(import);
            }
        }
        found.into_values().collect()
    }

    fn uses_of(&self, from: usize) -> impl Iterator<Item = Import> + '_ {
        self.modules[from].uses.iter().filter_map(move |one| {
            let (to, is_module) = self.resolve(from, &one.path, CHAIN_MAX)?;
            let is_glob = one.name == "*";
            let is_re_export = one.is_public && self.modules[to].path.starts_with(&self.modules[from].path);
            let counts = to != from && (!is_module || is_glob) && !is_re_export;
            counts.then(|| Import { from, to, line: one.line, what: one.path.join("::") })
        })
    }

    /// Paths in code: `crate::a::B`, `super::c()`, `child::D`, `imported_module::e()`.
    fn paths_of(&self, from: usize) -> impl Iterator<Item = Import> + '_ {
        let code = &self.modules[from].source.code;
        paths(code).filter_map(move |(at, path)| {
            let (to, _) = self.resolve(from, &path, CHAIN_MAX)?;
            (to != from).then(|| Import { from, to, line: line_of(code, at), what: path.join("::") })
        })
    }

    /// The file that declares what `path` means in module `at`, and true if `path` is that whole module. `None` if the
    /// path leads to another crate.
    fn resolve(&self, at: usize, path: &[String], chain: u8) -> Option<(usize, bool)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.descend(self.module(&[])?, rest, chain),
            "self" => self.descend(at, rest, chain),
            "super" => self.descend(self.module(self.modules[at].path.split_last()?.1)?, rest, chain),
            name => self.bound(at, name, rest, chain),
        }
    }

    /// Resolves a path whose first name is bound in module `at` by a `use` or as a child module.
    fn bound(&self, at: usize, name: &str, rest: &[String], chain: u8) -> Option<(usize, bool)> {
        let module = &self.modules[at];
        if let Some(one) = module.uses.iter().find(|one| one.name == name) {
            let path: Vec<String> = one.path.iter().chain(rest).cloned().collect();
            // `use a::{self}` where `a` is a crate binds its own name.
            return if one.path[0] == name { None } else { self.resolve(at, &path, chain.checked_sub(1)?) };
        }
        let child = self.child(at, name)?;
        self.descend(child, rest, chain)
    }

    fn descend(&self, at: usize, path: &[String], chain: u8) -> Option<(usize, bool)> {
        let Some((name, rest)) = path.split_first() else { return Some((at, true)) };
        if name == "super" {
            return self.descend(self.module(self.modules[at].path.split_last()?.1)?, rest, chain);
        }
        if let Some(child) = self.child(at, name) {
            return self.descend(child, rest, chain);
        }
        let module = &self.modules[at];
        if module.declared.contains(name.as_str()) {
            return Some((at, false));
        }
        if name == "*" {
            return Some((at, true));
        }
        let next = chain.checked_sub(1)?;
        let named = module.uses.iter().find(|one| one.name == *name);
        if let Some(one) = named {
            let whole: Vec<String> = one.path.iter().chain(rest).cloned().collect();
            return self.resolve(at, &whole, next);
        }
        let globs =
            module.uses.iter().filter(|one| one.name == "*").filter_map(|one| self.resolve(at, &one.path, next));
        let through = globs.map(|(to, _)| to).find(|to| self.modules[*to].declared.contains(name.as_str()));
        Some((through.unwrap_or(at), false))
    }

    fn module(&self, path: &[String]) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    fn child(&self, at: usize, name: &str) -> Option<usize> {
        let path: Vec<String> =
            self.modules[at].path.iter().map(String::as_str).chain([name]).map(str::to_owned).collect();
        self.module(&path)
    }
}

impl<'s> Module<'s> {
    fn new(path: Vec<String>, source: &'s SourceFile) -> Module<'s> {
        let declared = source.items.iter().filter(|item| item.is_top_level).map(|item| item.name.as_str()).collect();
        Module { source, path, declared, uses: uses(&source.code) }
    }
}

/// `a/b.rs` and `a/b/mod.rs` are `[a, b]`; `lib.rs` and `main.rs` are the root. `None` for programs in `bin`.
fn module_path(file: &Path) -> Option<Vec<String>> {
    let mut path: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    match path.last()?.as_str() {
        "mod" => path.truncate(path.len() - 1),
        "lib" | "main" if path.len() == 1 => path.clear(),
        _ => {}
    }
    (path.first().map(String::as_str) != Some("bin")).then_some(path)
}

/// Every name bound by a `use` of the file.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for at in words(code, "use") {
        let Some(tree) = code[at + 3..].split(';').next() else { continue };
        let before = code[..at].rsplit(['\n', ';', '}', '{']).next().unwrap_or_default();
        let is_public = before.trim_start().starts_with("pub");
        let line = line_of(code, at);
        flatten(&[], tree, &mut |name, path| found.push(Use { name, path, line, is_public }));
    }
    found
}

/// Calls `each` with the bound name and the whole path of every leaf of a use tree.
fn flatten(prefix: &[String], tree: &str, each: &mut impl FnMut(String, Vec<String>)) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let path: Vec<String> = prefix.iter().cloned().chain(segments(head)).collect();
        let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
        split_top(inner).for_each(|part| flatten(&path, part, each));
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path: Vec<String> = prefix.iter().cloned().chain(segments(path)).collect();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        each(alias.map_or(last, str::to_owned), path);
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned)
}

/// The parts between commas outside braces.
fn split_top(tree: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = tree.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// Paths of two or more segments outside `use`, with their offsets.
fn paths(code: &str) -> impl Iterator<Item = (usize, Vec<String>)> + '_ {
    let bytes = code.as_bytes();
    code.match_indices("::").filter_map(move |(at, _)| {
        let start = bytes[..at].iter().rposition(|byte| !is_word(*byte)).map_or(0, |n| n + 1);
        let is_first = start < at && !code[..start].ends_with("::");
        let statement = code[..start].rsplit([';', '}']).next().unwrap_or_default();
        if !is_first || words(statement, "use").next().is_some() {
            return None;
        }
        let end = bytes[at..].iter().position(|byte| !is_word(*byte) && *byte != b':').map_or(bytes.len(), |n| at + n);
        Some((start, segments(&code[start..end]).collect()))
    })
}
