//! Chooses the backend that reads the table. A pure function: facts in, a backend and the reason out.
//!
//! Backends that lack a demanded field are ruled out; the cheapest of the others wins. Per entry, netlink (2.1 to 2.7
//! µs) and /proc (2.2 to 2.5 µs) cost about the same, but a netlink dump also visits every bucket of the host's table,
//! at 50 ns each: 13 ms for an empty namespace. /proc visits them much faster. So /proc reads a small table in a large
//! hash, unless the kernel can filter.
use record::BackendLacks;
use record::rows::nat_need as need;

use crate::table::CtTable;

pub use record::Via;

/// `need` bits that /proc/net/nf_conntrack cannot provide.
pub const PROC_LACKS: u64 = need::STATUS | need::LABELS | need::HELPER | need::MASTER | need::ID | need::EXPIRED;

/// `need` bits that a netlink dump cannot provide: it evicts expired entries instead of showing them.
pub const NETLINK_LACKS: u64 = need::EXPIRED;

/// `need` bits that the walk cannot provide.
pub const BPF_LACKS: u64 = need::ID | need::MASTER | need::SECCTX;

/// The `need` bits that a recording holds if `demanded` was read through `interface`. A netlink dump and a line of
/// /proc always carry everything they have; the walk copies only what was demanded.
pub fn recorded_bits(interface: &str, demanded: u64) -> u64 {
    match interface {
        of if of == Via::Netlink.name() => demanded | !NETLINK_LACKS,
        of if of == Via::Proc.name() => demanded | !PROC_LACKS,
        _ => demanded,
    }
}

/// The input of the choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) table: CtTable,
    /// The demanded `need` bits.
    pub(crate) need: u64,
    /// True if the kernel can do some of the filtering.
    pub(crate) filters: bool,
    /// The backend that the user asked for.
    pub(crate) via: Option<Via>,
    /// For a replay: the backends through which the table was recorded.
    pub(crate) recorded: Option<RecordedBackends>,
    /// Entries of this namespace and buckets of the host, if known.
    pub(crate) size: Option<(u64, u64)>,
    /// Whether a walk with BPF is possible here and pays off.
    pub(crate) walk: WalkVerdict,
}

/// The backends through which the table was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordedBackends {
    pub(crate) netlink: bool,
    pub(crate) proc: bool,
    pub(crate) bpf: bool,
}

/// Whether the walk is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkVerdict {
    /// It pays off, for this reason.
    Pays(&'static str),
    /// It is unavailable or does not pay off.
    No,
}

// Costs of the backends, in ns of CPU time of the whole process (docs/adr/0011): for the walk, loading the program, an
// entry of this namespace and a bucket of the host; for netlink, an entry without and with a kernel filter, and a
// bucket; for /proc, an entry.
const WALK_LOAD: u64 = 3_500_000;
const WALK_ENTRY: u64 = 200;
const WALK_BUCKET: u64 = 5;
const NETLINK_ENTRY: u64 = 2_300;
const FILTERED_ENTRY: u64 = 350;
const NETLINK_BUCKET: u64 = 50;
const PROC_ENTRY: u64 = 2_300;

impl WalkVerdict {
    /// Whether the walk is cheaper than the other backends for `entries` and `buckets`. `loaded`: the program is
    /// already loaded.
    pub(crate) fn compare_costs(entries: u64, buckets: u64, need: u64, filters: bool, loaded: bool) -> WalkVerdict {
        let walk = if loaded { 0 } else { WALK_LOAD } + entries * WALK_ENTRY + buckets * WALK_BUCKET;
        let netlink = entries * if filters { FILTERED_ENTRY } else { NETLINK_ENTRY } + buckets * NETLINK_BUCKET;
        let proc = if need & PROC_LACKS == 0 { entries * PROC_ENTRY } else { u64::MAX };
        match walk < netlink.min(proc) {
            _ if need & BPF_LACKS != 0 => WalkVerdict::No,
            // Only the walk shows expired entries.
            _ if need & need::EXPIRED != 0 => WalkVerdict::Pays("only the walk shows expired entries"),
            true if loaded => WalkVerdict::Pays("the walk is loaded"),
            true => WalkVerdict::Pays("the walk is cheaper"),
            false => WalkVerdict::No,
        }
    }
}

/// A backend and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) via: Via,
    pub(crate) why: &'static str,
}

impl Choice {
    /// The demanded fields that will be null.
    pub(crate) fn missing_need(&self) -> u64 {
        missing_need_of(self.via)
    }
}

fn missing_need_of(via: Via) -> u64 {
    match via {
        Via::Netlink => NETLINK_LACKS,
        Via::Proc => PROC_LACKS,
        Via::Bpf => BPF_LACKS,
    }
}

/// The fields that each backend lacks, the forced one first.
pub(crate) fn backends(forced: Via) -> Vec<BackendLacks> {
    let mut backends = vec![forced];
    backends.extend([Via::Netlink, Via::Bpf, Via::Proc].into_iter().filter(|via| *via != forced));
    backends.into_iter().map(|via| BackendLacks { backend: via.name(), lacks: missing_need_of(via) }).collect()
}

/// Entries per bucket up to which /proc is the cheaper backend.
const FEW_PER_BUCKET: u64 = 8;

pub(crate) fn choose(facts: &Facts) -> Choice {
    let choice = |via, why| Choice { via, why };
    if facts.table != CtTable::Conntrack {
        return choice(Via::Netlink, "only netlink has this table");
    }
    if let Some(recorded) = facts.recorded {
        return match recorded {
            RecordedBackends { bpf: true, .. } => choice(Via::Bpf, "as recorded"),
            RecordedBackends { netlink: false, proc: true, .. } => choice(Via::Proc, "as recorded"),
            _ => choice(Via::Netlink, "as recorded"),
        };
    }
    if let Some(via) = facts.via {
        return choice(via, "asked for");
    }
    if let WalkVerdict::Pays(why) = facts.walk {
        return choice(Via::Bpf, why);
    }
    if facts.need & PROC_LACKS & !NETLINK_LACKS != 0 {
        return choice(Via::Netlink, "/proc does not have all fields");
    }
    match facts.size {
        _ if facts.filters => choice(Via::Netlink, "the kernel filters"),
        Some((entries, buckets)) if entries < buckets / FEW_PER_BUCKET => {
            choice(Via::Proc, "few entries: a dump would read all buckets of the host")
        }
        _ => choice(Via::Netlink, "the default"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        table: CtTable::Conntrack,
        need: 0,
        filters: false,
        via: None,
        recorded: None,
        size: Some((100, 262_144)),
        walk: WalkVerdict::No,
    };

    fn via(facts: Facts) -> Via {
        choose(&facts).via
    }

    #[test]
    fn the_cheapest_that_has_the_fields() {
        assert_eq!(via(FACTS), Via::Proc);
        assert_eq!(via(Facts { size: Some((100_000, 262_144)), ..FACTS }), Via::Netlink);
        assert_eq!(via(Facts { size: None, ..FACTS }), Via::Netlink);
        assert_eq!(via(Facts { filters: true, ..FACTS }), Via::Netlink);
        assert_eq!(via(Facts { need: need::COUNTERS | need::ZONE, ..FACTS }), Via::Proc);
        for bit in [need::STATUS, need::ID, need::LABELS, need::HELPER, need::MASTER] {
            assert_eq!(via(Facts { need: bit, ..FACTS }), Via::Netlink);
        }
        // Neither backend has the field: it is null either way.
        assert_eq!(via(Facts { need: need::EXPIRED, ..FACTS }), Via::Proc);
        assert_eq!(via(Facts { walk: WalkVerdict::Pays("many"), ..FACTS }), Via::Bpf);
    }

    #[test]
    fn the_walk_pays_from_some_size_on() {
        let pays = |entries, buckets, need, filters, loaded| {
            matches!(WalkVerdict::compare_costs(entries, buckets, need, filters, loaded), WalkVerdict::Pays(_))
        };
        assert!(!pays(1_000, 262_144, 0, false, false), "/proc is cheaper");
        assert!(pays(10_000, 262_144, 0, false, false));
        assert!(pays(1_000, 262_144, need::STATUS, false, false), "netlink looks into every bucket");
        assert!(!pays(1_000, 4_096, need::STATUS, false, false));
        assert!(pays(1_000, 4_096, need::STATUS, false, true));
        assert!(pays(100_000, 262_144, 0, true, false));
        assert!(!pays(1_000_000, 262_144, need::ID, false, true), "it does not have that");
        assert!(pays(1, 4_096, need::EXPIRED, false, false));
    }

    #[test]
    fn what_is_asked_for_or_recorded_comes_first() {
        assert_eq!(via(Facts { via: Some(Via::Netlink), ..FACTS }), Via::Netlink);
        let recorded = |netlink, proc, bpf| Facts { recorded: Some(RecordedBackends { netlink, proc, bpf }), ..FACTS };
        assert_eq!(via(recorded(true, false, false)), Via::Netlink);
        assert_eq!(via(recorded(false, true, false)), Via::Proc);
        assert_eq!(via(recorded(false, false, true)), Via::Bpf);
        assert_eq!(via(Facts { via: Some(Via::Proc), ..recorded(true, false, false) }), Via::Netlink);
        assert_eq!(via(Facts { table: CtTable::Dying, via: Some(Via::Proc), ..FACTS }), Via::Netlink);
    }
}
