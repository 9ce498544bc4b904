//! Resolution of names in filters.

use super::ast::{Comparison, Literal};
use super::error::{Fault, FilterError};
use super::literal::{self, Unit};
use crate::nearest::find_nearest;
use crate::words;
use record::{Kind, Member, Schema};

/// The meaning of a name.
pub(super) enum NameMeaning {
    /// One field.
    Field(usize),
    /// `local`, `peer`, `port`: address and port fields of one or several ends.
    Ends(Vec<(Option<usize>, Option<usize>)>),
    /// `owners.pid`: a member of the objects in a list.
    Member { field: usize, member: &'static Member },
}

/// True if `name` has a meaning in filters of `table`: a field, a field without its unit, a word for ends.
pub fn is_known_name(table: Schema, name: &str) -> bool {
    member(table, name).is_some() || !words::fields(table, name).is_empty()
}

/// Finds the meaning of the name in `test` for `table`.
///
/// An exact name wins, unless every value has a unit that this field cannot have and the name with that unit exists:
/// `timer > 1s` means `timer_ms`, `timer = keepalive` means `timer`.
pub(super) fn find_meaning(table: Schema, text: &str, test: &Comparison) -> Result<NameMeaning, FilterError> {
    let exact = table.index_of(&test.name);
    let by_unit = words::with_unit(table, &test.name).find(|&i| takes_units_of(table, i, &test.values));
    match (exact, by_unit) {
        (Some(i), Some(j)) if !takes_units_of(table, i, &test.values) => return Ok(NameMeaning::Field(j)),
        (Some(i), _) => return Ok(NameMeaning::Field(i)),
        (None, Some(j)) => return Ok(NameMeaning::Field(j)),
        (None, None) => {}
    }
    let ends = words::find_endpoints(table, &test.name);
    if !ends.is_empty() {
        return Ok(NameMeaning::Ends(ends));
    }
    if let Some(meaning) =
        words::renamed(table, &test.name).map(NameMeaning::Field).or_else(|| member(table, &test.name))
    {
        return Ok(meaning);
    }
    let candidate = words::with_unit(table, &test.name).next();
    match candidate.and_then(|i| table.field(i)) {
        Some(_) if test.values.iter().all(Literal::is_null) => Ok(NameMeaning::Field(candidate.unwrap_or(0))),
        Some(field) => {
            let message = format!("`{}` needs a value with a unit", test.name);
            Err(FilterError::new(text, test.name_span, Fault::BadValue, message).hint(Some(field.name)))
        }
        None => Err(unknown_name_error(table, text, test)),
    }
}

/// The kind of values with ports, in which service names may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PortsKind {
    /// Ports alone.
    Alone,
    /// Addresses with ports.
    OfEnds,
}

/// Returns how a field or a word called `name` has ports; `None` without ports.
pub(super) fn ports(table: Schema, name: &str) -> Option<PortsKind> {
    if let Some(field) = table.find_field(name) {
        return match field.kind {
            Kind::Port => Some(PortsKind::Alone),
            Kind::Endpoint => Some(PortsKind::OfEnds),
            _ => None,
        };
    }
    match words::find_endpoints(table, name).first()? {
        (None, Some(_)) => Some(PortsKind::Alone),
        (Some(_), Some(_)) => Some(PortsKind::OfEnds),
        _ => None,
    }
}

/// The error for an unknown name: suggests the field that was probably meant.
fn unknown_name_error(table: Schema, text: &str, test: &Comparison) -> FilterError {
    let list = test.name.split_once('.').map_or(&*test.name, |(list, _)| list);
    let members = table.find_field(list).map_or(&[][..], |f| f.kind.members());
    if !members.is_empty() {
        let names = members.iter().map(|member| member.name).collect::<Vec<_>>().join(" ");
        let message = format!("unknown member `{}`; `{list}` has {names}", test.name);
        return FilterError::new(text, test.name_span, Fault::UnknownField, message);
    }
    let hint = find_nearest(&test.name, table.names().chain(words::others(table)));
    let message = match hint {
        Some(_) => format!("unknown field `{}`", test.name),
        None => format!("unknown field `{}`; `netwren {} --columns help` lists them", test.name, table.name()),
    };
    FilterError::new(text, test.name_span, Fault::UnknownField, message).hint(hint)
}

/// True if every value is a number with a unit that the field at `index` has.
fn takes_units_of(table: Schema, index: usize, values: &[Literal]) -> bool {
    let Some(unit) = table.field(index).and_then(|f| Unit::from_kind(f.kind)) else { return false };
    values.iter().all(|v| !v.quoted && v.as_str().is_some_and(|text| literal::has_unit(unit, text)))
}

/// Resolves `owners.pid`: a list's field, a dot, a member.
fn member(table: Schema, name: &str) -> Option<NameMeaning> {
    let (list, member) = name.split_once('.')?;
    let field = table.index_of(list)?;
    let members = table.field(field)?.kind.members();
    let member = members.iter().find(|one| one.name == member)?;
    Some(NameMeaning::Member { field, member })
}
