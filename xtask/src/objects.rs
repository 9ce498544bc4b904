//! BPF objects: built from crates/bpf/c and committed in crates/bpf/objects, so that users need no clang.
//!
//! The bytes are reproducible with one compiler only: another major version generates different code.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler that builds the committed bytes.
const CLANG: &str = "14";
/// The largest object; objects are part of every binary.
const BYTES_MAX: u64 = 176 * 1024;
const SOURCES: &str = "crates/bpf/c";
const OBJECTS: &str = "crates/bpf/objects";

/// `cargo xtask bpf`: rebuilds every object.
pub(crate) fn run(any_clang: bool) -> Result<()> {
    let Some(tools) = Tools::find(any_clang)? else {
        bail!(
            "clang {CLANG} and llvm-strip {CLANG} are needed (apt install clang-{CLANG} llvm-{CLANG}); --any-clang \
                takes another"
        )
    };
    std::fs::create_dir_all(root::path().join(OBJECTS))?;
    for source in sources()? {
        let object = root::path().join(OBJECTS).join(object_name(&source));
        let bytes = tools.build(&source)?;
        let same = std::fs::read(&object).is_ok_and(|old| old == bytes);
        println!("bpf: {}: {} bytes{}", object_name(&source), bytes.len(), if same { "" } else { ", changed" });
        std::fs::write(&object, bytes).with_context(|| object.display().to_string())?;
    }
    Ok(())
}

/// For `tidy`: reports objects without source, objects that are too large and, with the right compiler, objects whose
/// bytes differ.
pub(crate) fn check() -> Result<Vec<String>> {
    let sources = sources()?;
    let mut findings = Vec::new();
    let tools = Tools::find(false)?;
    if tools.is_none() {
        println!("tidy: BPF OBJECTS NOT COMPARED with their sources: no clang {CLANG} and llvm-strip {CLANG} here");
    }
    for source in &sources {
        let name = format!("{OBJECTS}/{}", object_name(source));
        let Ok(committed) = std::fs::read(root::path().join(&name)) else {
            findings.push(format!("{name}: missing (cargo xtask bpf)"));
            continue;
        };
        if committed.len() as u64 > BYTES_MAX {
            findings.push(format!("{name}: {} bytes, at most {BYTES_MAX}", committed.len()));
        }
        if let Some(tools) = &tools {
            if tools.build(source)? != committed {
                findings.push(format!("{name}: not what its source gives (cargo xtask bpf)"));
            }
        }
    }
    let objects = std::fs::read_dir(root::path().join(OBJECTS)).with_context(|| OBJECTS)?;
    for object in objects {
        let name = object?.file_name().to_string_lossy().into_owned();
        if !sources.iter().any(|source| object_name(source) == name) {
            findings.push(format!("{OBJECTS}/{name}: without a source in {SOURCES}"));
        }
    }
    Ok(findings)
}

/// All `*.bpf.c` files, sorted.
fn sources() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root::path().join(SOURCES)).with_context(|| SOURCES)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".bpf.c") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `x.bpf.c` → `x.o`
fn object_name(source: &Path) -> String {
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    format!("{}.o", name.trim_end_matches(".bpf.c"))
}

struct Tools {
    clang: String,
    strip: String,
}

impl Tools {
    fn find(any: bool) -> Result<Option<Tools>> {
        let clang = [format!("clang-{CLANG}"), "clang".to_owned()].into_iter().find(|name| is_version(name, any));
        let strip = [format!("llvm-strip-{CLANG}"), "llvm-strip".to_owned()];
        let strip = strip.into_iter().find(|name| is_version(name, any));
        Ok(clang.zip(strip).map(|(clang, strip)| Tools { clang, strip }))
    }

    /// Builds an object and returns its stripped bytes. `-g` generates the types and line information; sections that
    /// only debuggers need are then stripped.
    fn build(&self, source: &Path) -> Result<Vec<u8>> {
        let name = object_name(source);
        // The name contains the source as well as the process, because tests build several objects in parallel.
        let object = std::env::temp_dir().join(format!("netwren-bpf-{}-{name}", std::process::id()));
        let folder = root::path().join(SOURCES);
        let mut clang = Command::new(&self.clang);
        clang.current_dir(&folder).args(["-O2", "-g", "-mcpu=v3", "-target", "bpf", "-nostdinc", "-Wall", "-Wextra"]);
        clang.args(["-Werror", "-Wno-unused-parameter", "-Wno-unused-const-variable"]);
        clang.arg(format!("-ffile-prefix-map={}=.", folder.display()));
        clang.arg("-c").arg(source.file_name().context("a source without a name")?).arg("-o").arg(&object);
        let built = succeed(clang).and_then(|()| {
            let mut strip = Command::new(&self.strip);
            strip.arg("-g").arg(&object);
            succeed(strip)?;
            Ok(std::fs::read(&object)?)
        });
        let _ = std::fs::remove_file(&object);
        built
    }
}

fn succeed(mut command: Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn is_version(program: &str, any: bool) -> bool {
    let Ok(output) = Command::new(program).arg("--version").output() else { return false };
    output.status.success() && (any || names_version(&String::from_utf8_lossy(&output.stdout), CLANG))
}

/// `Debian clang version 14.0.6`, `Debian LLVM version 14.0.6`
fn names_version(text: &str, wanted: &str) -> bool {
    let number = text.split("version ").nth(1).unwrap_or_default();
    number.split('.').next() == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_names() {
        assert!(names_version("Debian clang version 14.0.6\nTarget: x", "14"));
        assert!(names_version("llvm-strip, compatible with GNU strip\nDebian LLVM version 14.0.6", "14"));
        assert!(!names_version("clang version 19.1.7", "14") && !names_version("", "14"));
        assert_eq!(object_name(Path::new("a/sockets_walk.bpf.c")), "sockets_walk.o");
    }

    #[test]
    fn every_source_has_its_object() {
        assert_eq!(check().unwrap_or_default(), Vec::<String>::new());
    }
}
