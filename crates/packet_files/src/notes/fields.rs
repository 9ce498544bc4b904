//! Converts cells to notes: names and values.

use super::FIELDS_MAX;
use record::text::{put_addr, put_hex, put_i64, put_u64};
use record::{Addr, Columns, Field, Kind, Table, Value, field_index};

/// Checks the fields of `--comment`. `is_taken` decides which fields are allowed, and `those` names them in the error,
/// which is for the user.
pub fn check_fields<T: Table>(fields: &str, is_taken: impl Fn(&Field<T>) -> bool, those: &str) -> Result<(), String> {
    let mut count = 0;
    for name in names(fields) {
        count += 1;
        let field = field_index::<T>(name).and_then(|at| T::FIELDS.get(at));
        if !field.is_some_and(&is_taken) {
            return Err(format!("--comment takes {those}, not `{name}`"));
        }
    }
    match count {
        0 => Err("--comment takes fields, such as process,container".to_owned()),
        1..=FIELDS_MAX => Ok(()),
        _ => Err(format!("--comment takes at most {FIELDS_MAX} fields")),
    }
}

/// Adds these fields to `columns` (in the syntax of `--columns`).
pub fn with_columns(columns: Option<&str>, fields: &str) -> String {
    let mut all = columns.unwrap_or_default().to_owned();
    for name in names(fields) {
        all.push_str(if all.is_empty() { "+" } else { ",+" });
        all.push_str(name);
    }
    all
}

fn names(fields: &str) -> impl Iterator<Item = &str> {
    fields.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// The columns of a plan that become notes.
pub struct NoteFields {
    names: Vec<Box<str>>,
    /// Index among the columns, and whether the number is shown in hex.
    columns: Vec<(usize, bool)>,
    texts: Vec<Vec<u8>>,
}

impl NoteFields {
    /// Uses all columns from index `from` on.
    pub fn of_columns(columns: &Columns, from: usize) -> NoteFields {
        let all = columns.0.iter().enumerate().skip(from);
        let (names, columns): (Vec<Box<str>>, Vec<_>) =
            all.map(|(at, column)| (column.name.clone(), (at, column.kind == Kind::Hex))).unzip();
        NoteFields { texts: vec![Vec::new(); names.len()], names, columns }
    }

    /// Uses the columns named in `fields`, in that order.
    pub fn of(columns: &Columns, fields: &str) -> NoteFields {
        let (mut found, mut places) = (Vec::new(), Vec::new());
        for name in names(fields) {
            let place = columns.0.iter().position(|column| *column.name == *name);
            if let Some((at, column)) = place.and_then(|at| Some((at, columns.0.get(at)?))) {
                found.push(column.name.clone());
                places.push((at, column.kind == Kind::Hex));
            }
        }
        NoteFields { texts: vec![Vec::new(); found.len()], names: found, columns: places }
    }

    /// Names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The cells of the fields.
    pub(super) fn cells<'c, 'v>(&'c self, cells: &'c [Value<'v>]) -> impl Iterator<Item = Value<'v>> + 'c {
        self.columns.iter().map(|(at, _)| cells.get(*at).copied().unwrap_or(Value::Null))
    }

    /// Names and values, without null values.
    pub fn fill(&mut self, cells: &[Value<'_>]) -> Vec<(&str, &[u8])> {
        for (text, (at, is_hex)) in self.texts.iter_mut().zip(&self.columns) {
            text.clear();
            put_value(text, cells.get(*at).unwrap_or(&Value::Null), *is_hex);
        }
        let notes = self.names.iter().zip(&self.texts);
        notes.filter(|(_, text)| !text.is_empty()).map(|(name, text)| (&**name, text.as_slice())).collect()
    }
}

/// Appends a value as tables show it; appends nothing for values without a plain text.
fn put_value(out: &mut Vec<u8>, value: &Value<'_>, is_hex: bool) {
    match value {
        Value::Bytes(text) | Value::FirstOf(text, _) => out.extend_from_slice(text),
        Value::Name(word) | Value::Guess(word) => out.extend_from_slice(word.as_bytes()),
        Value::U64(number) if is_hex => {
            out.extend_from_slice(b"0x");
            put_hex(out, *number);
        }
        Value::U64(number) => put_u64(out, *number),
        Value::I64(number) => put_i64(out, *number),
        Value::Bool(yes) => out.extend_from_slice(if *yes { b"true" } else { b"false" }),
        Value::Addr(addr) => put_addr(out, *addr),
        Value::LinkAddr(link) => {
            put_addr(out, link.addr());
            out.push(b'%');
            out.extend_from_slice(link.iface());
        }
        Value::Endpoint(addr, port) => put_endpoint(out, *addr, *port),
        Value::Bits(..) | Value::Words(_) => {
            for (nth, word) in value.words().iter().enumerate() {
                if nth > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(word);
            }
        }
        _ => {}
    }
}

fn put_endpoint(out: &mut Vec<u8>, addr: Addr, port: Option<u16>) {
    let is_bracketed = matches!(addr, Addr::V6(_)) && port.is_some();
    if is_bracketed {
        out.push(b'[');
    }
    put_addr(out, addr);
    if is_bracketed {
        out.push(b']');
    }
    if let Some(port) = port {
        out.push(b':');
        put_u64(out, port.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Column;

    #[test]
    fn values_are_as_in_tables() {
        const WORDS: &[&str] = &["seen_reply", "assured"];
        for (value, is_hex, text) in [
            (Value::Endpoint(Addr::V4([192, 0, 2, 1]), Some(80)), false, "192.0.2.1:80"),
            (Value::Endpoint(Addr::V6([0; 16]), Some(80)), false, "[::]:80"),
            (Value::Endpoint(Addr::V6([0; 16]), None), false, "::"),
            (Value::Addr(Addr::V4([192, 0, 2, 1])), false, "192.0.2.1"),
            (Value::Bits(3, WORDS), false, "seen_reply,assured"),
            (Value::U64(42), true, "0x2a"),
            (Value::U64(42), false, "42"),
            (Value::Owners(&[]), false, ""),
            (Value::Null, false, ""),
        ] {
            let mut out = Vec::new();
            put_value(&mut out, &value, is_hex);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn fields_are_found_among_columns() {
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = Columns(vec![column("src", Kind::Addr), column("ct_mark", Kind::Hex), column("nat", Kind::Text)]);
        let cells = [Value::Null, Value::U64(7), Value::Name("dnat")];
        let mut some = NoteFields::of(&columns, "nat, src,ct_mark");
        assert_eq!(some.fill(&cells), [("nat", &b"dnat"[..]), ("ct_mark", b"0x7")]);
        assert_eq!(NoteFields::of_columns(&columns, 2).fill(&cells), [("nat", &b"dnat"[..])]);
        assert_eq!(with_columns(None, "nat,src"), "+nat,+src");
        assert_eq!(with_columns(Some("src"), "nat"), "src,+nat");
    }
}
