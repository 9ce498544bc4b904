//! Samples of one round as rows.
use std::cell::RefCell;

use record::rows::{CallChains, CodeGroup, CpuGroups};
use record::{Accounting, Demand, Each, Next, RowStats, Scan, Source, SourceError, full_scan};
use sys::{Host, SysError};

use crate::error::ProfileError;
use crate::softirq::backend::SamplerBackend;
use crate::softirq::block::{CpuCounts, SampleBlock};
use crate::softirq::reading::ClassifiedBlock;
use crate::softirq::sampler::Sampler;

/// The key of a round on the tape.
const TAPE_KEY: &str = "profile/samples";
const EXPLAIN: &str = "a timer of perf_event_open (cpu-clock) on each CPU; a BPF program counts call chains, or a ring \
                       delivers them; names from /proc/kallsyms";

/// Selects rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleOptions {
    /// True for a row for each CPU.
    pub per_cpu: bool,
    /// True to include rows that do not belong to the network.
    pub all: bool,
}

/// The sampler that is ended by a round; None for a replay.
type OpenSampler = RefCell<Option<Sampler>>;

/// The source of groups.
#[derive(Debug)]
pub struct SampleSource<'h> {
    host: &'h Host,
    options: SampleOptions,
    sampler: &'h OpenSampler,
}

/// The source of call chains.
#[derive(Debug)]
pub struct ChainSource<'h>(SampleSource<'h>);

impl<'h> SampleSource<'h> {
    /// Creates a source for the round that `sampler` has sampled. It takes the sampler and ends it.
    pub fn new(host: &'h Host, options: SampleOptions, sampler: &'h OpenSampler) -> SampleSource<'h> {
        SampleSource { host, options, sampler }
    }

    /// Returns the block of the round. Adds its limitations to `stats`.
    fn block(&self, stats: &mut RowStats) -> Result<SampleBlock, ProfileError> {
        let (mut bytes, mut failure) = (Vec::new(), None);
        let mut sampler = self.sampler.take();
        if let Some(sampler) = &mut sampler {
            let fallen = std::mem::take(&mut sampler.fallen);
            fallen.into_iter().for_each(|why| stats.add_note(why));
        }
        let read = self.host.bytes(TAPE_KEY, "", &mut bytes, |into| {
            let Some(sampler) = sampler else { return Ok(()) };
            sampler.finish(self.host, into).map_err(|error| {
                let error = failure.insert(error);
                SysError::new("read", error.to_string(), sys::Errno::IO)
            })
        });
        match (failure, read) {
            (Some(error), _) => return Err(error),
            (None, read) => read?,
        }
        SampleBlock::decode(&bytes)
    }

    /// Returns true if rows of this group are left out.
    fn leaves_out(&self, group: CodeGroup, block: &SampleBlock) -> bool {
        !self.options.all && !group.is_network() && !block.names_hidden
    }

    fn read_groups(&self, each: &mut Each<'_, CpuGroups>) -> Result<Accounting, SourceError> {
        let mut stats = RowStats::default();
        let block = self.block(&mut stats).map_err(ProfileError::of_samples)?;
        ClassifiedBlock::new(&block).groups(self.options.per_cpu, |row| {
            stats.add_arrived(1);
            if self.leaves_out(row.group, &block) {
                stats.add_filtered();
                return true;
            }
            stats.row();
            each(row) == Next::More
        });
        add_notes(&block, &mut stats);
        Ok(stats.close())
    }

    fn read_chains(&self, each: &mut Each<'_, CallChains>) -> Result<Accounting, SourceError> {
        let mut stats = RowStats::default();
        let block = self.block(&mut stats).map_err(ProfileError::of_samples)?;
        ClassifiedBlock::new(&block).chains(|row| {
            stats.add_arrived(1);
            if self.leaves_out(row.group, &block) {
                stats.add_filtered();
                return true;
            }
            stats.row();
            each(row) == Next::More
        });
        add_notes(&block, &mut stats);
        Ok(stats.close())
    }
}

impl<'h> ChainSource<'h> {
    /// Creates a source for the call chains of the same round.
    pub fn new(host: &'h Host, options: SampleOptions, sampler: &'h OpenSampler) -> ChainSource<'h> {
        ChainSource(SampleSource::new(host, options, sampler))
    }
}

impl Source<CpuGroups> for SampleSource<'_> {
    fn prepare(&self, _: &Demand<CpuGroups>) -> Box<dyn Scan<CpuGroups> + '_> {
        full_scan::<CpuGroups, _>(SamplerBackend::Bpf.name(), EXPLAIN, |each| self.read_groups(each))
    }
}

impl Source<CallChains> for ChainSource<'_> {
    fn prepare(&self, _: &Demand<CallChains>) -> Box<dyn Scan<CallChains> + '_> {
        full_scan::<CallChains, _>(SamplerBackend::Bpf.name(), EXPLAIN, |each| self.0.read_chains(each))
    }
}

/// Adds notes about incomplete samples.
fn add_notes(block: &SampleBlock, stats: &mut RowStats) {
    stats.add_backend(block.backend.name());
    if block.backend == SamplerBackend::Proc {
        stats.incomplete(
            0,
            "/proc/stat shows only the total time of softirqs: the network's part, and the time in system calls, are \
             unknown",
        );
        return;
    }
    let sum = |part: fn(&CpuCounts) -> u64| block.cpus.iter().map(part).fold(0, u64::saturating_add);
    let (lost, unknown) = (sum(|cpu| cpu.lost), sum(|cpu| cpu.unknown));
    if lost > 0 {
        stats.incomplete(lost, "a sample was not counted: too many different call chains");
    }
    if unknown > 0 {
        stats.incomplete(unknown, "a call chain could not be stored: its samples are counted without functions");
    }
    if block.names_hidden {
        stats.incomplete(
            0,
            "samples are not grouped: the kernel hides the names of its functions (needs CAP_SYSLOG, and \
             kernel.kptr_restrict below 2)",
        );
    }
    let expected = u128::from(block.hz) * u128::from(block.round_ns) / 1_000_000_000;
    for cpu in &block.cpus {
        // Some are always missing: the timers of the CPUs start one after the other.
        if u128::from(cpu.samples) * 2 < expected {
            let missing = u64::try_from(expected - u128::from(cpu.samples)).unwrap_or(u64::MAX);
            stats.incomplete(
                missing,
                "a sample was not taken: the kernel limits them (kernel.perf_cpu_time_max_percent), or the hypervisor \
                 ran something else",
            );
        }
    }
}
