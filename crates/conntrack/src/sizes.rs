//! How large the table is: two sysctls.
use sys::{Host, NetNs};

const BUCKETS: &str = "nf_conntrack_buckets";
const COUNT: &str = "nf_conntrack_count";

/// Buckets of the host's hash table; `None` without connection tracking.
pub(crate) fn buckets(host: &Host, netns: Option<&NetNs>) -> Option<u64> {
    read(host, netns, BUCKETS)
}

/// Entries of the namespace, and buckets of the host's hash table.
pub(crate) fn of(host: &Host, netns: Option<&NetNs>) -> Option<(u64, u64)> {
    Some((read(host, netns, COUNT)?, read(host, netns, BUCKETS)?))
}

fn read(host: &Host, netns: Option<&NetNs>, name: &str) -> Option<u64> {
    let mut text = Vec::with_capacity(16);
    let inside = netns.filter(|_| !host.is_replay()).map(NetNs::enter).transpose().ok()?;
    let read = host.read_file(&format!("/proc/sys/net/netfilter/{name}"), &mut text);
    if let Some(inside) = inside {
        inside.leave().ok()?;
    }
    read.ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}
