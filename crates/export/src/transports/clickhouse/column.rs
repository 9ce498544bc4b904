//! The values of a column, in the type of the server's table.

use crate::transports::protobuf::put_varint;
use crate::typed_row::{ColumnType, TypedValue};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NS_PER_SECOND: i64 = 1_000_000_000;

/// How the values of a column are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// A number; its length in bytes.
    Unsigned(u8),
    Signed(u8),
    Float32,
    Float64,
    Bool,
    /// Seconds.
    DateTime,
    /// A number of units; the decimals of a second that one has.
    DateTime64(u8),
    Ipv4,
    Ipv6,
    /// Text, which the server converts if the column has another type.
    Text,
}

/// The name of each type, and how its values are sent.
const ENCODINGS: [(&str, Encoding); 18] = [
    ("UInt8", Encoding::Unsigned(1)),
    ("UInt16", Encoding::Unsigned(2)),
    ("UInt32", Encoding::Unsigned(4)),
    ("UInt64", Encoding::Unsigned(8)),
    ("Int8", Encoding::Signed(1)),
    ("Int16", Encoding::Signed(2)),
    ("Int32", Encoding::Signed(4)),
    ("Int64", Encoding::Signed(8)),
    ("Float32", Encoding::Float32),
    ("Float64", Encoding::Float64),
    ("Bool", Encoding::Bool),
    ("DateTime", Encoding::DateTime),
    ("IPv4", Encoding::Ipv4),
    ("IPv6", Encoding::Ipv6),
    ("String", Encoding::Text),
    ("FixedString", Encoding::Text),
    ("Enum8", Encoding::Text),
    ("Enum16", Encoding::Text),
];

/// The type of a column of the server's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerType {
    encoding: Encoding,
    is_nullable: bool,
    /// The text of an unknown value, where the column cannot be null.
    default: String,
}

impl ServerType {
    /// Parses a type as the server writes it; `None` for one that netwren has no values for.
    pub(super) fn parse(text: &str) -> Option<ServerType> {
        let (mut text, mut is_nullable) = (text, false);
        loop {
            let (name, inner) = split_type(text);
            text = match (name, inner) {
                ("LowCardinality", Some(inner)) => inner,
                ("Nullable", Some(inner)) => {
                    is_nullable = true;
                    inner
                }
                ("SimpleAggregateFunction", Some(inner)) => inner.split_once(", ")?.1,
                ("DateTime64", Some(inner)) => {
                    let decimals = inner.split(',').next()?.parse().ok().filter(|decimals| *decimals <= 9)?;
                    let encoding = Encoding::DateTime64(decimals);
                    return Some(ServerType { encoding, is_nullable, default: String::new() });
                }
                _ => {
                    let (_, encoding) = ENCODINGS.iter().find(|(known, _)| *known == name)?;
                    // The first word of an enumeration is its default.
                    let default =
                        inner.and_then(|inner| inner.strip_prefix('\'')?.split_once('\'')).map(|(word, _)| word);
                    let default = default.filter(|_| name.starts_with("Enum")).unwrap_or_default().to_owned();
                    return Some(ServerType { encoding: *encoding, is_nullable, default });
                }
            };
        }
    }

    /// True if the column can have values of this kind.
    pub(super) fn takes(&self, kind: ColumnType) -> bool {
        use Encoding::{Bool, DateTime, DateTime64, Float32, Float64, Ipv4, Ipv6, Signed, Text, Unsigned};
        match kind {
            ColumnType::Integer => matches!(self.encoding, Unsigned(_) | Signed(_) | Float32 | Float64 | Text),
            ColumnType::Real => matches!(self.encoding, Float32 | Float64 | Text),
            ColumnType::Text => self.encoding == Text,
            ColumnType::Time => matches!(self.encoding, DateTime | DateTime64(_) | Text | Signed(8) | Unsigned(8)),
            ColumnType::Flag => matches!(self.encoding, Bool | Unsigned(_) | Signed(_) | Text),
            ColumnType::Address => matches!(self.encoding, Ipv4 | Ipv6 | Text),
        }
    }

    /// The type of the values that are sent.
    fn sent(&self) -> String {
        let name = match self.encoding {
            Encoding::DateTime64(decimals) => format!("DateTime64({decimals})"),
            encoding => ENCODINGS.iter().find(|(_, known)| *known == encoding).map_or("", |(name, _)| name).to_owned(),
        };
        if self.is_nullable { format!("Nullable({name})") } else { name }
    }
}

/// Splits `Name(inner)`; a type without parentheses has no inner text.
fn split_type(text: &str) -> (&str, Option<&str>) {
    match text.split_once('(') {
        Some((name, inner)) => (name, inner.strip_suffix(')')),
        None => (text, None),
    }
}

/// Collects the values of a column.
pub(super) struct ColumnWriter {
    name: String,
    kind: ColumnType,
    server: ServerType,
    /// For each value, 1 if it is null; empty if the column cannot be null.
    nulls: Vec<u8>,
    values: Vec<u8>,
    /// The lengths of both before the last row.
    before: (usize, usize),
}

impl ColumnWriter {
    pub(super) fn new(name: &str, kind: ColumnType, server: ServerType) -> ColumnWriter {
        let (nulls, values) = (Vec::new(), Vec::new());
        ColumnWriter { name: name.to_owned(), kind, server, nulls, values, before: (0, 0) }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes all values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.nulls.clear();
        self.values.clear();
        self.before = (0, 0);
    }

    /// Removes the value of the last row.
    pub(super) fn undo(&mut self) {
        self.nulls.truncate(self.before.0);
        self.values.truncate(self.before.1);
    }

    /// Notes that a row begins.
    pub(super) fn begin_row(&mut self) {
        self.before = (self.nulls.len(), self.values.len());
    }

    /// Adds a value; returns false if the column's type has no place for it.
    pub(super) fn put(&mut self, value: TypedValue<'_>) -> bool {
        let is_null = value == TypedValue::Null;
        if self.server.is_nullable {
            self.nulls.push(is_null.into());
        }
        if is_null {
            self.put_default();
            return true;
        }
        self.put_value(value).is_some()
    }

    fn put_default(&mut self) {
        let width = match self.server.encoding {
            Encoding::Text => return put_text(&mut self.values, self.server.default.as_bytes()),
            Encoding::Unsigned(width) | Encoding::Signed(width) => width.into(),
            Encoding::Bool => 1,
            Encoding::Float32 | Encoding::DateTime | Encoding::Ipv4 => 4,
            Encoding::Float64 | Encoding::DateTime64(_) => 8,
            Encoding::Ipv6 => 16,
        };
        self.values.resize(self.values.len() + width, 0);
    }

    fn put_value(&mut self, value: TypedValue<'_>) -> Option<()> {
        let out = &mut self.values;
        match self.server.encoding {
            Encoding::Unsigned(width) => {
                let number = match value {
                    TypedValue::Integer(n) => u64::try_from(n).ok()?,
                    other => text_of(other)?.parse().ok()?,
                };
                (width == 8 || number >> (8 * width) == 0).then_some(())?;
                out.extend_from_slice(number.to_le_bytes().get(..width.into())?);
            }
            Encoding::Signed(width) => {
                let TypedValue::Integer(number) = value else { return None };
                let spare = 64 - 8 * u32::from(width);
                // The upper bits are copies of the sign.
                ((number << spare) >> spare == number).then_some(())?;
                out.extend_from_slice(number.to_le_bytes().get(..width.into())?);
            }
            Encoding::Float64 => out.extend_from_slice(&real(value)?.to_le_bytes()),
            Encoding::Float32 => out.extend_from_slice(&(real(value)? as f32).to_le_bytes()),
            Encoding::Bool => out.push(u8::from(integer(value)? != 0)),
            Encoding::DateTime => {
                let seconds = u32::try_from(integer(value)?.div_euclid(NS_PER_SECOND)).ok()?;
                out.extend_from_slice(&seconds.to_le_bytes());
            }
            Encoding::DateTime64(decimals) => {
                let unit = 10i64.pow(9 - u32::from(decimals.min(9)));
                out.extend_from_slice(&integer(value)?.div_euclid(unit).to_le_bytes());
            }
            Encoding::Ipv4 => {
                let address = match text_of(value)?.parse().ok()? {
                    IpAddr::V4(address) => address,
                    IpAddr::V6(address) => address.to_ipv4_mapped()?,
                };
                out.extend_from_slice(&u32::from(address).to_le_bytes());
            }
            Encoding::Ipv6 => out.extend_from_slice(&in_v6(text_of(value)?.parse().ok()?).octets()),
            Encoding::Text => match (value, self.kind) {
                (TypedValue::Text(text), _) => put_text(out, text.as_bytes()),
                (TypedValue::Bytes(bytes), _) => put_text(out, bytes),
                (TypedValue::Integer(n), ColumnType::Flag) => put_text(out, if n == 0 { b"false" } else { b"true" }),
                (TypedValue::Integer(n), ColumnType::Time) => {
                    let mut text = Vec::new();
                    record::text::put_timestamp(&mut text, u64::try_from(n).ok()?);
                    put_text(out, &text);
                }
                (TypedValue::Integer(n), _) => put_text(out, n.to_string().as_bytes()),
                (TypedValue::Null, _) => return None,
            },
        }
        Some(())
    }

    /// Appends the column to a block.
    pub(super) fn put_column(&self, out: &mut Vec<u8>) {
        put_text(out, self.name.as_bytes());
        put_text(out, self.server.sent().as_bytes());
        out.extend_from_slice(&self.nulls);
        out.extend_from_slice(&self.values);
    }
}

/// The text of a value.
fn text_of(value: TypedValue<'_>) -> Option<&str> {
    if let TypedValue::Text(text) = value { Some(text) } else { None }
}

fn integer(value: TypedValue<'_>) -> Option<i64> {
    if let TypedValue::Integer(n) = value { Some(n) } else { None }
}

fn real(value: TypedValue<'_>) -> Option<f64> {
    match value {
        TypedValue::Integer(n) => Some(n as f64),
        other => text_of(other)?.parse().ok(),
    }
}

fn in_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => Ipv4Addr::to_ipv6_mapped(&address),
        IpAddr::V6(address) => address,
    }
}

/// Appends text with its length.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn put(server: &str, kind: ColumnType, value: TypedValue<'_>) -> Option<Vec<u8>> {
        let server = ServerType::parse(server).unwrap();
        assert!(server.takes(kind));
        let mut column = ColumnWriter::new("", kind, server);
        column.put(value).then(|| [column.nulls, column.values].concat())
    }

    #[test]
    fn types_are_read() {
        let sent = |text: &str| ServerType::parse(text).map(|server| server.sent());
        for (text, expected) in [
            ("UInt16", "UInt16"),
            ("LowCardinality(Nullable(String))", "Nullable(String)"),
            ("SimpleAggregateFunction(sum, UInt64)", "UInt64"),
            ("DateTime('UTC')", "DateTime"),
            ("Nullable(DateTime64(3, 'Europe/Berlin'))", "Nullable(DateTime64(3))"),
            ("FixedString(8)", "String"),
            ("Enum8('a(' = 1, 'b' = 2)", "String"),
        ] {
            assert_eq!(sent(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["Map(String, String)", "Array(String)", "Decimal(9, 2)", "DateTime64(10)", "Nullable(", "", "UUID"]
        {
            assert_eq!(sent(text), None, "{text}");
        }
    }

    #[test]
    fn values_have_the_bytes_of_their_type() {
        use ColumnType::{Address, Flag, Integer, Real, Text, Time};
        use TypedValue::{Integer as N, Null, Text as T};
        const NOW: i64 = 1_800_000_000_123_456_789;
        for (server, kind, value, expected) in [
            ("UInt16", Integer, N(0x1234), Some(&[0x34, 0x12][..])),
            ("UInt16", Integer, N(0x12345), None),
            ("UInt64", Integer, N(-1), None),
            ("UInt64", Integer, T("18446744073709551615"), Some(&[255; 8])),
            ("UInt32", Integer, T("18446744073709551615"), None),
            ("Int8", Integer, N(-128), Some(&[0x80])),
            ("Int8", Integer, N(128), None),
            ("Int64", Integer, N(-2), Some(&[254, 255, 255, 255, 255, 255, 255, 255])),
            ("Int64", Integer, T("18446744073709551615"), None),
            ("Nullable(UInt8)", Integer, Null, Some(&[1, 0])),
            ("Nullable(UInt8)", Integer, N(7), Some(&[0, 7])),
            ("Float64", Real, T("1.5"), Some(&1.5f64.to_le_bytes())),
            ("Float32", Integer, N(2), Some(&2f32.to_le_bytes())),
            ("Bool", Flag, N(1), Some(&[1])),
            ("DateTime", Time, N(NOW), Some(&1_800_000_000u32.to_le_bytes())),
            ("DateTime", Time, N(-1), None),
            ("DateTime64(6)", Time, N(NOW), Some(&1_800_000_000_123_456i64.to_le_bytes())),
            ("DateTime64(9)", Time, T("2554-07-21T23:34:33.709551615Z"), None),
            ("IPv4", Address, T("192.0.2.1"), Some(&[1, 2, 0, 192])),
            ("IPv4", Address, T("::ffff:192.0.2.1"), Some(&[1, 2, 0, 192])),
            ("IPv4", Address, T("2001:db8::1"), None),
            ("IPv6", Address, T("192.0.2.1"), Some(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1])),
            ("IPv6", Address, Null, Some(&[0; 16])),
            ("String", Address, T("::1"), Some(b"\x03::1")),
            ("String", Text, TypedValue::Bytes(b"\xff"), Some(b"\x01\xff")),
            ("String", Integer, N(-5), Some(b"\x02-5")),
            ("String", Flag, N(1), Some(b"\x04true")),
            ("String", Time, N(0), Some(b"\x1e1970-01-01T00:00:00.000000000Z")),
            ("Enum8('none' = 0, 'x' = 1)", Text, Null, Some(b"\x04none")),
            ("LowCardinality(String)", Text, Null, Some(b"\0")),
        ] {
            assert_eq!(put(server, kind, value).as_deref(), expected, "{server} {value:?}");
        }
        let takes = |server: &str, kind| ServerType::parse(server).unwrap().takes(kind);
        assert!(
            !takes("UInt16", Text) && !takes("IPv6", Integer) && !takes("DateTime", Integer) && !takes("Bool", Time)
        );
    }

    #[test]
    fn a_value_can_be_taken_back() {
        let mut column = ColumnWriter::new("a", ColumnType::Text, ServerType::parse("Nullable(String)").unwrap());
        for text in ["one", "two"] {
            column.begin_row();
            assert!(column.put(TypedValue::Text(text)));
        }
        column.undo();
        let mut out = Vec::new();
        column.put_column(&mut out);
        assert_eq!(out, b"\x01a\x10Nullable(String)\0\x03one");
    }
}
