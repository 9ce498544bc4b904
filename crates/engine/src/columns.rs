//! The choice of columns: `--columns`, the default and wide sets, `--no-owner`.

use crate::nearest::find_nearest;
use crate::words;
use record::rows::Flow;
use record::{Column, Columns, FieldInfo, Kind, Schema, Show};
use std::fmt;

/// The set of columns without `--columns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The plain table.
    Default,
    /// `-o wide`, JSON.
    Wide,
}

/// A column that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn {
    /// The user's text.
    pub name: Box<str>,
    /// The table's name.
    pub table: &'static str,
    /// The column that was probably meant.
    pub hint: Option<&'static str>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown column `{}` in {}", self.name.escape_debug(), self.table)?;
        let is_number = !self.name.is_empty() && self.name.bytes().all(|byte| byte.is_ascii_digit());
        match self.hint {
            Some(hint) => write!(f, "; did you mean `{hint}`?"),
            None if is_number => write!(f, "; --limit {0} (-n {0}) limits the number of rows", self.name),
            None => write!(f, "; `netwren {} --columns help` lists them", self.table),
        }
    }
}

impl std::error::Error for UnknownColumn {}

/// Returns the fields to show, as indexes into the fields of `table`, in order and without duplicates.
///
/// `spec` is the value of `--columns`: `a,b` shows these; `+a`, `-a` change the set of `base`; `all`, `wide` and
/// `default` stand for sets and take `+` and `-` like names. Without owners the sets have no owner fields; an owner
/// field that is named itself stays.
pub fn resolve(table: Schema, spec: Option<&str>, base: Base, owners: bool) -> Result<Vec<usize>, UnknownColumn> {
    let shown = if base == Base::Wide { Show::Wide } else { Show::Default };
    let mut chosen = Vec::new();
    let items = spec.unwrap_or("").split(',').map(str::trim).filter(|item| !item.is_empty());
    for (place, item) in items.enumerate() {
        let (sign, name) = match item.as_bytes().first() {
            Some(b'+') => (Some(true), &item[1..]),
            Some(b'-') => (Some(false), &item[1..]),
            _ => (None, item),
        };
        if place == 0 && sign.is_some() {
            chosen = set(table, shown, owners);
        }
        let named = fields_named(table, name, owners)?;
        if sign == Some(false) {
            chosen.retain(|field| !named.contains(field));
        } else {
            let new: Vec<usize> = named.into_iter().filter(|field| !chosen.contains(field)).collect();
            chosen.extend(new);
        }
    }
    if chosen.is_empty() && spec.is_none_or(|s| s.trim().is_empty()) {
        chosen = set(table, shown, owners);
    }
    Ok(chosen)
}

/// Returns the fields for one word of `--columns`: a field, or one of the sets.
fn fields_named(table: Schema, name: &str, owners: bool) -> Result<Vec<usize>, UnknownColumn> {
    match name {
        "all" => Ok(set(table, Show::Asked, owners)),
        "wide" => Ok(set(table, Show::Wide, owners)),
        "default" => Ok(set(table, Show::Default, owners)),
        _ => match words::fields(table, name) {
            unknown if unknown.is_empty() => {
                let hint = find_nearest(name, table.names());
                Err(UnknownColumn { name: name.into(), table: table.name(), hint })
            }
            known => Ok(known),
        },
    }
}

/// Adds these fields to the columns, each behind the column that comes before it in the table.
pub fn insert(columns: &mut Vec<usize>, fields: &[usize]) {
    for &field in fields {
        let before = columns.iter().enumerate().filter(|(_, column)| **column < field);
        let place = before.max_by_key(|(_, column)| **column).map_or(0, |(place, _)| place + 1);
        columns.insert(place, field);
    }
}

/// Returns the fields of a set: those whose `show` is at most this.
fn set(table: Schema, show: Show, owners: bool) -> Vec<usize> {
    let wanted = |field: &FieldInfo| field.show <= show && (owners || !is_owner_field(field));
    table.fields().enumerate().filter(|(_, field)| wanted(field)).map(|(index, _)| index).collect()
}

/// True if the field requires a pass over all processes.
pub fn is_owner_field(field: &FieldInfo) -> bool {
    field.needs_owners || field.need & Flow::NEED_OWNERS != 0
}

/// Returns the names and kinds of these fields, for a sink.
pub fn from_fields(table: Schema, fields: &[usize]) -> Columns {
    let column = |f: FieldInfo| Column { name: f.name.into(), kind: f.kind };
    Columns(fields.iter().filter_map(|&i| table.field(i)).map(column).collect())
}

/// Returns the text of `--columns help`: one line per field with its name, set, unit and description.
pub fn help(table: Schema) -> String {
    let width = table.names().map(str::len).max().unwrap_or(0);
    let mut out = String::new();
    for field in table.fields() {
        let set = match field.show {
            Show::Default => "default",
            Show::Unusual => "unusual",
            Show::Wide => "wide",
            Show::Asked => "",
        };
        let what = kind_in_words(field.kind);
        out.push_str(&format!("{:width$}  {set:7}  {what:15}  {}\n", field.name, field.doc));
    }
    out
}

/// Returns the unit or the type of a field, in words.
pub fn kind_in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "count",
        Kind::Port => "port",
        Kind::Id => "number",
        Kind::Hex => "hexadecimal",
        Kind::Addr => "address",
        Kind::Text => "text",
        Kind::Name(_) => "word",
        Kind::Bool => "true or false",
        Kind::Owners | Kind::Words(_) | Kind::Texts | Kind::Objects(_) => "list",
        Kind::Time => "time",
        Kind::Thousandths => "number with decimals",
        Kind::Endpoint => "address:port",
        _ => kind.unit_name(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::{Flows, Sockets};

    fn names<T: record::Table>(spec: Option<&str>, base: Base, owners: bool) -> String {
        let fields = resolve(Schema::from_table::<T>(), spec, base, owners).unwrap();
        fields.iter().map(|&i| T::FIELDS[i].name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sets_and_changes() {
        let default = names::<Sockets>(None, Base::Default, true);
        assert_eq!(default, "proto state recv_q send_q local_addr local_port peer_addr peer_port process pid");
        assert_eq!(names::<Sockets>(Some(""), Base::Default, true), default);
        let lean = default.replace(" process pid", "");
        assert_eq!(names::<Sockets>(None, Base::Default, false), lean);
        for (spec, expected) in [
            ("state, proto", "state proto".to_owned()),
            ("state,state", "state".to_owned()),
            ("+rtt_us", format!("{lean} rtt_us")),
            ("-state,+inode", format!("{} inode", lean.replace(" state", ""))),
            ("pid,+state", "pid state".to_owned()),
            ("peer,rtt,port", "peer_addr peer_port rtt_us local_port".to_owned()),
            ("-peer,-local", "proto state recv_q send_q".to_owned()),
            ("default,pid", format!("{lean} pid")),
            ("state,-state", String::new()),
        ] {
            assert_eq!(names::<Sockets>(Some(spec), Base::Default, false), expected, "{spec}");
        }
        assert_eq!(
            resolve(Schema::from_table::<Sockets>(), Some("all"), Base::Default, true).unwrap().len(),
            Schema::from_table::<Sockets>().fields().count()
        );
        assert!(names::<Sockets>(None, Base::Wide, true).contains("owners"));
        assert!(!names::<Flows>(None, Base::Wide, false).contains("process"));
    }

    #[test]
    fn unknown_columns_propose() {
        let say =
            |spec| resolve(Schema::from_table::<Sockets>(), Some(spec), Base::Default, true).unwrap_err().to_string();
        assert_eq!(say("state,+rtt_u"), "unknown column `rtt_u` in sockets; did you mean `rtt_us`?");
        assert_eq!(say("-qqqqqq"), "unknown column `qqqqqq` in sockets; `netwren sockets --columns help` lists them");
        assert_eq!(say("5"), "unknown column `5` in sockets; --limit 5 (-n 5) limits the number of rows");
        assert_eq!(say("+"), "unknown column `` in sockets; `netwren sockets --columns help` lists them");
    }

    #[test]
    fn help_has_a_line_for_each_field() {
        let help = help(Schema::from_table::<Flows>());
        assert_eq!(help.lines().count(), Schema::from_table::<Flows>().fields().count());
        assert!(help.contains("\npeer_port  "), "{help}");
    }
}
