//! `--comment`: the notes on packets in files.

use super::request::Request;
use export::Format;
use packet_files::notes::with_columns;

/// Adds `fields` to the packet notes of pcapng targets; they become columns of all outputs. Fails without such a
/// target.
pub(crate) fn ship_notes(request: &mut Request, fields: &str) -> Result<(), String> {
    let is_noted = |format| matches!(format, Format::Pcapng);
    let ship = request.ship.as_mut().filter(|ship| ship.targets.iter().any(|target| is_noted(target.format)));
    ship.ok_or(NO_FILE)?.comment = Some(fields.to_owned());
    request.shown.columns = Some(with_columns(request.shown.columns.as_deref(), fields));
    Ok(())
}

/// The error if `--comment` has no pcapng target.
const NO_FILE: &str = "--comment needs a pcapng file: --to pcapng:FILE, or `netwren capture --write FILE`";
