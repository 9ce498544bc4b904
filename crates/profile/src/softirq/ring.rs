//! Samples without BPF: each CPU's ring delivers the call chain of every sample, and they are counted here.
use std::collections::HashMap;

use sys::perf::{CallChains, online_cpus};
use sys::{Errno, Host, SysError};

use crate::softirq::block::{CountedChain, CpuCounts};

/// The same number of different chains as the BPF program keeps.
///
/// Bound: call chains of `doctor softirq`. Beyond: samples of further chains are counted without functions (exit code
/// 3). This also affects other users. By: programs that reach the kernel's network code in very many ways.
const WAYS_MAX: usize = 8192;
/// The longest call chain.
///
/// Bound: functions of a call chain. Beyond: longer chains are cut at their outer end. By: a broken kernel.
const DEPTH: u16 = 96;

/// The rings of all CPUs.
#[derive(Debug)]
pub(crate) struct RingSampler {
    rings: Vec<(CallChains, CpuCounts)>,
    ways: HashMap<(u32, Vec<u64>), u64>,
    is_broken: bool,
}

impl RingSampler {
    /// Opens a ring for each online CPU and starts its timer.
    pub(crate) fn start(host: &Host, hz: u32) -> Result<RingSampler, SysError> {
        let mut rings = Vec::new();
        for cpu in online_cpus(host)? {
            match CallChains::open(cpu, hz, DEPTH) {
                Ok(ring) => rings.push((ring, CpuCounts { cpu, ..CpuCounts::default() })),
                Err(error) if error.errno == Errno::NODEV => {}
                Err(error) => return Err(error),
            }
        }
        rings.iter().try_for_each(|(ring, _)| ring.clock().start())?;
        Ok(RingSampler { rings, ways: HashMap::new(), is_broken: false })
    }

    /// Counts the samples in the rings. Must be called every tenth of a second.
    pub(crate) fn empty(&mut self) {
        for (ring, counts) in &mut self.rings {
            let (ways, cpu) = (&mut self.ways, counts.cpu);
            let (mut samples, mut user, mut lost) = (0, 0, 0);
            let loss = ring.take(&mut |chain| {
                samples += 1;
                if chain.is_empty() {
                    user += 1;
                } else if let Some(count) = ways.get_mut(&(cpu, chain.to_vec())) {
                    *count += 1;
                } else if ways.len() < WAYS_MAX {
                    ways.insert((cpu, chain.to_vec()), 1);
                } else {
                    lost += 1;
                }
            });
            counts.samples += samples + loss.full;
            counts.user += user;
            counts.lost += lost + loss.full;
            self.is_broken |= loss.is_broken;
        }
    }

    /// Stops the timers and returns the counts, and whether a ring was malformed.
    pub(crate) fn finish(mut self) -> (Vec<CpuCounts>, Vec<CountedChain>, bool) {
        // A timer that cannot be stopped ends with its descriptor.
        self.rings.iter().for_each(|(ring, _)| drop(ring.clock().stop()));
        self.empty();
        let ways = self.ways.into_iter().map(|((cpu, frames), count)| CountedChain { cpu, count, frames }).collect();
        (self.rings.iter().map(|(_, counts)| *counts).collect(), ways, self.is_broken)
    }
}
