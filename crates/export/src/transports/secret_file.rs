//! Files and variables of the environment with passwords.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Mode bits of everybody except the owner.
const GROUP_AND_OTHERS_MODE: u32 = 0o077;
/// Largest password file, in bytes.
///
/// Bound: bytes of a file of passwords. Beyond: the file is refused. By: the author of the file.
const FILE_MAX: u64 = 1 << 20;

/// Reads a file that only its owner may access. The error names the file, and never contains its text.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()));
    let (text, stat) = sys::infile::read_trusted(path, FILE_MAX).map_err(failed)?;
    if stat.mode & GROUP_AND_OTHERS_MODE != 0 {
        let mode = stat.mode & 0o7777;
        let text = format!("{}: other users may access this file (mode {mode:04o}; chmod 600)", path.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    String::from_utf8(text).map_err(|_| failed(ErrorKind::InvalidData.into()))
}

/// The password in the first line of a file, or in the variable of the environment; empty if there is none.
#[cfg(any(feature = "http", feature = "kafka"))]
pub(super) fn password(file: Option<&Path>, variable: &str) -> io::Result<String> {
    match file {
        Some(path) => Ok(read(path)?.lines().next().unwrap_or_default().to_owned()),
        None => Ok(std::env::var(variable).unwrap_or_default()),
    }
}
