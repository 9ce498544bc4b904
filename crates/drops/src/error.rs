//! Why drops could not be counted.
use std::error::Error;
use std::fmt;

use record::{SourceError, SourceFault};
use sys::{Errno, SysError};

/// Name of the data, for messages.
const WHAT: &str = "dropped packets";

/// A failure to count, read or decode drops.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DropsError {
    /// netwren was built without BPF.
    WithoutBpf,
    /// The program could not be loaded or read: the cause in words, and the errno if there is one.
    #[cfg(feature = "bpf")]
    Bpf(bpf::BpfError),
    /// Counters do not show single packets.
    NoPackets,
    /// The kernel's trace is unavailable.
    NoTrace(Box<str>),
    /// The kernel's drop monitor is unavailable.
    NoMonitor(Box<str>),
    /// BPF, the kernel's trace and its drop monitor are all unavailable.
    NoneOf {
        /// BPF's error.
        bpf: Box<DropsError>,
        /// The trace's error.
        trace: Box<DropsError>,
        /// The drop monitor's error.
        net_dm: Box<DropsError>,
    },
    /// The recording holds no drops, or a system call failed.
    Io(SysError),
    /// A malformed block of a recording.
    Malformed(&'static str),
}

impl fmt::Display for DropsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DropsError::WithoutBpf => f.write_str("netwren was built without BPF"),
            #[cfg(feature = "bpf")]
            DropsError::Bpf(error) => error.fmt(f),
            DropsError::NoPackets => f.write_str("counters show no single packets"),
            DropsError::NoTrace(why) | DropsError::NoMonitor(why) => write!(f, "{why}"),
            DropsError::NoneOf { bpf, trace, net_dm } => {
                write!(f, "{bpf}; nor via the kernel's trace: {trace}; nor via its drop monitor: {net_dm}")
            }
            DropsError::Io(SysError { errno: Errno::NOT_RECORDED, .. }) => {
                f.write_str("not in the recording (`netwren drops --record FILE` records them)")
            }
            DropsError::Io(error) => error.fmt(f),
            DropsError::Malformed(why) => write!(f, "the recording is malformed: {why}"),
        }
    }
}

impl Error for DropsError {}

#[cfg(feature = "bpf")]
impl From<bpf::BpfError> for DropsError {
    fn from(error: bpf::BpfError) -> DropsError {
        DropsError::Bpf(error)
    }
}

impl From<SysError> for DropsError {
    fn from(error: SysError) -> DropsError {
        DropsError::Io(error)
    }
}

impl From<DropsError> for SourceError {
    fn from(error: DropsError) -> SourceError {
        let cause = match &error {
            DropsError::NoneOf { bpf, .. } => &**bpf,
            error => error,
        };
        let fault = match cause {
            DropsError::WithoutBpf
            | DropsError::NoPackets
            | DropsError::NoTrace(_)
            | DropsError::NoMonitor(_)
            | DropsError::NoneOf { .. } => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(bpf::BpfError::Denied { .. }) => SourceFault::Denied,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(error) if error.is_unavailable() => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(_) => SourceFault::Io,
            DropsError::Io(error) if error.errno.is_denied() => SourceFault::Denied,
            DropsError::Io(_) => SourceFault::Io,
            DropsError::Malformed(_) => SourceFault::Malformed,
        };
        SourceError { what: WHAT, fault, cause: Box::new(error) }
    }
}
