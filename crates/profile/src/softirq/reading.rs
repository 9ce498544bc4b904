//! Adds up samples by group and CPU, and by call chain.
use std::cmp::Reverse;
use std::collections::HashMap;

use record::rows::{CallChain, CodeContext, CodeGroup, CpuGroup};

use crate::groups::{ChainKind, FunctionPart, function_part, kind_of};
use crate::softirq::backend::SamplerBackend;
use crate::softirq::block::{CountedChain, SampleBlock};

/// 100 percent in thousandths of a percent.
const WHOLE_SHARE: u128 = 100_000;

/// A block with classified call chains.
#[derive(Debug)]
pub(crate) struct ClassifiedBlock<'b> {
    block: &'b SampleBlock,
    /// The classification of each chain.
    kinds: Vec<ChainKind>,
}

/// The counts of a group.
#[derive(Debug, Clone, Default)]
struct GroupCounts {
    samples: u64,
    /// Samples by CPU, and how many of them are in softirqs.
    cpus: HashMap<u32, (u64, u64)>,
    /// Samples by the address of the function that decided.
    functions: HashMap<u64, u64>,
}

/// The counts of a call chain.
#[derive(Debug)]
struct ChainCounts<'b> {
    kind: ChainKind,
    /// One of the entries with these functions.
    way: &'b CountedChain,
    samples: u64,
    percent: u64,
    /// Samples of each CPU.
    cpus: HashMap<u32, u64>,
}

impl<'b> ClassifiedBlock<'b> {
    /// Classifies every chain.
    pub(crate) fn new(block: &'b SampleBlock) -> ClassifiedBlock<'b> {
        let mut parts: HashMap<u64, FunctionPart> = HashMap::new();
        let mut part = |address: u64| {
            let name = || block.names.get(&address).map_or(&[][..], |name| name);
            *parts.entry(address).or_insert_with(|| function_part(name()))
        };
        let kinds = block.ways.iter().map(|way| kind_of(way.frames.iter().map(|at| part(*at)))).collect();
        ClassifiedBlock { block, kinds }
    }

    fn chains_with_kinds(&self) -> impl Iterator<Item = (&'b CountedChain, &ChainKind)> {
        self.block.ways.iter().zip(&self.kinds)
    }

    /// Returns which part of a CPU's time these `samples` are.
    fn percent(&self, cpu: u32, samples: u64) -> u64 {
        let all = self.block.cpus.iter().find(|one| one.cpu == cpu).map_or(0, |one| one.samples);
        scaled_share(samples, all)
    }

    /// Passes groups to `each`, those with the most time first, until it returns false. With `per_cpu`, there are
    /// separate groups for each CPU, sorted by CPU.
    pub(crate) fn groups(&self, per_cpu: bool, each: impl FnMut(&CpuGroup<'_>) -> bool) {
        let mut groups: HashMap<(CodeGroup, Option<u32>), GroupCounts> = HashMap::new();
        let mut add = |group, cpu: u32, samples: u64, is_softirq: bool, function: Option<u64>| {
            let counts = groups.entry((group, per_cpu.then_some(cpu))).or_default();
            let add = |to: &mut u64, number: u64| *to = to.saturating_add(number);
            let (of_cpu, in_softirq) = counts.cpus.entry(cpu).or_default();
            add(&mut counts.samples, samples);
            add(of_cpu, samples);
            add(in_softirq, if is_softirq { samples } else { 0 });
            if let Some(function) = function {
                add(counts.functions.entry(function).or_default(), samples);
            }
        };
        for (way, kind) in self.chains_with_kinds() {
            let function = kind.decided_by.and_then(|at| way.frames.get(at)).copied();
            add(kind.group, way.cpu, way.count, kind.context == CodeContext::Softirq, function);
        }
        for cpu in &self.block.cpus {
            for (group, samples) in [(CodeGroup::User, cpu.user), (CodeGroup::Softirq, cpu.softirq)] {
                // /proc/stat only shows softirqs; that there were none is a result too.
                let is_answer = group == CodeGroup::Softirq && self.block.backend == SamplerBackend::Proc;
                if samples > 0 || is_answer {
                    add(group, cpu.cpu, samples, group == CodeGroup::Softirq, None);
                }
            }
        }
        let mut rows: Vec<_> = groups.iter().map(|((group, cpu), counts)| self.row(*group, *cpu, counts)).collect();
        rows.sort_by_key(|row| (row.cpu, Reverse(row.percent), row.group));
        // Stops when `each` returns false.
        let _ = rows.iter().all(each);
    }

    fn row(&self, group: CodeGroup, cpu: Option<u32>, counts: &GroupCounts) -> CpuGroup<'b> {
        let percents = |part: fn(&(u64, u64)) -> u64| {
            counts.cpus.iter().map(move |(cpu, samples)| (*cpu, self.percent(*cpu, part(samples))))
        };
        let sum = |part| percents(part).map(|(_, percent)| percent).fold(0, u64::saturating_add);
        // Functions are counted by address; several addresses may have the same name.
        let mut names: HashMap<&[u8], u64> = HashMap::new();
        for (address, samples) in &counts.functions {
            let of_name = names.entry(self.name(*address)).or_default();
            *of_name = of_name.saturating_add(*samples);
        }
        let most = names.into_iter().max_by_key(|(name, samples)| (*samples, Reverse(*name)));
        let is_kernel = !matches!(group, CodeGroup::User | CodeGroup::Idle);
        CpuGroup {
            group,
            cpu,
            samples: (self.block.backend != SamplerBackend::Proc).then_some(counts.samples),
            percent: sum(|(all, _)| *all),
            softirq_percent: is_kernel.then(|| sum(|(_, in_softirq)| *in_softirq)),
            busiest: percents(|(all, _)| *all).max_by_key(|(cpu, percent)| (*percent, Reverse(*cpu))),
            function: most.map_or(&[], |(name, _)| name),
            function_percent: most.map(|(_, samples)| scaled_share(samples, counts.samples)),
            window_ns: self.block.round_ns,
        }
    }

    fn name(&self, address: u64) -> &'b [u8] {
        self.block.names.get(&address).map_or(&[], |name| name)
    }

    /// Passes call chains to `each`, those with the most samples first, until it returns false. Chains with the same
    /// functions are merged.
    pub(crate) fn chains(&self, mut each: impl FnMut(&CallChain<'_>) -> bool) {
        let mut chains: HashMap<Vec<u8>, ChainCounts<'_>> = HashMap::new();
        for (way, kind) in self.chains_with_kinds() {
            let new = || ChainCounts { kind: *kind, way, samples: 0, percent: 0, cpus: HashMap::new() };
            let counts = chains.entry(self.stack(way)).or_insert_with(new);
            let add = |to: &mut u64, number: u64| *to = to.saturating_add(number);
            add(&mut counts.samples, way.count);
            add(&mut counts.percent, self.percent(way.cpu, way.count));
            add(counts.cpus.entry(way.cpu).or_default(), way.count);
        }
        let mut chains: Vec<_> = chains.into_iter().collect();
        chains.sort_by(|(a, of_a), (b, of_b)| of_b.samples.cmp(&of_a.samples).then(a.cmp(b)));
        for (stack, ChainCounts { kind, way, samples, percent, cpus }) in &chains {
            let frame = |at: usize| way.frames.get(at).map_or(&[][..], |address| self.name(*address));
            let row = CallChain {
                group: kind.group,
                context: kind.context,
                samples: *samples,
                percent: *percent,
                cpu: cpus.iter().max_by_key(|(cpu, count)| (**count, Reverse(**cpu))).map_or(0, |(cpu, _)| *cpu),
                innermost: frame(0),
                function: kind.decided_by.map_or(&[], frame),
                stack,
            };
            if !each(&row) {
                return;
            }
        }
    }

    /// Returns the names of the functions, or their addresses, joined by commas.
    fn stack(&self, way: &CountedChain) -> Vec<u8> {
        let mut stack = Vec::new();
        for address in &way.frames {
            if !stack.is_empty() {
                stack.push(b',');
            }
            match self.name(*address) {
                [] => {
                    stack.extend_from_slice(b"0x");
                    record::text::put_hex(&mut stack, *address);
                }
                name => stack.extend_from_slice(name),
            }
        }
        stack
    }
}

fn scaled_share(part: u64, whole: u64) -> u64 {
    let thousandths = (u128::from(part) * WHOLE_SHARE).checked_div(whole.into()).unwrap_or(0);
    u64::try_from(thousandths).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::softirq::block::CpuCounts;

    fn block() -> SampleBlock {
        let names: [(u64, &[u8]); 7] = [
            (1, b"nf_conntrack_in"),
            (2, b"nf_hook_slow"),
            (3, b"handle_softirqs"),
            (4, b"tcp_sendmsg"),
            (5, b"do_idle"),
            (6, b"memcmp"),
            (7, b"nf_conntrack_in"),
        ];
        let way = |cpu, count, frames: &[u64]| CountedChain { cpu, count, frames: frames.to_vec() };
        let cpu = |cpu, user| CpuCounts { cpu, samples: 1000, user, ..CpuCounts::default() };
        SampleBlock {
            backend: SamplerBackend::Bpf,
            names_hidden: false,
            round_ns: 1_000_000_000,
            hz: 1000,
            cpus: vec![cpu(0, 100), cpu(1, 0)],
            ways: vec![
                way(0, 300, &[6, 1, 2, 3]),
                way(1, 100, &[7, 2, 3]),
                way(1, 50, &[2, 3]),
                way(0, 20, &[4]),
                way(1, 850, &[5]),
            ],
            names: names.into_iter().map(|(address, name)| (address, name.to_vec())).collect(),
        }
    }

    #[test]
    fn groups_of_all_cpus_and_of_each() {
        let (block, mut rows) = (block(), Vec::new());
        let judged = ClassifiedBlock::new(&block);
        judged.groups(false, |row| {
            rows.push((row.group.name(), row.samples, row.percent, row.softirq_percent, row.busiest));
            if row.group == CodeGroup::Conntrack {
                assert_eq!((row.function, row.function_percent), (&b"nf_conntrack_in"[..], Some(100_000)));
            }
            true
        });
        assert_eq!(
            rows,
            [
                ("idle", Some(850), 85_000, None, Some((1, 85_000))),
                ("conntrack", Some(400), 40_000, Some(40_000), Some((0, 30_000))),
                ("user", Some(100), 10_000, None, Some((0, 10_000))),
                ("rules", Some(50), 5_000, Some(5_000), Some((1, 5_000))),
                ("tcp", Some(20), 2_000, Some(0), Some((0, 2_000))),
            ]
        );
        let mut of_cpus = Vec::new();
        judged.groups(true, |row| {
            of_cpus.push((row.cpu, row.group.name(), row.percent));
            of_cpus.len() < 5
        });
        let first = [(Some(0), "conntrack", 30_000), (Some(0), "user", 10_000), (Some(0), "tcp", 2_000)];
        assert_eq!(of_cpus, [&first[..], &[(Some(1), "idle", 85_000), (Some(1), "conntrack", 10_000)]].concat());
    }

    #[test]
    fn chains_of_the_same_functions_are_one() {
        let mut block = block();
        block.ways.push(CountedChain { cpu: 0, count: 900, frames: vec![1, 2, 3] });
        let mut rows = Vec::new();
        ClassifiedBlock::new(&block).chains(|row| {
            let stack = String::from_utf8_lossy(row.stack).into_owned();
            rows.push((row.samples, row.group.name(), row.context.name(), row.cpu, stack));
            rows.len() < 2
        });
        assert_eq!(rows[0], (1000, "conntrack", "softirq", 0, "nf_conntrack_in,nf_hook_slow,handle_softirqs".into()));
        assert_eq!(rows[1].1, "idle");
    }
}
