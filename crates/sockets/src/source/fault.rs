//! Why a table could not be read.
use std::error::Error;
use std::fmt;

use netlink::DumpError;
use record::SourceFault;
use sys::{Errno, SysError};

/// Neither door opened.
#[derive(Debug)]
pub(super) struct NoDoor {
    pub(super) netlink: DumpError,
    pub(super) proc: SysError,
}

impl fmt::Display for NoDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.netlink, self.proc)
    }
}

impl Error for NoDoor {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.proc)
    }
}

/// The run that made the recording did not read this table.
#[derive(Debug)]
pub(super) struct NotRecorded(pub(super) &'static str);

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording holds no {}", self.0)
    }
}

impl Error for NotRecorded {}

pub(crate) fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::NOSYS) => {
            SourceFault::Unsupported
        }
        _ => SourceFault::Io,
    }
}

// The kernel has no such table, or the run that was recorded found none.
pub(super) fn lacks_table(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOT_RECORDED)
}
