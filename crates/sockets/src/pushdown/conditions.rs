//! Translates filter tests into conditions of the kernel: ports, addresses, interface, mark, cgroup.
use record::{Addr, Expr, Op, Operand, Prefix, Test};

use super::{PushdownContext, field_name};
use crate::pushdown::bytecode::{Code, Cond, EndpointSide};

/// Longer lists are left to the engine, whose lookup is faster than the kernel's linear search.
const ALTERNATIVES_MAX: usize = 64;

/// A tree of conditions; `exact` is false if it accepts more than the filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoweredConditions {
    pub(super) code: Code,
    pub(super) exact: bool,
}

/// Translates `part` exactly if possible, else rounded up. [`Code::True`] if the kernel cannot test any of it.
pub(super) fn lower_part(part: &Expr, world: &dyn PushdownContext) -> LoweredConditions {
    lower_rounded(part, world, true)
}

// `up`: what cannot be expressed counts as true, so that the whole accepts too much; below a `not` it counts as false.
fn lower_rounded(part: &Expr, world: &dyn PushdownContext, up: bool) -> LoweredConditions {
    match part {
        Expr::And(parts) => {
            let parts: Vec<LoweredConditions> = parts.iter().map(|part| lower_rounded(part, world, up)).collect();
            let exact = parts.iter().all(|part| part.exact);
            LoweredConditions { code: Code::and(parts.into_iter().map(|part| part.code)), exact }
        }
        Expr::Or(parts) => {
            let parts: Vec<LoweredConditions> = parts.iter().map(|part| lower_rounded(part, world, up)).collect();
            let exact = parts.iter().all(|part| part.exact);
            LoweredConditions { code: Code::or(parts.into_iter().map(|part| part.code)), exact }
        }
        Expr::Not(part) => {
            let inner = lower_rounded(part, world, !up);
            LoweredConditions { code: Code::not(inner.code), exact: inner.exact }
        }
        // The kernel knows whether it chose the port, but not the port range: so both the kernel and the engine test.
        Expr::Test(test) if field_name(test) == "autobound" => autobound(test, up),
        Expr::Test(test) => match condition(test, world) {
            Some(code) => LoweredConditions { code, exact: true },
            None => LoweredConditions { code: if up { Code::True } else { Code::False }, exact: false },
        },
    }
}

fn autobound(test: &Test, up: bool) -> LoweredConditions {
    let auto = Code::Cond(Cond::Auto);
    let code = match (&test.operand, test.op) {
        (Operand::Bool(yes), Op::Eq) => {
            if *yes {
                auto
            } else {
                Code::not(auto)
            }
        }
        (Operand::Bool(yes), Op::Ne) => {
            if *yes {
                Code::not(auto)
            } else {
                auto
            }
        }
        _ if up => Code::True,
        _ => Code::False,
    };
    LoweredConditions { code, exact: false }
}

// Translates one test exactly; `None` if the kernel cannot express it.
fn condition(test: &Test, world: &dyn PushdownContext) -> Option<Code> {
    match field_name(test) {
        "local_port" => port(test, EndpointSide::Local),
        "peer_port" => port(test, EndpointSide::Peer),
        "local_addr" => address(test, EndpointSide::Local),
        "peer_addr" => address(test, EndpointSide::Peer),
        "iface" => iface(test, world),
        "mark" if world.may_ask_marks() => mark(test),
        "cgroup_id" => cgroup(test),
        _ => None,
    }
}

fn port(test: &Test, side: EndpointSide) -> Option<Code> {
    const LAST: u64 = u16::MAX as u64;
    // Port 0 is null, and no comparison with null holds: so every range begins at 1.
    let within = match (&test.operand, test.op) {
        (Operand::Null, Op::Eq) => vec![(0, 0)],
        (Operand::Null, Op::Ne) => vec![(1, LAST)],
        (Operand::Number(n), Op::Eq) => clamp_ranges(&[(*n, *n)]),
        (Operand::Number(n), Op::Ne) => complement_ranges(&clamp_ranges(&[(*n, *n)])),
        (Operand::Number(n), Op::Lt) => n.checked_sub(1).map_or(Vec::new(), |most| clamp_ranges(&[(0, most)])),
        (Operand::Number(n), Op::Le) => clamp_ranges(&[(0, *n)]),
        (Operand::Number(n), Op::Gt) => n.checked_add(1).map_or(Vec::new(), |least| clamp_ranges(&[(least, LAST)])),
        (Operand::Number(n), Op::Ge) => clamp_ranges(&[(*n, LAST)]),
        (Operand::Ranges(ranges), Op::Eq) => clamp_ranges(ranges),
        (Operand::Ranges(ranges), Op::Ne) => complement_ranges(&clamp_ranges(ranges)),
        _ => return None,
    };
    if within.len() > ALTERNATIVES_MAX {
        return None;
    }
    // All values are within 0..=65535 here.
    let ports = within.iter().map(|(low, high)| Cond::Port { side, low: *low as u16, high: *high as u16 });
    Some(Code::or(ports.map(Code::Cond)))
}

// Clips ranges of ports to 1..=65535, sorts and merges them.
fn clamp_ranges(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut cut: Vec<(u64, u64)> = ranges.iter().map(|(low, high)| (*low.max(&1), *high.min(&65535))).collect();
    cut.retain(|(low, high)| low <= high);
    cut.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in cut {
        match merged.last_mut() {
            Some(last) if low <= last.1 + 1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

// Returns the ports of 1..=65535 that are outside these sorted and merged ranges.
fn complement_ranges(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut from = 1;
    for (low, high) in ranges {
        if from < *low {
            gaps.push((from, low - 1));
        }
        from = high + 1;
    }
    if from <= 65535 {
        gaps.push((from, 65535));
    }
    gaps
}

fn address(test: &Test, side: EndpointSide) -> Option<Code> {
    let prefixes = match &test.operand {
        Operand::Null => Vec::new(),
        Operand::Addr(addr) => vec![Prefix::host(*addr)],
        Operand::Prefixes(prefixes) => prefixes.clone(),
        _ => return None,
    };
    if prefixes.len() > ALTERNATIVES_MAX {
        return None;
    }
    let inside: Option<Vec<Code>> = prefixes.iter().map(|prefix| in_prefix(side, *prefix)).collect();
    let inside = Code::or(inside?);
    let may_be_null = prefixes.iter().any(|prefix| prefix.contains(Addr::ANY4) || prefix.contains(Addr::ANY6));
    match (&test.operand, test.op) {
        (Operand::Null, Op::Eq) => Some(null_address(side)),
        (Operand::Null, Op::Ne) => Some(Code::not(null_address(side))),
        (_, Op::Eq) if may_be_null => Some(Code::and([inside, Code::not(null_address(side))])),
        (_, Op::Eq) => Some(inside),
        (_, Op::Ne) => Some(Code::and([Code::not(inside), Code::not(null_address(side))])),
        _ => None,
    }
}

fn host(side: EndpointSide, prefix: Prefix, port: Option<u16>) -> Code {
    Code::Cond(Cond::Host { side, prefix, port })
}

/// `::ffff:0:0/96`, the IPv4-mapped addresses.
fn mapped_prefix() -> Option<Prefix> {
    Prefix::new(Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]), 96)
}

// Cells show IPv4-mapped addresses as IPv4. The kernel's IPv4 conditions match them too, its IPv6 ones must not.
fn in_prefix(side: EndpointSide, prefix: Prefix) -> Option<Code> {
    if matches!(prefix.addr(), Addr::V4(_)) {
        return Some(host(side, prefix, None));
    }
    let mapped = mapped_prefix()?;
    if prefix.len() <= mapped.len() && prefix.contains(mapped.addr()) {
        return Some(Code::and([host(side, prefix, None), Code::not(host(side, mapped, None))]));
    }
    // Prefixes inside the mapped range are left to the engine.
    (!mapped.contains(prefix.addr())).then(|| host(side, prefix, None))
}

// An address cell is null if nothing is bound or connected: the peer's if its address and port are zero, the local one
// if both ends are zero.
fn null_address(side: EndpointSide) -> Code {
    match side {
        EndpointSide::Peer => unset_endpoint(EndpointSide::Peer),
        EndpointSide::Local => Code::and([unset_endpoint(EndpointSide::Local), unset_endpoint(EndpointSide::Peer)]),
    }
}

fn unset_endpoint(side: EndpointSide) -> Code {
    let Some(mapped) = mapped_prefix() else { return Code::False };
    let any4 = Code::and([host(side, Prefix::host(Addr::ANY4), Some(0)), Code::not(host(side, mapped, None))]);
    Code::or([any4, host(side, Prefix::host(Addr::ANY6), Some(0))])
}

fn iface(test: &Test, world: &dyn PushdownContext) -> Option<Code> {
    let (Operand::Words(names), Op::Eq) = (&test.operand, test.op) else { return None };
    if names.len() > ALTERNATIVES_MAX {
        return None;
    }
    // An unknown name may belong to another namespace, or may come and go: the engine's lookup decides.
    let indexes: Option<Vec<u32>> = names.iter().map(|name| world.ifindex(name).filter(|index| *index != 0)).collect();
    Some(Code::or(indexes?.into_iter().map(|index| Code::Cond(Cond::Iface(index)))))
}

fn mark(test: &Test) -> Option<Code> {
    let cond = |value, mask| Code::Cond(Cond::Mark { value, mask });
    // Mark 0 is null.
    let none = cond(0, u32::MAX);
    let equals = match &test.operand {
        Operand::Null => none.clone(),
        Operand::Number(value) => u32::try_from(*value).map_or(Code::False, |value| cond(value, u32::MAX)),
        Operand::Masked { value, mask } => match (u32::try_from(*value), u32::try_from(*mask)) {
            (Ok(value), Ok(mask)) if value & !mask == 0 => cond(value, mask),
            (_, Ok(_)) => Code::False,
            // The mask has bits that no mark has: left to the engine.
            (_, Err(_)) => return None,
        },
        _ => return None,
    };
    match (&test.operand, test.op) {
        (Operand::Null, Op::Eq) => Some(equals),
        (Operand::Null, Op::Ne) => Some(Code::not(equals)),
        (_, Op::Eq) => Some(Code::and([equals, Code::not(none)])),
        (_, Op::Ne) => Some(Code::and([Code::not(equals), Code::not(none)])),
        _ => None,
    }
}

// Minisocks have no cgroup: null here, 0 in the kernel.
fn cgroup(test: &Test) -> Option<Code> {
    let none = Code::Cond(Cond::Cgroup(0));
    match (&test.operand, test.op) {
        (Operand::Null, Op::Eq) => Some(none),
        (Operand::Null, Op::Ne) => Some(Code::not(none)),
        (Operand::Number(0), _) => None,
        (Operand::Number(id), Op::Eq) => Some(Code::Cond(Cond::Cgroup(*id))),
        (Operand::Number(id), Op::Ne) => Some(Code::and([Code::not(Code::Cond(Cond::Cgroup(*id))), Code::not(none)])),
        _ => None,
    }
}
