//! The block "Active UNIX domain sockets".

use super::address::fill;
use super::options::SocketLayout;
use record::rows::{Socket, UnixPart};
use record::{State, text};

/// `__SO_WAITDATA` and `__SO_NOSPACE` (of very old kernels).
const WAITS_FOR_DATA: u32 = 1 << 17;
const HAS_NO_SPACE: u32 = 1 << 18;

/// Appends everything before the program: protocol, references, flags, type, state, inode.
pub(super) fn put_front(out: &mut Vec<u8>, row: &Socket<'_>, part: &UnixPart<'_>) {
    out.extend_from_slice(b"unix  ");
    let start = out.len();
    match part.refs {
        Some(refs) => text::put_u64(out, refs.into()),
        None => out.push(b'-'),
    }
    fill(out, start, 6);
    put_word(out, flags(row, part), 11);
    put_word(out, type_word(part), 10);
    put_word(out, state_word(row), 13);
    out.push(b' ');
    let start = out.len();
    text::put_u64(out, row.inode.into());
    fill(out, start, 8);
}

fn put_word(out: &mut Vec<u8>, word: &[u8], width: usize) {
    out.push(b' ');
    let start = out.len();
    out.extend_from_slice(word);
    fill(out, start, width);
}

fn flags(row: &Socket<'_>, part: &UnixPart<'_>) -> &'static [u8] {
    let waiting = part.flags.unwrap_or(0);
    match (row.is_listener(), waiting & WAITS_FOR_DATA != 0, waiting & HAS_NO_SPACE != 0) {
        (false, false, false) => b"[ ]",
        (true, false, false) => b"[ ACC ]",
        (false, true, false) => b"[ W ]",
        (true, true, false) => b"[ ACC W ]",
        (false, false, true) => b"[ N ]",
        (true, false, true) => b"[ ACC N ]",
        (false, true, true) => b"[ W N ]",
        (true, true, true) => b"[ ACC W N ]",
    }
}

fn type_word(part: &UnixPart<'_>) -> &'static [u8] {
    match part.kind.0 {
        1 => b"STREAM",
        2 => b"DGRAM",
        3 => b"RAW",
        4 => b"RDM",
        5 => b"SEQPACKET",
        _ => b"UNKNOWN",
    }
}

/// The four states in the file: a socket without an inode does not belong to a process yet, or any more.
fn state_word(row: &Socket<'_>) -> &'static [u8] {
    match (row.state, row.inode) {
        (State::LISTEN, _) => b"LISTENING",
        (State::ESTABLISHED, 0) => b"CONNECTING",
        (State::ESTABLISHED, _) => b"CONNECTED",
        (_, 0) => b"DISCONNECTING",
        _ => b"",
    }
}

/// Appends the path, with `@` for the NULs of an abstract name. The old tool ends it at the first blank.
pub(super) fn put_path(out: &mut Vec<u8>, path: &[u8], options: &SocketLayout) {
    let path = if options.bug_compatible { first_word(path) } else { path };
    for (i, part) in path.split(|&b| b == 0).enumerate() {
        if i > 0 {
            out.push(b'@');
        }
        text::put_face(out, part, options.bug_compatible);
    }
}

fn first_word(path: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
    let path = match path.iter().position(|b| !blank(b)) {
        Some(start) => path.get(start..).unwrap_or_default(),
        None => return b"",
    };
    path.split(blank).next().unwrap_or_default()
}
