//! Reasons why a spool cannot be used, with what to do.

use crate::control::escape_path;
use std::fmt;
use std::io;
use std::path::PathBuf;
use sys::SysError;

/// The reason why a spool was refused. Nothing in it was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpoolError {
    /// Another process uses it.
    InUse {
        /// The spool.
        path: PathBuf,
        /// Its process id, if the lock file has it.
        pid: Option<u32>,
    },
    /// A directory or a file in it belongs to another user.
    Owner {
        /// The directory or the file.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Others than the owner may write to it.
    Writable {
        /// The directory or the file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is a link.
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The directory has a file that does not belong to a spool.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It was written by another version.
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the format.
        found: u16,
    },
    /// A system call failed.
    Failed {
        /// The attempt and its object.
        what: String,
        /// The cause.
        error: io::Error,
    },
}

impl SpoolError {
    /// The error of a system call on `path`.
    pub(super) fn sys(path: PathBuf, error: &SysError) -> SpoolError {
        // Links are not followed: the kernel returns ELOOP for files and ENOTDIR for directories.
        let is_link = path.symlink_metadata().is_ok_and(|facts| facts.file_type().is_symlink());
        if is_link {
            return SpoolError::Link { path };
        }
        let what = format!("cannot open {}", escape_path(&path));
        SpoolError::Failed { what, error: io::Error::from_raw_os_error(error.errno.0) }
    }

    /// The error of reading or writing `path`.
    pub(super) fn io(what: &str, path: &std::path::Path, error: io::Error) -> SpoolError {
        SpoolError::Failed { what: format!("{what} {}", escape_path(path)), error }
    }
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpoolError::InUse { path, pid } => {
                write!(f, "the spool {} is in use by ", escape_path(path))?;
                match pid {
                    Some(pid) => write!(f, "process {pid}: end it first, or use another directory"),
                    None => write!(f, "another process: end it first, or use another directory"),
                }
            }
            SpoolError::Owner { path, uid } => {
                write!(
                    f,
                    "{} belongs to user {uid}: a spool must belong to the user that runs netwren; use another \
                    directory",
                    escape_path(path)
                )
            }
            SpoolError::Writable { path, mode } => write!(
                f,
                "other users may write to {0} (mode {mode:04o}): run `chmod go-w {0}`, or use another directory",
                escape_path(path)
            ),
            SpoolError::Link { path } => {
                write!(f, "{} is a link, which netwren does not follow: name the directory itself", escape_path(path))
            }
            SpoolError::Foreign { path } => {
                write!(f, "{} is not part of a spool: move it away, or use another directory", escape_path(path))
            }
            SpoolError::Version { path, found } => write!(
                f,
                "{} was written by another version of netwren (format {found}, unknown to this one): let that version \
                 deliver the queued rows, or move the directory away",
                escape_path(path)
            ),
            SpoolError::Failed { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for SpoolError {}
