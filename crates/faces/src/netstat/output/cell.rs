//! Cells of a fixed width, padded like printf's `%*d` and `%-*d`.

use super::address::fill;
use record::text;

/// Appends `n`, right-aligned in `width` columns.
pub(super) fn put_right(out: &mut Vec<u8>, n: u64, width: usize) {
    let blanks = width.saturating_sub(text::u64_len(n));
    out.resize(out.len() + blanks, b' ');
    text::put_u64(out, n);
}

/// Appends a signed number, right-aligned in `width` columns.
pub(super) fn put_right_i32(out: &mut Vec<u8>, n: i32, width: usize) {
    let sign = usize::from(n < 0);
    let blanks = width.saturating_sub(text::u64_len(n.unsigned_abs().into()) + sign);
    out.resize(out.len() + blanks, b' ');
    text::put_i64(out, n.into());
}

/// Appends `n`, left-aligned in `width` columns.
pub(super) fn put_left(out: &mut Vec<u8>, n: i64, width: usize) {
    put_cell(out, width, |out| text::put_i64(out, n));
}

/// Appends the text that `put` writes, left-aligned in `width` columns.
pub(super) fn put_cell(out: &mut Vec<u8>, width: usize, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put(out);
    fill(out, start, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_printf_fills_them() {
        let mut out = Vec::new();
        put_right(&mut out, 42, 5);
        put_right(&mut out, 1234, 3);
        put_right_i32(&mut out, -42, 5);
        put_right_i32(&mut out, i32::MIN, 2);
        put_left(&mut out, -1, 4);
        put_left(&mut out, 123, 2);
        assert_eq!(String::from_utf8_lossy(&out), "   421234  -42-2147483648-1  123");
    }
}
