//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that tests run: `NETWREN_BIN`, or cargo's build next to the running test (same target folder and
/// profile; updated once per process).
///
/// # Panics
/// If it does not build.
pub fn netwren() -> &'static Path {
    static BINARY_PATH: OnceLock<PathBuf> = OnceLock::new();
    BINARY_PATH.get_or_init(|| std::env::var_os("NETWREN_BIN").map_or_else(build, PathBuf::from))
}

/// The repository's root.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Copies a program to `to` with this mode, using install(1).
///
/// This process must not write the copy itself: a child started by another test in the meantime would keep the
/// descriptor until its exec, and until then the copy could not be run (ETXTBSY).
///
/// # Panics
/// If it cannot be copied.
pub fn install(from: &Path, to: &Path, mode: u32) {
    let mut install = Command::new("install");
    let status = install.arg("-m").arg(format!("{mode:o}")).arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "cannot copy {} to {}", from.display(), to.display());
}

/// Makes an executable script at `to`; see [`install`].
///
/// # Panics
/// If it cannot be written.
pub fn install_script(to: &Path, script: &str) {
    let text = to.with_extension("text");
    std::fs::write(&text, script).unwrap_or_else(|e| panic!("cannot write {}: {e}", text.display()));
    install(&text, to, 0o755);
}

/// Builds netwren. Always calls cargo, because a stale binary would pass outdated tests. Concurrent test processes
/// wait for cargo's own lock.
fn build() -> PathBuf {
    let exe = std::env::current_exe().expect("a test has a path");
    // The path is TARGET/PROFILE/deps/NAME-HASH.
    let profile_dir = exe.ancestors().nth(2).expect("tests lie in target/PROFILE/deps");
    let target = profile_dir.parent().expect("a profile folder lies in the target folder");
    let folder = profile_dir.file_name().unwrap_or_default().to_string_lossy();
    let profile = if folder == "debug" { "dev" } else { folder.as_ref() };
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let status = Command::new(&cargo)
        // The same features as in `./netwren.sh build`.
        .args(["build", "--quiet", "--package", "netwren", "--bin", "netwren", "--features", "all-receivers"])
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
