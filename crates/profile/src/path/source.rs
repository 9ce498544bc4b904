//! Stages of one round as rows.
use std::cell::RefCell;

use record::rows::PathStages;
use record::{Accounting, Demand, Each, Next, RowStats, Scan, Source, SourceError, full_scan};
use sys::{Errno, Host, SysError};

use crate::error::ProfileError;
use crate::path::block::StageBlock;
use crate::path::probe::StageProbe;

/// The key of a round on the tape.
const TAPE_KEY: &str = "profile/stages";
const EXPLAIN: &str = "BPF programs at priorities between netfilter's own hook functions count packets and read the \
                       clock";

/// The source of stages.
#[derive(Debug)]
pub struct StageSource<'h> {
    host: &'h Host,
    netns_id: u64,
    /// True to include stages that no packet reached.
    all: bool,
    probe: &'h RefCell<Option<StageProbe>>,
}

impl<'h> StageSource<'h> {
    /// Creates a source for the round that `probe` has measured in this namespace. It takes the probe and ends it.
    pub fn new(host: &'h Host, netns_id: u64, all: bool, probe: &'h RefCell<Option<StageProbe>>) -> StageSource<'h> {
        StageSource { host, netns_id, all, probe }
    }

    /// Returns the block of the round. Adds its limitations to `stats`.
    fn block(&self, stats: &mut RowStats) -> Result<StageBlock, ProfileError> {
        let (mut bytes, mut failure) = (Vec::new(), None);
        let probe = self.probe.take();
        if let Some(probe) = &probe {
            probe.describe_moved().into_iter().for_each(|note| stats.add_note(note));
        }
        let read = self.host.bytes(TAPE_KEY, "", &mut bytes, |into| {
            let Some(probe) = probe else { return Ok(()) };
            probe.finish(self.netns_id, into).map_err(|error| {
                let error = failure.insert(error);
                SysError::new("read", error.to_string(), Errno::IO)
            })
        });
        match (failure, read) {
            (Some(error), _) => return Err(error),
            (None, read) => read?,
        }
        StageBlock::decode(&bytes)
    }

    fn read(&self, each: &mut Each<'_, PathStages>) -> Result<Accounting, SourceError> {
        let mut stats = RowStats::default();
        let block = self.block(&mut stats).map_err(ProfileError::of_stages)?;
        stats.add_backend("bpf");
        for row in &block.rows {
            stats.add_arrived(1);
            if row.packets == 0 && !self.all {
                stats.add_filtered();
                continue;
            }
            stats.row();
            if each(row) == Next::Stop {
                break;
            }
        }
        add_notes(&block, &mut stats);
        Ok(stats.close())
    }
}

impl Source<PathStages> for StageSource<'_> {
    fn prepare(&self, _: &Demand<PathStages>) -> Box<dyn Scan<PathStages> + '_> {
        full_scan::<PathStages, _>("bpf", EXPLAIN, |each| self.read(each))
    }
}

/// Adds notes about the cost of the measurement, and about time that is not included.
fn add_notes(block: &StageBlock, stats: &mut RowStats) {
    if let Some(each_ns) = block.own_ns.checked_div(block.runs) {
        stats.add_note(format!(
            "{} points were measured: the program took {each_ns} ns per packet at each of them; the stage `empty` \
             includes the call",
            block.places
        ));
    }
    if block.strangers > 0 {
        stats.add_note(format!(
            "{} times a packet reached a point without having been seen at the previous one (another CPU, another \
             buffer): it is counted, but its time is unknown",
            block.strangers
        ));
    }
}
