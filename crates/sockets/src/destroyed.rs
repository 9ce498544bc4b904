//! TCP and UDP sockets at the moment when they cease to exist: sock_diag's destroy events (kernel 4.3).
//!
//! A listener joins the multicast groups of its network namespace; the kernel then sends one inet_diag message a
//! socket, with its last counters, from a work queue shortly after. Not told are time-wait and request sockets, which
//! are no full ones, and what happens before a socket ends. Nobody is slowed down by a listener that does not keep
//! up: its messages are dropped, and the kernel says so without a number ([`Heard::overrun`]). Needs no privilege.
//! Start reading at [`Destroyed::read`].
use std::os::fd::{AsFd, BorrowedFd};

use netlink::prefix::u32_at;
use netlink::{Attrs, Messages};
use record::rows::Socket;
use record::{Next, Proto};
use sys::{Errno, NetlinkSocket, SysError};

use crate::inet_diag::{self, InetDecoder};
use crate::source::NETLINK_SOCK_DIAG;

/// `enum sknetlink_groups` (include/uapi/linux/sock_diag.h).
const SKNLGRP_INET_TCP_DESTROY: u32 = 1;
const SKNLGRP_INET_UDP_DESTROY: u32 = 2;
const SKNLGRP_INET6_TCP_DESTROY: u32 = 3;
const SKNLGRP_INET6_UDP_DESTROY: u32 = 4;

/// `INET_DIAG_PROTOCOL`: in every event, because a group tells it only to who joined no other.
const INET_DIAG_PROTOCOL: u16 = 10;

/// Room for some 20 000 events of sockets with `tcp_info`: half a second of 40 000 connections a second.
const RECEIVE_BUFFER: u32 = 16 << 20;

/// One message is below 1 KiB; the kernel sends one a datagram.
const MESSAGE_MAX: usize = 8 << 10;

/// Which sockets are told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups {
    /// TCP.
    pub tcp: bool,
    /// UDP (and UDP-Lite, which shares its group).
    pub udp: bool,
    /// AF_INET.
    pub inet: bool,
    /// AF_INET6; dual-stack sockets too.
    pub inet6: bool,
}

impl Groups {
    /// Everything there is.
    pub const ALL: Groups = Groups { tcp: true, udp: true, inet: true, inet6: true };

    /// The kernel's numbers of the groups.
    fn numbers(self) -> impl Iterator<Item = u32> {
        let all = [
            (self.tcp && self.inet, SKNLGRP_INET_TCP_DESTROY),
            (self.udp && self.inet, SKNLGRP_INET_UDP_DESTROY),
            (self.tcp && self.inet6, SKNLGRP_INET6_TCP_DESTROY),
            (self.udp && self.inet6, SKNLGRP_INET6_UDP_DESTROY),
        ];
        all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, number)| number)
    }
}

/// What one call of [`Destroyed::read`] brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Events handed out.
    pub rows: u64,
    /// Messages that made no sense.
    pub failed: u64,
    /// Events were dropped since the last call: the kernel does not tell how many.
    pub overrun: bool,
}

/// A listener to the end of sockets in one network namespace.
#[derive(Debug)]
pub struct Destroyed {
    socket: NetlinkSocket,
    netns_id: u64,
    buffer: Vec<u8>,
}

impl Destroyed {
    /// Listens in the calling thread's network namespace, whose inode is `netns_id`, from now on.
    ///
    /// Four to eight system calls. From here on the kernel makes a message of every socket that ends (about 1 µs).
    pub fn open(netns_id: u64, groups: Groups) -> Result<Destroyed, SysError> {
        let socket = NetlinkSocket::open(NETLINK_SOCK_DIAG)?;
        // A smaller buffer is a smaller one: overruns are told.
        let _ = socket.receive_buffer(RECEIVE_BUFFER);
        for number in groups.numbers() {
            socket.join(number)?;
        }
        Ok(Destroyed { socket, netns_id, buffer: vec![0; MESSAGE_MAX] })
    }

    /// Hands every event that is there to `each`, without waiting: poll the descriptor for that. Stops when there are
    /// no more or `each` says so; what was not read is still there. A row borrows the buffer, its state and counters
    /// are the last ones, and it has neither inode nor owner any more. Two system calls an event.
    pub fn read(&mut self, each: &mut dyn FnMut(&Socket<'_>) -> Next) -> Result<Heard, SysError> {
        let mut heard = Heard::default();
        loop {
            let length = match self.socket.recv_now(&mut self.buffer) {
                Ok(Some(length)) => length,
                Ok(None) => return Ok(heard),
                Err(error) if error.errno == Errno::NOBUFS => {
                    heard.overrun = true;
                    continue;
                }
                Err(error) if error.errno == Errno::MSGSIZE => {
                    heard.failed += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let datagram = self.buffer.get(..length).unwrap_or_default();
            if events(datagram, self.netns_id, &mut heard, each) == Next::Stop {
                return Ok(heard);
            }
        }
    }
}

impl AsFd for Destroyed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn events(bytes: &[u8], netns_id: u64, heard: &mut Heard, each: &mut dyn FnMut(&Socket<'_>) -> Next) -> Next {
    for message in Messages::new(bytes) {
        let Ok(message) = message else {
            heard.failed += 1;
            return Next::More;
        };
        // Anything else is netlink's own, and none of ours: nothing was asked.
        if message.kind != inet_diag::SOCK_DIAG_BY_FAMILY {
            continue;
        }
        let decoded = protocol(message.payload)
            .and_then(|proto| InetDecoder::new(proto, netns_id).decode(message.payload).ok().map(as_ended));
        match decoded {
            Some(row) => {
                heard.rows += 1;
                if each(&row) == Next::Stop {
                    return Next::Stop;
                }
            }
            None => heard.failed += 1,
        }
    }
    Next::More
}

// What a table calls bound and inactive is here closed: TCP sockets end in this state.
fn as_ended(mut row: Socket<'_>) -> Socket<'_> {
    if row.state == record::State::BOUND_INACTIVE {
        row.state = record::State::CLOSE;
    }
    row
}

fn protocol(payload: &[u8]) -> Option<Proto> {
    // Fails on a payload shorter than the struct.
    u32_at(payload, inet_diag::MSG - 4)?;
    let attrs = Attrs::new(payload.get(inet_diag::MSG..)?);
    let number = attrs.filter_map(Result::ok).find(|attr| attr.kind == INET_DIAG_PROTOCOL)?.u8().ok()?;
    [Proto::Tcp, Proto::Udp].into_iter().find(|proto| inet_diag::number_of(*proto) == number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// A message of `kind` with a TCP socket in state 7 and these attributes.
    fn message(kind: u16, attrs: &[u8]) -> Vec<u8> {
        let mut payload = vec![0; inet_diag::MSG];
        (payload[0], payload[1]) = (2, 7);
        payload.extend_from_slice(attrs);
        let mut bytes = ((16 + payload.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(&payload);
        bytes
    }

    fn attr(kind: u16, value: u8) -> Vec<u8> {
        [&5u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &[value, 0, 0, 0]].concat()
    }

    fn hear(bytes: &[u8]) -> (Heard, Vec<(Proto, u8)>) {
        let (mut heard, mut rows) = (Heard::default(), Vec::new());
        let _ = events(bytes, 1, &mut heard, &mut |row| {
            rows.push((row.proto, row.state.0));
            Next::More
        });
        (heard, rows)
    }

    #[test]
    fn the_protocol_stands_in_the_message() {
        let two = [message(20, &attr(10, 6)), message(20, &attr(10, 17))].concat();
        assert_eq!(hear(&two).1, [(Proto::Tcp, 7), (Proto::Udp, 7)]);
        assert_eq!(hear(&message(3, &attr(10, 6))).0, Heard::default(), "no event");
    }

    #[test]
    fn what_makes_no_sense_is_counted() {
        let whole = message(20, &attr(10, 6));
        for bytes in [message(20, &attr(10, 99)), message(20, &attr(11, 6)), message(20, &[3, 0])] {
            assert_eq!(hear(&bytes), (Heard { failed: 1, ..Heard::default() }, Vec::new()));
        }
        for cut in 1..whole.len() {
            let (heard, rows) = hear(&whole[..cut]);
            assert!(heard.failed <= 1 && rows.is_empty(), "cut at {cut}");
        }
    }
}
