//! Limits on what `--all-netns` may use in other network namespaces.

use crate::command::ParsedWords;

/// Bound: bytes of rings and receive buffers in all other namespaces (`--buffer-total`). Namespaces of the host come
/// first and leave a quarter to users, who share the rest equally
/// (`netns_shares::a_users_thousands_take_nothing_from_others`). Beyond: buffers become smaller, then namespaces are
/// left out and counted (exit code 3). By: a user who makes namespaces, for that user's namespaces; root in a container
/// without a user namespace, for all.
const BUFFER_TOTAL: u64 = 256 << 20;
/// Descriptors reserved for everything else.
const DESCRIPTORS_LEFT: u64 = 256;

/// Returns `--buffer-total` in bytes. Errors name the flag.
pub(super) fn buffer_total(line: &ParsedWords<'_>) -> Result<u64, String> {
    if line.is_given("buffer-total") && !line.has("all-netns") {
        return Err("--buffer-total needs --all-netns: it is shared among network namespaces".to_owned());
    }
    Ok(line.bytes("buffer-total", 1 << 20..=1 << 40)?.unwrap_or(BUFFER_TOTAL))
}

/// Returns how many network namespaces can be followed if each takes `each` descriptors. Raises the soft limit on open
/// files to the hard limit.
pub(super) fn descriptors_for_netns(each: u64) -> u64 {
    let limit = sys::rights::use_open_files();
    limit.saturating_sub(DESCRIPTORS_LEFT).max(limit / 2) / each.max(1)
}
