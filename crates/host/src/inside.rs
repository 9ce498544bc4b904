//! Files of /proc whose content depends on the reader's network namespace.
use sys::{Host, NetNs, SysError, fs, netns};

/// Replaces `into` with the file at `path` (as on an ordinary host) as seen from the namespace with inode `netns_id`:
/// `inside`, or the calling thread's. A recording stores the file by path and namespace.
pub(crate) fn read_inside(
    host: &Host,
    path: &str,
    netns_id: u64,
    inside: Option<&NetNs>,
    into: &mut Vec<u8>,
) -> Result<(), SysError> {
    host.bytes(&format!("{path}@{netns_id}"), "", into, |into| {
        netns::run_within(inside, || fs::read_file(&host.real_path(path), into))?
    })
}
