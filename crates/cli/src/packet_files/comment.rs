//! Values as they stand in comments of packets.

use record::Value;
use record::text::{put_i64, put_u64};

/// Appends a value; one that has no plain text is left out.
pub(crate) fn put_comment_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Bytes(text) => out.extend_from_slice(text),
        Value::Name(word) => out.extend_from_slice(word.as_bytes()),
        Value::U64(number) => put_u64(out, *number),
        Value::I64(number) => put_i64(out, *number),
        _ => {}
    }
}
