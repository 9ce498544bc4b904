//! Control groups with BPF programs that decide on packets.

use record::Proto;

/// A cgroup with such programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupSeen {
    /// Its path below the mount point; `/` for the root.
    pub path: String,
    /// Number of its programs for received packets.
    pub ingress: u32,
    /// Number of its programs for packets to send.
    pub egress: u32,
}

impl CgroupSeen {
    /// True if its programs also decide for sockets of the cgroup `path`.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.path.trim_end_matches('/'));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }
}

/// The cgroup of a socket whose packets were dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketCgroup {
    /// Its protocol.
    pub proto: Proto,
    /// Its local port.
    pub port: u16,
    /// The path of the cgroup in which it was made.
    pub path: String,
}
