//! Streams of byte blocks.
use crate::errno::SysError;

/// A stream of blocks: receive buffers of a netlink socket, pieces of a file.
pub trait Blocks {
    /// The next block, `None` at the end. It is borrowed until the next call.
    fn next(&mut self) -> Result<Option<&[u8]>, SysError>;
}
