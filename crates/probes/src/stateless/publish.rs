//! A port of this host to publish, and its backend.

use record::Addr;
use record::rows::ip_proto;
use std::fmt;

/// A transport protocol whose ports can be rewritten packet by packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// Its name, which nft also uses.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }

    /// IP protocol number.
    pub fn number(self) -> u8 {
        match self {
            Transport::Tcp => ip_proto::TCP,
            Transport::Udp => ip_proto::UDP,
        }
    }
}

/// One published port, in the notation `[ADDR:]PORT:BACKEND:PORT[/tcp|/udp]`, with IPv6 addresses in brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publish {
    /// The protocol; TCP by default.
    pub transport: Transport,
    /// The address that clients use; `None` if the host's only address is meant.
    pub public: Option<Addr>,
    /// The port that clients use.
    pub port: u16,
    /// The address where the service listens.
    pub backend: Addr,
    /// The port where the service listens.
    pub backend_port: u16,
}

impl fmt::Display for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(public) = self.public {
            write!(f, "{}:", Bracketed(public))?;
        }
        write!(f, "{}:{}:{}/{}", self.port, Bracketed(self.backend), self.backend_port, self.transport.name())
    }
}

/// An address in the form that is used before a port.
pub(super) struct Bracketed(pub(super) Addr);

impl fmt::Display for Bracketed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Addr::V4(_) => write!(f, "{}", self.0),
            Addr::V6(_) => write!(f, "[{}]", self.0),
        }
    }
}
