//! The length of hash chains, and what it means.
use record::rows::StatCounter;

use super::{Advice, Evidence};

/// Lengths of the hash chains, in nodes like the kernel's own count. The chains contain entries of all namespaces, and
/// each entry is in two of them, one for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chains {
    /// Nodes in the longest chain, if the chains were walked.
    pub longest: Option<u64>,
    /// Nodes in all chains; divided by the buckets, this is the mean.
    pub nodes: u64,
}

/// A chain with at least this many nodes is long. Each packet may have to pass along it, and the kernel refuses new
/// entries from a random length of 50 to 80 on (`chaintoolong`).
const LONG: u64 = 40;
/// Up to this mean, in nodes, chance makes no chain long: with 2^20 buckets it would happen once in 10^9 tables.
const MEAN_OF_EVEN: u64 = 8;
/// Mean of a full table with one bucket per entry, in nodes per bucket.
const MEAN_OF_FULL: u64 = 2;

impl Chains {
    /// True if the longest chain slows packets down or will soon refuse entries.
    pub(super) fn is_long(self) -> bool {
        self.longest.is_some_and(|longest| longest >= LONG)
    }

    /// True if the mean is above `nodes`.
    fn is_mean_above(self, nodes: u64, buckets: u64) -> bool {
        self.nodes > nodes.saturating_mul(buckets)
    }
}

/// Returns the lengths: measured by a walk, or only their mean, derived from the number of all entries.
pub(super) fn known(evidence: &Evidence) -> Option<Chains> {
    let counted = || evidence.host_entries.map(|entries| Chains { longest: None, nodes: entries.saturating_mul(2) });
    evidence.chains.or_else(counted)
}

/// Returns the number of refused entries of other namespaces.
fn refused_elsewhere(evidence: &Evidence, advice: &Advice) -> Option<u64> {
    let here = advice.trend.grown.get(StatCounter::ChainTooLong).unwrap_or(0);
    evidence.host_refused?.checked_sub(here).filter(|elsewhere| *elsewhere > 0)
}

/// Appends the sentences about chains.
pub(super) fn of(evidence: &Evidence, advice: &Advice, says: &mut Vec<String>) {
    if let Some(refused) = refused_elsewhere(evidence, advice) {
        says.push(format!(
            "{refused} entries of other network namespaces were rejected because their hash chain was too long \
             (`chaintoolong`): all namespaces share one hash table"
        ));
    }
    let (Some(chains), Some(buckets)) = (advice.chains, evidence.buckets.filter(|buckets| *buckets > 0)) else {
        return;
    };
    let tenths = u128::from(chains.nodes) * 10 / u128::from(buckets);
    let mean = format!("{}.{} (two nodes per entry, all namespaces)", tenths / 10, tenths % 10);
    let Some(longest) = chains.longest else {
        if chains.is_mean_above(MEAN_OF_FULL, buckets) {
            says.push(format!("the mean hash chain has {mean}: more than with one bucket per entry"));
        }
        return;
    };
    let means = match chains.is_long() {
        true if chains.is_mean_above(MEAN_OF_EVEN, buckets) => {
            ": too few buckets; the kernel rejects entries from 50 to 80 nodes on (`chaintoolong`)"
        }
        true => {
            ": this is not random, entries concentrate in few buckets (a sender may choose colliding tuples), and more \
             buckets help little; the kernel rejects entries from 50 to 80 nodes on (`chaintoolong`)"
        }
        false if chains.is_mean_above(MEAN_OF_FULL, buckets) => ": more than with one bucket per entry",
        false => "",
    };
    let plural = if longest == 1 { "" } else { "s" };
    says.push(format!("the longest hash chain has {longest} node{plural}, the mean is {mean}{means}"));
}
