//! What a run of `--all-netns` may take in other network namespaces.

use crate::command::ParsedWords;
use crate::flags::parser;

/// Memory for buffers in all other network namespaces together, unless `--buffer-total` says otherwise.
const BUFFER_TOTAL: u64 = 256 << 20;
/// Descriptors that are left to everything else.
const DESCRIPTORS_LEFT: u64 = 256;

/// The bytes of `--buffer-total`. The error is about the flag.
pub(super) fn buffer_total(line: &ParsedWords<'_>) -> Result<u64, String> {
    let Some(text) = line.value("buffer-total").filter(|_| line.is_given("buffer-total")) else {
        return Ok(BUFFER_TOTAL);
    };
    if !line.has("all-netns") {
        return Err("--buffer-total goes with --all-netns: it is shared out among network namespaces".to_owned());
    }
    let bytes = parser::bytes(text).filter(|bytes| (1 << 20..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| format!("--buffer-total takes 1MiB to 1TiB, not `{text}`"))
}

/// How many network namespaces can be followed that take so many descriptors each. Raises the soft limit of open files
/// to the hard one.
pub(super) fn descriptors_for_netns(each: u64) -> u64 {
    let limit = sys::sandbox::use_open_files();
    limit.saturating_sub(DESCRIPTORS_LEFT).max(limit / 2) / each.max(1)
}
