//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that tests run: `NETWREN_BIN`, or the one that cargo builds beside the
/// running test (same target folder, same profile; brought up to date once per process).
///
/// # Panics
/// When it does not build.
pub fn netwren() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| std::env::var_os("NETWREN_BIN").map_or_else(build, PathBuf::from))
}

/// The repository's root.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Copies a program to `to` with this mode, by install(1).
///
/// Not by ourselves: a child that another test starts meanwhile would hold our descriptor until its exec, and so long
/// nobody can run the copy (ETXTBSY).
///
/// # Panics
/// When it cannot be copied.
pub fn install(from: &Path, to: &Path, mode: u32) {
    let mut install = Command::new("install");
    let status = install.arg("-m").arg(format!("{mode:o}")).arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot copy {} to {}", from.display(), to.display());
}

/// Makes a program at `to` that is this script; see [`install`].
///
/// # Panics
/// When it cannot be written.
pub fn install_script(to: &Path, script: &str) {
    let text = to.with_extension("text");
    std::fs::write(&text, script).unwrap_or_else(|e| panic!("cannot write {}: {e}", text.display()));
    install(&text, to, 0o755);
}

/// Always asks cargo: a stale binary would pass yesterday's tests. Two test processes at
/// once wait for each other at cargo's own lock.
fn build() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    // TARGET/PROFILE/deps/NAME-HASH
    let profile_dir = exe.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let target = profile_dir.parent().expect("a profile folder lies in the target folder");
    let folder = profile_dir.file_name().unwrap_or_default().to_string_lossy();
    let profile = if folder == "debug" { "dev" } else { folder.as_ref() };
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let status = Command::new(&cargo)
        // As `./netwren.sh build` builds it.
        .args(["build", "--quiet", "--package", "netwren", "--bin", "netwren", "--features", "postgres"])
        .args(["--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .env_remove("CARGO_BUILD_TARGET")
        .current_dir(workspace())
        .status()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", cargo.display()));
    assert!(status.success(), "netwren does not build ({status})");
    profile_dir.join("netwren")
}
