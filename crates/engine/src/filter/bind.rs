//! Binding of a filter to a table: resolves names to fields and converts values to each field's unit.

use super::ast::{Ast, Cmp, Comparison, Literal, Node};
use super::endpoint;
use super::error::{Fault, FilterError};
use super::links;
use super::literal::{self, NumberError, Unit};
use super::meant_as;
use super::names::{NameMeaning, find_meaning};
use super::time;
use crate::columns::kind_in_words;
use crate::nearest::find_nearest;
use crate::predicate::compile_regex;
use record::rows::NatKind;
use record::{Expr, FarTime, Kind, Member, Op, Operand, Schema, Test};

/// Resolves the names of `ast` to fields of `table` and converts the values.
///
/// Fails at the position of a name that `table` does not have, or of a value or an operator that does not fit its
/// field.
pub fn bind(table: Schema, ast: &Ast) -> Result<Expr, FilterError> {
    bind_node(table, &ast.text, &ast.root)
}

fn bind_node(table: Schema, text: &str, node: &Node) -> Result<Expr, FilterError> {
    let all = |parts: &[Node]| parts.iter().map(|part| bind_node(table, text, part)).collect::<Result<Vec<_>, _>>();
    Ok(match node {
        Node::And(parts) => Expr::And(all(parts)?),
        Node::Or(parts) => Expr::Or(all(parts)?),
        Node::Not(part) => Expr::Not(Box::new(bind_node(table, text, part)?)),
        Node::Test(test) => match links::without_interfaces(table, test) {
            Some(node) => bind_node(table, text, &node)?,
            None => bind_test(table, text, test)?,
        },
    })
}

fn bind_test(table: Schema, text: &str, test: &Comparison) -> Result<Expr, FilterError> {
    match find_meaning(table, text, test)? {
        NameMeaning::Ends(ends) => of_ends(table, text, test, &ends),
        NameMeaning::Member { field, member } => {
            let unit = Unit::from_kind(member.kind);
            Binder { table, text, test, field, member: Some(member), unit }.field(member.kind)
        }
        NameMeaning::Field(field) => {
            let Some(found) = table.field(field) else { return Ok(Expr::Or(Vec::new())) };
            let unit = Unit::from_kind(found.kind);
            Binder { table, text, test, field, member: None, unit }.field(found.kind)
        }
    }
}

/// Builds the comparison with the ends of a connection, or with one part of them: `=` holds if it holds for one end,
/// `!=` if it holds for every end.
fn of_ends(
    table: Schema,
    text: &str,
    test: &Comparison,
    ends: &[(Option<usize>, Option<usize>)],
) -> Result<Expr, FilterError> {
    let one = |(addr, port): &(Option<usize>, Option<usize>)| {
        let (field, port) = match (addr, port) {
            (Some(addr), port) => (*addr, *port),
            (None, Some(port)) => (*port, None),
            (None, None) => return Ok(Expr::Or(Vec::new())),
        };
        let kind = table.field(field).map_or(Kind::Port, |field| field.kind);
        let binder = Binder { table, text, test, field, member: None, unit: Unit::from_kind(kind) };
        port.map_or_else(|| binder.field(kind), |port| binder.endpoint(port))
    };
    let parts = ends.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let is_negated = matches!(test.cmp, Cmp::Ne | Cmp::NotIn | Cmp::NotMatch);
    Ok(match <[Expr; 1]>::try_from(parts) {
        Ok([only]) => only,
        Err(parts) if is_negated => Expr::And(parts),
        Err(parts) => Expr::Or(parts),
    })
}

/// Returns index and kind of the field that a word stands for in `table`, if it stands for exactly one.
fn field_of(table: Schema, word: &str) -> Option<(usize, Kind)> {
    let [index] = crate::words::fields(table, word)[..] else { return None };
    table.field(index).map(|field| (index, field.kind))
}

/// A comparison that is converted to one or more tests of `field`.
struct Binder<'a> {
    table: Schema,
    text: &'a str,
    test: &'a Comparison,
    field: usize,
    /// The compared member, if the field is a list of objects.
    member: Option<&'static Member>,
    /// The units that may follow its numbers.
    unit: Option<Unit>,
}

impl Binder<'_> {
    /// Converts the comparison for a field of this kind. Nulls among the values become separate tests.
    fn field(&self, kind: Kind) -> Result<Expr, FilterError> {
        let values: Vec<&Literal> = self.test.values.iter().filter(|v| !v.is_null()).collect();
        let mut parts = Vec::new();
        if let Some(null) = self.test.values.iter().find(|v| v.is_null()) {
            let Some(op) = self.equality() else {
                let message = format!("null can be compared only with `=` and `!=`, not with `{}`", self.test.cmp);
                return Err(FilterError::new(self.text, null.span, Fault::BadOperator, message));
            };
            parts.push(self.bind_value_test(op, Operand::Null));
        }
        if !values.is_empty() {
            parts.extend(self.of_kind(kind, &values)?);
        }
        Ok(self.join(parts))
    }

    /// Joins the tests of one list.
    fn join(&self, mut parts: Vec<Expr>) -> Expr {
        match parts.len() {
            1 => parts.remove(0),
            _ if self.equality() == Some(Op::Ne) => Expr::And(parts),
            _ => Expr::Or(parts),
        }
    }

    /// Builds one test of the field, or of its member.
    ///
    /// A test for null applies to the field itself: a member cannot be null.
    fn bind_value_test(&self, op: Op, operand: Operand) -> Expr {
        let operand = match (self.member, operand) {
            (Some(member), operand) if operand != Operand::Null => {
                Operand::Member { name: member.name, kind: member.kind, operand: Box::new(operand) }
            }
            (_, operand) => operand,
        };
        Expr::Test(Test { field: self.field, op, operand })
    }

    /// Returns `Eq` or `Ne` for the operators of equality.
    fn equality(&self) -> Option<Op> {
        match self.test.cmp {
            Cmp::Eq | Cmp::In => Some(Op::Eq),
            Cmp::Ne | Cmp::NotIn => Some(Op::Ne),
            _ => None,
        }
    }

    /// Returns the operator if it is one of order.
    fn ordering(&self) -> Option<Op> {
        match self.test.cmp {
            Cmp::Lt => Some(Op::Lt),
            Cmp::Le => Some(Op::Le),
            Cmp::Gt => Some(Op::Gt),
            Cmp::Ge => Some(Op::Ge),
            _ => None,
        }
    }

    /// Builds the tests for values that are not null, depending on the kind of the field.
    ///
    /// Fails if the operator or a value does not fit the kind; the message names the ones that do.
    fn of_kind(&self, kind: Kind, values: &[&Literal]) -> Result<Vec<Expr>, FilterError> {
        match kind {
            Kind::Owners => {
                return Err(self.operator_error("a list of owners; compare `process`, `pid` or `fd`, or use `= null`"));
            }
            Kind::Objects(_) => {
                return Err(self.operator_error("a list; compare a member (`list.member`), or use `= null`"));
            }
            _ => {}
        }
        if self.test.cmp.is_match() {
            return Ok(vec![self.pattern(kind, values)?]);
        }
        if let Some(test) = self.bind_other_field(kind, values)? {
            return Ok(vec![test]);
        }
        if let Some(op) = self.ordering() {
            return self.bind_ordered(kind, op, values).map(|test| vec![test]);
        }
        let op = self.equality().unwrap_or(Op::Eq);
        match kind {
            Kind::Addr => self.addresses(op, values).map(|test| vec![test]),
            Kind::Bool => {
                values.iter().map(|v| Ok(self.bind_value_test(op, Operand::Bool(self.boolean(v)?)))).collect()
            }
            Kind::Text | Kind::Texts => self.texts(op, values),
            Kind::Endpoint => self.endpoints(op, values).map(|test| vec![test]),
            Kind::Words(&[]) => self.texts(op, values),
            Kind::Name(names) | Kind::Words(names) => {
                let words = values.iter().map(|v| self.known_words(names, v)).collect::<Result<Vec<_>, _>>()?;
                let words = NatKind::with_implied(names, words.concat());
                Ok(vec![self.bind_value_test(op, Operand::Words(words))])
            }
            Kind::Time => self.times(op, values).map(|test| vec![test]),
            _ => self.numbers(kind, op, values),
        }
    }

    /// Builds the comparison with another field of the row if the value is a field's name. Only for numbers, addresses
    /// and times, whose values cannot be mistaken for names. Both fields must be of one kind.
    fn bind_other_field(&self, kind: Kind, values: &[&Literal]) -> Result<Option<Expr>, FilterError> {
        let is_comparable = kind.is_number() || matches!(kind, Kind::Addr | Kind::Time);
        let [value] = values else { return Ok(None) };
        let word = value.as_str().filter(|_| is_comparable && self.member.is_none() && !value.quoted);
        let Some((other, other_kind)) = word.and_then(|word| field_of(self.table, word)) else { return Ok(None) };
        if std::mem::discriminant(&kind) != std::mem::discriminant(&other_kind) {
            let (here, there) = (kind_in_words(kind), kind_in_words(other_kind));
            let message = format!("`{}` has the type {here}, this field has the type {there}", self.test.name);
            return Err(self.value_error(value, &message));
        }
        let op = self.ordering().or(self.equality()).unwrap_or(Op::Eq);
        Ok(Some(self.bind_value_test(op, Operand::Field(other))))
    }

    /// Builds a comparison with `~` or `!~`. Compiles the pattern here to find mistakes; the plan compiles it again.
    fn pattern(&self, kind: Kind, values: &[&Literal]) -> Result<Expr, FilterError> {
        if !matches!(kind, Kind::Text | Kind::Texts | Kind::Name(_) | Kind::Words(_)) {
            let what = match kind {
                Kind::Addr | Kind::Endpoint => "an address; use `in` with a prefix",
                Kind::Time => "a time; its operators are = != < <= > >=",
                _ => "not text",
            };
            return Err(self.operator_error(what));
        }
        let op = if self.test.cmp == Cmp::Match { Op::Match } else { Op::NotMatch };
        let Some((value, pattern)) = values.first().and_then(|v| Some((v, v.as_str()?))) else {
            return Err(self.operator_error("text"));
        };
        let of_unix = if self.is_of("path") { meant_as::pattern_of_unix_name(pattern) } else { None };
        let pattern = of_unix.as_deref().unwrap_or(pattern);
        if let Err(why) = compile_regex(pattern) {
            let message = format!("bad regular expression: {why}");
            return Err(FilterError::new(self.text, value.span, Fault::BadValue, message));
        }
        Ok(self.bind_value_test(op, Operand::Regex(pattern.into())))
    }

    /// Builds a comparison with `<`, `<=`, `>` or `>=`. Only numbers, times and addresses have an order.
    fn bind_ordered(&self, kind: Kind, op: Op, values: &[&Literal]) -> Result<Expr, FilterError> {
        let what = match kind {
            Kind::Text | Kind::Texts | Kind::Name(_) => "text, which has no order; its operators are = != in ~ !~",
            Kind::Bool => "true or false; its operators are = and !=",
            Kind::Words(_) => "a list of words; its operators are = != in ~ !~",
            Kind::Endpoint => "an address and a port; its operators are = != in, not in",
            _ => "",
        };
        if !what.is_empty() {
            return Err(self.operator_error(what));
        }
        let Some(value) = values.first() else { return Err(self.operator_error("a number")) };
        if kind == Kind::Addr {
            let addr = value.as_str().and_then(literal::address);
            let addr = addr.ok_or_else(|| self.value_error(value, "not an address"))?;
            return Ok(self.bind_value_test(op, Operand::Addr(addr)));
        }
        let operand = if kind == Kind::Time { self.time(value)? } else { Operand::Number(self.number(kind, value)?) };
        Ok(self.bind_value_test(op, operand))
    }

    /// Builds a comparison with addresses and prefixes. A single host after `=` is compared as one address, which is
    /// cheaper.
    fn addresses(&self, op: Op, values: &[&Literal]) -> Result<Expr, FilterError> {
        let mut prefixes = Vec::with_capacity(values.len());
        for value in values {
            let prefix = value.as_str().and_then(literal::prefix);
            prefixes.push(prefix.ok_or_else(|| self.bad_address(value))?);
        }
        match prefixes[..] {
            [host] if !self.test.is_list && host.len() == host.addr().bits() && self.is_sign() => {
                Ok(self.bind_value_test(op, Operand::Addr(host.addr())))
            }
            _ => Ok(self.bind_value_test(op, Operand::Prefixes(prefixes))),
        }
    }

    /// Builds a comparison with endpoints whose address and port are in one cell.
    fn endpoints(&self, op: Op, values: &[&Literal]) -> Result<Expr, FilterError> {
        let read = |value: &&Literal| {
            let end = value.as_str().and_then(endpoint::parse).ok_or_else(|| self.bad_endpoint(value))?;
            Ok(end.to_test())
        };
        Ok(self.bind_value_test(op, Operand::Endpoints(values.iter().map(read).collect::<Result<_, _>>()?)))
    }

    /// True for `=` and `!=`, false for `in`.
    fn is_sign(&self) -> bool {
        matches!(self.test.cmp, Cmp::Eq | Cmp::Ne)
    }

    /// Explains what is wrong with an address: an interface or a port that belongs somewhere else.
    fn bad_address(&self, value: &Literal) -> FilterError {
        let text = value.as_str().unwrap_or("");
        if text.split_once('%').is_some_and(|(addr, _)| literal::prefix(addr).is_some()) {
            let message = format!("addresses of {} have no interface: leave it out", self.table.name());
            return self.value_error(value, &message);
        }
        let side = self.test.name.strip_suffix("_addr");
        match side.filter(|_| endpoint::parse(text).is_some()) {
            Some(side) => {
                self.value_error(value, "an address with a port can be compared only with an endpoint").hint(Some(side))
            }
            None => self.value_error(value, "neither an address nor a prefix (10.1.2.3, 10.0.0.0/8, 2001:db8::/32)"),
        }
    }

    /// Parses `true` or `yes`, `false` or `no`.
    fn boolean(&self, value: &Literal) -> Result<bool, FilterError> {
        match &*value.bytes {
            b"true" | b"yes" => Ok(true),
            b"false" | b"no" => Ok(false),
            _ => Err(self.value_error(value, "expected true or false")),
        }
    }

    /// Returns the words of the field that `value` means: one, or several for a word of ss. Ignores case and accepts
    /// `-` for `_`.
    fn known_words(&self, names: &[&str], value: &Literal) -> Result<Vec<Box<[u8]>>, FilterError> {
        let written = String::from_utf8_lossy(&value.bytes);
        let word = written.to_ascii_lowercase().replace('-', "_");
        let known = names.iter().position(|name| *name == word);
        let words = known.and_then(|at| names.get(at..=at)).unwrap_or_else(|| meant_as::states(&word, names));
        let words: Vec<Box<[u8]>> =
            words.iter().filter(|word| names.contains(word)).map(|word| word.as_bytes().into()).collect();
        if !words.is_empty() {
            return Ok(words);
        }
        let hint = find_nearest(&word, names.iter().copied());
        let list = if hint.is_none() { format!("; its values are {}", names.join(" ")) } else { String::new() };
        let message = format!("`{}` has no value `{}`{list}", self.test.name, written.escape_debug());
        Err(FilterError::new(self.text, value.span, Fault::UnknownWord, message).hint(hint))
    }

    /// True if the test is on the field with this name.
    fn is_of(&self, name: &str) -> bool {
        self.member.is_none() && self.table.index_of(name) == Some(self.field)
    }

    /// Builds tests of whole texts. A number is a user id, and `@name` is an abstract unix socket as ss writes it. An
    /// unquoted `*` is rejected, because it would only match a literal `*`.
    fn texts(&self, op: Op, values: &[&Literal]) -> Result<Vec<Expr>, FilterError> {
        let uid = self.uid();
        let (mut parts, mut words) = (Vec::new(), Vec::new());
        for value in values {
            let number = value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            match (uid, number.and_then(|text| text.parse::<u32>().ok())) {
                (Some(uid), Some(id)) => {
                    let operand = Operand::Number(id.into());
                    parts.push(Expr::Test(Test { field: uid, op, operand }));
                }
                _ if !value.quoted && value.bytes.contains(&b'*') => return Err(self.no_pattern(value)),
                _ if self.is_of("path") => words.extend(meant_as::unix_names(&value.bytes)),
                _ => words.push(value.bytes.clone()),
            }
        }
        if !words.is_empty() {
            parts.push(self.bind_value_test(op, Operand::Words(words)));
        }
        Ok(parts)
    }

    /// Returns the field that holds the uid of the user whose name is compared.
    fn uid(&self) -> Option<usize> {
        let name = self.table.field(self.field).filter(|_| self.member.is_none())?.name;
        let prefix = name.strip_suffix("user")?;
        self.table.index_of(&format!("{prefix}uid"))
    }

    /// Builds the error for `=` with a shell pattern.
    fn no_pattern(&self, value: &Literal) -> FilterError {
        let pattern = meant_as::regex_of(&value.bytes);
        let sign = if self.equality() == Some(Op::Ne) { "!~" } else { "~" };
        let message = format!("`{}` compares the whole text and treats `*` literally", self.test.cmp);
        self.value_error(value, &message).hint(Some(&format!("{} {sign} \"{pattern}\"", self.test.name)))
    }

    /// Builds the tests for numbers, ranges `low-high`, and `value/mask` for fields of bits.
    ///
    /// All ranges go into one test; each masked value gets a separate one.
    fn numbers(&self, kind: Kind, op: Op, values: &[&Literal]) -> Result<Vec<Expr>, FilterError> {
        let mut parts = Vec::new();
        let mut ranges = Vec::new();
        for value in values {
            let text = value.as_str().unwrap_or("");
            if let Some((low, mask)) = text.split_once('/').filter(|_| matches!(kind, Kind::Hex | Kind::Id)) {
                parts.push(self.bind_value_test(op, self.bind_masked(value, low, mask)?));
            } else if let Some((low, high)) = text.split_once('-') {
                let (low, high) = (self.number_of(kind, value, low)?, self.number_of(kind, value, high)?);
                if low > high {
                    return Err(self.value_error(value, "this range ends before it starts"));
                }
                ranges.push((low, high));
            } else {
                let n = self.number(kind, value)?;
                ranges.push((n, n));
            }
        }
        let takes_null = self.member.is_none() && self.table.field(self.field).is_some_and(|field| field.zero_is_null);
        if takes_null && ranges.iter().any(|(low, _)| *low == 0) {
            parts.push(self.bind_value_test(op, Operand::Null));
        }
        match ranges[..] {
            [] => {}
            [(low, high)] if low == high && self.is_sign() => {
                parts.push(self.bind_value_test(op, Operand::Number(low)))
            }
            _ => parts.push(self.bind_value_test(op, Operand::Ranges(ranges))),
        }
        Ok(parts)
    }

    /// Builds the test for one point in time or any of several.
    fn times(&self, op: Op, values: &[&Literal]) -> Result<Expr, FilterError> {
        if let ([value], true) = (values, self.is_sign()) {
            return Ok(self.bind_value_test(op, self.time(value)?));
        }
        let one = |value: &&Literal| match self.time(value)? {
            Operand::Number(ns) => Ok((ns, ns)),
            _ => Err(self.value_error(value, "times in a list are from 1970 to 2554")),
        };
        Ok(self.bind_value_test(op, Operand::Ranges(values.iter().map(one).collect::<Result<_, _>>()?)))
    }

    /// A point in time: ns since 1970, or a far time.
    fn time(&self, value: &Literal) -> Result<Operand, FilterError> {
        let ns = value.as_str().and_then(time::parse_rfc3339);
        let ns = ns.ok_or_else(|| self.value_error(value, "not a time (10:30, -5m, 2026-11-22T10:30:00Z)"))?;
        Ok(FarTime::split(ns).map_or_else(Operand::FarTime, Operand::Number))
    }

    /// Builds the operand of `value/mask`: the bits under the mask must equal the value.
    fn bind_masked(&self, at: &Literal, value: &str, mask: &str) -> Result<Operand, FilterError> {
        let (Ok(value), Ok(mask)) = (literal::parse_plain(value), literal::parse_plain(mask)) else {
            return Err(self.value_error(at, "expected a value and a mask (0x10/0xf0)"));
        };
        if value & !mask != 0 {
            return Err(self.value_error(at, "the value has bits outside its mask"));
        }
        Ok(Operand::Masked { value, mask })
    }

    /// Returns a number in the unit of the field: `20ms` is 20 000 for a field of microseconds.
    fn number(&self, kind: Kind, value: &Literal) -> Result<u64, FilterError> {
        self.number_of(kind, value, value.as_str().unwrap_or(""))
    }

    /// Parses `text`, which is `at` or a part of it.
    fn number_of(&self, kind: Kind, at: &Literal, text: &str) -> Result<u64, FilterError> {
        let read = self.unit.map_or_else(|| literal::parse_plain(text), |unit| literal::parse_quantity(unit, text));
        match read {
            Ok(n) if kind == Kind::Port && n > u64::from(u16::MAX) => Err(self.value_error(at, "ports end at 65535")),
            Ok(n) => Ok(n),
            Err(NumberError::TooBig) => Err(self.value_error(at, "this number is too large")),
            Err(NumberError::TooFine) => {
                let unit = if kind.unit_name().is_empty() { "ones" } else { kind.unit_name() };
                Err(self.value_error(at, &format!("`{}` takes whole {unit}", self.test.name)))
            }
            Err(NumberError::NoNumber) => Err(self.value_error(at, &no_number(kind, self.unit))),
        }
    }

    /// Builds the comparison for `local` and `peer`: `self.field` is the address, `port` the port.
    fn endpoint(&self, port: usize) -> Result<Expr, FilterError> {
        let Some(op) = self.equality() else {
            return Err(self.operator_error("an address and a port; its operators are = != in, not in"));
        };
        let mut parts = Vec::new();
        let mut prefixes = Vec::new();
        for value in &self.test.values {
            if value.is_null() {
                parts.push(self.bind_value_test(op, Operand::Null));
                continue;
            }
            let end = value.as_str().and_then(endpoint::parse).ok_or_else(|| self.bad_endpoint(value))?;
            match end.only_prefix().filter(|_| !self.is_sign()) {
                Some(prefix) => prefixes.push(prefix),
                None => parts.push(end.to_expr(self.field, port, op)),
            }
        }
        if !prefixes.is_empty() {
            parts.push(self.bind_value_test(op, Operand::Prefixes(prefixes)));
        }
        Ok(self.join(parts))
    }

    /// Explains the form of an address with a port. A bare number was probably meant as a port.
    fn bad_endpoint(&self, value: &Literal) -> FilterError {
        let text = value.as_str().unwrap_or("");
        let error = self.value_error(
            value,
            "neither an address nor a port (10.1.2.3, 10.0.0.0/8, 10.1.2.3:443, [2001:db8::1]:443, :443)",
        );
        let is_port = literal::parse_plain(text).is_ok();
        error.hint(is_port.then(|| format!(":{text}")).as_deref())
    }

    /// The error for an operator that does not fit the field, which is `what`.
    fn operator_error(&self, what: &str) -> FilterError {
        let message = format!("`{}` cannot be used: `{}` is {what}", self.test.cmp, self.test.name);
        FilterError::new(self.text, self.test.cmp_span, Fault::BadOperator, message)
    }

    /// The error for a value that does not fit the field.
    fn value_error(&self, value: &Literal, message: &str) -> FilterError {
        FilterError::new(self.text, value.span, Fault::BadValue, message)
    }
}

/// Describes the numbers that a field of this kind and unit takes.
fn no_number(kind: Kind, unit: Option<Unit>) -> String {
    match (kind, unit) {
        (Kind::Port, _) => "a port is a number from 0 to 65535, or a name from /etc/services".to_owned(),
        (_, Some(unit)) => format!("expected a number ({})", unit.examples()),
        (_, None) => "expected a number (1000, 0x1f)".to_owned(),
    }
}
