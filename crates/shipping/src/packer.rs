//! The process that compresses a rotated file (`--rotate-zstd`), from its stdin to its stdout.

use runtime::exit::Exit;
use runtime::messages;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use sys::caps::CapSet;

/// Compresses stdin to stdout, both files, and reports an error on stderr; `name` is the file's name for the message.
pub fn pack(name: &OsStr) -> Exit {
    // Shipping has priority. If the priority cannot be lowered, the file is still compressed.
    let _ = sys::priority::lower();
    // Both files are open.
    sys::rights::keep_open_only(CapSet::default());
    match packed() {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let name = sys::escape_bytes(name.as_encoded_bytes());
            messages::print_message(&format!("cannot compress {name}: {error}: the file is left uncompressed"));
            Exit::Failed
        }
    }
}

fn packed() -> io::Result<()> {
    let file = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let (from, to) = (file(io::stdin().as_fd())?, file(io::stdout().as_fd())?);
    export::zstd::pack(&from, &to)?;
    // The caller removes the original afterwards.
    to.sync_all()
}
