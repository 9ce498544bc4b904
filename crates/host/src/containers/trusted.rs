//! Reads files that only root or the caller can have written.
use std::path::Path;

use sys::{Errno, Host, SysError, fs};

/// Maximum size of a state file. Most have kilobytes; podman's list has half a kilobyte per container.
///
/// Bound: bytes of a state file of a container runtime. Beyond: the file is not read. By: root.
const FILE_BYTES_MAX: usize = 8 << 20;

/// Reads a file owned by root or the caller; `None` if that fails.
pub(super) fn read_trusted(host: &Host, path: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    host.bytes(path, "", &mut text, |into| read_bounded(&host.real_path(path), into)).ok()?;
    Some(text)
}

// Reads regular files only: opening a pipe would wait for its writer.
fn read_bounded(path: &Path, into: &mut Vec<u8>) -> Result<(), SysError> {
    let failed = |errno| SysError::on_bytes("read", path.as_os_str().as_encoded_bytes(), errno);
    let stat = fs::stat(path)?;
    if !stat.is_file() {
        return Err(failed(Errno::INVAL));
    }
    if stat.uid != 0 && stat.uid != sys::caps::euid() {
        return Err(failed(Errno::PERM));
    }
    if stat.size > FILE_BYTES_MAX as u64 {
        return Err(failed(Errno::FBIG));
    }
    let file = fs::open(path)?;
    while fs::read_append(&file, into, 64 << 10).map_err(failed)? > 0 {
        if into.len() > FILE_BYTES_MAX {
            return Err(failed(Errno::FBIG));
        }
    }
    Ok(())
}
