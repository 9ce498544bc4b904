//! Kernel words: protocols, states, timers.

use crate::named_enum::named_enum;

named_enum! {
    /// Socket types.
    #[repr(u8)]
    pub enum Proto {
        /// TCP.
        Tcp => "tcp",
        /// UDP.
        Udp => "udp",
        /// Unix domain.
        Unix => "unix",
        /// IP below the transport protocols (SOCK_RAW).
        Raw => "raw",
        /// UDP-Lite (RFC 3828).
        UdpLite => "udplite",
        /// Multipath TCP (RFC 8684): the connection as a program sees it; its subflows are TCP sockets.
        Mptcp => "mptcp",
        /// Frames of an interface (AF_PACKET).
        Packet => "packet",
        /// The kernel's own message bus (AF_NETLINK).
        Netlink => "netlink",
        /// SCTP (RFC 9260): a socket and its associations.
        Sctp => "sctp",
        /// DCCP (RFC 4340); removed from the kernel in 6.16.
        Dccp => "dccp",
        /// Connections between a virtual machine and its host (AF_VSOCK).
        Vsock => "vsock",
        /// TIPC: messages inside a cluster.
        Tipc => "tipc",
        /// Packets that bypass the kernel's own stack (AF_XDP).
        Xdp => "xdp",
    }
}

impl Proto {
    /// True if its sockets have IP addresses.
    pub fn is_inet(self) -> bool {
        !matches!(self, Proto::Unix | Proto::Packet | Proto::Netlink | Proto::Vsock | Proto::Tipc | Proto::Xdp)
    }

    /// True if its sockets use the states of TCP.
    pub fn is_tcp_like(self) -> bool {
        matches!(self, Proto::Tcp | Proto::Mptcp)
    }
}

/// A socket's state with the kernel's numbers (`include/net/tcp_states.h`). Unix and UDP sockets reuse these numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct State(pub u8);

impl State {
    /// 1, also a connected UDP or unix socket.
    pub const ESTABLISHED: State = State(1);
    /// 2
    pub const SYN_SENT: State = State(2);
    /// 3
    pub const SYN_RECV: State = State(3);
    /// 4
    pub const FIN_WAIT1: State = State(4);
    /// 5
    pub const FIN_WAIT2: State = State(5);
    /// 6
    pub const TIME_WAIT: State = State(6);
    /// 7, also an unconnected UDP or unix socket.
    pub const CLOSE: State = State(7);
    /// 8
    pub const CLOSE_WAIT: State = State(8);
    /// 9
    pub const LAST_ACK: State = State(9);
    /// 10
    pub const LISTEN: State = State(10);
    /// 11
    pub const CLOSING: State = State(11);
    /// 12, a request socket; netlink replies report it as 3.
    pub const NEW_SYN_RECV: State = State(12);
    /// 13, bound but neither listening nor connected (6.8+).
    pub const BOUND_INACTIVE: State = State(13);

    /// Our words by number; index 0 is not a state. State 7 is called `unconn` for sockets that were never connected;
    /// `partopen` is a state of DCCP.
    pub const NAMES: &'static [&'static str] = &[
        "unknown",
        "established",
        "syn_sent",
        "syn_recv",
        "fin_wait1",
        "fin_wait2",
        "time_wait",
        "close",
        "close_wait",
        "last_ack",
        "listen",
        "closing",
        "new_syn_recv",
        "bound_inactive",
        "unconn",
        "partopen",
    ];

    /// Our word for the state: `unconn` for state 7 of any protocol except TCP, `partopen` for the state that DCCP has
    /// in addition to TCP's (13, and 14 since 6.8).
    pub fn name(self, proto: Proto) -> &'static str {
        if proto == Proto::Dccp && matches!(self.0, 13 | 14) {
            return "partopen";
        }
        if self == State::CLOSE && !proto.is_tcp_like() {
            return "unconn";
        }
        Self::NAMES[..14].get(self.0 as usize).copied().unwrap_or("unknown")
    }

    /// The bits of the kernel's state mask that one of our words stands for; `None` for an unknown word.
    ///
    /// `syn_recv` includes request sockets; `unconn` means `close`.
    pub fn mask_of(word: &[u8]) -> Option<u32> {
        if word == b"unconn" {
            return Some(1 << 7);
        }
        if word == b"syn_recv" {
            return Some(1 << 3 | 1 << 12);
        }
        let n = Self::NAMES[..14].iter().position(|n| n.as_bytes() == word)?;
        (n > 0).then_some(1 << n)
    }
}

/// The timer that runs on a socket (`idiag_timer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timer(pub u8);

impl Timer {
    /// Our words by number.
    pub const NAMES: &'static [&'static str] = &["off", "retransmit", "keepalive", "timewait", "probe", "unknown"];

    /// Our word for the timer.
    pub fn name(self) -> &'static str {
        Self::NAMES[..5].get(self.0 as usize).copied().unwrap_or("unknown")
    }
}
