//! What a primitive demands of a packet: tests, and how they are joined, before they become a graph.

use crate::ast::Operator;
use crate::graph::{Compare, Test};
use crate::value::{MemorySlot, ValueId, Values};

/// A demand; parts are looked at from left to right, as far as is needed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Always(bool),
    Test(Test),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Writes a word of memory; always true.
    Store(MemorySlot, ValueId),
    /// The value is in one of these ranges, which are sorted and do not touch.
    InRanges(ValueId, Vec<(u32, u32)>),
    /// The words begin as one of these prefixes, which are sorted and not in one another.
    InPrefixes(Vec<ValueId>, Vec<(u128, u32)>),
    /// A protocol behind extension headers.
    Chain(HeaderChain),
    /// A word of the caller's.
    Extra(usize),
}

/// The search for a protocol behind extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderChain {
    pub(crate) is_ipv6: bool,
    pub(crate) protocol: u32,
    /// Where the network header begins.
    pub(crate) offset: u32,
}

impl Condition {
    /// The opposite.
    pub(crate) fn negated(self) -> Condition {
        Condition::Not(Box::new(self))
    }

    /// A comparison, in the form that costs least: constants on the right, masks as tests of bits.
    pub(crate) fn compare(values: &mut Values, left: ValueId, compare: Compare, right: ValueId) -> Condition {
        let (first, second) = (values.constant_of(left), values.constant_of(right));
        if first.is_some() && second.is_none() {
            let opposite = match compare {
                Compare::Equal | Compare::AnyBit => return Condition::compare(values, right, compare, left),
                // 5 > x is not x >= 5.
                Compare::Greater => Compare::GreaterOrEqual,
                Compare::GreaterOrEqual => Compare::Greater,
            };
            return Condition::compare(values, right, opposite, left).negated();
        }
        let masked = match (values.get(left), second) {
            (crate::value::Value::Binary(Operator::And, value, mask), Some(second)) if compare == Compare::Equal => {
                values.constant_of(mask).map(|constant| (value, mask, constant, second))
            }
            _ => None,
        };
        match masked {
            Some((value, mask, _, 0)) => {
                Condition::Test(Test { left: value, compare: Compare::AnyBit, right: mask }).negated()
            }
            Some((value, mask, bit, second)) if bit == second && bit.is_power_of_two() => {
                Condition::Test(Test { left: value, compare: Compare::AnyBit, right: mask })
            }
            _ => Condition::Test(Test { left, compare, right }),
        }
    }
}
