//! The list in packaging/files.toml, and the files that it names.

use crate::root;
use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use std::io::Write;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Where a list of files is installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Deb,
    Rpm,
    /// An archive to unpack anywhere.
    Tar,
    /// A container's root: the program alone.
    Image,
    /// `./netwren.sh install`: paths below a prefix.
    Prefix,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Program,
    Man,
    Doc,
    License,
    Unit,
    Config,
    Data,
    /// A symbolic link; its content is the target.
    Link,
}

/// Folder of the links with the names of the old tools, below the prefix. It is not in PATH: a user who wants them adds
/// it.
const FACES: &str = "lib/netwren/faces";

/// The program as seen from there.
const FACES_TARGET: &str = "../../../bin/netwren";

/// A file to install.
pub(super) struct PackagedFile {
    /// Path without a leading slash.
    pub(super) path: String,
    /// Permissions.
    pub(super) mode: u32,
    pub(super) kind: Kind,
    pub(super) content: Vec<u8>,
    /// The file in the repository.
    pub(super) source: PathBuf,
}

/// The texts about the package.
pub(super) struct About {
    pub(super) name: String,
    pub(super) maintainer: String,
    pub(super) summary: String,
    pub(super) description: String,
}

/// The list.
pub(super) struct List {
    pub(super) about: About,
    files: Vec<Entry>,
}

/// A `[[file]]` of the list.
struct Entry {
    source: String,
    path: String,
    deb: Option<String>,
    kind: Kind,
}

impl List {
    pub(super) fn read() -> Result<List> {
        let path = root::path().join("packaging/files.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let list = DeTable::parse(&text).with_context(|| path.display().to_string())?.into_inner();
        let about = list.get("package").and_then(|value| value.get_ref().as_table());
        let about = about.context("files.toml lacks [package]")?;
        let files =
            list.get("file").and_then(|value| value.get_ref().as_array()).context("files.toml lacks [[file]]")?;
        let files = files.iter().map(|file| entry(file.get_ref())).collect::<Result<_>>()?;
        let word = |key| text_of(about, key).map(|text| text.trim().to_owned());
        let about = About {
            name: word("name")?,
            maintainer: word("maintainer")?,
            summary: word("summary")?,
            description: word("description")?,
        };
        Ok(List { about, files })
    }

    /// The files of this layout in the order of their paths, with `binary` as the program.
    pub(super) fn files(&self, layout: Layout, binary: &Path) -> Result<Vec<PackagedFile>> {
        let mut files = Vec::new();
        for entry in &self.files {
            let Entry { source, kind, .. } = entry;
            let kind = *kind;
            let Some(path) = place(entry, layout).filter(|_| layout != Layout::Image || kind == Kind::Program) else {
                continue;
            };
            let is_several = source.contains('*');
            let sources = if kind == Kind::Program { vec![binary.to_owned()] } else { matching(source)? };
            ensure!(!sources.is_empty(), "no file is called {source}");
            for source in sources {
                let name = source.file_name().context("a file has a name")?.to_string_lossy();
                let path = if is_several { format!("{path}/{name}") } else { path.clone() };
                let content = std::fs::read(&source).with_context(|| source.display().to_string())?;
                let file = PackagedFile {
                    path,
                    mode: if kind == Kind::Program { 0o755 } else { 0o644 },
                    kind,
                    content,
                    source,
                };
                files.push(if is_compressed(kind, layout) { compressed(file)? } else { file });
            }
        }
        let links = faces::FACES.iter().filter_map(|face| link(face.name, layout));
        files.extend(links);
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }
}

/// Returns the link with the name of an old tool; `None` for a layout without links.
fn link(name: &str, layout: Layout) -> Option<PackagedFile> {
    let path = match layout {
        Layout::Deb | Layout::Rpm => format!("usr/{FACES}/{name}"),
        Layout::Tar => format!("{FACES}/{name}"),
        Layout::Image | Layout::Prefix => return None,
    };
    Some(PackagedFile { path, mode: 0o777, kind: Kind::Link, content: FACES_TARGET.into(), source: PathBuf::new() })
}

/// Where the layout has it; `None` if it lacks the file.
fn place(entry: &Entry, layout: Layout) -> Option<String> {
    let path = entry.deb.as_ref().filter(|_| layout == Layout::Deb).unwrap_or(&entry.path);
    match (path.strip_prefix('/'), layout) {
        (Some(_), Layout::Prefix) => None,
        (Some(path), Layout::Tar) => Some(path.strip_prefix("usr/").unwrap_or(path).to_owned()),
        (Some(path), _) => Some(path.to_owned()),
        (None, Layout::Prefix | Layout::Tar) => Some(path.to_owned()),
        (None, _) => Some(format!("usr/{path}")),
    }
}

fn entry(value: &DeValue<'_>) -> Result<Entry> {
    let table = value.as_table().context("[[file]] is a table")?;
    let kind = match text_of(table, "kind")? {
        "program" => Kind::Program,
        "man" => Kind::Man,
        "doc" => Kind::Doc,
        "license" => Kind::License,
        "unit" => Kind::Unit,
        "config" => Kind::Config,
        "data" => Kind::Data,
        other => anyhow::bail!("files.toml: unknown kind `{other}`"),
    };
    let text = |key| text_of(table, key).map(str::to_owned);
    Ok(Entry { source: text("source")?, path: text("path")?, deb: text("deb").ok(), kind })
}

fn text_of<'t>(table: &'t DeTable<'_>, key: &str) -> Result<&'t str> {
    let value = table.get(key).and_then(|value| value.get_ref().as_str());
    value.with_context(|| format!("files.toml: `{key}` is missing, or no text"))
}

/// The files of a pattern with at most one `*` in its last part, sorted.
fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let whole = root::path().join(pattern);
    let Some((before, after)) = pattern.rsplit('/').next().and_then(|name| name.split_once('*')) else {
        return Ok(vec![whole]);
    };
    let folder = whole.parent().context("a pattern has a folder")?;
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = file?;
        let name = file.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(before) && name.ends_with(after)) {
            found.push(file.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Debian compresses manual pages and the changelog; rpm compresses manual pages.
fn is_compressed(kind: Kind, layout: Layout) -> bool {
    match layout {
        Layout::Deb => matches!(kind, Kind::Man | Kind::Doc),
        Layout::Rpm => kind == Kind::Man,
        Layout::Tar | Layout::Image | Layout::Prefix => false,
    }
}

fn compressed(file: PackagedFile) -> Result<PackagedFile> {
    Ok(PackagedFile { path: format!("{}.gz", file.path), content: gzip(&file.content)?, ..file })
}

/// Compressed without a name and a time, so that the same content gives the same bytes.
pub(crate) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut out = GzBuilder::new().write(Vec::new(), Compression::best());
    out.write_all(content)?;
    Ok(out.finish()?)
}
