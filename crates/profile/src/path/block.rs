//! The measured stages as bytes, for recordings and for rows.
//!
//! ```text
//! header  magic, inode of the namespace, ns of the window, packets that were not recognised, places,
//!         sum of the programs' time in ns, packets that they ran for, number of rows
//! rows    of ROW_WORDS numbers each
//! ```
use record::rows::{NetfilterHook, PathFamily, PathStage, StageName};

use crate::error::ProfileError;
use crate::words::{put, take};

/// `netwren doctor path`, and the version of this layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"nwstage1");
const ROW_WORDS: usize = 13;
/// Replaces an unknown number.
const UNKNOWN: u64 = u64::MAX;

/// The stages of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StageBlock {
    pub(crate) netns_id: u64,
    pub(crate) window_ns: u64,
    /// Arrivals of packets that no earlier place saw, although packets do not begin at this place.
    pub(crate) strangers: u64,
    /// The number of places where packets are counted.
    pub(crate) places: u64,
    /// The time of the programs in ns, and the number of their runs.
    pub(crate) own_ns: u64,
    pub(crate) runs: u64,
    pub(crate) rows: Vec<PathStage>,
}

impl StageBlock {
    /// Appends the encoded block to `into`.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let rows = self.rows.len() as u64;
        let StageBlock { netns_id, window_ns, strangers, places, own_ns, runs, .. } = *self;
        put(into, &[MAGIC, netns_id, window_ns, strangers, places, own_ns, runs, rows]);
        for row in &self.rows {
            // Between two hooks there are no priorities, which is encoded as a first priority above the last.
            let (first, last) = row.priorities.unwrap_or((1, 0));
            let known = |ns: Option<u64>| ns.unwrap_or(UNKNOWN);
            let priority = |priority: i32| i64::from(priority) as u64;
            put(into, &[row.family as u64, row.hook as u64, row.stage as u64, priority(first), priority(last)]);
            put(into, &[row.packets, row.lost, row.measured, row.sum_ns]);
            put(into, &[known(row.median_ns), known(row.p99_ns), known(row.max_ns), 0]);
        }
    }

    /// Decodes a block. Never panics, for any bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<StageBlock, ProfileError> {
        let bytes = &mut bytes;
        let [magic, netns_id, window_ns, strangers, places, own_ns, runs, count] = take(bytes)?;
        if magic != MAGIC {
            return Err(ProfileError::Malformed("stages of another version"));
        }
        let mut rows = Vec::new();
        for _ in 0..count {
            let row: [u64; ROW_WORDS] = take(bytes)?;
            let row = row_of(row, netns_id, window_ns);
            rows.push(row.ok_or(ProfileError::Malformed("a stage that does not exist"))?);
        }
        Ok(StageBlock { netns_id, window_ns, strangers, places, own_ns, runs, rows })
    }
}

fn row_of(words: [u64; ROW_WORDS], netns_id: u64, window_ns: u64) -> Option<PathStage> {
    let [family, hook, stage, first, last, packets, lost, measured, sum_ns, median_ns, p99_ns, max_ns, _] = words;
    let priority = |word: u64| i32::try_from(word as i64).ok();
    let known = |ns: u64| (ns != UNKNOWN).then_some(ns);
    let (first, last) = (priority(first)?, priority(last)?);
    Some(PathStage {
        netns_id,
        family: PathFamily::ALL.into_iter().find(|one| *one as u64 == family)?,
        hook: NetfilterHook::ALL.into_iter().find(|one| *one as u64 == hook)?,
        stage: StageName::ALL.into_iter().find(|one| *one as u64 == stage)?,
        priorities: (first <= last).then_some((first, last)),
        packets,
        lost,
        measured,
        sum_ns,
        median_ns: known(median_ns),
        p99_ns: known(p99_ns),
        max_ns: known(max_ns),
        window_ns,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_cut_ones_are_refused() {
        let row = PathStage {
            netns_id: 4,
            family: PathFamily::Ip6,
            hook: NetfilterHook::Output,
            stage: StageName::Conntrack,
            priorities: Some((-200, -199)),
            packets: 100,
            lost: 1,
            measured: 99,
            sum_ns: 5000,
            median_ns: Some(40),
            p99_ns: None,
            max_ns: Some(90),
            window_ns: 7,
        };
        let between = PathStage { stage: StageName::Routing, priorities: None, ..row };
        let block = StageBlock {
            netns_id: 4,
            window_ns: 7,
            strangers: 1,
            places: 64,
            own_ns: 9,
            runs: 3,
            rows: vec![row, between],
        };
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(StageBlock::decode(&bytes).unwrap(), block);
        assert!((0..bytes.len()).all(|length| StageBlock::decode(&bytes[..length]).is_err()));
        bytes[80] = 99;
        assert!(StageBlock::decode(&bytes).is_err(), "such a stage");
    }
}
