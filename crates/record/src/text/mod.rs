//! Values as text, for the hot path: table-driven, into a caller's buffer, without `fmt` and without allocation.
//!
//! Every writer appends to a `Vec<u8>`; a sink keeps one and reuses it, so a row costs no allocation.

mod address;
mod decimal;
mod escape;

pub use address::{put_addr, put_v4, put_v6};
pub use decimal::{put_hex, put_i64, put_u64, u64_len};
pub use escape::{is_plain, put_face, put_json, put_text};
