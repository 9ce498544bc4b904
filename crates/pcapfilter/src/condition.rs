//! The conditions of a primitive: tests and how they are joined, before they become a graph.

use crate::ast::Operator;
use crate::graph::{Compare, Test};
use crate::value::{MemorySlot, ValueId, Values};

/// A condition. Its parts are evaluated from left to right until the result is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Always(bool),
    Test(Test),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Writes a word of scratch memory. Always true.
    Store(MemorySlot, ValueId),
    /// The value is in one of these ranges, which are sorted and do not touch.
    InRanges(ValueId, Vec<(u32, u32)>),
    /// The words begin with one of these prefixes, which are sorted and do not contain one another.
    InPrefixes(Vec<ValueId>, Vec<(u128, u32)>),
    /// A protocol after extension headers.
    Chain(HeaderChain),
    /// A word defined by the caller.
    Extra(usize),
}

/// The search for a protocol after extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderChain {
    pub(crate) is_ipv6: bool,
    pub(crate) protocol: u32,
    /// Offset of the network header.
    pub(crate) offset: u32,
}

impl Condition {
    /// Returns the opposite condition.
    pub(crate) fn negate(self) -> Condition {
        Condition::Not(Box::new(self))
    }

    /// Returns a comparison in the cheapest form: constants on the right, masks as tests of bits.
    pub(crate) fn compare(values: &mut Values, left: ValueId, compare: Compare, right: ValueId) -> Condition {
        let (first, second) = (values.constant_of(left), values.constant_of(right));
        if first.is_some() && second.is_none() {
            let opposite = match compare {
                Compare::Equal | Compare::AnyBit => return Condition::compare(values, right, compare, left),
                // `5 > x` is `x < 5`, which is the negation of `x >= 5`.
                Compare::Greater => Compare::GreaterOrEqual,
                Compare::GreaterOrEqual => Compare::Greater,
            };
            return Condition::compare(values, right, opposite, left).negate();
        }
        let masked = match (values.get(left), second) {
            (crate::value::Value::Binary(Operator::And, value, mask), Some(second)) if compare == Compare::Equal => {
                values.constant_of(mask).map(|constant| (value, mask, constant, second))
            }
            _ => None,
        };
        match masked {
            Some((value, mask, _, 0)) => {
                Condition::Test(Test { left: value, compare: Compare::AnyBit, right: mask }).negate()
            }
            Some((value, mask, bit, second)) if bit == second && bit.is_power_of_two() => {
                Condition::Test(Test { left: value, compare: Compare::AnyBit, right: mask })
            }
            _ => Condition::Test(Test { left, compare, right }),
        }
    }
}
