//! How large the table is: two sysctls.
use sys::{Host, NetNs, SysError};

use crate::dump::Place;

/// Buckets of the host's hash table; `None` without connection tracking. The kernel tells the size that is in use, and
/// changes it under the same locks under which it moves the entries (nf_conntrack_hash_resize, 6.18).
pub(crate) fn buckets(host: &Host, place: Place<'_>) -> Option<u64> {
    read(host, place, "nf_conntrack_buckets")
}

/// Entries of the namespace, expired ones included.
pub(crate) fn entries(host: &Host, place: Place<'_>) -> Option<u64> {
    read(host, place, "nf_conntrack_count")
}

fn read(host: &Host, place: Place<'_>, name: &str) -> Option<u64> {
    let path = format!("/proc/sys/net/netfilter/{name}");
    let mut text = Vec::with_capacity(16);
    // What it says is the reading thread's namespace's: its number belongs into the name on the tape.
    let key = format!("{path}@{}", place.netns_id);
    host.bytes(&key, "", &mut text, |into| inside(place.netns, || sys::fs::read_file(&host.real_path(&path), into)))
        .ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

fn inside(netns: Option<&NetNs>, read: impl FnOnce() -> Result<(), SysError>) -> Result<(), SysError> {
    let inside = netns.map(NetNs::enter).transpose()?;
    let read = read();
    if let Some(inside) = inside {
        inside.leave()?;
    }
    read
}
