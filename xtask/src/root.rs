//! The repository's root folder, files and commands.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root folder.
pub(crate) fn path() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Runs a command at the root; returns its stdout, or an error if it fails.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = Command::new(program).args(args).current_dir(path()).output();
    let out = out.with_context(|| format!("cannot run {program}"))?;
    let says = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{program} {}: {}\n{says}", args.join(" "), out.status);
    Ok(String::from_utf8(out.stdout)?)
}

/// Every file that is or would be committed, relative to the root, sorted.
pub(crate) fn files() -> Result<Vec<PathBuf>> {
    let list = output("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let mut files: Vec<PathBuf> = list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    // Files that are deleted, but whose deletion is not committed, do not count.
    files.retain(|file| path().join(file).symlink_metadata().is_ok());
    Ok(files)
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
