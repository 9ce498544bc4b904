//! Reads files of /proc/net line by line, live or replayed.
use std::ops::ControlFlow;

use record::Proto;
use record::hash::{mix, mix_addr};
use record::rows::Socket;
use sys::{Blocks, Host, Lines, NetNs, SysError, open_proc_net};

use crate::keys::Table;

/// Maximum length of a line: a path has at most 108 bytes.
///
/// Bound: bytes of a line of a socket table in /proc. Beyond: the line counts as malformed (exit code 3). By: a broken
/// kernel.
const LINE_MAX: usize = 4 << 10;

/// Maximum size of a file that is read as a whole: two million unix sockets. A longer one is truncated, which
/// [`ProcFile::text`] reports.
///
/// Bound: bytes of /proc/net/unix. Beyond: the rest is not read (exit code 3). By: a user with 2 million unix sockets,
/// with `--via proc` only.
pub(crate) const TEXT_MAX: usize = 256 << 20;

/// One file to read.
pub(crate) struct ProcFile<'h> {
    pub(crate) host: &'h Host,
    /// Entered while the file is opened; the open file keeps its namespace.
    pub(crate) netns: Option<&'h NetNs>,
    pub(crate) table: Table,
    /// Name of the stream in a recording.
    pub(crate) key: String,
}

impl ProcFile<'_> {
    /// Calls `each` with every line except the heading, without its newline. True if `each` stopped the loop.
    pub(crate) fn read(&self, mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> Result<bool, SysError> {
        let mut blocks = self.open()?;
        let (mut lines, mut heading_seen) = (Lines::new(LINE_MAX), false);
        let mut each = |line: &[u8]| {
            if std::mem::replace(&mut heading_seen, true) { each(line) } else { ControlFlow::Continue(()) }
        };
        while let Some(bytes) = blocks.next()? {
            if lines.cut(bytes, &mut each).is_break() {
                return Ok(true);
            }
        }
        Ok(lines.finish(&mut each).is_break())
    }

    /// Replaces `into` with the whole file; false if it was longer than 256 MiB and therefore truncated.
    pub(crate) fn text(&self, into: &mut Vec<u8>) -> Result<bool, SysError> {
        into.clear();
        let mut blocks = self.open()?;
        while let Some(bytes) = blocks.next()? {
            into.extend_from_slice(bytes);
            if into.len() > TEXT_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open(&self) -> Result<Box<dyn Blocks + '_>, SysError> {
        self.host.stream(&self.key, "", || open_proc_net(self.host, self.netns, self.table.file()))
    }
}

/// A key that identifies a row of /proc, which has no cookie: the inode, which the kernel gives to one socket only, and
/// everything else that identifies the socket. 0 if nothing does; such rows are never treated as duplicates. Sockets
/// without an inode (time-wait, half-open, those without an owner) only differ in their endpoints, and lines of unix
/// sockets end with a path, a text chosen by the owner that can look like any line.
pub(crate) fn key_of(row: &Socket<'_>) -> u64 {
    match row.extras.and_then(|extras| extras.netlink) {
        // The kernel's own netlink sockets only have inodes since 6.18.
        Some(part) => return mix(u64::from(row.inode) << 8 | u64::from(part.protocol.0), part.portid.into()) | 1,
        None if row.proto == Proto::Unix || row.inode == 0 => return 0,
        None if row.proto == Proto::Packet => return row.inode.into(),
        None => {}
    }
    let ports = u64::from(row.local.port) << 16 | u64::from(row.peer.port);
    let mut key = mix(u64::from(row.inode) << 32 | ports, u64::from(row.family));
    for addr in [row.local.addr, row.peer.addr] {
        key = mix_addr(key, &addr);
    }
    key | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Addr;
    use record::rows::{Endpoint, Socket};

    #[test]
    fn keys_differ_where_sockets_do() {
        let local = Endpoint { addr: Addr::V4([10, 0, 0, 1]), port: 80 };
        let row = Socket { proto: Proto::Tcp, local, inode: 4, ..Socket::EMPTY };
        let swapped = Socket { local: row.peer, peer: row.local, ..row };
        let other = Socket { inode: 5, ..row };
        let keys = [key_of(&row), key_of(&swapped), key_of(&other)];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert_eq!(key_of(&row), key_of(&row.clone()));
        // Such rows have no identity, even if they agree in everything.
        for proto in [Proto::Tcp, Proto::Udp, Proto::Packet] {
            assert_eq!(key_of(&Socket { proto, inode: 0, ..row }), 0);
        }
        assert_eq!(key_of(&Socket { proto: Proto::Unix, ..row }), 0, "the inode may be somebody's text");
    }
}
