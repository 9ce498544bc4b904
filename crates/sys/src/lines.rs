//! Lines of a file that arrives in blocks, such as the files of /proc/net.
use std::ops::ControlFlow;

use crate::blocks::Blocks;
use crate::errno::SysError;
use crate::fs::FileBlocks;
use crate::host::Host;
use crate::netns::{self, NetNs};

/// Splits blocks into lines. Copies only lines that span two blocks.
#[derive(Debug)]
pub struct Lines {
    /// The unfinished line at the end of the last block, up to `bytes_max` bytes of it.
    begun: Vec<u8>,
    bytes_max: usize,
}

impl Lines {
    /// A splitter for lines of at most `bytes_max` bytes: a longer line that spans blocks is truncated to `bytes_max`
    /// bytes.
    pub fn new(bytes_max: usize) -> Lines {
        Lines { begun: Vec::new(), bytes_max }
    }

    /// Calls `each` with every line that ends in `block`, without its newline, until `each` breaks.
    pub fn split_lines(&mut self, block: &[u8], each: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut block = block;
        if !self.begun.is_empty() {
            let end = block.iter().position(|byte| *byte == b'\n');
            self.store_part(block.get(..end.unwrap_or(block.len())).unwrap_or_default());
            let Some(end) = end else { return ControlFlow::Continue(()) };
            block = block.get(end + 1..).unwrap_or_default();
            self.finish(each)?;
        }
        let Some(end) = block.iter().rposition(|byte| *byte == b'\n') else {
            self.store_part(block);
            return ControlFlow::Continue(());
        };
        let (lines, begun) = block.split_at_checked(end).unwrap_or_default();
        lines.split(|byte| *byte == b'\n').try_for_each(&mut *each)?;
        self.store_part(begun.get(1..).unwrap_or_default());
        ControlFlow::Continue(())
    }

    /// Calls `each` with the last line, if the file does not end with a newline.
    pub fn finish(&mut self, each: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let flow = if self.begun.is_empty() { ControlFlow::Continue(()) } else { each(&self.begun) };
        self.begun.clear();
        flow
    }

    fn store_part(&mut self, part: &[u8]) {
        let room = self.bytes_max.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
    }
}

/// Opens /proc/net/`name` of `netns` (`None`: the calling thread's namespace). The file stays in its namespace.
///
/// Fails if the namespace cannot be entered (CAP_SYS_ADMIN) or the file cannot be opened.
pub fn open_proc_net<'b>(host: &Host, netns: Option<&NetNs>, name: &str) -> Result<Box<dyn Blocks + 'b>, SysError> {
    // /proc/net is the main thread's: the calling thread may be in a different namespace.
    let path = host.proc_path("thread-self/net").join(name);
    Ok(Box::new(netns::run_within(netns, || FileBlocks::open(&path))??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(blocks: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::new(1 << 10), Vec::<Vec<u8>>::new());
        let mut each = |line: &[u8]| {
            found.push(line.to_vec());
            ControlFlow::Continue(())
        };
        assert!(blocks.iter().all(|block| lines.split_lines(block, &mut each).is_continue()));
        assert!(lines.finish(&mut each).is_continue());
        found
    }

    #[test]
    fn lines_span_blocks() {
        let whole: &[u8] = b"heading\none\ntwo\nlast";
        let expected: Vec<Vec<u8>> = [&b"heading"[..], b"one", b"two", b"last"].map(<[u8]>::to_vec).into();
        assert_eq!(lines_of(&[whole]), expected);
        for cut in 0..whole.len() {
            let (a, b) = whole.split_at(cut);
            assert_eq!(lines_of(&[a, b]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(lines_of(&bytes), expected);
        assert!(lines_of(&[]).is_empty() && lines_of(&[b""]).is_empty());
    }

    #[test]
    fn an_endless_line_does_not_pile_up() {
        let mut lines = Lines::new(4 << 10);
        for _ in 0..1000 {
            assert!(lines.split_lines(&[b'x'; 1000], &mut |_| ControlFlow::Continue(())).is_continue());
            assert!(lines.begun.len() <= 4 << 10);
        }
        let mut found = Vec::new();
        let _ = lines.split_lines(b"end\nnext\n", &mut |line| {
            found.push(line.len());
            ControlFlow::Continue(())
        });
        assert_eq!(found, [4 << 10, 4]);
    }

    #[test]
    fn the_reader_may_stop() {
        let (mut lines, mut count) = (Lines::new(99), 0);
        let end = lines.split_lines(b"1\n2\n3\n", &mut |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(end.is_break() && count == 2);
    }
}
