//! Items of the second line and of the last cell.

use crate::pieces::{Hex, LineBuffer, Put, put};

/// Words and a number; nothing without a number, or if it is 0.
pub(super) struct Item<N>(pub(super) &'static str, pub(super) Option<N>);
/// The same in hexadecimal.
pub(super) struct HexItem<N>(pub(super) &'static str, pub(super) Option<N>);

impl<P: LineBuffer, N: Into<u64> + Copy> Put<P> for Item<N> {
    fn put(&self, line: &mut P) {
        if let Some(number @ 1..) = self.1.map(Into::into) {
            put!(line, self.0, number);
        }
    }
}

impl<P: LineBuffer, N: Into<u64> + Copy> Put<P> for HexItem<N> {
    fn put(&self, line: &mut P) {
        if let Some(number @ 1..) = self.1.map(Into::into) {
            put!(line, self.0, Hex(number));
        }
    }
}

/// Returns what separates the lines of a row.
pub(super) fn line_break(one_line: bool) -> &'static str {
    if one_line { " " } else { "\n\t" }
}
