//! Packing a finished file by a process without rights, under its own name.
//!
//! The file stays as it is until the packed one is complete, so that an interruption costs nothing but the packing.

use crate::PACKER;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use sys::outfile::{Contents, FilePlace, Opening};

/// Packs the file at `path` with zstd; returns its new size in bytes. `packer` is this program. The file must be the
/// caller's own; on an error it is left as it was.
pub fn pack_in_place(path: &Path, packer: &Path) -> io::Result<u64> {
    let failed = |error: sys::SysError| io::Error::from_raw_os_error(error.errno.0);
    let place = FilePlace::find(path)?;
    let (folder, name) = (place.folder(), place.name());
    let mut part = name.to_owned();
    part.push(".part");
    let from = folder.own_file(name)?;
    let to = folder.open_output(&part, Opening::private(Contents::New))?;
    let packed = run(packer, path, from, &to).and_then(|()| folder.rename(&part, name).map_err(failed));
    match packed {
        Ok(()) => Ok(to.metadata()?.len()),
        Err(error) => {
            // What is left of it is of no use; the file itself is untouched.
            let _ = folder.remove(&part);
            Err(error)
        }
    }
}

fn run(packer: &Path, path: &Path, from: File, to: &File) -> io::Result<()> {
    let status =
        Command::new(packer).arg0(PACKER).arg(path).env_clear().stdin(from).stdout(to.try_clone()?).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the packing process failed")) }
}
