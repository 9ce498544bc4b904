//! What is said of packets in the files that they are written into (`--comment`): fields of their rows, as comments and
//! custom options of pcapng.
//!
//! [`NoteFields`] makes text of cells; [`ConnectionNotes`] chooses which captured packets have notes.

mod connections;
mod fields;

pub(crate) use connections::ConnectionNotes;
use fields::with_columns;
pub(crate) use fields::{NoteFields, check_fields};

use crate::flags::request::Request;
use export::Format;

/// Has targets of pcapng say `fields` of packets: they are columns of all outputs. Fails if there is no such target.
pub(crate) fn ship_notes(request: &mut Request, fields: &str) -> Result<(), String> {
    let is_noted = |format| matches!(format, Format::Pcapng);
    let ship = request.ship.as_mut().filter(|ship| ship.targets.iter().any(|target| is_noted(target.format)));
    ship.ok_or(NO_FILE)?.comment = Some(fields.to_owned());
    request.shown.columns = Some(with_columns(request.shown.columns.as_deref(), fields));
    Ok(())
}

/// What `--comment` needs.
const NO_FILE: &str = "--comment says what stands in a file of packets: it needs one of pcapng (--to pcapng:FILE, or \
                       `netwren capture --write FILE`)";

/// Fields of a packet's notes.
const FIELDS_MAX: usize = 16;
