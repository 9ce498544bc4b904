//! Which backend the table is read through. Pure: facts in, a backend and the reason out.
//!
//! A backend that lacks a demanded field is out; among the rest the cheapest wins. An entry costs about the same by
//! netlink (2.1 to 2.7 µs) and by /proc (2.2 to 2.5 µs), but a dump by netlink looks into every bucket of the host's
//! table as well, 50 ns each: 13 ms for a namespace that has nothing. /proc looks into them as fast as they can be
//! read. So a small table in a large hash is read by /proc, unless the kernel has a filter to work on.
use record::BackendLacks;
use record::rows::nat_need as need;

use crate::backends::netlink::dump::CtTable;

pub use record::Via;

/// `need` bits that /proc/net/nf_conntrack has no answer for.
pub const PROC_LACKS: u64 = need::STATUS | need::LABELS | need::HELPER | need::MASTER | need::ID | need::EXPIRED;

/// `need` bits that a dump by netlink has no answer for: it evicts what has expired instead of showing it.
pub const NETLINK_LACKS: u64 = need::EXPIRED;

/// `need` bits that the walk has no answer for.
pub const BPF_LACKS: u64 = need::ID | need::MASTER | need::SECCTX;

/// The `need` bits that a recording holds after a run that demanded these by this interface: a dump brings everything
/// whatever is asked, and so does a line of /proc; the walk copies what it is asked for.
pub fn recorded_bits(interface: &str, demanded: u64) -> u64 {
    match interface {
        of if of == Via::Netlink.name() => demanded | !NETLINK_LACKS,
        of if of == Via::Proc.name() => demanded | !PROC_LACKS,
        _ => demanded,
    }
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) table: CtTable,
    /// The demanded `need` bits.
    pub(crate) need: u64,
    /// True if the kernel could filter.
    pub(crate) filters: bool,
    /// What the user wants.
    pub(crate) via: Option<Via>,
    /// In a replay: by which backends the recording holds the table.
    pub(crate) recorded: Option<Recorded>,
    /// Entries of this namespace, and buckets of the host, where known.
    pub(crate) size: Option<(u64, u64)>,
    /// Whether a walk by BPF is possible here and pays.
    pub(crate) walk: WalkVerdict,
}

/// The backends by which a recording holds the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) netlink: bool,
    pub(crate) proc: bool,
    pub(crate) bpf: bool,
}

/// What speaks for or against the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkVerdict {
    /// It pays, for this reason.
    Pays(&'static str),
    /// It cannot be had, or does not pay.
    No,
}

// What the backends cost, in ns of CPU of the whole process (docs/adr/0011): loading the program, an entry of one's
// own and a bucket of the host by the walk; the same by netlink, with and without a filter of the kernel's; an entry
// by /proc.
const WALK_LOAD: u64 = 3_500_000;
const WALK_ENTRY: u64 = 200;
const WALK_BUCKET: u64 = 5;
const NETLINK_ENTRY: u64 = 2_300;
const FILTERED_ENTRY: u64 = 350;
const NETLINK_BUCKET: u64 = 50;
const PROC_ENTRY: u64 = 2_300;

impl WalkVerdict {
    /// Whether the walk is cheaper than the other backends for that many entries and buckets. `loaded`: the program is
    /// there already.
    pub(crate) fn of(entries: u64, buckets: u64, need: u64, filters: bool, loaded: bool) -> WalkVerdict {
        let walk = if loaded { 0 } else { WALK_LOAD } + entries * WALK_ENTRY + buckets * WALK_BUCKET;
        let netlink = entries * if filters { FILTERED_ENTRY } else { NETLINK_ENTRY } + buckets * NETLINK_BUCKET;
        let proc = if need & PROC_LACKS == 0 { entries * PROC_ENTRY } else { u64::MAX };
        match walk < netlink.min(proc) {
            _ if need & BPF_LACKS != 0 => WalkVerdict::No,
            // Nobody else shows what is there after its time.
            _ if need & need::EXPIRED != 0 => WalkVerdict::Pays("only the walk shows what is there after its time"),
            true if loaded => WalkVerdict::Pays("the walk is loaded"),
            true => WalkVerdict::Pays("the walk is cheaper"),
            false => WalkVerdict::No,
        }
    }
}

/// A backend and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) via: Via,
    pub(crate) why: &'static str,
}

impl Choice {
    /// The demanded fields that will be null.
    pub(crate) fn lacks(&self) -> u64 {
        lacks(self.via)
    }
}

fn lacks(via: Via) -> u64 {
    match via {
        Via::Netlink => NETLINK_LACKS,
        Via::Proc => PROC_LACKS,
        Via::Bpf => BPF_LACKS,
    }
}

/// What each backend lacks, the forced one first.
pub(crate) fn backends(forced: Via) -> Vec<BackendLacks> {
    let mut backends = vec![forced];
    backends.extend([Via::Netlink, Via::Bpf, Via::Proc].into_iter().filter(|via| *via != forced));
    backends.into_iter().map(|via| BackendLacks { backend: via.name(), lacks: lacks(via) }).collect()
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
            Recorded { bpf: true, .. } => choice(Via::Bpf, "as recorded"),
            Recorded { netlink: false, proc: true, .. } => choice(Via::Proc, "as recorded"),
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
        return choice(Via::Netlink, "/proc does not have every field");
    }
    match facts.size {
        _ if facts.filters => choice(Via::Netlink, "the kernel filters"),
        Some((entries, buckets)) if entries < buckets / FEW_PER_BUCKET => {
            choice(Via::Proc, "few entries: a dump would look into every bucket of the host")
        }
        _ => choice(Via::Netlink, "the usual one"),
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
        // Neither of the two has it: it is null either way.
        assert_eq!(via(Facts { need: need::EXPIRED, ..FACTS }), Via::Proc);
        assert_eq!(via(Facts { walk: WalkVerdict::Pays("many"), ..FACTS }), Via::Bpf);
    }

    #[test]
    fn the_walk_pays_from_some_size_on() {
        let pays = |entries, buckets, need, filters, loaded| {
            matches!(WalkVerdict::of(entries, buckets, need, filters, loaded), WalkVerdict::Pays(_))
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
        let recorded = |netlink, proc, bpf| Facts { recorded: Some(Recorded { netlink, proc, bpf }), ..FACTS };
        assert_eq!(via(recorded(true, false, false)), Via::Netlink);
        assert_eq!(via(recorded(false, true, false)), Via::Proc);
        assert_eq!(via(recorded(false, false, true)), Via::Bpf);
        assert_eq!(via(Facts { via: Some(Via::Proc), ..recorded(true, false, false) }), Via::Netlink);
        assert_eq!(via(Facts { table: CtTable::Dying, via: Some(Via::Proc), ..FACTS }), Via::Netlink);
    }
}
