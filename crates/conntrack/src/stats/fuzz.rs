//! Everything here that takes bytes of the kernel, for the fuzzer.
use super::{counters, proc_stat, slab};

/// Takes any bytes as a message of ctnetlink, a file of counters, a list of slab caches, a list of netlink sockets:
/// none of it may panic or fail to end.
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
