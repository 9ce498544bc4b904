//! Evaluation of filters: a filter is compiled once and tested on every row without allocation.
//!
//! One rule holds everywhere: a comparison with an absent value is false for any operator; only `= null` tests for
//! absence. `not` simply inverts, so `not x = 5` holds if `x` is absent, while `x != 5` does not. A field that comes
//! from the owners matches if any owner does; its `!=` and `!~` hold if there are owners and none of them is equal.
mod rule;

use crate::glob;
use record::{Expr, FilterPushdown, Get, Lookups, Op, Operand, Table, Test};
use rule::{Orders, Rule};
use std::fmt;

/// Largest compiled regular expression in bytes; also the limit of its lazily built tables.
///
/// Bound: bytes of a compiled regular expression (`predicate::patterns_are_bounded`). Beyond: the filter is refused.
/// By: the user.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of groups in a regular expression.
///
/// Bound: levels of nesting in a regular expression. Beyond: the filter is refused. By: the user.
const REGEX_DEPTH_MAX: u32 = 50;

/// A compiled filter over the rows of `T`.
pub struct Predicate<T: Table> {
    /// One node per conjunct, cheap ones first; the number is the conjunct's index in the caller's list.
    parts: Vec<(usize, Node<T>)>,
}

/// A pattern that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// The user's pattern.
    pub pattern: Box<str>,
    /// The reason, in one line.
    pub why: Box<str>,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad regular expression `{}`: {}", self.pattern, self.why)
    }
}

impl std::error::Error for BadPattern {}

/// A part of the filter with everything resolved; the parts of `and` and `or` are sorted by cost.
enum Node<T: Table> {
    /// Every part holds; true if there are no parts.
    And(Vec<Node<T>>),
    /// At least one part holds; false if there are no parts.
    Or(Vec<Node<T>>),
    /// The part does not hold.
    Not(Box<Node<T>>),
    /// The value of a field satisfies a rule.
    Test { get: Get<T>, rule: Rule },
    /// The values of two fields compare like this.
    Fields { left: Get<T>, right: Get<T>, orders: Orders, negated: bool },
}

impl<T: Table> Predicate<T> {
    /// Compiles the parts of one `and`.
    ///
    /// Fails on a regular expression that is malformed or compiles to more than 1 MiB; filters from
    /// [`crate::filter::bind`] have already been checked. A test of a field that `T` does not have is false.
    pub fn new(conjuncts: &[Expr]) -> Result<Predicate<T>, BadPattern> {
        let mut parts = Vec::with_capacity(conjuncts.len());
        for (place, part) in conjuncts.iter().enumerate() {
            parts.push((place, Node::compile(part)?));
        }
        parts.sort_by_key(|(_, node)| node.cost());
        Ok(Predicate { parts })
    }

    /// True if the row passes every part. Absent lookups return null.
    #[inline]
    pub fn matches(&self, row: &T::Row<'_>, lookups: &Lookups<'_>) -> bool {
        self.parts.iter().all(|(_, node)| node.accepts(row, lookups))
    }

    /// Returns the parts that a source with these answers leaves to the engine.
    pub fn residual_filter(&self, pushdown: &[FilterPushdown]) -> ResidualFilter<'_, T> {
        let left = self.parts.iter().filter(|(place, _)| pushdown.get(*place) != Some(&FilterPushdown::Exact));
        ResidualFilter { nodes: left.map(|(_, node)| node).collect() }
    }
}

/// The part of a [`Predicate`] that the source leaves to the engine.
pub struct ResidualFilter<'p, T: Table> {
    nodes: Vec<&'p Node<T>>,
}

impl<T: Table> ResidualFilter<'_, T> {
    /// True if the row passes.
    #[inline]
    pub fn matches(&self, row: &T::Row<'_>, lookups: &Lookups<'_>) -> bool {
        self.nodes.iter().all(|node| node.accepts(row, lookups))
    }

    /// True if nothing is left to test.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl<T: Table> Node<T> {
    /// Compiles every test, and sorts cheap parts first.
    fn compile(expr: &Expr) -> Result<Node<T>, BadPattern> {
        let all = |parts: &[Expr]| {
            let mut nodes = parts.iter().map(Node::compile).collect::<Result<Vec<_>, _>>()?;
            nodes.sort_by_key(Node::cost);
            Ok(nodes)
        };
        Ok(match expr {
            Expr::And(parts) => Node::And(all(parts)?),
            Expr::Or(parts) => Node::Or(all(parts)?),
            Expr::Not(part) => Node::Not(Box::new(Node::compile(part)?)),
            Expr::Test(Test { field, op, operand: Operand::Field(other) }) => {
                match (T::FIELDS.get(*field), T::FIELDS.get(*other), Orders::from_op(*op)) {
                    (Some(left), Some(right), Some(orders)) => {
                        Node::Fields { left: left.get, right: right.get, orders, negated: *op == Op::Ne }
                    }
                    _ => Node::Or(Vec::new()),
                }
            }
            Expr::Test(test) => match T::FIELDS.get(test.field) {
                Some(field) => Node::Test { get: field.get, rule: Rule::compile(test, field.kind)? },
                None => Node::Or(Vec::new()),
            },
        })
    }

    /// Estimates the cost of a test: a row's own fields are cheaper than lookups, lookups cheaper than patterns.
    fn cost(&self) -> u32 {
        match self {
            Node::And(parts) | Node::Or(parts) => parts.iter().map(Node::cost).fold(1, u32::saturating_add),
            Node::Not(part) => part.cost(),
            Node::Test { get, rule } => rule.cost() + cost_of(get),
            Node::Fields { left, right, .. } => 1 + cost_of(left) + cost_of(right),
        }
    }

    /// True if the row passes. Stops at the first part that decides.
    fn accepts(&self, row: &T::Row<'_>, lookups: &Lookups<'_>) -> bool {
        match self {
            Node::Test { get: Get::Own(get) | Get::OnLink { addr: get, .. }, rule } => rule.matches(&get(row)),
            Node::Test { get: Get::Either(first, second), rule } => {
                rule.holds_for_any_of([first(row), second(row)].into_iter())
            }
            Node::Test { get: Get::Joined { key, lookup }, rule } => rule.matches(&lookups.value(*lookup, key(row))),
            Node::Test { get: Get::Owners { key, part }, rule } => rule.holds_for_any(lookups.owners(key(row)), *part),
            Node::Test { get: Get::OwnersJoined { key, of, orphan, lookup }, rule } => {
                let key = key(row);
                let look = |key| lookups.value(*lookup, key);
                match lookups.owners(key) {
                    [] => rule.matches(&look(orphan(row))),
                    owners => rule.holds_for_any_of(owners.iter().map(|owner| look(of(key, owner)))),
                }
            }
            Node::Fields { left, right, orders, negated } => {
                orders.take_cells(&left.cell(row, lookups), &right.cell(row, lookups), *negated)
            }
            Node::And(parts) => parts.iter().all(|part| part.accepts(row, lookups)),
            Node::Or(parts) => parts.iter().any(|part| part.accepts(row, lookups)),
            Node::Not(part) => !part.accepts(row, lookups),
        }
    }
}

/// Estimates the cost of reading a cell.
fn cost_of<T: Table>(get: &Get<T>) -> u32 {
    match get {
        Get::Own(_) | Get::OnLink { .. } => 1,
        Get::Either(..) => 2,
        Get::Joined { .. } => 10,
        Get::Owners { .. } => 15,
        Get::OwnersJoined { .. } => 25,
    }
}

/// Compiles a pattern over bytes: ASCII classes, `(?i)` for ASCII letters, bounded size. The error is one line.
pub(crate) fn compile_regex(pattern: &str) -> Result<regex::bytes::Regex, Box<str>> {
    regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .nest_limit(REGEX_DEPTH_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => format!("it compiles to more than {limit} bytes").into(),
            other => {
                // The library prints the pattern over several lines; the last line has the error.
                let text = other.to_string();
                let last = text.lines().next_back().unwrap_or("malformed");
                last.strip_prefix("error: ").unwrap_or(last).into()
            }
        })
}

fn compile_pattern(pattern: &str) -> Result<regex::bytes::Regex, BadPattern> {
    compile_regex(pattern).map_err(|why| BadPattern { pattern: pattern.into(), why })
}

#[cfg(test)]
mod tests;
