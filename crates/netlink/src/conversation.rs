//! Several consecutive requests over one socket.
use std::ops::ControlFlow;

use sys::{Blocks, Host, NetlinkSocket, SysError, netns};

use crate::blocks::SocketBlocks;
use crate::dump::{AnswerMessage, DumpEnd, Query, read};
use crate::error::DumpError;
use crate::message::Messages;

/// A socket for consecutive requests: two system calls each, compared with five for [`crate::exchange`].
///
/// It is opened for the first request, and again after an incomplete answer. A replay never opens it.
#[derive(Debug, Default)]
pub struct Conversation {
    socket: Option<NetlinkSocket>,
    buffer: Vec<u8>,
}

impl Conversation {
    /// Creates a conversation without opening its socket.
    pub fn new() -> Conversation {
        Conversation::default()
    }

    /// Sends one request and reads its complete answer, as [`crate::exchange`] does. All requests of a conversation
    /// must have the same protocol and namespace.
    pub fn exchange(
        &mut self,
        host: &Host,
        ask: &Query<'_>,
        each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
    ) -> Result<DumpEnd, DumpError> {
        let outcome = read(host, ask, |request| Ok(Box::new(self.run_query(ask, request)?)), each);
        let whole = match &outcome {
            Ok(end) => !end.stopped,
            Err(error) => matches!(error, DumpError::Refused { .. }),
        };
        if !whole {
            // The rest of the answer would be mistaken for the answer to the next request.
            self.socket = None;
        }
        outcome
    }

    fn run_query(&mut self, ask: &Query<'_>, request: &[u8]) -> Result<Exchange<'_>, SysError> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => netns::run_within(ask.netns, || NetlinkSocket::open(ask.protocol))??,
        };
        socket.send(request)?;
        self.buffer.clear();
        self.buffer.reserve(SocketBlocks::BUFFER);
        Ok(Exchange { socket: self.socket.insert(socket), buffer: &mut self.buffer })
    }
}

/// The answer to the latest request.
struct Exchange<'c> {
    socket: &'c NetlinkSocket,
    /// The last block handed out.
    buffer: &'c mut Vec<u8>,
}

impl Blocks for Exchange<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        if Messages::new(self.buffer).any(|message| message.is_ok_and(|message| message.is_end())) {
            return Ok(None);
        }
        self.socket.recv_in_place(self.buffer)?;
        Ok(Some(self.buffer))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::Request;

    /// RTM_GETLINK for `lo` (index 1), and for an interface that cannot exist.
    fn link(index: i32) -> Request {
        let mut request = Request::for_one(18);
        request.append(&[&[0u8; 4][..], &index.to_ne_bytes(), &[0; 8]].concat());
        request
    }

    fn ask(request: &Request) -> Query<'_> {
        Query { what: "a link", protocol: 0, request, key: "link", note: "", netns: None }
    }

    #[test]
    fn answers_do_not_mix() {
        let (host, mut conversation) = (Host::live(), Conversation::new());
        for _ in 0..3 {
            let mut links = 0;
            let request = link(1);
            let end = conversation.exchange(&host, &ask(&request), |part| {
                links += u64::from(part.kind == 16);
                ControlFlow::Continue(())
            });
            assert_eq!((links, end.unwrap().unexpected), (1, 0));
            let request = link(i32::MAX);
            let refused = conversation.exchange(&host, &ask(&request), |_| ControlFlow::Continue(()));
            assert!(matches!(refused, Err(DumpError::Refused { .. })), "{refused:?}");
        }
        let request = link(1);
        let stopped = conversation.exchange(&host, &ask(&request), |_| ControlFlow::Break(())).unwrap();
        assert!(stopped.stopped && conversation.socket.is_none());
    }
}
