//! Resolves services, hosts, interfaces and cgroups in the session's namespace.

use super::environment::Environment;
use host::{LocalPorts, PortRanges};
use lookups::lazy_ifaces::LazyIfaces;
use lookups::session::Session;
use record::{Addr, Proto};
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The environment of the running machine.
pub(super) struct Live<'s> {
    session: &'s Session,
    ifaces: &'s LazyIfaces<'s>,
    ports: OnceCell<LocalPorts>,
}

impl<'s> Live<'s> {
    pub(super) fn new(session: &'s Session, ifaces: &'s LazyIfaces<'s>) -> Live<'s> {
        Live { session, ifaces, ports: OnceCell::new() }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        let mut text = Vec::new();
        // A missing file contains no names.
        let _ = self.session.host().read_file(path, &mut text);
        text
    }
}

impl Environment for Live<'_> {
    fn service(&self, name: &str, proto: Proto) -> Option<u16> {
        service_port(&self.read("/etc/services"), name, proto)
    }

    fn host(&self, name: &str) -> Vec<Addr> {
        host_addrs(&self.read("/etc/hosts"), name)
    }

    fn iface_index(&self, name: &[u8]) -> Option<u32> {
        let netns_id = self.session.netns_id();
        self.ifaces.of(netns_id)?.index(netns_id, name)
    }

    fn iface_name(&self, index: u32) -> Option<Vec<u8>> {
        let netns_id = self.session.netns_id();
        self.ifaces.of(netns_id)?.name(netns_id, index).map(<[u8]>::to_vec)
    }

    /// A cgroup's id is the inode of its directory: either `path` itself, or `path` below the mount point.
    fn cgroup(&self, path: &[u8]) -> Result<u64, String> {
        let written = Path::new(OsStr::from_bytes(path));
        if let Ok(stat) = sys::fs::stat(written) {
            return Ok(stat.inode);
        }
        let below = path.iter().position(|&b| b != b'/').and_then(|at| path.get(at..));
        let Some(below) = below else { return Err("Invalid cgroup2 path".into()) };
        let Some(mount) = cgroup2_mount(&self.read("/proc/self/mounts")) else {
            return Err("Failed to find cgroup2 mount".into());
        };
        let stat = sys::fs::stat(&mount.join(OsStr::from_bytes(below)));
        stat.map(|s| s.inode).map_err(|error| format!("Failed to get cgroup2 ID: {}", in_words(error.errno)))
    }

    fn tcp_sockets(&self, least: u64) -> u64 {
        sockets::count_tcp(self.session.host(), least)
    }
}

impl Live<'_> {
    /// The local port ranges of the session's namespace, as a lookup.
    pub(super) fn port_ranges(&self) -> PortRanges {
        let mut ranges = PortRanges::default();
        ranges.add(self.session.netns_id(), self.ports().clone());
        ranges
    }

    /// The local port range.
    pub(super) fn ports(&self) -> &LocalPorts {
        self.ports
            .get_or_init(|| LocalPorts::read(self.session.host(), self.session.netns_id(), None).unwrap_or_default())
    }
}

/// The C library's text for ENOENT, the usual error here; the kernel's text for all others.
fn in_words(errno: sys::Errno) -> String {
    if errno == sys::Errno::NOENT { "No such file or directory".into() } else { errno.to_string() }
}

/// The mount point of the first cgroup v2 file system in `/proc/self/mounts`.
fn cgroup2_mount(mounts: &[u8]) -> Option<PathBuf> {
    let mut lines = mounts.split(|&b| b == b'\n').map(|line| line.split(|&b| b == b' '));
    lines.find_map(|mut words| {
        let place = words.nth(1)?;
        (words.next()? == b"cgroup2").then(|| PathBuf::from(OsStr::from_bytes(place)))
    })
}

/// The words of a line of /etc/services or /etc/hosts, without its comment.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.split(|&b| b == b'#').next().unwrap_or_default();
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The port of a service by its name or an alias: `ssh 22/tcp secure-shell`.
fn service_port(text: &[u8], name: &str, proto: Proto) -> Option<u16> {
    let named = host::ports_named(text, name.as_bytes());
    named.into_iter().find(|(of, _)| *of == proto).map(|(_, port)| port)
}

/// The addresses of a host from /etc/hosts: `127.0.0.1 localhost`. IPv4 comes first, as in ss.
fn host_addrs(text: &[u8], name: &str) -> Vec<Addr> {
    let mut found = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        let mut words = words(line);
        let addr = words.next().and_then(|w| std::str::from_utf8(w).ok()).and_then(|w| w.parse::<Addr>().ok());
        let Some(addr) = addr else { continue };
        if words.any(|word| word.eq_ignore_ascii_case(name.as_bytes())) && !found.contains(&addr) {
            found.push(addr);
        }
    }
    found.sort_by_key(|addr| matches!(addr, Addr::V6(_)));
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn services_by_name_and_alias() {
        let text = b"# x\nssh 22/tcp secure # no\nssh 2222/udp\nx y/tcp\nbig 70000/tcp\n\n";
        assert_eq!(service_port(text, "ssh", Proto::Tcp), Some(22));
        assert_eq!(service_port(text, "secure", Proto::Tcp), Some(22));
        assert_eq!(service_port(text, "ssh", Proto::Udp), Some(2222));
        for name in ["no", "x", "big", ""] {
            assert_eq!(service_port(text, name, Proto::Tcp), None, "{name}");
        }
    }

    #[test]
    fn hosts_of_both_families() {
        let text = b"::1 localhost ip6\n127.0.0.1\tLocalhost #x y\nnot localhost\n127.0.0.1 localhost\n";
        let local: Vec<String> = host_addrs(text, "localhost").iter().map(Addr::to_string).collect();
        assert_eq!(local, ["127.0.0.1", "::1"]);
        assert!(host_addrs(text, "y").is_empty());
    }

    #[test]
    fn the_mount_of_cgroups() {
        let text = b"proc /proc proc rw 0 0\ncgroup /v1 cgroup rw 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0\n";
        assert_eq!(cgroup2_mount(text).unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!(cgroup2_mount(b"x\n\n"), None);
    }
}
