//! Receive buffers of a netlink socket as a stream of blocks.
use sys::{Blocks, NetlinkSocket, SysError};

use crate::message::Messages;

/// In a dump the kernel fills at most 32 KiB per recv, regardless of the buffer (af_netlink.c, netlink_dump); a single
/// message may be larger (links with many virtual functions). Memory beyond the received bytes is never touched.
const BUFFER: usize = 64 << 10;

/// The live answer to one request. Ends after NLMSG_DONE or NLMSG_ERROR.
#[derive(Debug)]
pub struct SocketBlocks {
    socket: NetlinkSocket,
    /// The last block handed out.
    buffer: Vec<u8>,
}

impl SocketBlocks {
    /// Minimum size of a receive buffer that can hold any message, in bytes.
    pub const BUFFER: usize = BUFFER;

    /// Opens a socket in the calling thread's network namespace and sends the request.
    pub fn open(protocol: i32, request: &[u8]) -> Result<SocketBlocks, SysError> {
        let socket = NetlinkSocket::open(protocol)?;
        socket.send(request)?;
        Ok(SocketBlocks { socket, buffer: Vec::with_capacity(BUFFER) })
    }

    // Another recv after the end would wait forever. The block is checked only now, after its reader has processed it:
    // its heads are in the cache, so this takes about 1 ns per message.
    fn has_ended(&self) -> bool {
        Messages::new(&self.buffer).any(|message| message.is_ok_and(|message| message.is_end()))
    }
}

impl Blocks for SocketBlocks {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if self.has_ended() {
            return Ok(None);
        }
        self.socket.recv_in_place(&mut self.buffer)?;
        Ok(Some(&self.buffer))
    }
}
