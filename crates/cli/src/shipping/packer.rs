//! The process that packs a file which was moved away (`--rotate-zstd`): from its stdin to its stdout.

use crate::{Exit, messages};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Packs stdin into stdout, both of them files, and says on stderr what keeps it from that; `name` is the file's name
/// for the message.
pub(crate) fn pack(name: &OsStr) -> Exit {
    // Who ships comes first. Where that is not allowed it packs all the same.
    let _ = sys::priority::lower();
    // Of its starter's rights it needs none: both files are open.
    let _ = sys::caps::drop_all();
    match packed() {
        Ok(()) => Exit::Ok,
        Err(error) => {
            messages::say(&format!("cannot pack {}: {error}: it stays as it is", name.to_string_lossy()));
            Exit::Failed
        }
    }
}

fn packed() -> io::Result<()> {
    let file = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let (from, to) = (file(io::stdin().as_fd())?, file(io::stdout().as_fd())?);
    export::pack(&from, &to)?;
    // The original goes afterwards.
    to.sync_all()
}
