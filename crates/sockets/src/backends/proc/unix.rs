//! Lines of /proc/net/unix (net/unix/af_unix.c, unix_seq_show).
//!
//! ```text
//! Num       RefCount Protocol Flags    Type St Inode Path
//! 0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/x.sock
//! ```
//! The kernel writes `@` for every NUL of an abstract name, and a path unescaped: a path with a newline in it forges
//! lines. `unix_lines` finds the kernel's own lines.
use netlink::DecodeError;
use record::rows::{Socket, UnixPart, UnixType};
use record::{Proto, State};

use crate::address_families::AF_UNIX;
use crate::backends::netlink::unix_diag::empty_part;
use crate::backends::proc::line::Words;

/// `__SO_ACCEPTCON` (include/linux/net.h): the socket listens.
const ACCEPTS: u32 = 1 << 16;
/// `SS_CONNECTING`: connected, but not yet accepted; `SS_CONNECTED` (include/uapi/linux/net.h).
const CONNECTING: u64 = 2;
const CONNECTED: u64 = 3;

/// Decodes one line, without its newline, into a row that borrows the path.
///
/// The state has only the values of the file: listen, established, unconn; a connection that waits for accept is
/// established and has inode 0. A path that starts with `@` may be an abstract name or itself.
pub fn parse_proc_unix_line(line: &[u8], netns_id: u64) -> Result<Socket<'_>, DecodeError> {
    let mut words = Words::new(line);
    let address = words.word("Num")?;
    if !address.ends_with(b":") {
        return Err(DecodeError::Word("Num"));
    }
    let refs = number(words.hex("RefCount")?, "RefCount")?;
    words.hex("Protocol")?;
    let flags = number(words.hex("Flags")?, "Flags")?;
    let kind = u8::try_from(words.hex("Type")?).map_err(|_| DecodeError::Word("Type"))?;
    let state = match words.hex("St")? {
        _ if flags & ACCEPTS != 0 => State::LISTEN,
        CONNECTING | CONNECTED => State::ESTABLISHED,
        _ => State::CLOSE,
    };
    let inode = number(words.decimal("Inode")?, "Inode")?;
    let path = words.tail().filter(|path| !path.is_empty());
    let part = UnixPart { path, refs: Some(refs), flags: Some(flags), ..empty_part(UnixType(kind)) };
    Ok(Socket { proto: Proto::Unix, family: AF_UNIX, state, inode, netns_id, unix: Some(part), ..Socket::EMPTY })
}

fn number(number: u64, column: &'static str) -> Result<u32, DecodeError> {
    u32::try_from(number).map_err(|_| DecodeError::Word(column))
}

/// Restores the leading NUL of an abstract name in a line, where the kernel wrote `@`.
///
/// Further NULs inside the name are lost, and a relative path that starts with `@` is taken for abstract: the file does
/// not distinguish them.
pub(crate) fn restore_abstract(line: &mut [u8]) {
    // Seven words come before the path.
    let mut words = 0;
    let mut before = b' ';
    for byte in line {
        if before == b' ' && *byte != b' ' {
            words += 1;
            if words == 8 {
                if *byte == b'@' {
                    *byte = 0;
                }
                return;
            }
        }
        before = *byte;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(line: &str, state: State, path: Option<&[u8]>, inode: u32) {
        let mut line = line.as_bytes().to_vec();
        restore_abstract(&mut line);
        let row = parse_proc_unix_line(&line, 3).unwrap();
        let part = row.unix.unwrap();
        assert_eq!((row.state, part.path, row.inode, row.netns_id), (state, path, inode, 3));
        assert!(part.refs.is_some() && part.flags.is_some());
    }

    #[test]
    fn lines_of_every_sort() {
        check("00000000558982bb: 00000003 00000000 00000000 0001 03  1671", State::ESTABLISHED, None, 1671);
        check("0: 2 0 00010000 0001 01 12345 /run/a b ", State::LISTEN, Some(b"/run/a b "), 12345);
        check("0: 2 0 0 0002 01 5 @abs@x", State::CLOSE, Some(b"\0abs@x"), 5);
        check("0: 2 0 0 0005 02 0 ", State::ESTABLISHED, None, 0);
        check("ffff888100000000: 2 0 0 0001 04 77  /lead", State::CLOSE, Some(b" /lead"), 77);
    }

    #[test]
    fn what_is_no_line() {
        for (text, column) in [
            ("Num       RefCount Protocol Flags    Type St Inode Path", "Num"),
            ("", "Num"),
            ("0: 2 0 0 0001", "St"),
            ("0: 2 0 0 0001 01 x", "Inode"),
            ("0: 2 0 0 1FF 01 1", "Type"),
            ("second line of a name with a newline", "Num"),
        ] {
            assert_eq!(parse_proc_unix_line(text.as_bytes(), 0), Err(DecodeError::Word(column)), "{text}");
        }
    }
}
