//! Translates the parts of a filter that the kernel can apply in a dump.
//!
//! An old kernel ignores attributes that it does not know, so no part is ever claimed to be exact: the engine filters
//! the returned rows again, which is cheap because few are returned.
use record::rows::{CtStatus, Nat, NatKind, ip_proto};
use record::{Addr, Expr, FilterPushdown, Op, Operand, Prefix, Table, Test};

use crate::kernel_filter::{KernelFilter, TupleFilter};
use crate::uapi::{AF_INET, AF_INET6};

/// The kernel's filter, and the outcome for each conjunct.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SplitFilter {
    pub(crate) filter: KernelFilter,
    pub(crate) pushdown: Vec<FilterPushdown>,
}

/// Finds the parts that the kernel can do. `walks_are_cheap`: whether a second walk of the table costs less than it
/// saves, so that a filter on the protocol alone may be requested once per family.
pub(crate) fn split(conjuncts: &[Expr], walks_are_cheap: impl Fn() -> bool) -> SplitFilter {
    let mut filter = KernelFilter::default();
    // Ports have a meaning only once the protocol is known, which may come later in the filter.
    let mut taken: Vec<bool> = conjuncts.iter().map(|part| take(&mut filter, part)).collect();
    let late = conjuncts.iter().zip(&mut taken).filter(|(_, taken)| !**taken);
    late.for_each(|(part, taken)| *taken = take_ports(&mut filter, part));
    if filter.is_proto_alone() && !walks_are_cheap() {
        filter.orig = TupleFilter::default();
        conjuncts.iter().zip(&mut taken).filter(|(part, _)| is_proto(part)).for_each(|(_, taken)| *taken = false);
    }
    let push = |taken: bool| if taken { FilterPushdown::Inexact } else { FilterPushdown::Unsupported };
    SplitFilter { filter, pushdown: taken.into_iter().map(push).collect() }
}

fn field_of(test: &Test) -> &'static str {
    Nat::FIELDS.get(test.field).map_or("", |field| field.name)
}

fn is_proto(part: &Expr) -> bool {
    matches!(part, Expr::Test(test) if matches!(field_of(test), "proto" | "proto_number"))
}

// Returns true if the filter now does the conjunct, or part of it.
fn take(filter: &mut KernelFilter, part: &Expr) -> bool {
    let Expr::Test(test) = part else { return false };
    let (orig, reply) = (&mut filter.orig, &mut filter.reply);
    match field_of(test) {
        "family" => take_family(filter, test),
        "status" => words(test).is_some_and(|words| take_status(filter, test.op, words)),
        "nat" => words(test).is_some_and(|words| take_nat(filter, test.op, words)),
        "mark" => take_mark(filter, test),
        "zone" => take_zone(filter, test),
        "proto" => match words(test) {
            Some([word]) if test.op == Op::Eq => put(&mut orig.proto, ip_proto::number(word)),
            _ => false,
        },
        "proto_number" => put(&mut orig.proto, number(test)),
        "orig_src" => put(&mut orig.src, address(test)),
        "orig_dst" => put(&mut orig.dst, address(test)),
        "reply_src" => put(&mut reply.src, address(test)),
        "reply_dst" => put(&mut reply.dst, address(test)),
        "client" => put(&mut orig.src, end_address(test)),
        "published" => put(&mut orig.dst, end_address(test)),
        // If the source is rewritten, replies go to the rewritten address.
        "mapped" => put(&mut reply.dst, end_address(test)),
        // The backend is the source of the replies, with or without rewriting.
        "backend" => put(&mut reply.src, end_address(test)),
        _ => false,
    }
}

fn take_ports(filter: &mut KernelFilter, part: &Expr) -> bool {
    let Expr::Test(test) = part else { return false };
    let Some(proto) = filter.orig.proto.filter(|proto| has_ports(*proto)) else { return false };
    let (orig, reply) = (&mut filter.orig, &mut filter.reply);
    match field_of(test) {
        "orig_sport" => put(&mut orig.sport, number(test)),
        "orig_dport" => put(&mut orig.dport, number(test)),
        "client" => put(&mut orig.sport, end_port(test)),
        "published" => put(&mut orig.dport, end_port(test)),
        "reply_sport" => put(&mut reply.sport, number(test)) && put(&mut reply.proto, Some(proto)),
        "reply_dport" => put(&mut reply.dport, number(test)) && put(&mut reply.proto, Some(proto)),
        "backend" => put(&mut reply.sport, end_port(test)) && put(&mut reply.proto, Some(proto)),
        _ => false,
    }
}

fn has_ports(proto: u8) -> bool {
    record::rows::CtTuple { proto, ..record::rows::CtTuple::EMPTY }.has_ports()
}

// Two different values for one field are left to the engine: no entry has both.
pub(crate) fn put<V: PartialEq>(place: &mut Option<V>, value: Option<V>) -> bool {
    match (value, &*place) {
        (None, _) => false,
        (Some(value), Some(there)) => value == *there,
        (Some(value), None) => {
            *place = Some(value);
            true
        }
    }
}

fn words(test: &Test) -> Option<&[Box<[u8]>]> {
    match &test.operand {
        Operand::Words(words) if matches!(test.op, Op::Eq | Op::Ne) => Some(words),
        _ => None,
    }
}

fn take_family(filter: &mut KernelFilter, test: &Test) -> bool {
    let family = match (words(test), test.op) {
        (Some([word]), Op::Eq) if **word == *b"inet" => AF_INET,
        (Some([word]), Op::Eq) if **word == *b"inet6" => AF_INET6,
        _ => return false,
    };
    let free = filter.family == 0 || filter.family == family;
    if free {
        filter.family = family;
    }
    free
}

// Translates `status = a` (one bit) and `status != a` or `status != (a, b)` (all bits); `status in (a, b)` fits no
// mask.
fn take_status(filter: &mut KernelFilter, op: Op, words: &[Box<[u8]>]) -> bool {
    let place = |word: &[u8]| CtStatus::NAMES.iter().position(|name| name.as_bytes() == word);
    let mut bits = 0;
    for word in words {
        let Some(bit) = place(word).and_then(|place| 1u32.checked_shl(place as u32)) else { return false };
        bits |= bit;
    }
    match op {
        Op::Eq if words.len() == 1 => add_status(filter, bits, bits),
        Op::Ne => add_status(filter, 0, bits),
        _ => false,
    }
}

// Uses the NAT bits on which all wanted kinds agree.
fn take_nat(filter: &mut KernelFilter, op: Op, words: &[Box<[u8]>]) -> bool {
    let named = |kind: &NatKind| words.iter().any(|word| **word == *kind.name().as_bytes());
    let kinds = [NatKind::None, NatKind::Snat, NatKind::Dnat, NatKind::Both];
    let wanted: Vec<NatKind> = kinds.into_iter().filter(|kind| named(kind) == (op == Op::Eq)).collect();
    let bits = |kind: NatKind| match kind {
        NatKind::None => 0,
        NatKind::Snat => CtStatus::SRC_NAT,
        NatKind::Dnat => CtStatus::DST_NAT,
        NatKind::Both => CtStatus::SRC_NAT | CtStatus::DST_NAT,
    };
    let both = CtStatus::SRC_NAT | CtStatus::DST_NAT;
    let set = wanted.iter().fold(both, |all, kind| all & bits(*kind));
    let clear = wanted.iter().fold(both, |all, kind| all & !bits(*kind));
    // Without any wanted kind no entry can match, and no mask expresses that.
    !wanted.is_empty() && set | clear != 0 && add_status(filter, set, set | clear)
}

fn add_status(filter: &mut KernelFilter, value: u32, mask: u32) -> bool {
    let (old_value, old_mask) = filter.status.unwrap_or((0, 0));
    let common = old_mask & mask;
    if old_value & common != value & common {
        return false;
    }
    filter.status = Some((old_value | value, old_mask | mask));
    true
}

fn take_mark(filter: &mut KernelFilter, test: &Test) -> bool {
    let wanted = match (&test.operand, test.op) {
        (Operand::Number(n), Op::Eq) => u32::try_from(*n).ok().map(|n| (n, u32::MAX)),
        (Operand::Masked { value, mask }, Op::Eq) => {
            u32::try_from(*value).ok().zip(u32::try_from(*mask).ok()).filter(|(_, mask)| *mask != 0)
        }
        _ => None,
    };
    put(&mut filter.mark, wanted)
}

fn take_zone(filter: &mut KernelFilter, test: &Test) -> bool {
    let zone = match (&test.operand, test.op) {
        (Operand::Null, Op::Eq) => Some(0),
        _ => number(test).filter(|zone| *zone != 0),
    };
    put(&mut filter.zone, zone)
}

pub(crate) fn number<N: TryFrom<u64>>(test: &Test) -> Option<N> {
    match (&test.operand, test.op) {
        (Operand::Number(n), Op::Eq) => N::try_from(*n).ok(),
        _ => None,
    }
}

fn host(prefix: Prefix) -> Option<Addr> {
    // A mapped address means IPv4 in filters, and no entry has a mapped address.
    let addr = prefix.addr();
    // For IPv6 the kernel excludes the equal addresses (ctnetlink_filter_match_tuple of 5.8 to 6.18 at least).
    let v4 = matches!(addr, Addr::V4(_));
    (prefix.len() == addr.bits() && v4).then_some(addr)
}

fn address(test: &Test) -> Option<Addr> {
    match (&test.operand, test.op) {
        (Operand::Addr(addr), Op::Eq) => host(Prefix::host(*addr)),
        (Operand::Prefixes(prefixes), Op::Eq) => match &prefixes[..] {
            [prefix] => host(*prefix),
            _ => None,
        },
        _ => None,
    }
}

fn end(test: &Test) -> Option<record::EndpointTest> {
    match (&test.operand, test.op) {
        (Operand::Endpoints(ends), Op::Eq) => match &ends[..] {
            [end] => Some(*end),
            _ => None,
        },
        _ => None,
    }
}

fn end_address(test: &Test) -> Option<Addr> {
    end(test)?.prefix.and_then(host)
}

fn end_port(test: &Test) -> Option<u16> {
    end(test)?.ports.filter(|(low, high)| low == high).map(|(port, _)| port)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use record::{EndpointTest, field_index};

    fn test(name: &str, op: Op, operand: Operand) -> Expr {
        Expr::Test(Test { field: field_index::<Nat>(name).unwrap(), op, operand })
    }

    fn is(name: &str, words: &[&str]) -> Expr {
        test(name, Op::Eq, Operand::Words(words.iter().map(|word| word.as_bytes().into()).collect()))
    }

    fn not(name: &str, word: &str) -> Expr {
        test(name, Op::Ne, Operand::Words(vec![word.as_bytes().into()]))
    }

    fn of(conjuncts: &[Expr]) -> KernelFilter {
        let split = split(conjuncts, || true);
        assert_eq!(split.pushdown.len(), conjuncts.len());
        split.filter
    }

    const NONE: &[FilterPushdown] = &[FilterPushdown::Unsupported];
    const SOME: &[FilterPushdown] = &[FilterPushdown::Inexact];

    #[test]
    fn status_and_kinds_are_bits() {
        assert_eq!(of(&[is("status", &["assured"])]).status, Some((4, 4)));
        assert_eq!(of(&[not("status", "seen_reply")]).status, Some((0, 2)));
        assert_eq!(of(&[is("status", &["assured", "offload"])]).status, None, "either is no mask");
        assert_eq!(of(&[is("nat", &["snat"])]).status, Some((0x10, 0x30)));
        assert_eq!(of(&[is("nat", &["dnat", "both"])]).status, Some((0x20, 0x20)));
        assert_eq!(of(&[not("nat", "none")]).status, None, "no mask says: one of two bits");
        assert_eq!(of(&[is("nat", &["none"]), not("status", "assured")]).status, Some((0, 0x34)));
        let never = [is("status", &["assured"]), not("status", "assured")];
        assert_eq!(split(&never, || true).pushdown, [FilterPushdown::Inexact, FilterPushdown::Unsupported]);
    }

    #[test]
    fn marks_zones_families() {
        assert_eq!(of(&[test("mark", Op::Eq, Operand::Number(3))]).mark, Some((3, u32::MAX)));
        assert_eq!(of(&[test("mark", Op::Eq, Operand::Masked { value: 1, mask: 3 })]).mark, Some((1, 3)));
        for no in [Operand::Number(1 << 40), Operand::Masked { value: 0, mask: 0 }, Operand::Ranges(vec![(1, 2)])] {
            assert_eq!(split(&[test("mark", Op::Eq, no)], || true).pushdown, NONE);
        }
        assert_eq!(of(&[test("zone", Op::Eq, Operand::Number(5))]).zone, Some(5));
        assert_eq!(of(&[test("zone", Op::Eq, Operand::Null)]).zone, Some(0));
        assert_eq!(of(&[test("zone", Op::Eq, Operand::Number(0))]).zone, None, "the usual zone is null, not 0");
        assert_eq!(of(&[is("family", &["inet6"])]).family, AF_INET6);
    }

    #[test]
    fn ends_and_ports_once_the_protocol_is_known() {
        let addr = Addr::V4([10, 0, 0, 1]);
        let end =
            |prefix: Option<Addr>, port| EndpointTest { prefix: prefix.map(Prefix::host), ports: Some((port, port)) };
        let client = test("client", Op::Eq, Operand::Endpoints(vec![end(Some(addr), 443)]));
        let alone = of(std::slice::from_ref(&client));
        assert_eq!((alone.orig.src, alone.orig.sport, alone.families()), (Some(addr), None, &[AF_INET][..]));
        let published = test("published", Op::Eq, Operand::Endpoints(vec![end(None, 8080)]));
        let all = of(&[published.clone(), is("proto", &["tcp"])]);
        assert_eq!((all.orig.dport, all.orig.proto), (Some(8080), Some(6)));
        assert_eq!(split(&[published], || true).pushdown, NONE);
        let backend = test("backend", Op::Eq, Operand::Endpoints(vec![end(Some(addr), 80)]));
        let all = of(&[is("proto", &["tcp"]), backend]);
        assert_eq!((all.reply.src, all.orig.src), (Some(addr), None));
        let net = Operand::Prefixes(vec![Prefix::new(addr, 8).unwrap()]);
        assert_eq!(split(&[test("orig_src", Op::Eq, net)], || true).pushdown, NONE, "the kernel knows no prefixes");
        let mapped = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1]);
        for six in [mapped, Addr::V6([0x20; 16])] {
            assert_eq!(split(&[test("orig_src", Op::Eq, Operand::Addr(six))], || true).pushdown, NONE);
        }
    }

    #[test]
    fn a_protocol_alone_must_be_worth_two_walks() {
        let udp = [is("proto", &["udp"])];
        assert_eq!(split(&udp, || true).pushdown, SOME);
        let none = split(&udp, || false);
        assert_eq!((none.pushdown, none.filter), (NONE.to_vec(), KernelFilter::default()));
        let v4 = [is("proto", &["udp"]), is("family", &["inet"])];
        assert_eq!(split(&v4, || false).pushdown, [FilterPushdown::Inexact; 2]);
        assert_eq!(split(&[is("proto", &["other"])], || true).pushdown, NONE);
    }

    #[test]
    fn what_is_no_single_comparison_stays_here() {
        let either = Expr::Or(vec![is("family", &["inet"]), is("status", &["assured"])]);
        let other = Expr::Not(Box::new(is("family", &["inet"])));
        assert_eq!(split(&[either, other], || true).pushdown, [FilterPushdown::Unsupported; 2]);
    }
}
