//! Errors of this crate.
use std::fmt;

use netlink::DumpError;
use sys::{Errno, SysError};

/// A part of the host that could not be read, or a namespace that does not exist.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostError {
    /// The system refused, or the recording does not contain the answer.
    Sys(SysError),
    /// A netlink dump failed.
    Netlink(netlink::DumpError),
    /// Malformed bytes in a recording.
    Garbled {
        /// The expected data.
        what: &'static str,
        /// Offset of the malformed part.
        at: usize,
    },
    /// No such network namespace.
    NoNetns {
        /// The name as the user wrote it, escaped.
        wanted: Box<str>,
        /// The existing names, escaped.
        have: Vec<Box<str>>,
        /// Why containers of that name may have been missed.
        missing: Option<String>,
    },
    /// Containers of one name are in different network namespaces.
    ManyContainers {
        /// The name as the user wrote it, escaped.
        wanted: Box<str>,
        /// For each namespace a process that identifies it, with the container's id, escaped.
        have: Vec<Box<str>>,
    },
}

impl HostError {
    /// True if a replay needs data that the recorded run did not read.
    pub fn is_not_recorded(&self) -> bool {
        match self {
            HostError::Sys(error) | HostError::Netlink(DumpError::Io(error)) => error.errno == Errno::NOT_RECORDED,
            _ => false,
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Sys(error) => error.fmt(f),
            HostError::Netlink(error) => error.fmt(f),
            HostError::Garbled { what, at } => write!(f, "the recorded {what} are malformed at byte {at}"),
            HostError::ManyContainers { wanted, have } => write!(
                f,
                "several containers in different network namespaces are called `{wanted}`: {}; use a PID instead",
                have.join(", ")
            ),
            HostError::NoNetns { wanted, have, missing } => {
                write!(f, "no network namespace `{wanted}`: ")?;
                match have.as_slice() {
                    [] => f.write_str("no namespace has a name here")?,
                    have => write!(f, "have {}", have.join(", "))?,
                }
                f.write_str("; a container's name, a PID or a path like /proc/1/ns/net works too")?;
                missing.iter().try_for_each(|missing| write!(f, "; {missing}"))
            }
        }
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HostError::Sys(error) => Some(error),
            HostError::Netlink(error) => Some(error),
            HostError::Garbled { .. } | HostError::NoNetns { .. } | HostError::ManyContainers { .. } => None,
        }
    }
}

impl From<netlink::DumpError> for HostError {
    fn from(error: netlink::DumpError) -> HostError {
        HostError::Netlink(error)
    }
}

impl From<SysError> for HostError {
    fn from(error: SysError) -> HostError {
        HostError::Sys(error)
    }
}
