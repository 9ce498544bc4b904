//! DNS queries and answers within the window.

use record::Addr;

/// Queries of this host to a DNS server, and the server's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsServerSeen {
    /// The server.
    pub server: Addr,
    /// The local port of the query that has waited longest.
    pub port: u16,
    /// Queries; a repeated one counts once.
    pub asked: u32,
    /// Answers, including those to queries before the window.
    pub answered: u32,
    /// Queries that have waited for at least half a second.
    pub waiting: u32,
    /// How long the oldest of them has waited, in milliseconds.
    pub longest_ms: u32,
    /// Answers with the response code SERVFAIL: the server could not find the answer.
    pub failed: u32,
    /// Answers with the response code REFUSED: the server does not serve this client, or this name.
    pub refused: u32,
}

/// DNS answers that came from another address than was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsMismatch {
    /// The address that was asked.
    pub asked: Addr,
    /// The address that the answers came from.
    pub answered: Addr,
    /// A client.
    pub client: Addr,
    /// True if the answers are this host's own.
    pub is_own: bool,
    /// Number of answers.
    pub count: u32,
}

/// DNS messages of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsSeen {
    /// Servers that this host asked.
    pub servers: Vec<DnsServerSeen>,
    /// Answers from other addresses.
    pub mismatches: Vec<DnsMismatch>,
}
