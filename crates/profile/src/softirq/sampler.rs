//! Takes samples: with a BPF program, with rings, or from the ticks of /proc/stat.
use std::collections::HashMap;

use sys::symbols::Symbols;
use sys::{Host, Missing, SysError};

use crate::error::ProfileError;
use crate::softirq::backend::SamplerBackend;
use crate::softirq::block::{CountedChain, CpuCounts, SampleBlock};
use crate::softirq::proc_stat;
use crate::softirq::ring::RingSampler;

/// A running sampler. Sampling ends when the value is dropped.
#[derive(Debug)]
pub struct Sampler {
    samples: Samples,
    hz: u32,
    begun_ns: u64,
    /// Why better backends are not used.
    pub(crate) fallen: Vec<String>,
    /// The missing requirement of the last of these; `None` if the best backend is used.
    pub(crate) lacking: Option<Missing>,
}

#[derive(Debug)]
enum Samples {
    #[cfg(feature = "bpf")]
    Bpf(bpf::CpuSamples),
    Ring(RingSampler),
    Proc(Vec<CpuCounts>),
}

impl Sampler {
    /// Starts to sample every CPU `hz` times a second, with the backend `via` or else the best one available. Takes 3
    /// to 8 ms.
    pub fn start(host: &Host, hz: u32, via: Option<SamplerBackend>) -> Result<Sampler, ProfileError> {
        let mut fallen = Vec::new();
        let (mut last, mut lacking) = (ProfileError::WithoutBpf, None);
        for backend in SamplerBackend::ALL.into_iter().filter(|backend| via.is_none_or(|via| via == *backend)) {
            match start(host, hz, backend) {
                Ok(samples) => {
                    return Ok(Sampler { samples, hz, begun_ns: sys::clock::monotonic_ns(), fallen, lacking });
                }
                Err(error) => {
                    fallen.push(format!("not via {}: {error}", backend.name()));
                    lacking = Some(error.missing_requirement());
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Returns the backend in use.
    pub(crate) fn backend(&self) -> SamplerBackend {
        match self.samples {
            #[cfg(feature = "bpf")]
            Samples::Bpf(_) => SamplerBackend::Bpf,
            Samples::Ring(_) => SamplerBackend::Perf,
            Samples::Proc(_) => SamplerBackend::Proc,
        }
    }

    /// Makes room for more samples. Must be called every tenth of a second.
    pub fn empty(&mut self) {
        if let Samples::Ring(ring) = &mut self.samples {
            ring.empty();
        }
    }

    /// Ends sampling and appends the samples to `into` as a block. The names of functions take 50 to 100 ms.
    pub(crate) fn finish(self, host: &Host, into: &mut Vec<u8>) -> Result<(), ProfileError> {
        let (mut is_broken, round_ns) = (false, sys::clock::monotonic_ns().saturating_sub(self.begun_ns));
        let (backend, cpus, mut ways) = match self.samples {
            #[cfg(feature = "bpf")]
            Samples::Bpf(program) => {
                program.stop()?;
                let (cpus, ways) = of_program(&program)?;
                (SamplerBackend::Bpf, cpus, ways)
            }
            Samples::Ring(ring) => {
                let (cpus, ways, broken) = ring.finish();
                is_broken = broken;
                (SamplerBackend::Perf, cpus, ways)
            }
            Samples::Proc(before) => {
                (SamplerBackend::Proc, proc_stat::difference(&before, &proc_stat::read(host)?), Vec::new())
            }
        };
        if is_broken {
            return Err(ProfileError::Malformed("a record of the kernel's ring has no length"));
        }
        // The CPU may have been at the first byte of a function; the other addresses are return addresses.
        ways.iter_mut().filter_map(|way| way.frames.first_mut()).for_each(|at| *at = at.saturating_add(1));
        let (names, names_hidden) = names(host, &ways);
        SampleBlock { backend, names_hidden, round_ns, hz: self.hz, cpus, ways, names }.encode(into);
        Ok(())
    }
}

fn start(host: &Host, hz: u32, backend: SamplerBackend) -> Result<Samples, ProfileError> {
    match backend {
        #[cfg(feature = "bpf")]
        SamplerBackend::Bpf => {
            let program = bpf::CpuSamples::open(host, hz)?;
            program.start()?;
            Ok(Samples::Bpf(program))
        }
        #[cfg(not(feature = "bpf"))]
        SamplerBackend::Bpf => Err(ProfileError::WithoutBpf),
        SamplerBackend::Perf => Ok(Samples::Ring(RingSampler::start(host, hz).map_err(explain_error)?)),
        SamplerBackend::Proc => Ok(Samples::Proc(proc_stat::read(host)?)),
    }
}

/// Adds the missing requirement where the kernel only returns an error number.
fn explain_error(error: SysError) -> SysError {
    match error {
        SysError { errno, call, object } if errno.is_denied() => {
            SysError { errno, call, object: format!("{object} (needs CAP_PERFMON)").into() }
        }
        error => error,
    }
}

#[cfg(feature = "bpf")]
fn of_program(program: &bpf::CpuSamples) -> Result<(Vec<CpuCounts>, Vec<CountedChain>), ProfileError> {
    let cpus = program.tallies()?.into_iter().map(|(cpu, tally)| {
        let bpf::CpuTally { samples, user, lost, unknown } = tally;
        CpuCounts { cpu, samples, user, lost, unknown, softirq: 0 }
    });
    let way = |bpf::SampledChain { frames, cpu, count }| CountedChain { cpu, count, frames };
    Ok((cpus.collect(), program.read_chains()?.into_iter().map(way).collect()))
}

/// Returns the names of all functions in these chains, and whether the kernel hides them.
fn names(host: &Host, ways: &[CountedChain]) -> (HashMap<u64, Vec<u8>>, bool) {
    let mut symbols = Symbols::default();
    let all = || ways.iter().flat_map(|way| way.frames.iter().copied());
    symbols.find(host, all());
    let names = all().map(|address| (address, symbols.name(address).to_vec())).filter(|(_, name)| !name.is_empty());
    (names.collect(), symbols.are_hidden())
}
