//! Rows as log records of OpenTelemetry (opentelemetry/proto/logs/v1/logs.proto).

use crate::transports::http_sender::WrittenRows;
use crate::transports::protobuf::{put_bytes, put_fixed, put_number};
use crate::typed_row::{ColumnType, TableShape, TypedValue, TypedValues};

/// Names of columns for which OpenTelemetry has a name (semantic conventions 1.37). All others are `netwren.` and their
/// own.
const NAMES: [(&str, &str); 13] = [
    ("container", "container.name"),
    ("dport", "destination.port"),
    ("dst", "destination.address"),
    ("iface", "network.interface.name"),
    ("local_addr", "network.local.address"),
    ("local_port", "network.local.port"),
    ("peer_addr", "network.peer.address"),
    ("peer_port", "network.peer.port"),
    ("pid", "process.pid"),
    ("process", "process.executable.name"),
    ("proto", "network.transport"),
    ("sport", "source.port"),
    ("src", "source.address"),
];
/// SEVERITY_NUMBER_INFO.
const INFO: u64 = 9;
/// The column with the time of a row.
const TIME: &str = "time";

/// Makes requests (`ExportLogsServiceRequest`) from rows of one table.
pub(super) struct RecordWriter {
    /// `netwren.` and the table's name.
    event: String,
    shape_id: i64,
    columns: Vec<RecordColumn>,
    resource: Vec<u8>,
    /// Buffers; the fields keep their memory.
    records: Vec<u8>,
    record: Vec<u8>,
    value: Vec<u8>,
}

struct RecordColumn {
    /// The attribute's name; `None` for the time of the record.
    attribute: Option<String>,
    kind: ColumnType,
}

impl RecordWriter {
    /// The writer for rows of `shape`, from the host with these attributes.
    pub(super) fn new(shape: &TableShape, host: &[(&str, &str)]) -> RecordWriter {
        let column = |(name, kind): &(String, ColumnType)| {
            let known = NAMES.iter().find(|(known, _)| known == name).map(|(_, attribute)| (*attribute).to_owned());
            let attribute = known.unwrap_or_else(|| format!("netwren.{name}"));
            let is_time = name == TIME && *kind == ColumnType::Time;
            RecordColumn { attribute: (!is_time).then_some(attribute), kind: *kind }
        };
        let mut resource = Vec::new();
        for (name, value) in host {
            put_attribute(&mut resource, 1, name, &any_text(value));
        }
        RecordWriter {
            event: format!("netwren.{}", shape.name),
            shape_id: shape.id(),
            columns: shape.columns.iter().map(column).collect(),
            resource,
            records: Vec::new(),
            record: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Appends a request with a record for each message; the first has this number. `token` and the number make records
    /// unique. Messages with other columns are left out.
    pub(super) fn put_request<'m>(
        &mut self,
        messages: impl Iterator<Item = &'m [u8]>,
        (token, first): (&str, u64),
        now_ns: u64,
        out: &mut Vec<u8>,
    ) -> WrittenRows {
        self.records.clear();
        let mut scope = Vec::new();
        put_bytes(&mut scope, 1, b"netwren");
        put_bytes(&mut scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
        put_bytes(&mut self.records, 1, &scope);
        let mut written = WrittenRows::default();
        for (number, message) in (first..).zip(messages) {
            let mut values = TypedValues::from_bytes(message);
            if values.next() != Some(TypedValue::Integer(self.shape_id)) {
                written.refused += 1;
                continue;
            }
            written.rows += 1;
            self.put_record(values, &format!("{token}-{number}"), now_ns);
        }
        let mut logs = Vec::with_capacity(self.records.len() + self.resource.len() + 32);
        put_bytes(&mut logs, 1, &self.resource);
        put_bytes(&mut logs, 2, &self.records);
        put_bytes(out, 1, &logs);
        written
    }

    fn put_record(&mut self, values: TypedValues<'_>, uid: &str, now_ns: u64) {
        self.record.clear();
        let mut time_ns = now_ns;
        for (column, value) in self.columns.iter().zip(values) {
            match (&column.attribute, value) {
                (_, TypedValue::Null) => {}
                (None, TypedValue::Integer(ns)) => time_ns = ns.max(0) as u64,
                (None, _) => {}
                (Some(name), value) => {
                    self.value.clear();
                    put_any(&mut self.value, column.kind, value);
                    put_attribute(&mut self.record, 6, name, &self.value);
                }
            }
        }
        put_attribute(&mut self.record, 6, "log.record.uid", &any_text(uid));
        put_fixed(&mut self.record, 1, time_ns.to_le_bytes());
        put_fixed(&mut self.record, 11, now_ns.to_le_bytes());
        put_number(&mut self.record, 2, INFO);
        put_bytes(&mut self.record, 5, &any_text(&self.event));
        put_bytes(&mut self.record, 12, self.event.as_bytes());
        put_bytes(&mut self.records, 2, &self.record);
    }
}

/// Appends a `KeyValue`.
fn put_attribute(out: &mut Vec<u8>, field: u32, name: &str, value: &[u8]) {
    let mut pair = Vec::with_capacity(name.len() + value.len() + 8);
    put_bytes(&mut pair, 1, name.as_bytes());
    put_bytes(&mut pair, 2, value);
    put_bytes(out, field, &pair);
}

/// An `AnyValue` with text.
fn any_text(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 4);
    put_bytes(&mut out, 1, text.as_bytes());
    out
}

/// Appends an `AnyValue`.
fn put_any(out: &mut Vec<u8>, kind: ColumnType, value: TypedValue<'_>) {
    match (value, kind) {
        (TypedValue::Null, _) => {}
        (TypedValue::Integer(n), ColumnType::Flag) => put_number(out, 2, u64::from(n != 0)),
        (TypedValue::Integer(n), ColumnType::Time) if n >= 0 => {
            let mut text = Vec::new();
            record::text::put_timestamp(&mut text, n as u64);
            put_bytes(out, 1, &text);
        }
        (TypedValue::Integer(n), _) => put_number(out, 3, n as u64),
        (TypedValue::Text(text), ColumnType::Real) => match text.parse::<f64>() {
            Ok(number) => put_fixed(out, 4, number.to_le_bytes()),
            Err(_) => put_bytes(out, 1, text.as_bytes()),
        },
        (TypedValue::Text(text), _) => put_bytes(out, 1, text.as_bytes()),
        (TypedValue::Bytes(bytes), _) => put_bytes(out, 7, bytes),
    }
}
