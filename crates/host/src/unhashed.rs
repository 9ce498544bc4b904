//! TCP sockets that are in none of the kernel's tables because they are neither bound nor connected, or no longer are.
//! The kernel's dumps omit them, so netwren finds them through the descriptors that hold them.

use crate::Owners;
use std::collections::HashMap;
use sys::Host;

/// Extended attribute of a socket's inode with the name of its protocol (`sk_prot->name`).
const PROTOCOL: &std::ffi::CStr = c"system.sockprotoname";

/// A TCP socket that is in none of the kernel's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnhashedTcp {
    /// Its inode.
    pub inode: u32,
    /// The network namespace of the process that holds it.
    pub netns_id: u64,
    /// True for an IPv6 socket.
    pub is_v6: bool,
}

/// Returns the TCP sockets of `owners` whose inodes `is_in_table` rejects. Costs three reads of /proc for each rejected
/// socket, regardless of its family. Sockets that were closed after `owners` was read are left out.
pub fn unhashed_tcp<'o>(
    host: &'o Host,
    owners: &'o Owners,
    is_in_table: impl Fn(u32) -> bool + 'o,
) -> impl Iterator<Item = UnhashedTcp> + 'o {
    let (mut namespaces, mut bytes) = (HashMap::new(), Vec::new());
    owners.firsts().filter(move |(inode, _)| !is_in_table(*inode)).filter_map(move |(inode, owner)| {
        let descriptor = format!("/proc/{}/fd/{}", owner.pid, owner.descriptor()?);
        host.read_xattr(&descriptor, PROTOCOL, &mut bytes).ok()?;
        let is_v6 = match bytes.strip_suffix(b"\0").unwrap_or(&bytes) {
            b"TCP" => false,
            b"TCPv6" => true,
            _ => return None,
        };
        // Another socket may have taken over the descriptor.
        host.read_link(&descriptor, &mut bytes).ok()?;
        if bytes != format!("socket:[{inode}]").as_bytes() {
            return None;
        }
        let netns_id = *namespaces.entry(owner.pid).or_insert_with(|| {
            host.read_link(&format!("/proc/{}/ns/net", owner.pid), &mut bytes).ok()?;
            let digits = bytes.strip_prefix(b"net:[")?.strip_suffix(b"]")?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        });
        Some(UnhashedTcp { inode, netns_id: netns_id?, is_v6 })
    })
}
