//! Counters, sizes and settings of connection tracking, of one namespace or of many.
//!
//! Counters come via ctnetlink, or from /proc/net/stat without CAP_NET_ADMIN; both report the same numbers. The table
//! itself is not read, so the cost does not depend on its size (< 0.1 ms), and no entry is evicted. Start reading at
//! [`read`]; [`StatSource`] turns the result into rows.
mod counters;
mod fuzz;
mod proc_stat;
mod rounds;
mod settings;
mod slab;
mod source;

pub use counters::CpuCounts;
pub use fuzz::fuzz_stats;
pub use rounds::StatMemory;
pub use settings::{SETTINGS_DIR, read_number, read_settings};
pub use slab::{ObjectSize, SlabSizes, has_event_listener};
pub use source::{StatOptions, StatSource};

use std::fmt;

use netlink::DumpError;
use record::rows::{CtSettings, NatStat, StatCounts, stat_need};
use sys::{Errno, Host, SysError};

/// The interface through which counters are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatVia {
    /// ctnetlink.
    Netlink,
    /// /proc/net/stat/nf_conntrack.
    Proc,
}

impl StatVia {
    /// Name of the interface.
    pub fn name(self) -> &'static str {
        match self {
            StatVia::Netlink => "netlink",
            StatVia::Proc => "proc",
        }
    }
}

/// Statistics of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Number of entries, including expired ones.
    pub entries: Option<u64>,
    /// `nf_conntrack_max`.
    pub max: Option<u64>,
    /// `nf_conntrack_buckets`.
    pub buckets: Option<u64>,
    /// `nf_conntrack_expect_max`.
    pub expect_max: Option<u64>,
    /// Counters of each CPU; empty if they could not be read.
    pub cpus: Vec<CpuCounts>,
    /// Settings, if they were requested.
    pub settings: Option<CtSettings>,
    /// Interface through which the counters were read.
    pub via: Option<StatVia>,
    /// Why the counters are missing.
    pub without: Option<String>,
    /// Number of skipped attributes that only newer kernels define.
    pub unknown_attrs: u64,
}

impl Stats {
    /// The sum of the counters of all CPUs.
    pub fn sum(&self) -> StatCounts {
        counters::sum(self.cpus.iter().map(|cpu| &cpu.counts))
    }

    /// The sizes as a row.
    fn row(&self, netns_id: u64) -> NatStat<'_> {
        let Stats { entries, max, buckets, expect_max, .. } = *self;
        NatStat { netns_id, entries, max, buckets, expect_max, settings: self.settings.as_ref(), ..NatStat::EMPTY }
    }
}

/// Why nothing of a namespace could be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StatsError {
    /// The kernel has no connection tracking, or its module is not loaded.
    Absent,
    /// Neither interface answered; this is the error of the last one.
    Unreadable(SysError),
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatsError::Absent => {
                f.write_str("this kernel has no connection tracking, or the module nf_conntrack is not loaded")
            }
            StatsError::Unreadable(SysError { errno: Errno::NOT_RECORDED, .. }) => {
                f.write_str("its counters are not in the recording (`netwren record FILE` records everything)")
            }
            StatsError::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StatsError {}

/// Reads sizes and counters of the calling thread's namespace (inode `netns_id`, which names the streams of a
/// recording), and the parts that the bits of `need` ([`stat_need`]) request. `via` limits the counters to one
/// interface.
///
/// Reads four small files and sends two requests to ctnetlink, which need CAP_NET_ADMIN; without it counters come from
/// /proc.
pub fn read(host: &Host, netns_id: u64, need: u64, via: Option<StatVia>) -> Result<Stats, StatsError> {
    let mut stats = Stats::default();
    let size = |name| read_number(host, name, netns_id);
    let entries = size("nf_conntrack_count");
    stats.max = size("nf_conntrack_max").ok();
    stats.buckets = size("nf_conntrack_buckets").ok();
    stats.expect_max = size("nf_conntrack_expect_max").ok();
    stats.entries = entries.as_ref().ok().copied();
    let refused = if via == Some(StatVia::Proc) { None } else { by_netlink(host, netns_id, need, &mut stats).err() };
    let is_wanted = via.is_none() && refused.as_ref().is_some_and(DumpError::is_unavailable);
    if via == Some(StatVia::Proc) || is_wanted {
        match proc_stat::read(host, netns_id) {
            Ok(found) => {
                stats.entries = stats.entries.or(found.entries);
                stats.cpus = found.cpus;
                stats.via = Some(StatVia::Proc);
            }
            Err(error) => stats.without = Some(error.to_string()),
        }
    } else if let Some(error) = refused {
        stats.without = Some(error.to_string());
    }
    if need & stat_need::SETTINGS != 0 {
        stats.settings = Some(read_settings(host, netns_id));
    }
    match entries {
        Err(error) if stats.via.is_none() => Err(match error.errno {
            Errno::NOENT => StatsError::Absent,
            _ => StatsError::Unreadable(error),
        }),
        _ => Ok(stats),
    }
}

fn by_netlink(host: &Host, netns_id: u64, need: u64, stats: &mut Stats) -> Result<(), DumpError> {
    let totals = counters::totals(host, netns_id)?;
    let mut found = counters::per_cpu(host, netns_id)?;
    if need & stat_need::EXPECTATIONS != 0 {
        counters::add_expectations(host, netns_id, &mut found)?;
    }
    stats.entries = totals.entries.or(stats.entries);
    stats.max = totals.max.or(stats.max);
    stats.cpus = found.cpus;
    stats.unknown_attrs = found.unknown_attrs;
    stats.via = Some(StatVia::Netlink);
    Ok(())
}

#[cfg(test)]
mod tests;
