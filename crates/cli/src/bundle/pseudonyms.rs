//! Hides the host's identity in rows: addresses and texts from outside become pseudonyms.
//!
//! The decision depends on the kind of a cell, not on its content: an address, or text that is not one of netwren's
//! own words, is always replaced unless its field is in [`KEPT`]. A value has the same pseudonym in every table. The
//! key that generates them is random and never stored.

use record::{Accounting, Addr, Columns, Next, OwnedObject, OwnedValue, Round, Sink, SinkError, Value};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Fields with texts from the kernel or netwren, by table: they do not identify a host.
const KEPT: &[(&str, &[&str])] = &[
    ("support", &["feature", "backend", "words", "remedy"]),
    ("home", &["kernel", "reason", "place", "meaning", "id"]),
    ("counters", &["name", "meaning"]),
    ("sockets", &["congestion", "ulp"]),
];

/// First port of the kernel's default range for clients: ports from here on identify a connection, not a service.
const CLIENT_PORT: u64 = 32_768;

/// The pseudonyms of one bundle.
#[derive(Clone, Debug)]
pub(super) struct Pseudonyms {
    key: RandomState,
}

impl Pseudonyms {
    /// Makes pseudonyms with a new key.
    pub(super) fn new() -> Pseudonyms {
        Pseudonyms { key: RandomState::new() }
    }

    /// The pseudonym for some bytes.
    fn word(&self, kind: &str, bytes: &[u8]) -> String {
        format!("{kind}-{:016x}", self.key.hash_one(bytes))
    }

    /// The pseudonym for an address. Addresses common to all hosts stay.
    fn addr(&self, addr: Addr) -> OwnedValue {
        if addr.is_loopback() || addr.is_unspecified() {
            return Value::Addr(addr).into();
        }
        OwnedValue::Bytes(self.of_addr(addr).into_bytes().into())
    }

    fn of_addr(&self, addr: Addr) -> String {
        let kind = if matches!(addr, Addr::V4(_)) { "v4" } else { "v6" };
        self.word(kind, addr.octets())
    }

    /// The replacement for `value` of the field or member `name`.
    fn of(&self, table: &str, name: &str, value: Value<'_>) -> OwnedValue {
        match value {
            Value::Bytes(text) | Value::FirstOf(text, _) if text.is_empty() || is_kept(table, name) => value.into(),
            Value::FirstOf(text, others) => OwnedValue::FirstOf(self.word("text", text).into_bytes().into(), others),
            Value::Bytes(text) => OwnedValue::Bytes(self.word("text", text).into_bytes().into()),
            Value::Words(_) => {
                let words: Vec<String> = value.words().iter().map(|word| self.word("text", word)).collect();
                OwnedValue::Words(words.join(",").into_bytes().into())
            }
            Value::Addr(addr) => self.addr(addr),
            Value::LinkAddr(link) => {
                let text = format!("{}%{}", self.of_addr(link.addr()), self.word("text", link.iface()));
                OwnedValue::Bytes(text.into_bytes().into())
            }
            Value::Endpoint(addr, port) => {
                let port = port.filter(|port| u64::from(*port) < CLIENT_PORT);
                let port = port.map_or_else(String::new, |port| format!(":{port}"));
                OwnedValue::Bytes(format!("{}{port}", self.of_addr(addr)).into_bytes().into())
            }
            Value::Prefix(addr, len) => OwnedValue::Bytes(format!("{}/{len}", self.of_addr(addr)).into_bytes().into()),
            Value::U64(port) if port >= CLIENT_PORT && is_port(name) => Value::Null.into(),
            Value::Owners(_) | Value::List(_) => {
                let mut items = Vec::new();
                value.for_each_item(&mut |item| items.push(self.of(table, name, item)));
                OwnedValue::List(items.into_iter().collect())
            }
            Value::Object(object) => {
                let mut members = Vec::new();
                object.for_each(&mut |name, value| members.push((name, self.of(table, name, value))));
                OwnedValue::Object(members.into_iter().collect::<OwnedObject>())
            }
            // Numbers, times and netwren's own words.
            Value::Null
            | Value::Bool(_)
            | Value::U64(_)
            | Value::I64(_)
            | Value::Thousandths(_)
            | Value::Time(_)
            | Value::FarTime(_)
            | Value::Name(_)
            | Value::Guess(_)
            | Value::Bits(..) => value.into(),
        }
    }
}

fn is_kept(table: &str, name: &str) -> bool {
    KEPT.iter().any(|(known, names)| *known == table && names.contains(&name))
}

fn is_port(name: &str) -> bool {
    name.ends_with("port")
}

/// A sink that hides names and addresses before it passes rows on.
pub(super) struct HidingSink<S> {
    inner: S,
    table: &'static str,
    pseudonyms: Pseudonyms,
    names: Vec<Box<str>>,
}

impl<S: Sink> HidingSink<S> {
    /// Makes a sink for the rows of a table.
    pub(super) fn new(inner: S, table: &'static str, pseudonyms: Pseudonyms) -> HidingSink<S> {
        HidingSink { inner, table, pseudonyms, names: Vec::new() }
    }
}

impl<S: Sink> Sink for HidingSink<S> {
    fn begin(&mut self, columns: &Columns, round: Option<Round>) -> Result<(), SinkError> {
        self.names = columns.0.iter().map(|column| column.name.clone()).collect();
        self.inner.begin(columns, round)
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        let hidden: Vec<OwnedValue> =
            self.names.iter().zip(cells).map(|(name, cell)| self.pseudonyms.of(self.table, name, *cell)).collect();
        self.inner.row(&hidden.iter().map(OwnedValue::value).collect::<Vec<_>>())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.inner.flush()
    }

    fn end(&mut self, totals: &Accounting) -> Result<(), SinkError> {
        // Reasons are sentences that contain names; only their existence is kept.
        self.inner.end(&Accounting { why: Vec::new(), ..totals.clone() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::{Comm, Owner};

    #[test]
    fn what_is_hidden_and_what_stays() {
        let names = Pseudonyms::new();
        let text = |value: Value<'_>| format!("{:?}", names.of("sockets", "x", value).value());
        let far = Addr::V4([192, 0, 2, 1]);
        assert_eq!(text(Value::Addr(far)), text(Value::Addr(far)));
        assert_ne!(text(Value::Addr(far)), text(Value::Addr(Addr::V4([192, 0, 2, 2]))));
        assert_ne!(
            text(Value::Addr(far)),
            format!("{:?}", Pseudonyms::new().of("sockets", "x", Value::Addr(far)).value())
        );
        let owners = [Owner { pid: 7, fd: 3, process: Comm::new(b"secret"), started: 0 }];
        for hidden in [
            Value::Bytes(b"secret"),
            Value::FirstOf(b"secret", 2),
            Value::Words(b"secret,other"),
            Value::Endpoint(far, Some(80)),
            Value::Owners(&owners),
            Value::List(&vec!["secret".to_owned()]),
            Value::Object(&owners[0]),
        ] {
            let text = text(hidden);
            assert!(!text.contains("secret") && !text.contains("192") && !text.contains("[115, 101"), "{text}");
        }
        for kept in [Value::Null, Value::U64(40_000), Value::Name("tcp"), Value::Addr(Addr::V4([127, 0, 0, 1]))] {
            assert_eq!(names.of("sockets", "x", kept).value(), kept);
        }
        assert_eq!(names.of("sockets", "local_port", Value::U64(40_000)).value(), Value::Null);
        assert_eq!(names.of("sockets", "local_port", Value::U64(443)).value(), Value::U64(443));
        assert_eq!(names.of("sockets", "congestion", Value::Bytes(b"cubic")).value(), Value::Bytes(b"cubic"));
        assert_ne!(names.of("flows", "congestion", Value::Bytes(b"cubic")).value(), Value::Bytes(b"cubic"));
    }
}
