//! Cells of groups that are held until all are known, for what is said of each in relation to the others.

use record::{Owner, Value};

/// Groups that are shown unless `--limit` says how many.
pub(super) const LIMIT: u64 = 10;

/// A cell that outlives its row; there are as many as are shown.
pub(super) enum HeldCell {
    Plain(Value<'static>),
    Bytes(Box<[u8]>),
    Words(Box<[u8]>),
    List(Box<[Owner]>),
}

impl HeldCell {
    /// A copy of the cell.
    pub(super) fn of(value: &Value<'_>) -> HeldCell {
        match *value {
            Value::Null => HeldCell::Plain(Value::Null),
            Value::Bool(yes) => HeldCell::Plain(Value::Bool(yes)),
            Value::U64(n) => HeldCell::Plain(Value::U64(n)),
            Value::I64(n) => HeldCell::Plain(Value::I64(n)),
            Value::Time(ns) => HeldCell::Plain(Value::Time(ns)),
            Value::Addr(addr) => HeldCell::Plain(Value::Addr(addr)),
            Value::Name(word) => HeldCell::Plain(Value::Name(word)),
            Value::Guess(word) => HeldCell::Plain(Value::Guess(word)),
            Value::Endpoint(addr, port) => HeldCell::Plain(Value::Endpoint(addr, port)),
            Value::Bits(bits, names) => HeldCell::Plain(Value::Bits(bits, names)),
            Value::Bytes(text) => HeldCell::Bytes(text.into()),
            Value::Words(text) => HeldCell::Words(text.into()),
            Value::List(owners) => HeldCell::List(owners.into()),
        }
    }

    /// The cell.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            HeldCell::Plain(value) => *value,
            HeldCell::Bytes(text) => Value::Bytes(text),
            HeldCell::Words(text) => Value::Words(text),
            HeldCell::List(owners) => Value::List(owners),
        }
    }
}
