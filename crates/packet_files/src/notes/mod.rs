//! Notes on packets in the files that they are written to (`--comment`): fields of their rows, as pcapng comments and
//! custom options.
//!
//! [`NoteFields`] converts cells to text; [`ConnectionNotes`] selects the captured packets that get notes.

mod connections;
mod fields;

pub use connections::ConnectionNotes;
pub use fields::{NoteFields, check_fields, with_columns};

/// Bound: fields of `--comment`. Beyond: more fields are refused. By: the user.
const FIELDS_MAX: usize = 16;
