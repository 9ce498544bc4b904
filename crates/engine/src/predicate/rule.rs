//! A compiled comparison.

use super::{BadPattern, Op, Operand, Test, compile_pattern, glob};
use record::{Addr, EndpointTest, FarTime, Kind, Owner, Prefix, Value};
use std::cmp::Ordering;

/// Number of words from which on a binary search beats a linear one.
const FEW_WORDS: usize = 8;

/// The condition for a value. Like all rules, `negated` ones are false for null.
pub(super) struct Rule {
    want: TestCondition,
    negated: bool,
}

/// The condition without its negation. Built once per plan: a row costs one match on it.
enum TestCondition {
    /// Never true for a present value; `negated` makes it "is present".
    Null,
    /// Is this truth value.
    Bool(bool),
    /// The order between value and operand is among these.
    Number(u64, Orders),
    FarTime(FarTime, Orders),
    Addr(Addr, Orders),
    /// Lies between the two numbers, both included.
    Range(u64, u64),
    /// Lies in one of these ranges, which are sorted and disjoint.
    Ranges(Box<[(u64, u64)]>),
    /// The bits under the second number equal the first.
    Masked(u64, u64),
    /// Lies in one IPv4 prefix, the most common test.
    Net4(u32, u32),
    /// Lies in one of these prefixes.
    Nets(AddrRanges),
    /// Equals the word. The second is the same word as the field's own constant, so that comparing addresses mostly
    /// suffices.
    Word(Box<[u8]>, Option<&'static str>),
    /// Equals one of a few words, which are searched linearly.
    Words(Box<[Box<[u8]>]>),
    /// Equals one of these words, which are sorted.
    ManyWords(Box<[Box<[u8]>]>),
    /// Has any of these bits.
    Bits(u32),
    /// Is any of these endpoints.
    Endpoints(Box<[EndpointTest]>),
    /// Matches this regular expression, anywhere in the text.
    Regex(regex::bytes::Regex),
    /// Matches this pattern as a whole (see `glob`).
    Glob(Box<[u8]>),
    /// A member of any object in a list satisfies this.
    Member(&'static str, Box<TestCondition>),
    /// The operator does not fit its operand: no value passes.
    Nothing,
}

/// Address ranges of both families, sorted and disjoint.
struct AddrRanges {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

/// The outcomes of a comparison that pass.
#[derive(Clone, Copy)]
pub(super) struct Orders {
    less: bool,
    equal: bool,
    greater: bool,
}

impl Orders {
    /// Returns the outcomes that pass for an operator. Not-equal counts as equal here: the rule negates the result.
    pub(super) fn from_op(op: Op) -> Option<Orders> {
        let (less, equal, greater) = match op {
            Op::Eq | Op::Ne => (false, true, false),
            Op::Lt => (true, false, false),
            Op::Le => (true, true, false),
            Op::Gt => (false, false, true),
            Op::Ge => (false, true, true),
            Op::Match | Op::NotMatch => return None,
        };
        Some(Orders { less, equal, greater })
    }

    /// True if this outcome passes.
    fn take(self, order: Ordering) -> bool {
        match order {
            Ordering::Less => self.less,
            Ordering::Equal => self.equal,
            Ordering::Greater => self.greater,
        }
    }

    /// True if two cells of one kind compare like this; false if one of them is absent.
    pub(super) fn take_cells(self, left: &Value<'_>, right: &Value<'_>, negated: bool) -> bool {
        let order = match (left, right) {
            (Value::U64(left), Value::U64(right))
            | (Value::Time(left), Value::Time(right))
            | (Value::Thousandths(left), Value::Thousandths(right)) => left.cmp(right),
            (Value::I64(left), Value::I64(right)) => left.cmp(right),
            (Value::U64(left), Value::I64(right)) => i64::try_from(*left).map_or(Ordering::Greater, |n| n.cmp(right)),
            (Value::I64(left), Value::U64(right)) => i64::try_from(*right).map_or(Ordering::Less, |n| left.cmp(&n)),
            (Value::Addr(left), Value::Addr(right)) => left.cmp(right),
            (Value::FarTime(left), Value::FarTime(right)) => left.cmp(right),
            (Value::FarTime(left), Value::Time(_)) => of_far_time(*left),
            (Value::Time(_), Value::FarTime(right)) => of_far_time(*right).reverse(),
            _ => return false,
        };
        self.take(order) != negated
    }
}

impl Rule {
    /// Compiles a test of a field of this kind.
    pub(super) fn compile(test: &Test, kind: Kind) -> Result<Rule, BadPattern> {
        let negated = matches!(test.op, Op::Ne | Op::NotMatch);
        let (member, operand, kind) = match &test.operand {
            Operand::Member { name, kind, operand } => (Some(*name), &**operand, *kind),
            operand => (None, operand, kind),
        };
        let want = if matches!(test.op, Op::Match | Op::NotMatch) {
            match operand {
                Operand::Regex(pattern) => TestCondition::Regex(compile_pattern(pattern)?),
                Operand::Glob(pattern) => TestCondition::Glob(pattern.clone()),
                _ => TestCondition::Nothing,
            }
        } else {
            compare(test.op, operand, kind)
        };
        // A comparison that does not fit is false, negated or not.
        let negated = negated && !matches!(want, TestCondition::Nothing);
        let want = match member {
            Some(name) => TestCondition::Member(name, Box::new(want)),
            None => want,
        };
        Ok(Rule { want, negated })
    }

    /// Relative cost of a test: the cheapest of several is tested first.
    pub(super) fn cost(&self) -> u32 {
        match &self.want {
            TestCondition::Regex(_) => 200,
            TestCondition::Glob(_) => 40,
            TestCondition::Member(..) => 30,
            TestCondition::Words(_) | TestCondition::ManyWords(_) => 6,
            TestCondition::Word(..) => 3,
            TestCondition::Endpoints(_)
            | TestCondition::Net4(..)
            | TestCondition::Nets(_)
            | TestCondition::Addr(..)
            | TestCondition::Ranges(_) => 2,
            _ => 1,
        }
    }

    /// True if the value passes. Null passes only `= null`.
    ///
    /// The value is passed by reference on purpose: a fresh value was written in parts, and copying it as a whole
    /// would wait for them (a failed store forwarding, 4 ns).
    #[inline]
    pub(super) fn matches(&self, value: &Value<'_>) -> bool {
        if value.is_null() {
            return matches!(self.want, TestCondition::Null) && !self.negated;
        }
        self.matches_unnegated(value) != self.negated
    }

    /// Like `holds`, for the owners of a row: any owner must pass; with `!=` none may be equal, and there must be one.
    pub(super) fn holds_for_any(&self, owners: &[Owner], part: Option<for<'r> fn(&'r Owner) -> Value<'r>>) -> bool {
        if owners.is_empty() {
            return self.matches(&Value::Null);
        }
        let Some(part) = part else { return self.matches(&Value::Owners(owners)) };
        owners.iter().any(|owner| self.matches_unnegated(&part(owner))) != self.negated
    }

    /// Like `holds`, for values found through the owners of a row; null ones are ignored.
    pub(super) fn holds_for_any_of<'v>(&self, values: impl Iterator<Item = Value<'v>>) -> bool {
        let (mut known, mut passed) = (false, false);
        for value in values.filter(|value| !value.is_null()) {
            known = true;
            passed |= self.matches_unnegated(&value);
        }
        if known { passed != self.negated } else { self.matches(&Value::Null) }
    }

    /// Tests the comparison without its negation; `value` is not null.
    #[inline]
    fn matches_unnegated(&self, value: &Value<'_>) -> bool {
        passes(value, &self.want)
    }
}

/// True if the value, which is not null, passes.
#[inline]
fn passes(value: &Value<'_>, want: &TestCondition) -> bool {
    match (value, want) {
        (Value::Name(text), TestCondition::Word(_, Some(own))) if std::ptr::eq(*text, *own) => true,
        (Value::Name(text) | Value::Guess(text), want) => is_text(text.as_bytes(), want),
        (Value::Bytes(text) | Value::FirstOf(text, _), want) => is_text(text, want),
        (Value::Addr(Addr::V4(octets)), TestCondition::Net4(low, high)) => {
            (*low..=*high).contains(&u32::from_be_bytes(*octets))
        }
        // A mapped address can be in IPv4 prefixes.
        (Value::Addr(addr), TestCondition::Net4(low, high)) => match addr.unmapped() {
            Addr::V4(octets) => (*low..=*high).contains(&u32::from_be_bytes(octets)),
            Addr::V6(_) => false,
        },
        (Value::Addr(addr), TestCondition::Nets(nets)) => nets.contains(*addr),
        (Value::Addr(addr), TestCondition::Addr(to, orders)) => orders.take(addr.cmp(to)),
        (Value::Time(_), TestCondition::FarTime(to, orders)) => orders.take(of_far_time(*to).reverse()),
        (Value::U64(n) | Value::Time(n) | Value::Thousandths(n), want) => is_number(*n, want),
        (Value::FarTime(time), TestCondition::FarTime(to, orders)) => orders.take(time.cmp(to)),
        (Value::FarTime(time), TestCondition::Number(_, orders)) => orders.take(of_far_time(*time)),
        // Operands are never negative: a number below zero is less than all of them.
        (Value::I64(n), want) => u64::try_from(*n).map_or(is_negative(want), |n| is_number(n, want)),
        (Value::Bool(yes), TestCondition::Bool(wanted)) => yes == wanted,
        (Value::Bits(bits, _), TestCondition::Bits(wanted)) => bits & wanted != 0,
        (Value::Bits(..) | Value::Words(_), want) => value.words().iter().any(|word| is_text(word, want)),
        (Value::Endpoint(addr, port), TestCondition::Endpoints(tests)) => {
            tests.iter().any(|test| test.matches(*addr, *port))
        }
        (Value::List(_) | Value::Owners(_), want) => any_passes(value, want),
        _ => false,
    }
}

/// True if an item of the list passes, or the requested member of an item.
fn any_passes(list: &Value<'_>, want: &TestCondition) -> bool {
    let mut passed = false;
    list.for_each_item(&mut |item| match (item, want) {
        (Value::Object(object), TestCondition::Member(name, want)) => object.for_each(&mut |member, value| {
            passed |= member == *name && !value.is_null() && passes(&value, want);
        }),
        (item, want) => passed |= passes(&item, want),
    });
    passed
}

/// Compiles an operator that is not a pattern; [`TestCondition::Nothing`] if the operand does not fit it.
fn compare(op: Op, operand: &Operand, kind: Kind) -> TestCondition {
    let orders = Orders::from_op(op);
    let same = matches!(op, Op::Eq | Op::Ne);
    match operand {
        Operand::Number(n) => orders.map_or(TestCondition::Nothing, |orders| TestCondition::Number(*n, orders)),
        Operand::FarTime(time) => orders.map_or(TestCondition::Nothing, |orders| TestCondition::FarTime(*time, orders)),
        Operand::Addr(addr) => orders.map_or(TestCondition::Nothing, |orders| TestCondition::Addr(*addr, orders)),
        _ if !same => TestCondition::Nothing,
        Operand::Null => TestCondition::Null,
        Operand::Bool(wanted) => TestCondition::Bool(*wanted),
        Operand::Ranges(ranges) => match *merge_ranges(ranges.clone(), |n| n.checked_add(1)) {
            [(low, high)] => TestCondition::Range(low, high),
            ref many => TestCondition::Ranges(many.into()),
        },
        Operand::Masked { value, mask } => TestCondition::Masked(*value, *mask),
        Operand::Prefixes(prefixes) => compile_prefixes(prefixes),
        Operand::Words(words) => compile_words(words, kind),
        Operand::Endpoints(tests) => TestCondition::Endpoints(tests.as_slice().into()),
        Operand::Glob(pattern) => TestCondition::Glob(pattern.clone()),
        Operand::Regex(_) | Operand::Member { .. } | Operand::Field(_) => TestCondition::Nothing,
    }
}

/// Compiles prefixes to ranges; a single IPv4 prefix has a separate test.
fn compile_prefixes(prefixes: &[Prefix]) -> TestCondition {
    let nets = AddrRanges::from_prefixes(prefixes);
    match (&*nets.v4, &*nets.v6) {
        ([(low, high)], []) => TestCondition::Net4(*low, *high),
        _ => TestCondition::Nets(nets),
    }
}

/// Compiles words according to the kind of the field: bits if the kernel sends bits, otherwise one word, a few, or
/// many.
fn compile_words(words: &[Box<[u8]>], kind: Kind) -> TestCondition {
    if let Kind::Words(names @ [_, ..]) = kind {
        let bit = |word: &[u8]| names.iter().position(|name| name.as_bytes() == word).unwrap_or(32);
        let bits = words.iter().filter_map(|word| 1u32.checked_shl(bit(word) as u32));
        return TestCondition::Bits(bits.fold(0, |all, bit| all | bit));
    }
    if let [word] = words {
        let own = match kind {
            Kind::Name(names) => names.iter().find(|name| *name.as_bytes() == **word).copied(),
            _ => None,
        };
        return TestCondition::Word(word.clone(), own);
    }
    let mut words = words.to_vec();
    if words.len() <= FEW_WORDS {
        return TestCondition::Words(words.into());
    }
    words.sort_unstable();
    words.dedup();
    TestCondition::ManyWords(words.into())
}

/// True if the text passes.
#[inline]
fn is_text(text: &[u8], want: &TestCondition) -> bool {
    match want {
        TestCondition::Word(word, _) => text == &**word,
        TestCondition::Words(words) => words.iter().any(|word| text == &**word),
        TestCondition::ManyWords(words) => words.binary_search_by(|word| (**word).cmp(text)).is_ok(),
        TestCondition::Regex(regex) => regex.is_match(text),
        TestCondition::Glob(pattern) => glob::matches(pattern, text),
        _ => false,
    }
}

/// True if the number passes.
#[inline]
fn is_number(n: u64, want: &TestCondition) -> bool {
    match want {
        TestCondition::Number(to, orders) => orders.take(n.cmp(to)),
        TestCondition::Range(low, high) => *low <= n && n <= *high,
        TestCondition::Ranges(ranges) => holds_in(ranges, n),
        TestCondition::Masked(value, mask) => n & mask == *value,
        _ => false,
    }
}

/// The order of a far time to any time that is not far.
fn of_far_time(time: FarTime) -> Ordering {
    if time.is_before_1970() { Ordering::Less } else { Ordering::Greater }
}

/// True if a number below zero passes.
fn is_negative(want: &TestCondition) -> bool {
    matches!(want, TestCondition::Number(_, orders) if orders.less)
}

/// Sorts ranges and merges those that overlap or touch.
fn merge_ranges<N: Copy + Ord>(mut ranges: Vec<(N, N)>, after: impl Fn(N) -> Option<N>) -> Box<[(N, N)]> {
    ranges.retain(|(low, high)| low <= high);
    ranges.sort_unstable();
    let mut out: Vec<(N, N)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match out.last_mut() {
            Some(last) if after(last.1).is_none_or(|next| low <= next) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out.into()
}

/// True if `n` lies in one of the sorted ranges.
#[inline]
fn holds_in<N: Copy + Ord>(ranges: &[(N, N)], n: N) -> bool {
    let above = ranges.partition_point(|(low, _)| *low <= n);
    above.checked_sub(1).and_then(|i| ranges.get(i)).is_some_and(|(_, high)| n <= *high)
}

impl AddrRanges {
    /// Converts prefixes to ranges of addresses. Overlapping and adjacent ones are merged, so that a binary search
    /// works.
    fn from_prefixes(prefixes: &[Prefix]) -> AddrRanges {
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        for prefix in prefixes {
            let len = u32::from(prefix.len());
            match prefix.addr() {
                Addr::V4(octets) => {
                    let first = u32::from_be_bytes(octets);
                    v4.push((first, first | u32::MAX.checked_shr(len).unwrap_or(0)));
                }
                Addr::V6(octets) => {
                    let first = u128::from_be_bytes(octets);
                    v6.push((first, first | u128::MAX.checked_shr(len).unwrap_or(0)));
                }
            }
        }
        AddrRanges { v4: merge_ranges(v4, |n| n.checked_add(1)), v6: merge_ranges(v6, |n| n.checked_add(1)) }
    }

    /// True if the address is in a prefix. An IPv4-mapped address can be in IPv4 prefixes, and unchanged in IPv6 ones.
    #[inline]
    fn contains(&self, addr: Addr) -> bool {
        match addr {
            Addr::V4(octets) => holds_in(&self.v4, u32::from_be_bytes(octets)),
            Addr::V6(octets) => {
                let mapped = match addr.unmapped() {
                    Addr::V4(octets) => holds_in(&self.v4, u32::from_be_bytes(octets)),
                    Addr::V6(_) => false,
                };
                mapped || holds_in(&self.v6, u128::from_be_bytes(octets))
            }
        }
    }
}
