//! Entry point for the fuzzer: every parser of kernel bytes in this module.
use super::{counters, proc_stat, slab};

/// Parses any bytes as a message of ctnetlink, a file of counters, a list of slab caches and a list of netlink sockets.
/// None of these may panic or loop forever.
pub fn fuzz_stats(data: &[u8]) {
    let mut all = counters::PerCpu::default();
    all.add(data);
    let found = proc_stat::parse(data);
    assert!(found.cpus.len() <= counters::CPUS_MAX);
    let _ = counters::sum(found.cpus.iter().chain(&all.cpus).map(|cpu| &cpu.counts));
    if let Some(sizes) = slab::of_slabinfo(data) {
        let _ = (sizes.entry.share(4096), sizes.extension.share(u64::MAX));
    }
    let _ = slab::has_listener(data);
}
