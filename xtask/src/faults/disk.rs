//! A disk that can be filled: a separate tmpfs.

use anyhow::{Result, ensure};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of 256 MiB that is unmounted on drop.
pub(super) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it in `folder`.
    pub(super) fn mount(folder: &Path) -> Result<SmallDisk> {
        let path = folder.join("disk");
        fs::create_dir(&path)?;
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256m", "netwren-faults"]).arg(&path).status()?;
        ensure!(done.success(), "mount: {done}");
        Ok(SmallDisk { path })
    }

    /// The file that records are written to.
    pub(super) fn file(&self) -> PathBuf {
        self.path.join("out")
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    /// Fills the disk completely.
    pub(super) fn fill(&self) {
        let Ok(mut filler) = File::create(self.filler()) else { return };
        for size in [1 << 20, 4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Frees the space again.
    pub(super) fn make_room(&self) {
        let _ = fs::remove_file(self.filler());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}
