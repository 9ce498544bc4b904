//! The directory in which files are created, and the permission to do so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The directory part of a path; empty for the current directory.
pub(super) fn place_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Like `place_of`, but `.` for the current directory.
pub fn folder_of(path: &Path) -> &Path {
    Some(place_of(path)).filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True if the file, or a new one in its directory, can be written without privileges over other users' files.
pub fn can_write_unprivileged(path: &Path) -> bool {
    let euid = sys::caps::euid();
    let allows = |facts: &fs::Metadata, bits: u32| {
        let bits = if facts.uid() == euid { bits << 6 } else { bits };
        facts.mode() & bits == bits
    };
    let is_file_ours = fs::metadata(path).map_or(true, |facts| allows(&facts, 0o2));
    is_file_ours && fs::metadata(folder_of(path)).is_ok_and(|facts| allows(&facts, 0o3))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_of_ones_own_needs_no_right_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new");
        assert!(can_write_unprivileged(&path));
        fs::write(&path, "").unwrap();
        assert!(can_write_unprivileged(&path));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(!can_write_unprivileged(&path));
        assert!(
            !can_write_unprivileged(Path::new("/proc/new")) && !can_write_unprivileged(&dir.path().join("none/new"))
        );
    }
}
