//! Files of /proc/net as lines, live or replayed.
use std::ops::ControlFlow;

use record::rows::Socket;
use record::{Addr, Proto};
use sys::{Blocks, Fd, Host, NetNs, SysError};

use crate::backends::handed_out::mix;
use crate::keys::Table;

/// seq_file hands out at most a page a read, whatever the buffer.
const BUFFER: usize = 8 << 10;

/// A longer line is no line of these files: a path has at most 108 bytes.
const LINE_MAX: usize = 4 << 10;

/// Bytes that are held of a file that is read as a whole: two million unix sockets. A longer one is cut there, which
/// [`ProcFile::text`] tells. Any user who may open that many sockets can make it so long.
const TEXT_MAX: usize = 256 << 20;

/// One file to be read.
pub(crate) struct ProcFile<'h> {
    pub(crate) host: &'h Host,
    /// Entered for opening; the open file stays with its namespace.
    pub(crate) netns: Option<&'h NetNs>,
    pub(crate) table: Table,
    /// Name of the stream on the tape.
    pub(crate) key: String,
}

impl ProcFile<'_> {
    /// Calls `each` with every line but the heading, without its end. True if `each` wanted no more.
    pub(crate) fn read(&self, mut each: impl FnMut(&mut [u8]) -> ControlFlow<()>) -> Result<bool, SysError> {
        let mut blocks = self.host.stream(&self.key, "", || self.open())?;
        let mut lines = Lines::default();
        while let Some(bytes) = blocks.next()? {
            if lines.cut(bytes, &mut each).is_break() {
                return Ok(true);
            }
        }
        Ok(lines.last(&mut each).is_break())
    }

    /// Replaces `into` by the whole file; false if it was longer than 256 MiB and the rest is left out.
    pub(crate) fn text(&self, into: &mut Vec<u8>) -> Result<bool, SysError> {
        into.clear();
        let mut blocks = self.host.stream(&self.key, "", || self.open())?;
        while let Some(bytes) = blocks.next()? {
            into.extend_from_slice(bytes);
            if into.len() > TEXT_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open<'a>(&self) -> Result<Box<dyn Blocks + 'a>, SysError> {
        // /proc/net is the main thread's: the calling thread may be in another namespace.
        let path = self.host.proc_path("thread-self/net").join(self.table.file());
        let inside = self.netns.map(NetNs::enter).transpose()?;
        let file = sys::fs::open(&path);
        if let Some(inside) = inside {
            inside.leave()?;
        }
        let shown = sys::escaped(path.as_os_str().as_encoded_bytes());
        Ok(Box::new(FileBlocks { fd: file?, shown, buffer: vec![0; BUFFER].into_boxed_slice() }))
    }
}

/// What each read of a file gives.
struct FileBlocks {
    fd: Fd,
    shown: Box<str>,
    buffer: Box<[u8]>,
}

impl Blocks for FileBlocks {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let got = sys::fs::read(&self.fd, &mut self.buffer)
            .map_err(|errno| SysError::new("read", self.shown.clone(), errno))?;
        Ok(self.buffer.get(..got).filter(|block| !block.is_empty()))
    }
}

/// Cuts blocks into lines; a line may span blocks.
#[derive(Debug, Default)]
struct Lines {
    /// The block that is being cut, behind the unfinished line of the one before.
    text: Vec<u8>,
    heading_seen: bool,
}

impl Lines {
    fn cut(&mut self, block: &[u8], each: &mut dyn FnMut(&mut [u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        self.text.extend_from_slice(block);
        let Some(end) = self.text.iter().rposition(|byte| *byte == b'\n') else {
            // Whatever this is, it is given away as one line that will not be understood.
            return if self.text.len() > LINE_MAX { self.last(each) } else { ControlFlow::Continue(()) };
        };
        let whole = self.text.get_mut(..end).unwrap_or_default();
        for line in whole.split_mut(|byte| *byte == b'\n') {
            if !self.heading_seen {
                self.heading_seen = true;
                continue;
            }
            each(line)?;
        }
        self.text.drain(..=end);
        ControlFlow::Continue(())
    }

    // What is left when the file ends without a newline.
    fn last(&mut self, each: &mut dyn FnMut(&mut [u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let heading = !std::mem::replace(&mut self.heading_seen, true);
        let more = if heading || self.text.is_empty() { ControlFlow::Continue(()) } else { each(&mut self.text) };
        self.text.clear();
        more
    }
}

/// What makes a row of /proc the same as another, where there is no cookie: the inode, which the kernel gives to one
/// socket alone, with all that names the socket beside it. 0 if nothing does, and rows are then never taken for each
/// other: sockets without an inode (time-wait, half-open, those that nobody holds) are told apart by their ends alone,
/// and lines of unix sockets end in a path, that is in text of whoever bound it, which can look like any line.
pub(crate) fn key_of(row: &Socket<'_>) -> u64 {
    match row.extras.and_then(|extras| extras.netlink) {
        // The kernel's own netlink sockets have inodes since 6.18 only.
        Some(part) => return mix(u64::from(row.inode) << 8 | u64::from(part.protocol.0), part.portid.into()) | 1,
        None if row.proto == Proto::Unix || row.inode == 0 => return 0,
        None if row.proto == Proto::Packet => return row.inode.into(),
        None => {}
    }
    let ports = u64::from(row.local.port) << 16 | u64::from(row.peer.port);
    let mut key = mix(u64::from(row.inode) << 32 | ports, u64::from(row.family));
    for addr in [row.local.addr, row.peer.addr] {
        key = match addr {
            Addr::V4(octets) => mix(key, u32::from_ne_bytes(octets).into()),
            Addr::V6(octets) => {
                let octets = u128::from_ne_bytes(octets);
                // Both halves.
                mix(mix(key, octets as u64), (octets >> 64) as u64)
            }
        };
    }
    key | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{Endpoint, Socket};

    fn lines_of(blocks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut found: Vec<Vec<u8>> = Vec::new();
        for block in blocks {
            let _ = lines.cut(block, &mut |line| {
                found.push(line.to_vec());
                ControlFlow::Continue(())
            });
        }
        let _ = lines.last(&mut |line| {
            found.push(line.to_vec());
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn lines_span_blocks() {
        let whole: &[u8] = b"heading\none\ntwo\n\nlast";
        let expected: Vec<Vec<u8>> = [&b"one"[..], b"two", b"", b"last"].map(<[u8]>::to_vec).into();
        assert_eq!(lines_of(&[whole]), expected);
        for cut in 0..whole.len() {
            let (a, b) = whole.split_at(cut);
            assert_eq!(lines_of(&[a, b]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(lines_of(&bytes), expected);
        assert!(lines_of(&[b"heading only"]).is_empty());
    }

    #[test]
    fn an_endless_line_does_not_pile_up() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            let _ = lines.cut(&[b'x'; 1000], &mut |_| ControlFlow::Continue(()));
            assert!(lines.text.len() <= LINE_MAX + 1000);
        }
    }

    #[test]
    fn the_reader_may_stop() {
        let mut lines = Lines::default();
        let mut count = 0;
        let end = lines.cut(b"h\n1\n2\n3\n", &mut |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(end.is_break() && count == 2);
    }

    #[test]
    fn keys_differ_where_sockets_do() {
        let local = Endpoint { addr: Addr::V4([10, 0, 0, 1]), port: 80 };
        let row = Socket { proto: Proto::Tcp, local, inode: 4, ..Socket::EMPTY };
        let swapped = Socket { local: row.peer, peer: row.local, ..row };
        let other = Socket { inode: 5, ..row };
        let keys = [key_of(&row), key_of(&swapped), key_of(&other)];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert_eq!(key_of(&row), key_of(&row.clone()));
        // Nothing names these, whatever else they have in common.
        for proto in [Proto::Tcp, Proto::Udp, Proto::Packet] {
            assert_eq!(key_of(&Socket { proto, inode: 0, ..row }), 0);
        }
        assert_eq!(key_of(&Socket { proto: Proto::Unix, ..row }), 0, "the inode may be somebody's text");
    }
}
