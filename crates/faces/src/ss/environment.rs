//! Resolves the names of services, hosts, interfaces and cgroups on a command line.

use record::{Addr, Proto};

/// Resolves the names of an expression, in the namespace whose sockets are listed.
pub(super) trait Environment {
    /// The port of a service.
    fn service(&self, name: &str, proto: Proto) -> Option<u16>;
    /// The addresses of a host; empty if the name is unknown.
    fn host(&self, name: &str) -> Vec<Addr>;
    /// The index of an interface.
    fn iface_index(&self, name: &[u8]) -> Option<u32>;
    /// The name of an interface.
    fn iface_name(&self, index: u32) -> Option<Vec<u8>>;
    /// The id of a cgroup (v2) by its path; the error is ss's message.
    fn cgroup(&self, path: &[u8]) -> Result<u64, String>;
    /// The number of TCP sockets in the namespace; may be inexact below `least`.
    fn tcp_sockets(&self, least: u64) -> u64;
}

/// An environment for tests.
#[cfg(test)]
pub(super) struct TestEnvironment;

#[cfg(test)]
impl Environment for TestEnvironment {
    fn service(&self, name: &str, proto: Proto) -> Option<u16> {
        match (name, proto) {
            ("ssh", Proto::Tcp) => Some(22),
            ("domain", _) => Some(53),
            ("who", Proto::Tcp) => Some(513),
            ("who", Proto::Udp) => Some(514),
            _ => None,
        }
    }
    fn host(&self, name: &str) -> Vec<Addr> {
        match name {
            "localhost" => vec![Addr::V4([127, 0, 0, 1])],
            _ => Vec::new(),
        }
    }
    fn iface_index(&self, name: &[u8]) -> Option<u32> {
        (name == b"eth0").then_some(2)
    }
    fn iface_name(&self, index: u32) -> Option<Vec<u8>> {
        (index == 2).then(|| b"eth0".to_vec())
    }
    fn cgroup(&self, path: &[u8]) -> Result<u64, String> {
        if path == b"/a" { Ok(77) } else { Err("Failed to get cgroup2 ID: No such file or directory".into()) }
    }
    fn tcp_sockets(&self, _least: u64) -> u64 {
        7
    }
}
