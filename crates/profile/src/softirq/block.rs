//! The samples of one round as bytes, for recordings and for rows.
//!
//! ```text
//! header  magic, backend, flags, ns of the round, wanted samples a second, number of CPUs, number of ways
//! CPUs    number, samples, in user space, lost, without functions, in softirqs
//! ways    CPU, samples, number of functions, their addresses, the innermost first
//! names   lines of address, blank, name, newline
//! ```
use std::collections::HashMap;

use crate::error::ProfileError;
use crate::softirq::backend::SamplerBackend;
use crate::words::{put, take};

/// `netwren doctor softirq`, and the version of this layout.
const MAGIC: u64 = u64::from_ne_bytes(*b"nwsampl1");
/// The flag for names that the kernel hides.
const NAMES_HIDDEN: u64 = 1;
/// Limits for the contents of a block.
const CPUS_MAX: u64 = 1 << 16;
const FRAMES_MAX: u64 = 1 << 10;

/// The counts of one CPU's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuCounts {
    pub(crate) cpu: u32,
    /// All samples. For /proc/stat, all ticks.
    pub(crate) samples: u64,
    /// Samples in user space.
    pub(crate) user: u64,
    /// Samples that are missing from all other counts.
    pub(crate) lost: u64,
    /// Samples without functions.
    pub(crate) unknown: u64,
    /// Ticks in softirqs, from /proc/stat. 0 for samples, whose functions show it.
    pub(crate) softirq: u64,
}

/// A call chain and how often it was sampled on a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CountedChain {
    pub(crate) cpu: u32,
    pub(crate) count: u64,
    pub(crate) frames: Vec<u64>,
}

/// The samples of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleBlock {
    pub(crate) backend: SamplerBackend,
    pub(crate) names_hidden: bool,
    pub(crate) round_ns: u64,
    pub(crate) hz: u32,
    pub(crate) cpus: Vec<CpuCounts>,
    pub(crate) ways: Vec<CountedChain>,
    pub(crate) names: HashMap<u64, Vec<u8>>,
}

impl SampleBlock {
    /// Appends the encoded block to `into`.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        let flags = if self.names_hidden { NAMES_HIDDEN } else { 0 };
        let (cpus, ways) = (self.cpus.len() as u64, self.ways.len() as u64);
        put(into, &[MAGIC, self.backend as u64, flags, self.round_ns, self.hz.into(), cpus, ways]);
        for cpu in &self.cpus {
            put(into, &[cpu.cpu.into(), cpu.samples, cpu.user, cpu.lost, cpu.unknown, cpu.softirq]);
        }
        for way in &self.ways {
            put(into, &[way.cpu.into(), way.count, way.frames.len() as u64]);
            put(into, &way.frames);
        }
        for (address, name) in &self.names {
            into.extend_from_slice(format!("{address:x} ").as_bytes());
            // The kernel's names contain no white space.
            into.extend(name.iter().filter(|byte| !byte.is_ascii_whitespace()));
            into.push(b'\n');
        }
    }

    /// Decodes a block. Never panics, for any bytes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<SampleBlock, ProfileError> {
        let bytes = &mut bytes;
        let [magic, backend, flags, round_ns, hz, cpus, ways] = take(bytes)?;
        let wrong = ProfileError::Malformed("samples of another version");
        if magic != MAGIC || cpus > CPUS_MAX {
            return Err(wrong);
        }
        let backend = SamplerBackend::ALL.into_iter().find(|one| *one as u64 == backend).ok_or(wrong.clone())?;
        let number = |word: u64| u32::try_from(word).map_err(|_| wrong.clone());
        let mut block = SampleBlock {
            backend,
            names_hidden: flags & NAMES_HIDDEN != 0,
            round_ns,
            hz: number(hz)?,
            cpus: Vec::new(),
            ways: Vec::new(),
            names: HashMap::new(),
        };
        for _ in 0..cpus {
            let [cpu, samples, user, lost, unknown, softirq] = take(bytes)?;
            block.cpus.push(CpuCounts { cpu: number(cpu)?, samples, user, lost, unknown, softirq });
        }
        for _ in 0..ways {
            let [cpu, count, frames] = take(bytes)?;
            let frames = if frames <= FRAMES_MAX { frames } else { return Err(wrong) };
            let frames = (0..frames).map(|_| take(bytes).map(|[frame]| frame)).collect::<Result<_, _>>()?;
            block.ways.push(CountedChain { cpu: number(cpu)?, count, frames });
        }
        block.names = bytes.split(|byte| *byte == b'\n').filter_map(name_of).collect();
        Ok(block)
    }
}

/// `ffffffff81000000 name`
fn name_of(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let (address, name) = line.split_at_checked(blank)?;
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((address, name.get(1..)?.to_vec()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_cut_ones_are_refused() {
        let block = SampleBlock {
            backend: SamplerBackend::Perf,
            names_hidden: true,
            round_ns: 7,
            hz: 999,
            cpus: vec![CpuCounts { cpu: 3, samples: 100, user: 20, lost: 1, unknown: 2, softirq: 4 }],
            ways: vec![CountedChain { cpu: 3, count: 9, frames: vec![u64::MAX, 5] }, CountedChain::default()],
            names: [(u64::MAX, b"tcp_v4_rcv".to_vec())].into(),
        };
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(SampleBlock::decode(&bytes).unwrap(), block);
        let names = "ffffffffffffffff tcp_v4_rcv\n".len();
        for length in 0..bytes.len() - names {
            assert!(SampleBlock::decode(&bytes[..length]).is_err(), "{length}");
        }
        bytes[40..48].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert!(SampleBlock::decode(&bytes).is_err(), "so many CPUs");
    }
}
