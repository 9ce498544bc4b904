//! Privileged tests: runs them, skips them with a message, or fails if skipping is forbidden.

use std::path::Path;
use sys::caps::Cap;

/// CAP_NET_ADMIN and CAP_SYS_ADMIN, `include/uapi/linux/capability.h`.
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// True if this process has the capabilities that namespaces need.
pub fn is_privileged() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let caps = caps.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    caps & NEEDED == NEEDED
}

/// The reason why tests that need privileges cannot run here.
fn missing_privilege() -> Option<&'static str> {
    if !is_privileged() {
        return Some("needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run it as root)");
    }
    (!has_mounted_root()).then_some(PLAIN_CHROOT)
}

/// Returns true to continue; false after a message that the test is skipped, and the test must return.
///
/// # Panics
/// Without privileges under `NETWREN_REQUIRE_ROOT=1`, so that no run in CI skips tests unnoticed.
#[track_caller]
pub fn require() -> bool {
    let Some(lack) = missing_privilege() else {
        crate::watchdog::watch();
        return true;
    };
    let place = std::panic::Location::caller();
    assert!(
        std::env::var_os("NETWREN_REQUIRE_ROOT").is_none_or(|v| v != "1"),
        "NETWREN_REQUIRE_ROOT=1, but {place} {lack}"
    );
    crate::print_loud(&format!("skipped: {place} {lack}"));
    false
}

/// First line of a `root_` test: returns with a message if privileges are missing.
#[macro_export]
macro_rules! require_root {
    () => {
        if !$crate::root::require() {
            return;
        }
    };
}

/// Why tests that need privileges cannot run in a chroot into a plain folder.
const PLAIN_CHROOT: &str = "needs a root directory that is a mount point, and this chroot is a plain folder (leave \
                                it, and before you enter it again: mount --bind DIR DIR)";

/// Whether the root directory is a mount point. It always is, except in a chroot into a plain folder: there no mount
/// namespace can be made private (mount(2): EINVAL), so [`confine`](crate::sandbox::confine) with mounts and `ip netns
/// exec` fail. True if /proc does not show it.
pub(crate) fn has_mounted_root() -> bool {
    let mut text = Vec::new();
    let read = sys::fs::read_file(Path::new("/proc/thread-self/mountinfo"), &mut text);
    read.is_err() || mounts_root(&text)
}

/// The fifth field is the mount point, as seen from our root directory.
pub(crate) fn mounts_root(mountinfo: &[u8]) -> bool {
    mountinfo.split(|&b| b == b'\n').any(|line| line.split(|&b| b == b' ').nth(4) == Some(b"/"))
}

/// True if this is root with all of [`Cap::ALL`]. Otherwise prints to stderr that `what` is skipped; with
/// NETWREN_REQUIRE_ROOT=1 it panics instead, so that a missing privilege cannot look like a success. For tests
/// that need more than [`is_privileged`] checks.
pub fn root_or_skip(what: &str) -> bool {
    let is_root = sys::caps::effective().is_ok_and(|set| Cap::ALL.iter().all(|cap| set.contains(*cap)));
    let lack = match is_root {
        false => "needs root",
        true if has_mounted_root() => return true,
        true => PLAIN_CHROOT,
    };
    if std::env::var_os("NETWREN_REQUIRE_ROOT").is_some_and(|value| value == "1") {
        panic!("{what} {lack}, and NETWREN_REQUIRE_ROOT=1 forbids skipping");
    }
    crate::print_loud(&format!("skipped: {what} {lack}"));
    false
}
