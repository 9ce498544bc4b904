//! Packs a finished file under its own name, using a process without privileges.
//!
//! The file stays as it is until the packed file is complete, so an interruption loses only the packing work.

use crate::PACKER;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use sys::outfile::{Contents, FilePlace, OutfileOptions};

/// Packs the file at `path` with zstd and returns its new size in bytes. `packer` is the path of this program. The
/// effective user must own the file; on an error the file stays unchanged.
pub fn pack_in_place(path: &Path, packer: &Path) -> io::Result<u64> {
    let failed = |error: sys::SysError| io::Error::from_raw_os_error(error.errno.0);
    let place = FilePlace::find(path)?;
    let (folder, name) = (place.folder(), place.name());
    let mut part = name.to_owned();
    part.push(".part");
    let from = folder.own_file(name)?;
    let to = folder.open_output(&part, OutfileOptions::private(Contents::New))?;
    let packed = run(packer, path, from, &to).and_then(|()| folder.rename(&part, name).map_err(failed));
    match packed {
        Ok(()) => Ok(to.metadata()?.len()),
        Err(error) => {
            // The partial output is useless; the file itself is unchanged.
            let _ = folder.remove(&part);
            Err(error)
        }
    }
}

fn run(packer: &Path, path: &Path, from: File, to: &File) -> io::Result<()> {
    let status =
        Command::new(packer).arg0(PACKER).arg(path).env_clear().stdin(from).stdout(to.try_clone()?).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the compressing process failed")) }
}
