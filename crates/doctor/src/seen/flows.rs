//! Entries of connection tracking that were used within the window.

use record::Addr;
use std::collections::BTreeMap;

/// Most destinations of each kind that are recorded.
///
/// Bound: destinations of tracked flows that `doctor` remembers (`flows::destinations_of_flows_are_bounded`).
/// Beyond: further destinations are not checked, counted (exit code 3); the checks of counters are complete. By: a user
/// who scans.
pub const DESTINATIONS_MAX: usize = 4096;

/// Counts of connection-tracking entries that were used within the window.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FlowCensus {
    /// Number of all entries, used or not.
    pub entries: u64,
    /// Entries used within the window without an answer.
    pub unanswered: u64,
    /// TCP entries used within the window without an answer, by destination.
    pub silent: BTreeMap<Addr, u32>,
    /// Queries to port 53 within the window, by resolver: their number, and the number without an answer.
    pub queries: BTreeMap<Addr, (u32, u32)>,
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
