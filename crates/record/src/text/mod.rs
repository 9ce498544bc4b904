//! Values as text, for the hot path: table-driven, into a caller's buffer, without `fmt` and without allocation.
//!
//! Every writer appends to a `Vec<u8>`. A sink keeps one and reuses it, so a row costs no allocation. Code that
//! appends many short pieces uses a [`Line`] instead, which writes the same pieces at a lower cost.

mod address;
mod cursor;
mod decimal;
mod escape;
mod line;
mod slice_writer;
mod time;

pub use address::{place_v4, put_addr, put_v4, put_v6};
pub use cursor::Cursor;
pub use decimal::{place_number, put_hex, put_i64, put_u64, u64_len};
pub use escape::{is_plain, is_plain_without, put_face, put_json, put_log_text, put_text, put_x};
pub use line::Line;
pub use slice_writer::SliceWriter;
pub use time::{TimestampWriter, day_since_1970, put_far_time, put_seconds, put_time, put_timestamp};

/// A destination for pieces of text. A piece is written with a fixed-width store whose first bytes count, because a
/// copy of variable length would cost a call.
trait TextBuffer {
    /// Lets `write` fill `N` bytes after the end. `write` returns the number of bytes to keep.
    fn room<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize);
}

impl TextBuffer for Vec<u8> {
    #[inline]
    fn room<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        let mut end = self.len();
        self.extend_from_slice(&[0; N]);
        if let Some(slot) = self.last_chunk_mut() {
            end += write(slot);
        }
        self.truncate(end);
    }
}
