//! What is to be published: a port of this host, and where it really is.

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
    /// The word that nft knows, too.
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

/// One published port, as written: `[ADDR:]PORT:BACKEND:PORT[/tcp|/udp]`, IPv6 addresses in brackets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publish {
    /// TCP unless said.
    pub transport: Transport,
    /// The address that clients use; `None` where the host has but one.
    pub public: Option<Addr>,
    /// The port that clients use.
    pub port: u16,
    /// Where the service really listens.
    pub backend: Addr,
    /// Its port there.
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

/// An address as it stands before a port.
pub(super) struct Bracketed(pub(super) Addr);

impl fmt::Display for Bracketed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Addr::V4(_) => write!(f, "{}", self.0),
            Addr::V6(_) => write!(f, "[{}]", self.0),
        }
    }
}
