//! The block "Active UNIX domain sockets".

use super::options::SocketLayout;
use crate::pieces::{Left, Outside, put, when};
use record::State;
use record::rows::{Socket, UnixPart};

/// `__SO_WAITDATA` and `__SO_NOSPACE` (of very old kernels).
const WAITS_FOR_DATA: u32 = 1 << 17;
const HAS_NO_SPACE: u32 = 1 << 18;

/// Appends everything before the program: protocol, references, flags, type, state, inode.
pub(super) fn put_front(out: &mut Vec<u8>, row: &Socket<'_>, part: &UnixPart<'_>) {
    put!(out, "unix  ", Left(part.refs.ok_or("-"), 6), " ", Left(flags(row, part), 11), " ", Left(type_word(part), 10));
    put!(out, " ", Left(state_word(row), 13), " ", Left(row.inode, 8));
}

fn flags(row: &Socket<'_>, part: &UnixPart<'_>) -> &'static str {
    let waiting = part.flags.unwrap_or(0);
    match (row.is_listener(), waiting & WAITS_FOR_DATA != 0, waiting & HAS_NO_SPACE != 0) {
        (false, false, false) => "[ ]",
        (true, false, false) => "[ ACC ]",
        (false, true, false) => "[ W ]",
        (true, true, false) => "[ ACC W ]",
        (false, false, true) => "[ N ]",
        (true, false, true) => "[ ACC N ]",
        (false, true, true) => "[ W N ]",
        (true, true, true) => "[ ACC W N ]",
    }
}

fn type_word(part: &UnixPart<'_>) -> &'static str {
    const TYPES: [&str; 5] = ["STREAM", "DGRAM", "RAW", "RDM", "SEQPACKET"];
    usize::from(part.kind.0).checked_sub(1).and_then(|nth| TYPES.get(nth)).copied().unwrap_or("UNKNOWN")
}

/// The four states in the file: a socket without an inode does not belong to a process yet, or any more.
fn state_word(row: &Socket<'_>) -> &'static str {
    match (row.state, row.inode) {
        (State::LISTEN, _) => "LISTENING",
        (State::ESTABLISHED, 0) => "CONNECTING",
        (State::ESTABLISHED, _) => "CONNECTED",
        (_, 0) => "DISCONNECTING",
        _ => "",
    }
}

/// Appends the path, with `@` for the NULs of an abstract name. The old tool ends it at the first blank.
pub(super) fn put_path(out: &mut Vec<u8>, path: &[u8], options: &SocketLayout) {
    let path = if options.bug_compatible { first_word(path) } else { path };
    for (i, part) in path.split(|&b| b == 0).enumerate() {
        put!(out, when(i > 0, "@"), Outside(part, options.bug_compatible));
    }
}

fn first_word(path: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
    path.split(blank).find(|word| !word.is_empty()).unwrap_or_default()
}
