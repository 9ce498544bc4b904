//! Translates a filter for the walk of the hash table, which can apply nearly all of it before it writes a row.
//!
//! The engine filters the rows again, so the translation need not be exact: it only must never exclude a row that
//! passes the filter.
use record::rows::{CtState, Nat};
use record::{Addr, EndpointTest, Expr, FilterPushdown, Op, Operand, Prefix, Table, Test};

use crate::kernel_filter::{KernelFilter, TupleFilter};
use crate::pushdown::{SplitFilter, number, put, split};

/// Conditions on entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WalkFilter {
    /// 2 AF_INET, 10 AF_INET6, 0 both.
    pub(crate) family: u8,
    /// Status bits: value and mask.
    pub(crate) status: Option<(u32, u32)>,
    /// Mark: value and mask.
    pub(crate) mark: Option<(u32, u32)>,
    /// Zone.
    pub(crate) zone: Option<u16>,
    /// States, one bit each: TCP states from bit 0, SCTP states from bit 16, DCCP states from bit 32.
    pub(crate) states: Option<u64>,
    pub(crate) orig: TupleConditions,
    pub(crate) reply: TupleConditions,
}

/// Conditions on a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TupleConditions {
    pub(crate) proto: Option<u8>,
    pub(crate) src: Option<Prefix>,
    pub(crate) dst: Option<Prefix>,
    pub(crate) sport: Option<u16>,
    pub(crate) dport: Option<u16>,
}

impl TupleConditions {
    fn from_tuple_filter(filter: &TupleFilter) -> TupleConditions {
        let TupleFilter { src, dst, proto, sport, dport } = *filter;
        TupleConditions { proto, src: src.map(Prefix::host), dst: dst.map(Prefix::host), sport, dport }
    }
}

impl WalkFilter {
    /// Returns the filter, and for each conjunct whether it was pushed down.
    pub(crate) fn from_conjuncts(conjuncts: &[Expr]) -> (WalkFilter, Vec<FilterPushdown>) {
        let SplitFilter { filter, mut pushdown } = split(conjuncts, || true);
        let mut walk = WalkFilter::by_kernel(&filter);
        for (part, push) in
            conjuncts.iter().zip(&mut pushdown).filter(|(_, push)| **push == FilterPushdown::Unsupported)
        {
            if walk.take(part) {
                *push = FilterPushdown::Inexact;
            }
        }
        (walk, pushdown)
    }

    /// The conditions that netlink would apply.
    pub(crate) fn by_kernel(filter: &KernelFilter) -> WalkFilter {
        WalkFilter {
            family: filter.family,
            status: filter.status,
            mark: filter.mark,
            zone: filter.zone,
            states: None,
            orig: TupleConditions::from_tuple_filter(&filter.orig),
            reply: TupleConditions::from_tuple_filter(&filter.reply),
        }
    }

    /// True if the filter excludes nothing.
    pub(crate) fn is_any(&self) -> bool {
        *self == WalkFilter::default()
    }

    /// Describes the filter, for the notes of a recording and for `--explain`.
    pub(crate) fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |is: bool, name: &str| {
            if is {
                words.push(name.to_owned());
            }
        };
        add(self.family != 0, "family");
        add(self.status.is_some(), "status");
        add(self.mark.is_some(), "mark");
        add(self.zone.is_some(), "zone");
        add(self.states.is_some(), "state");
        for (ends, of) in [(&self.orig, ""), (&self.reply, "reply ")] {
            let each = [
                (ends.proto.is_some(), "protocol"),
                (ends.src.is_some(), "source"),
                (ends.dst.is_some(), "destination"),
                (ends.sport.is_some(), "source port"),
                (ends.dport.is_some(), "destination port"),
            ];
            each.into_iter().for_each(|(is, name)| add(is, &format!("{of}{name}")));
        }
        words.join(", ")
    }

    // Takes conditions that netlink cannot express: states, prefixes, ports of any protocol.
    fn take(&mut self, part: &Expr) -> bool {
        let Expr::Test(test) = part else { return false };
        let (orig, reply) = (&mut self.orig, &mut self.reply);
        match Nat::FIELDS.get(test.field).map_or("", |field| field.name) {
            "state" => states(test).is_some_and(|states| put(&mut self.states, Some(states))),
            "orig_src" => put(&mut orig.src, prefix(test)),
            "orig_dst" => put(&mut orig.dst, prefix(test)),
            "reply_src" => put(&mut reply.src, prefix(test)),
            "reply_dst" => put(&mut reply.dst, prefix(test)),
            "orig_sport" => put(&mut orig.sport, number(test)),
            "orig_dport" => put(&mut orig.dport, number(test)),
            "reply_sport" => put(&mut reply.sport, number(test)),
            "reply_dport" => put(&mut reply.dport, number(test)),
            "client" => put_end(&mut orig.src, &mut orig.sport, test),
            "published" => put_end(&mut orig.dst, &mut orig.dport, test),
            // The server that answers is the source of the replies, with or without NAT.
            "backend" => put_end(&mut reply.src, &mut reply.sport, test),
            _ => false,
        }
    }
}

/// The states of any protocol that one of the wanted words names.
fn states(test: &Test) -> Option<u64> {
    let Operand::Words(words) = &test.operand else { return None };
    let wanted = |state: CtState| words.iter().any(|word| **word == *state.name().as_bytes());
    let of = |bit: u8| match bit / 16 {
        0 => CtState::Tcp(bit),
        1 => CtState::Sctp(bit % 16),
        _ => CtState::Dccp(bit % 16),
    };
    (test.op == Op::Eq).then(|| (0..48).filter(|bit| wanted(of(*bit))).fold(0, |bits, bit| bits | 1 << bit))
}

fn put_end(addr: &mut Option<Prefix>, port: &mut Option<u16>, test: &Test) -> bool {
    let (Operand::Endpoints(ends), Op::Eq) = (&test.operand, test.op) else { return false };
    let [EndpointTest { prefix, ports }] = ends[..] else { return false };
    let ports = ports.filter(|(low, high)| low == high).map(|(port, _)| port);
    let by_addr = put(addr, prefix.filter(is_unmapped));
    // A tuple without ports (ICMP) has other values in their place: it never passes a test of a port.
    let by_port = put(port, ports);
    by_addr || by_port
}

/// A mapped address means IPv4 in filters, and no entry has a mapped address: the engine tests such a prefix.
fn is_unmapped(prefix: &Prefix) -> bool {
    const MAPPED: Addr = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);
    let addr = prefix.addr();
    matches!(addr, Addr::V4(_)) || (addr.unmapped() == addr && !prefix.contains(MAPPED))
}

fn prefix(test: &Test) -> Option<Prefix> {
    match (&test.operand, test.op) {
        (Operand::Addr(addr), Op::Eq) => Some(Prefix::host(*addr)).filter(is_unmapped),
        (Operand::Prefixes(prefixes), Op::Eq) => match &prefixes[..] {
            [prefix] => Some(*prefix).filter(is_unmapped),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(feature = "bpf")]
impl TupleConditions {
    fn pattern(&self, family: u8) -> bpf::conntrack_walk::TupleCondition {
        let mut is = bpf::conntrack_walk::TupleCondition::ANY;
        if family != 0 {
            is = is.family(family);
        }
        let net = |prefix: Prefix| (prefix.addr(), prefix.len());
        if let Some((addr, bits)) = self.src.map(net) {
            is = is.src(addr.octets(), bits);
        }
        if let Some((addr, bits)) = self.dst.map(net) {
            is = is.dst(addr.octets(), bits);
        }
        for (number, with) in [(self.sport, 0), (self.dport, 1)] {
            is = match (number, with) {
                (Some(port), 0) => is.sport(port),
                (Some(port), _) => is.dport(port),
                (None, _) => is,
            };
        }
        self.proto.map_or(is, |proto| is.proto(proto))
    }
}

#[cfg(feature = "bpf")]
impl WalkFilter {
    /// Converts the filter for the BPF program. `expired`: whether to include expired entries.
    pub(crate) fn wanted_entries(&self, all: bool, expired: bool) -> bpf::conntrack_walk::WantedEntries {
        bpf::conntrack_walk::WantedEntries {
            all,
            live: true,
            expired,
            status: self.status,
            mark: self.mark,
            states: self.states,
            zone: self.zone,
            orig: self.orig.pattern(self.family),
            reply: self.reply.pattern(0),
        }
    }
}
