//! Samples of the kernel's activity on each CPU, driven by a timer (`c/cpu_samples.bpf.c`).
//!
//! Needs Linux 5.10, CAP_BPF and CAP_PERFMON; no BTF. Sampling ends when the value is dropped or the process ends.
use std::collections::HashMap;

use sys::perf::{CpuClock, online_cpus};
use sys::{Errno, Host, SysError};

use crate::error::BpfError;
use crate::kernel_types::KernelTypes;
use crate::load::{LoadSpec, LoadedObject, load_with};
use crate::object::{u32_at, u64_at};

const OBJECT: &[u8] = include_bytes!("../objects/cpu_samples.o");
const PROGRAM: &str = "on_sample";
/// Bound: counts of call chains and CPUs of `doctor softirq`. Beyond: further samples are counted as lost (exit code
/// 3). This also affects other users. By: programs that reach the kernel's network code in very many ways.
const COUNTS_MAX: u32 = 8192;
/// Bound: call chains whose functions are known. Beyond: samples of further chains are counted without functions (exit
/// code 3). This also affects other users. By: programs that reach the kernel's network code in very many ways.
const CHAINS_MAX: u32 = 4096;
/// `struct tally`
const TALLY_BYTES: usize = 32;

/// The program, attached to a timer on every online CPU.
#[derive(Debug)]
pub struct CpuSamples {
    loaded: LoadedObject,
    clocks: Vec<CpuClock>,
}

/// The samples of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTally {
    /// Number of all samples.
    pub samples: u64,
    /// Number of samples in user space.
    pub user: u64,
    /// Number of samples that were not counted because the map was full.
    pub lost: u64,
    /// Number of samples counted without their functions because the map of call chains was full.
    pub unknown: u64,
}

/// A call chain and the number of times a CPU was sampled in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledChain {
    /// Addresses of the functions, innermost first; empty if unknown.
    pub frames: Vec<u64>,
    /// The CPU.
    pub cpu: u32,
    /// Number of samples.
    pub count: u64,
}

impl CpuSamples {
    /// Loads the program and attaches it to a timer on each CPU, with `hz` samples per second: takes 2 to 5 ms.
    /// Counting begins with [`CpuSamples::start`].
    pub fn open(host: &Host, hz: u32) -> Result<CpuSamples, BpfError> {
        let loaded = load()?;
        let mut clocks = Vec::new();
        for cpu in online_cpus(host)? {
            let clock = match CpuClock::open(cpu, hz) {
                Ok(clock) => clock,
                // The CPU went offline in the meantime.
                Err(SysError { errno: Errno::NODEV, .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            loaded.program(PROGRAM)?.run_at(&clock)?;
            clocks.push(clock);
        }
        Ok(CpuSamples { loaded, clocks })
    }

    /// Loads the program and unloads it again.
    pub fn try_load() -> Result<(), BpfError> {
        load().map(drop)
    }

    /// Starts the timers. One system call per CPU.
    pub fn start(&self) -> Result<(), BpfError> {
        Ok(self.clocks.iter().try_for_each(CpuClock::start)?)
    }

    /// Stops the timers. One system call per CPU.
    pub fn stop(&self) -> Result<(), BpfError> {
        Ok(self.clocks.iter().try_for_each(CpuClock::stop)?)
    }

    /// The sampled CPUs with their counts. One system call.
    pub fn tallies(&self) -> Result<Vec<(u32, CpuTally)>, BpfError> {
        let map = self.loaded.map("tallies")?;
        let mut all = vec![0; map.value_bytes()];
        map.get(&0_u32.to_ne_bytes(), &mut all)?;
        let of = |clock: &CpuClock| {
            let at = clock.cpu() as usize * TALLY_BYTES;
            let word = |n: usize| u64_at(&all, at + n * 8).unwrap_or(0);
            (clock.cpu(), CpuTally { samples: word(0), user: word(1), lost: word(2), unknown: word(3) })
        };
        Ok(self.clocks.iter().map(of).collect())
    }

    /// Every call chain with the CPUs that were sampled in it. One system call per thousand.
    pub fn read_chains(&self) -> Result<Vec<SampledChain>, BpfError> {
        let mut frames: HashMap<u64, Vec<u64>> = HashMap::new();
        self.loaded.map("ways")?.for_each(|key, value| {
            let words = value.chunks_exact(8).filter_map(|word| u64_at(word, 0));
            frames.insert(u64_at(key, 0).unwrap_or(0), words.take_while(|word| *word != 0).collect());
        })?;
        let mut all = Vec::new();
        self.loaded.map("counts")?.for_each(|key, value| {
            let hash = u64_at(key, 0).unwrap_or(0);
            all.push(SampledChain {
                frames: frames.get(&hash).cloned().unwrap_or_default(),
                cpu: u32_at(key, 8).unwrap_or(0),
                count: u64_at(value, 0).unwrap_or(0),
            });
        })?;
        Ok(all)
    }
}

fn load() -> Result<LoadedObject, BpfError> {
    let entries = [("counts", COUNTS_MAX), ("ways", CHAINS_MAX)];
    let spec = LoadSpec { object: OBJECT, programs: &[PROGRAM], constants: &[], entries: &entries };
    load_with(&KernelTypes::empty(), &spec)
}
