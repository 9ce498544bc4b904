//! Rows of typed values as messages, for receivers that store values instead of text.
//!
//! A row is the number of its columns' shape ([`TableShape::id`]), then its values. A value is a byte for its type,
//! then the 8 bytes of a number, or a length of 4 bytes and that many bytes; numbers are little-endian. The shape's
//! number reveals a row that waited on disk while the columns were changed. A [`TableShape`] is the header of such
//! messages.

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedValue<'r> {
    /// Unknown.
    Null,
    /// A number.
    Integer(i64),
    /// Text.
    Text(&'r str),
    /// Bytes that are not UTF-8.
    Bytes(&'r [u8]),
}

const NULL: u8 = 0;
const INTEGER: u8 = 1;
const TEXT: u8 = 2;
const BYTES: u8 = 3;

/// Appends one value of a row to `out`.
pub fn put_typed(out: &mut Vec<u8>, value: TypedValue<'_>) {
    let (kind, bytes) = match value {
        TypedValue::Null => return out.push(NULL),
        TypedValue::Integer(n) => {
            out.push(INTEGER);
            return out.extend_from_slice(&n.to_le_bytes());
        }
        TypedValue::Text(text) => (TEXT, text.as_bytes()),
        TypedValue::Bytes(bytes) => (BYTES, bytes),
    };
    out.push(kind);
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Iterates over the values of a row; ends early if the bytes are malformed.
pub struct TypedValues<'r> {
    rest: &'r [u8],
}

impl<'r> TypedValues<'r> {
    /// The values of the row `bytes`.
    pub fn from_bytes(bytes: &'r [u8]) -> TypedValues<'r> {
        TypedValues { rest: bytes }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    fn take_bytes(&mut self) -> Option<&'r [u8]> {
        let length = u32::from_le_bytes(self.take()?) as usize;
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'r> Iterator for TypedValues<'r> {
    type Item = TypedValue<'r>;

    fn next(&mut self) -> Option<TypedValue<'r>> {
        let [kind] = self.take()?;
        match kind {
            NULL => Some(TypedValue::Null),
            INTEGER => Some(TypedValue::Integer(i64::from_le_bytes(self.take()?))),
            TEXT => Some(std::str::from_utf8(self.take_bytes()?).map_or(TypedValue::Null, TypedValue::Text)),
            BYTES => Some(TypedValue::Bytes(self.take_bytes()?)),
            _ => None,
        }
    }
}

/// The type of a column's values; each database has its own type for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A number.
    Integer,
    /// A number with decimals, as text.
    Real,
    /// Text.
    Text,
    /// Nanoseconds since 1970.
    Time,
    /// 0 or 1.
    Flag,
    /// An IP address, as text.
    Address,
}

const COLUMN_TYPES: [(ColumnType, &str); 6] = [
    (ColumnType::Integer, "integer"),
    (ColumnType::Real, "real"),
    (ColumnType::Text, "text"),
    (ColumnType::Time, "time"),
    (ColumnType::Flag, "flag"),
    (ColumnType::Address, "address"),
];

impl ColumnType {
    fn word(self) -> &'static str {
        COLUMN_TYPES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    #[cfg(any(feature = "http", feature = "postgres", feature = "sqlite"))]
    fn from_word(word: &str) -> ColumnType {
        COLUMN_TYPES.iter().find(|(_, known)| *known == word).map_or(ColumnType::Text, |(kind, _)| *kind)
    }
}

/// Placeholder for the table's name in the SELECT of a view.
pub const TABLE_PLACE: &str = "$TABLE";

/// The name and columns of the table that rows belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableShape {
    /// Its name.
    pub name: String,
    /// Name and type of each column.
    pub columns: Vec<(String, ColumnType)>,
    /// A view of the table: its name, and its SELECT, which contains [`TABLE_PLACE`].
    pub view: Option<(String, String)>,
    /// `Some` for a table that another program has made: netwren leaves it unchanged and fills only the columns that
    /// it has. If the text is not empty, rows are inserted into PostgreSQL with the procedure of this name.
    pub procedure: Option<String>,
}

impl TableShape {
    /// Encodes the shape as the header of messages.
    pub fn to_header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let (view, select) = self.view.clone().unwrap_or_default();
        for text in [&self.name, &view, &select] {
            put_typed(&mut out, TypedValue::Text(text));
        }
        put_typed(&mut out, self.procedure.as_deref().map_or(TypedValue::Null, TypedValue::Text));
        for (name, kind) in &self.columns {
            put_typed(&mut out, TypedValue::Text(name));
            put_typed(&mut out, TypedValue::Text(kind.word()));
        }
        out
    }

    /// Decodes a header.
    #[cfg(any(feature = "http", feature = "postgres", feature = "sqlite"))]
    pub(crate) fn of_header(header: &[u8]) -> TableShape {
        let mut values = TypedValues::from_bytes(header);
        let mut text = || match values.next() {
            Some(TypedValue::Text(text)) => text.to_owned(),
            _ => String::new(),
        };
        let (name, view, select) = (text(), text(), text());
        let procedure = match values.next() {
            Some(TypedValue::Text(text)) => Some(text.to_owned()),
            _ => None,
        };
        let mut texts = values.map(|value| match value {
            TypedValue::Text(text) => text.to_owned(),
            _ => String::new(),
        });
        let mut next = || texts.next();
        let columns = std::iter::from_fn(|| Some((next()?, ColumnType::from_word(&next()?)))).collect();
        TableShape { name, columns, view: (!view.is_empty()).then_some((view, select)), procedure }
    }

    /// A hash of the shape: the first value of each row.
    pub fn id(&self) -> i64 {
        // FNV-1a.
        let hash = self
            .to_header()
            .into_iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        hash as i64
    }
}

/// Returns for each column of another program's table its index in a row of `columns`. Columns whose names begin with
/// `_` are left out: the database itself fills them.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn column_indexes(found: &[String], columns: &[(String, ColumnType)]) -> Vec<(String, Option<usize>)> {
    let filled = found.iter().filter(|name| !name.starts_with('_'));
    filled.map(|name| (name.clone(), columns.iter().position(|(ours, _)| ours.eq_ignore_ascii_case(name)))).collect()
}

/// Quotes a name for SQL.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A value that owns its bytes.
    #[derive(Debug, Clone)]
    enum Owned {
        Null,
        Integer(i64),
        Text(String),
        Bytes(Vec<u8>),
    }

    fn value() -> impl Strategy<Value = Owned> {
        prop_oneof![
            Just(Owned::Null),
            any::<i64>().prop_map(Owned::Integer),
            any::<String>().prop_map(Owned::Text),
            any::<Vec<u8>>().prop_map(Owned::Bytes),
        ]
    }

    fn lent(value: &Owned) -> TypedValue<'_> {
        match value {
            Owned::Null => TypedValue::Null,
            Owned::Integer(n) => TypedValue::Integer(*n),
            Owned::Text(text) => TypedValue::Text(text),
            Owned::Bytes(bytes) => TypedValue::Bytes(bytes),
        }
    }

    proptest! {
        #[test]
        fn rows_read_back(values in proptest::collection::vec(value(), 0..20), cut: usize) {
            let mut out = Vec::new();
            values.iter().for_each(|value| put_typed(&mut out, lent(value)));
            let read: Vec<_> = TypedValues::from_bytes(&out).collect();
            prop_assert_eq!(read, values.iter().map(lent).collect::<Vec<_>>());
            let part = &out[..cut % (out.len() + 1)];
            prop_assert!(TypedValues::from_bytes(part).count() <= values.len());
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            prop_assert!(TypedValues::from_bytes(&bytes).count() <= bytes.len());
        }
    }
}
