//! `-F FILE`: reads the expression, or the rest of it, from a file.

use super::stop::Stop;
use crate::strerror::strerror;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::infile;

/// ss has no limit; no realistic filter is this large.
///
/// Bound: bytes of the file of `ss -F`. Beyond: the file is refused. By: the author of the file.
const BYTES_MAX: u64 = 1 << 20;
/// ss rejects longer lines.
const LINE_MAX: usize = 1022;

/// Reads the lines of the file `name` as words of the expression; a name that begins with `-` means stdin.
pub(super) fn read(name: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
    let text = match name.first() {
        Some(b'-') => infile::read_input(std::io::stdin().lock(), BYTES_MAX),
        _ => infile::read(Path::new(OsStr::from_bytes(name)), BYTES_MAX),
    };
    let text = text.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => Stop::fail("Too long filter file".to_owned(), 255),
        _ => Stop::fail(format!("fopen filter file: {}", strerror(&error)), 255),
    })?;
    lines(&text)
}

/// The significant lines. Skips comments, and lines that begin with the digit 0, which ss treats as empty.
fn lines(text: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
    let mut lines = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        if line.len() > LINE_MAX {
            return Err(Stop::fail("Too long line in filter".to_owned(), 255));
        }
        match line.first() {
            Some(b'#' | b'0') | None => {}
            Some(0) => return Err(Stop::fail("Invalid line".to_owned(), 255)),
            Some(_) => lines.push(line.split(|&b| b == 0).next().unwrap_or_default().to_vec()),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn which_lines_count() {
        let text = b"# web\nsport = :80\n\n0 is nothing\n or dport = :443 \\ x\nend\0junk";
        let expected: [&[u8]; 3] = [b"sport = :80", b" or dport = :443 \\ x", b"end"];
        assert_eq!(lines(text).unwrap(), expected);
        assert!(lines(b"").unwrap().is_empty());
        assert!(lines(&[b'x'; 1022]).is_ok());
        assert_eq!(lines(&[b'x'; 1023]).unwrap_err().err, "Too long line in filter\n");
        assert_eq!(lines(b"\0x").unwrap_err().code, 255);
    }

    #[test]
    fn what_cannot_be_read() {
        let stop = read(b"/nonexistent").unwrap_err();
        assert_eq!((stop.err.as_str(), stop.code), ("fopen filter file: No such file or directory\n", 255));
    }
}
