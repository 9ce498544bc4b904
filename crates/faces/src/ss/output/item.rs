//! Items of the second line and of the last cell.

use record::text::put_u64;

/// Appends items of the form ` NAME:N`: the words, then the number.
pub(super) fn put_item(out: &mut Vec<u8>, words: &str, n: u64) {
    out.extend_from_slice(words.as_bytes());
    put_u64(out, n);
}
