//! Entries of connection tracking that were used within the window.

use record::Addr;
use std::collections::{BTreeMap, BTreeSet};

/// Most destinations of each kind that are recorded.
///
/// Bound: destinations of tracked flows that `doctor` remembers (`flows::destinations_of_flows_are_bounded`).
/// Beyond: further destinations are not checked, counted (exit code 3); the checks of counters are complete. By: a user
/// who scans.
pub const DESTINATIONS_MAX: usize = 4096;

/// Most UDP flows, and TCP connections, of a namespace that are compared with the rules of NAT.
///
/// Bound: tracked UDP flows, and TCP connections, of a namespace that `doctor` compares with the rules of NAT. Beyond:
/// further UDP flows are counted (exit code 3), further connections are left out. By: anyone whose packets are tracked
/// there.
pub const COMPARED_MAX: usize = 4096;

/// Flows to one published port: destination NAT sends them to another host.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPort {
    /// Flows that were used within the window.
    pub all: u32,
    /// Those without an answer whose client is in the network of the real server, and whose source is not translated.
    pub hairpins: u32,
    /// The client of one of them, and the real server with its port.
    pub example: Option<(Addr, Addr, u16)>,
}

/// A tracked flow that may be older than the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackedFlow {
    /// IP protocol.
    pub l4: u8,
    /// The client's address and port.
    pub client: (Addr, u16),
    /// Address and port that the client asked.
    pub asked: (Addr, u16),
    /// Address and port of the real server.
    pub server: (Addr, u16),
    /// The translated source.
    pub source: Addr,
    /// True if the entry rewrites the destination.
    pub is_dnat: bool,
    /// True if the entry rewrites the source.
    pub is_snat: bool,
    /// True if it has an answer.
    pub is_answered: bool,
}

/// How an entry differs from what the rules say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A rule sends new flows to this host or port, the entry does not.
    Target(String),
    /// The rule that rewrote the destination was removed.
    NoRule,
    /// A rule gives new flows this source, the entry does not.
    Source(String),
}

/// An entry that differs from what the rules say now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleFlow {
    /// The entry.
    pub flow: TrackedFlow,
    /// The difference.
    pub difference: Difference,
    /// The place of the rule: `ip nat pre handle 4`; empty without one.
    pub rule: String,
}

/// Counts of connection-tracking entries that were used within the window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlowCensus {
    /// Number of all entries, used or not.
    pub entries: u64,
    /// Entries used within the window without an answer.
    pub unanswered: u64,
    /// TCP entries used within the window without an answer, by the host that should answer.
    pub silent: BTreeMap<Addr, u32>,
    /// Queries to port 53 within the window, by resolver: their number, and the number without an answer.
    pub queries: BTreeMap<Addr, (u32, u32)>,
    /// Flows with destination NAT, by protocol, address and port that clients ask.
    pub published: BTreeMap<(u8, Addr, u16), PublishedPort>,
    /// UDP flows beyond [`COMPARED_MAX`].
    pub not_compared: u64,
    /// UDP flows to compare with the rules of NAT.
    pub tracked: Vec<TrackedFlow>,
    /// TCP connections to compare with them.
    pub connections: Vec<TrackedFlow>,
    /// Entries that differ from what the rules say now.
    pub stale: Vec<StaleFlow>,
    /// True if a rule translates sources; read only if packets arrived that no socket takes.
    pub has_source_nat: bool,
    /// Servers and ports that clients reach through source NAT, with the translated source.
    pub translated: BTreeSet<(u8, Addr, u16, Addr)>,
    /// Translated sources of flows that have an answer; at most [`DESTINATIONS_MAX`], and then all count as answered.
    pub answered_sources: BTreeSet<Addr>,
    /// Earlier queries of this host whose entries have not expired, by resolver: those with an answer, and those
    /// without.
    pub earlier: BTreeMap<Addr, (u32, u32)>,
    /// Entries to destinations beyond [`DESTINATIONS_MAX`], which no destination counts.
    pub over: u64,
}

impl FlowCensus {
    /// Adds a TCP entry without an answer.
    pub fn add_silent(&mut self, to: Addr) {
        if self.silent.len() < DESTINATIONS_MAX || self.silent.contains_key(&to) {
            *self.silent.entry(to).or_default() += 1;
        } else {
            self.over += 1;
        }
    }

    /// Adds a flow with destination NAT; `hairpin` has client, real server and its port if the answers
    /// bypass this host.
    pub fn add_published(&mut self, key: (u8, Addr, u16), hairpin: Option<(Addr, Addr, u16)>) {
        if self.published.len() >= DESTINATIONS_MAX && !self.published.contains_key(&key) {
            self.over += 1;
            return;
        }
        let of = self.published.entry(key).or_default();
        of.all += 1;
        of.hairpins += u32::from(hairpin.is_some());
        of.example = of.example.or(hairpin);
    }

    /// Adds a server that a client reaches through source NAT.
    pub fn add_translated(&mut self, key: (u8, Addr, u16, Addr), is_answered: bool) {
        if is_answered && self.answered_sources.len() < DESTINATIONS_MAX {
            self.answered_sources.insert(key.3);
        }
        if self.translated.len() < DESTINATIONS_MAX || self.translated.contains(&key) {
            self.translated.insert(key);
        } else {
            self.over += 1;
        }
    }

    /// Adds a DNS query of this host from before the window.
    pub fn add_earlier(&mut self, to: Addr, is_answered: bool) {
        if self.earlier.len() < DESTINATIONS_MAX || self.earlier.contains_key(&to) {
            let of = self.earlier.entry(to).or_default();
            *of = (of.0 + u32::from(is_answered), of.1 + u32::from(!is_answered));
        } else {
            self.over += 1;
        }
    }

    /// Adds a DNS query.
    pub fn add_query(&mut self, to: Addr, is_answered: bool) {
        if self.queries.len() < DESTINATIONS_MAX || self.queries.contains_key(&to) {
            let of = self.queries.entry(to).or_default();
            *of = (of.0 + 1, of.1 + u32::from(!is_answered));
        } else {
            self.over += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_flows_are_bounded() {
        let mut flows = FlowCensus::default();
        for n in 0..DESTINATIONS_MAX as u32 + 2 {
            let to = Addr::V4(n.to_be_bytes());
            flows.add_silent(to);
            flows.add_query(to, false);
        }
        flows.add_query(Addr::V4([0; 4]), true);
        let first = flows.queries.get(&Addr::V4([0; 4]));
        assert_eq!((flows.silent.len(), flows.queries.len(), flows.over), (DESTINATIONS_MAX, DESTINATIONS_MAX, 4));
        assert_eq!(first, Some(&(2, 1)));
    }
}
