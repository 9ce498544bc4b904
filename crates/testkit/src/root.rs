//! Privileged tests: runs them, skips them with a message, or fails if skipping is forbidden.

/// CAP_NET_ADMIN and CAP_SYS_ADMIN, `include/uapi/linux/capability.h`.
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// True if this process has the capabilities that namespaces need.
pub fn have() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let caps = caps.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    caps & NEEDED == NEEDED
}

/// The reason why tests that need privileges cannot run here.
fn lack() -> Option<&'static str> {
    if !have() {
        return Some("needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run it as root)");
    }
    (!sys::sandbox::has_mounted_root()).then_some(sys::sandbox::PLAIN_CHROOT)
}

/// Returns true to continue; false after a message that the test is skipped, and the test must return.
///
/// # Panics
/// Without privileges under `NETWREN_REQUIRE_ROOT=1`, so that no run in CI skips tests unnoticed.
#[track_caller]
pub fn require() -> bool {
    let Some(lack) = lack() else {
        crate::watchdog::watch();
        return true;
    };
    let place = std::panic::Location::caller();
    assert!(
        std::env::var_os("NETWREN_REQUIRE_ROOT").is_none_or(|v| v != "1"),
        "NETWREN_REQUIRE_ROOT=1, but {place} {lack}"
    );
    crate::loud(&format!("skipped: {place} {lack}"));
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
