//! Privileged tests: run, or skip loudly, or fail where a skip is forbidden.

/// CAP_NET_ADMIN and CAP_SYS_ADMIN, `include/uapi/linux/capability.h`.
const NEEDED: u64 = 1 << 12 | 1 << 21;

/// Whether this process has the capabilities that namespaces need.
pub fn have() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let caps = caps.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    caps & NEEDED == NEEDED
}

/// Why tests that need privileges cannot run here.
fn lack() -> Option<&'static str> {
    if !have() {
        return Some("needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run it as root)");
    }
    (!sys::sandbox::has_mounted_root()).then_some(sys::sandbox::PLAIN_CHROOT)
}

/// True: go on. False: the test has said that it is skipped and returns.
///
/// # Panics
/// Without privileges under `NETWREN_REQUIRE_ROOT=1`, so that no run in CI skips unseen.
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

/// First line of a `root_` test: leaves it, loudly, when there are no privileges.
#[macro_export]
macro_rules! require_root {
    () => {
        if !$crate::root::require() {
            return;
        }
    };
}
