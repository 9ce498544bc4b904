//! A log group that another program has bound.
use std::error::Error;
use std::fmt;

use sys::caps::{self, Cap};
use sys::{Errno, Host, SysError};

/// Another program reads the group, which can have only one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupReader {
    /// Number of the group.
    pub group: u16,
    /// Netlink port id of the socket that has bound it.
    pub port: u32,
    /// Inode of that socket; `None` if the kernel's list of netlink sockets does not show it.
    pub inode: Option<u64>,
}

impl GroupReader {
    /// Whether this is why binding `group` failed. In this case the kernel returns EBUSY or EPERM; it also returns
    /// EPERM without the privilege to bind.
    pub(crate) fn from_error(host: &Host, group: u16, error: &SysError) -> Option<GroupReader> {
        let may_bind = caps::effective().is_ok_and(|held| held.contains(Cap::NetAdmin));
        if !may_bind || !(error.errno.is_denied() || error.errno == Errno::BUSY) {
            return None;
        }
        GroupReader::find_reader(host, group)
    }

    /// The reader of `group` in the calling thread's namespace, if there is one and the kernel's list is readable.
    pub fn find_reader(host: &Host, group: u16) -> Option<GroupReader> {
        let port = reader_of(host, group)?;
        Some(GroupReader { group, port, inode: inode_of(host, port) })
    }
}

impl fmt::Display for GroupReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupReader { group, port, .. } = self;
        write!(f, "another program has bound group {group} (netlink port {port}): a group can have one reader only")
    }
}

impl Error for GroupReader {}

/// Port id of the socket that has bound this group (`group port …` on each line).
fn reader_of(host: &Host, group: u16) -> Option<u32> {
    let list = read(host, "/proc/thread-self/net/netfilter/nfnetlink_log")?;
    list.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let listed: u16 = words.next()?.parse().ok()?;
        (listed == group).then(|| words.next()?.parse().ok())?
    })
}

/// Inode of the netfilter socket with this port id (`sk protocol port … inode` on each line).
fn inode_of(host: &Host, port: u32) -> Option<u64> {
    let list = read(host, "/proc/thread-self/net/netlink")?;
    let protocol = crate::uapi::NETLINK_NETFILTER.to_string();
    list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&protocol.as_str()) && words.get(2)?.parse() == Ok(port);
        if is_it { words.last()?.parse().ok() } else { None }
    })
}

fn read(host: &Host, path: &str) -> Option<String> {
    let mut text = Vec::new();
    host.read_file(path, &mut text).ok()?;
    String::from_utf8(text).ok()
}
