//! Files that nobody but root or the caller can have written.
use std::path::Path;

use sys::{Errno, Host, SysError, fs};

/// State files are kilobytes; podman's list has half a kilobyte a container.
const FILE_BYTES_MAX: usize = 8 << 20;

/// A file of root's, or of the caller's, as far as it can be read.
pub(super) fn read_trusted(host: &Host, path: &str) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    host.bytes(path, "", &mut text, |into| read_bounded(&host.real_path(path), into)).ok()?;
    Some(text)
}

// Only a regular file: opening a pipe would wait for its writer.
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
