//! Builds a graph from conditions, starting with the last one, because each condition must know its successors.

mod search;

use crate::ast::Operator;
use crate::ast::{Expr, Join};
use crate::condition::{Condition, HeaderChain};
use crate::graph::{ACCEPT, Compare, Graph, NodeId, Test};
use crate::interpret::ANCILLARY_EXTRA;
use crate::value::{MemorySlot, Size, Values};

/// Extension headers that the kernel's program skips. It accepts packets with more, and the user-space program
/// decides.
const HEADERS_KERNEL: usize = 6;
/// Extension headers that the user-space program skips. A packet with more does not have the protocol.
///
/// Bound: IPv6 extension headers that `protochain` follows. Beyond: the packet does not match. By: any sender of
/// packets.
const HEADERS_MAX: usize = 64;

/// The number of the next header, and its offset.
const CHAIN_PROTOCOL: MemorySlot = MemorySlot(4);
const CHAIN_OFFSET: MemorySlot = MemorySlot(5);

/// The purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramPurpose {
    /// Decides everything, in user space.
    Exact,
    /// Accepts everything that might pass, in the kernel.
    Superset,
}

/// Builds the graph of one program.
pub(crate) struct Builder<'a> {
    pub(crate) graph: Graph,
    pub(crate) values: &'a mut Values,
    /// The conditions of the leaves, indexed by leaf number.
    pub(crate) conditions: &'a [Condition],
    pub(crate) purpose: ProgramPurpose,
    /// True if the program accepts packets that the user-space program must check.
    pub(crate) is_superset: bool,
}

/// The successors of a condition, and whether it is under an odd number of `not`.
#[derive(Clone, Copy)]
struct Successors {
    yes: NodeId,
    no: NodeId,
    is_negated: bool,
}

impl Successors {
    fn swapped(self) -> Successors {
        Successors { yes: self.no, no: self.yes, is_negated: !self.is_negated }
    }
}

impl Builder<'_> {
    /// Builds the whole graph and returns its root.
    pub(crate) fn build_root(&mut self, tree: &Expr, yes: NodeId, no: NodeId) -> NodeId {
        self.expr(tree, Successors { yes, no, is_negated: false })
    }

    fn expr(&mut self, tree: &Expr, ways: Successors) -> NodeId {
        match tree {
            Expr::Leaf(number) => match self.conditions.get(*number) {
                Some(condition) => self.condition(condition, ways),
                None => ways.no,
            },
            Expr::Not(inner) => self.expr(inner, ways.swapped()),
            Expr::Chain(first, rest) => {
                // From right to left: the part before `or x` continues with x if it fails, the part before `and x` if
                // it holds.
                let mut ways = ways;
                for (join, right) in rest.iter().rev() {
                    let entry = self.expr(right, ways);
                    match join {
                        Join::Or => ways.no = entry,
                        Join::And => ways.yes = entry,
                    }
                }
                self.expr(first, ways)
            }
        }
    }

    fn condition(&mut self, condition: &Condition, ways: Successors) -> NodeId {
        let Successors { yes, no, .. } = ways;
        match condition {
            Condition::Always(true) => yes,
            Condition::Always(false) => no,
            Condition::Test(test) => self.graph.test(self.values, *test, yes, no),
            Condition::Not(inner) => self.condition(inner, ways.swapped()),
            Condition::All(parts) => {
                parts.iter().rev().fold(yes, |yes, part| self.condition(part, Successors { yes, ..ways }))
            }
            Condition::Any(parts) => {
                parts.iter().rev().fold(no, |no, part| self.condition(part, Successors { no, ..ways }))
            }
            Condition::Store(slot, value) => self.graph.store(*slot, *value, yes),
            Condition::InRanges(value, ranges) => self.ranges(*value, ranges, yes, no),
            Condition::InPrefixes(words, prefixes) => self.prefixes(words, prefixes, yes, no),
            Condition::Chain(chain) => self.chain(*chain, ways),
            Condition::Extra(number) => self.build_extra(*number, ways),
        }
    }

    /// A word defined by the caller. User space evaluates it; the kernel accepts the packet either way.
    fn build_extra(&mut self, number: usize, ways: Successors) -> NodeId {
        if self.purpose == ProgramPurpose::Superset {
            self.is_superset = true;
            return if ways.is_negated { ways.no } else { ways.yes };
        }
        let left = self.values.load(Size::Word, None, ANCILLARY_EXTRA.wrapping_add(number as u32));
        let right = self.values.constant(0);
        self.graph.test(self.values, Test { left, compare: Compare::Equal, right }, ways.no, ways.yes)
    }

    /// The loop over the headers is unrolled, because the kernel rejects programs with loops.
    fn chain(&mut self, chain: HeaderChain, ways: Successors) -> NodeId {
        let (mut next, levels) = match self.purpose {
            ProgramPurpose::Exact => (ways.no, HEADERS_MAX),
            ProgramPurpose::Superset => {
                self.is_superset = true;
                (ACCEPT, HEADERS_KERNEL)
            }
        };
        for _ in 0..levels {
            next = self.header(chain, ways, next);
        }
        let (protocol, first) = if chain.is_ipv6 { (6, 40) } else { (9, 0) };
        let protocol = self.values.load(Size::Byte, None, chain.offset.wrapping_add(protocol));
        let first = if chain.is_ipv6 { self.values.constant(first) } else { self.values.header_length(chain.offset) };
        let next = self.graph.store(CHAIN_OFFSET, first, next);
        self.graph.store(CHAIN_PROTOCOL, protocol, next)
    }

    /// Handles one header: the protocol is found, the chain ends, or it continues with the next header.
    fn header(&mut self, chain: HeaderChain, ways: Successors, next: NodeId) -> NodeId {
        const AUTHENTICATION: u32 = 51;
        const OPTIONS_ROUTING_FRAGMENT: [u32; 4] = [0, 60, 43, 44];
        let protocol = self.values.slot(CHAIN_PROTOCOL);
        let mut entry = ways.no;
        let is = |this: &mut Self, number: u32, yes: NodeId, no: NodeId| {
            let right = this.values.constant(number);
            this.graph.test(this.values, Test { left: protocol, compare: Compare::Equal, right }, yes, no)
        };
        let after = self.advance(chain, 2, 4, next);
        entry = is(self, AUTHENTICATION, after, entry);
        if chain.is_ipv6 {
            let after = self.advance(chain, 1, 8, next);
            for number in OPTIONS_ROUTING_FRAGMENT {
                entry = is(self, number, after, entry);
            }
        }
        is(self, chain.protocol, ways.yes, entry)
    }

    /// Reads the number of the next header, and skips (length + `more`) * `unit` bytes.
    fn advance(&mut self, chain: HeaderChain, more: u32, unit: u32, next: NodeId) -> NodeId {
        let offset = self.values.slot(CHAIN_OFFSET);
        let protocol = self.values.load(Size::Byte, Some(offset), chain.offset);
        let length = self.values.load(Size::Byte, Some(offset), chain.offset.wrapping_add(1));
        let (more, unit) = (self.values.constant(more), self.values.constant(unit));
        let units = self.values.binary(Operator::Add, length, more);
        let bytes = self.values.binary(Operator::Mul, units, unit);
        let sum = self.values.binary(Operator::Add, bytes, offset);
        let next = self.graph.store(CHAIN_OFFSET, sum, next);
        self.graph.store(CHAIN_PROTOCOL, protocol, next)
    }
}
