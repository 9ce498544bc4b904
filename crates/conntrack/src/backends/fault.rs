//! Why a table could not be read, or not completely.
use std::error::Error;
use std::fmt;

use netlink::DumpError;
use record::{SourceError, SourceFault};
use sys::{Errno, SysError, WalkError};

use crate::table::CtTable;

const NOT_RECORDED: &str = "not in the recording (`netwren record FILE` records everything)";

/// The error of the backend that failed, or of both backends if one took over from the other.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    Netlink(DumpError),
    Proc(SysError),
    /// Netlink is unavailable, and /proc also failed.
    NetlinkAndProc(DumpError, SysError),
    Walk(WalkError),
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadFailure::Netlink(DumpError::Io(SysError { errno: Errno::NOT_RECORDED, .. })) => {
                f.write_str(NOT_RECORDED)
            }
            ReadFailure::Netlink(error) => error.fmt(f),
            ReadFailure::Proc(error) => error.fmt(f),
            ReadFailure::NetlinkAndProc(netlink, proc) => write!(f, "{netlink}; {proc}"),
            ReadFailure::Walk(error) => error.fmt(f),
        }
    }
}

impl Error for ReadFailure {}

impl ReadFailure {
    /// Converts the failure into the error that the caller of the source gets.
    pub(crate) fn into_error(self, table: CtTable) -> SourceError {
        let fault = match &self {
            ReadFailure::Netlink(DumpError::Malformed { .. } | DumpError::CutShort { .. }) => SourceFault::Malformed,
            ReadFailure::Netlink(error) => fault_of(error.errno()),
            ReadFailure::Proc(error) => fault_of(Some(error.errno)),
            // Without the privilege, netlink reports it and /proc cannot be opened; without connection tracking, both
            // lack it.
            ReadFailure::NetlinkAndProc(error, _) => fault_of(error.errno()),
            ReadFailure::Walk(WalkError::Unavailable(_)) => SourceFault::Unsupported,
            ReadFailure::Walk(WalkError::Broken(error)) => fault_of(Some(error.errno)),
        };
        SourceError { what: table.description(), fault, cause: Box::new(self) }
    }
}

/// The kernel's error number in an `error` of a [`crate::ConntrackSource`], if the kernel returned one.
pub fn errno_of(error: &SourceError) -> Option<Errno> {
    match error.cause.downcast_ref()? {
        ReadFailure::Netlink(error) | ReadFailure::NetlinkAndProc(error, _) => error.errno(),
        ReadFailure::Proc(error) | ReadFailure::Walk(WalkError::Broken(error)) => Some(error.errno),
        ReadFailure::Walk(WalkError::Unavailable(_)) => None,
    }
}

fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(errno) if errno.is_unsupported() => SourceFault::Unsupported,
        // EINVAL: nfnetlink does not have this subsystem.
        Some(Errno::INVAL | Errno::NOT_RECORDED) => SourceFault::Unsupported,
        _ => SourceFault::Io,
    }
}
